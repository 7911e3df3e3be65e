"""The embedding settings: which model makes the vectors, and re-embedding for another one."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import streamlit as st

from memory_core.errors import MemoryInspectorError
from memory_core.models.catalogue import (
    MINILM,
    OPENAI,
    OPENAI_LIKE,
    WORDLLAMA,
    EmbeddingChoice,
    find_key,
)
from ui import sessions
from ui.resources import secrets
from ui.state import PageState, mine, seed, value_of
from ui.view_models.text import plural

if TYPE_CHECKING:
    from memory_core.engine import Engine
    from memory_core.longterm import LongTermMemory

_KINDS = {
    WORDLLAMA: "wordllama (built in)",
    MINILM: "MiniLM (Chroma's own; one download)",
    OPENAI: "OpenAI",
    OPENAI_LIKE: "OpenAI-compatible URL",
}
_NAMES = {OPENAI: "text-embedding-3-small", OPENAI_LIKE: "nomic-embed-text"}
_KIND, _NAME, _URL, _KEY = "embed-kind", "embed-name", "embed-url", "embed-key"


def draw(page: PageState, engine: Engine) -> None:
    """Draw the form and how the open session's long-term memory stands under its model."""
    now = page.embedding or EmbeddingChoice()
    seed(_KIND, value_of(_KIND) or now.kind)
    kind = st.selectbox(
        "Texts are embedded by", list(_KINDS), key=_KIND, format_func=_KINDS.__getitem__
    )
    if kind == MINILM:
        _tell_download()
    if kind in _NAMES:
        _server_fields(kind, now)
    st.button("Use this embedding model", key="embed-use", on_click=_use, args=(engine,))
    if page.chat is not None and page.chat.session.longterm is not None:
        _standing(page, page.chat.session.longterm)


def _tell_download() -> None:
    from memory_core.models.embeddings import needs_download

    if needs_download(EmbeddingChoice(kind=MINILM)):
        st.warning(
            "Its weights (about 80 MB) are not on this machine: the first use downloads them "
            "once. Everything else here works without a network.",
            icon=":material/download:",
        )


def _server_fields(kind: str, now: EmbeddingChoice) -> None:
    here = now.kind == kind
    st.text_input("Model name", now.model if here else _NAMES[kind], key=f"{_NAME}-{kind}")
    if kind == OPENAI_LIKE:
        url = now.base_url if here else "http://localhost:11434/v1"
        st.text_input("Base URL", url, key=_URL)
    found = find_key(kind, os.environ, secrets()) is not None
    st.text_input(
        "Key",
        type="password",
        key=_KEY,
        placeholder="found in secrets or environment" if found else "none found",
        help="Lives in this browser session only; it is never written anywhere.",
    )


def _use(engine: Engine) -> None:
    page, kind = mine(), str(value_of(_KIND))
    page.embedding_key = str(value_of(_KEY) or page.embedding_key)
    page.dialog_error = None
    try:
        choice = EmbeddingChoice(
            kind=kind,
            model=str(value_of(f"{_NAME}-{kind}") or ""),
            base_url=str(value_of(_URL) or "") if kind == OPENAI_LIKE else "",
        )
        sessions.use_embedding(page, engine, choice)
    except MemoryInspectorError as exc:
        page.dialog_error = exc


def _standing(page: PageState, longterm: LongTermMemory) -> None:
    """Say what the model's collection holds; offer to embed what it lacks."""
    standing = longterm.standing(page.user)
    st.caption(
        f"{longterm.embedder.name}: {standing.memories:,} memories stored, "
        f"{standing.waiting:,} without a vector of this model."
    )
    for notice in standing.notices:
        st.caption(notice)
    if standing.waiting and st.button("Re-embed now", key="embed-again", type="primary"):
        bar = st.progress(0.0, "Embedding…")

        def progress(done: int, total: int) -> None:
            bar.progress(done / total if total else 1.0, f"{done:,} of {total:,} texts embedded")

        try:
            done = longterm.rebuild(page.user, progress)
        except MemoryInspectorError as exc:
            page.dialog_error = exc
        else:
            bar.progress(1.0, f"{plural(done, 'text')} embedded.")
