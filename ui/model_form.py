"""The model settings: which chat model answers, where it runs, and the key, kept nowhere."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

import streamlit as st

from memory_core.errors import MemoryInspectorError
from memory_core.models.catalogue import (
    LOCAL,
    OFFLINE,
    OPENAI,
    OPENAI_LIKE,
    ModelChoice,
    find_key,
)
from ui import sessions
from ui.resources import secrets
from ui.state import PageState, mine, seed, value_of

if TYPE_CHECKING:
    from memory_core.engine import Engine

_KINDS = {
    OFFLINE: "Offline reader (built in; not a language model)",
    OPENAI: "OpenAI",
    OPENAI_LIKE: "OpenAI-compatible URL (Ollama, LM Studio, vLLM, llama.cpp)",
    LOCAL: "Local GGUF file",
}
_NAMES = {OPENAI: "gpt-4o-mini", OPENAI_LIKE: "llama3.2", LOCAL: ""}
_WINDOWS = {OPENAI: 128_000, OPENAI_LIKE: 8192, LOCAL: 2048}
_KIND, _NAME, _URL, _KEY = "model-kind", "model-name", "model-url", "model-key"
_WINDOW, _TIMEOUT, _TOOLS = "model-window", "model-timeout", "model-tools"


def draw(page: PageState, engine: Engine, close: Callable[[], None]) -> None:
    """Draw the form; a choice that cannot be used says so and changes nothing."""
    now = page.model
    seed(_KIND, value_of(_KIND) or now.kind)
    kind = st.selectbox(
        "Answers come from", list(_KINDS), key=_KIND, format_func=_KINDS.__getitem__
    )
    if kind == OFFLINE:
        st.caption("It quotes the best-supported sentence of the prompt it was handed.")
    else:
        _fields(kind, now if now.kind == kind else None, page)
    st.button(
        "Use this model", key="model-use", type="primary", on_click=_use, args=(engine, close)
    )


def _fields(kind: str, now: ModelChoice | None, page: PageState) -> None:
    window = now.context_window if now else _WINDOWS[kind]
    name = now.model if now else _NAMES[kind]
    label = "Path of the GGUF file" if kind == LOCAL else "Model name"
    st.text_input(label, name, key=f"{_NAME}-{kind}")
    if kind == OPENAI_LIKE:
        url = now.base_url if now else "http://localhost:11434/v1"
        st.text_input("Base URL", url, key=_URL)
    if kind != LOCAL:
        _key_field(kind, page)
    else:
        st.caption(
            "Served in this process on a loopback port and stopped with the app. Needs "
            "`pip install -r requirements-local.txt`."
        )
    st.number_input(
        "Context window, tokens", min_value=256, value=window, step=256, key=f"{_WINDOW}-{kind}"
    )
    timeout = now.timeout_seconds if now else 60.0
    st.number_input("Timeout, seconds", min_value=1.0, value=timeout, key=_TIMEOUT)
    calls = now.function_calling if now else kind != LOCAL
    st.toggle("The model can call tools", calls, key=f"{_TOOLS}-{kind}")


def _key_field(kind: str, page: PageState) -> None:
    found = find_key(kind, os.environ, secrets()) is not None
    seed(_KEY, value_of(_KEY) or page.api_key)
    st.text_input(
        "Key",
        type="password",
        key=_KEY,
        placeholder="found in secrets or environment" if found else "none found",
        help="Lives in this browser session only; it is never written anywhere.",
    )


def _use(engine: Engine, close: Callable[[], None]) -> None:
    page, kind = mine(), str(value_of(_KIND))
    page.api_key = str(value_of(_KEY) or page.api_key)
    try:
        choice = _choice(kind)
        sessions.use_model(page, engine, choice)
    except MemoryInspectorError as exc:
        page.dialog_error = exc
        return
    close()
    st.rerun()


def _choice(kind: str) -> ModelChoice:
    if kind == OFFLINE:
        return ModelChoice()
    return ModelChoice(
        kind=kind,
        model=str(value_of(f"{_NAME}-{kind}") or ""),
        base_url=str(value_of(_URL) or "") if kind == OPENAI_LIKE else "",
        context_window=int(value_of(f"{_WINDOW}-{kind}") or 0),
        timeout_seconds=float(value_of(_TIMEOUT) or 0),
        function_calling=bool(value_of(f"{_TOOLS}-{kind}")),
    )
