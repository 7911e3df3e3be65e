"""The dialogs: rename, model, share, code, edit the state. One is open at a time.

Which one is open is part of the page state, so a rerun keeps it open and a test can open it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace

import streamlit as st

from memory_core import state as states
from memory_core.errors import InvalidInput, MemoryInspectorError, StaleVersion
from memory_core.messages import repair_json
from ui import (
    embedding_form,
    model_form,
    problems,
    resources,
    sessions,
    strategy_form,
    strategy_table,
)
from ui.sharing import link
from ui.snippet import snippet
from ui.state import PageState, mine, seed, value_of
from ui.view_models.state import state_view

_TITLE, _STATE = "rename-title", "state-json"
_SHAPES: Mapping[str, tuple[type, str]] = {
    "workflow": (str, "a text"),
    "step": (str, "a text"),
    "slots": (dict, "a JSON object"),
    "preferences": (dict, "a JSON object"),
    "key_facts": (list, "a list"),
}


def draw(page: PageState) -> None:
    """Open the dialog that is asked for, if any."""
    shown = _DIALOGS.get(page.dialog)
    if shown is not None:
        shown()


def open_model() -> None:
    """Ask for the model dialog."""
    mine().dialog = "model"


def open_strategies() -> None:
    """Ask for the table of all strategies; from inside another dialog, in its place."""
    mine().dialog = "strategies"
    st.rerun()


def open_state() -> None:
    """Ask for the form that edits the state."""
    page = mine()
    page.dialog = "state"
    if page.chat is not None:
        page.state_base = page.chat.state.version
        seed(_STATE, state_view(page.chat.state).editable)
    st.rerun()


def close() -> None:
    """Close whatever dialog is open; what was not applied in it is forgotten."""
    page = mine()
    page.dialog, page.blocks = "", None


@st.dialog("Rename session", on_dismiss=close)
def _rename() -> None:
    page = mine()
    with st.form("rename", border=False):
        st.text_input(
            "Title",
            page.info.title if page.info else "",
            key=_TITLE,
            max_chars=sessions.MAX_TITLE,
        )
        st.form_submit_button("Rename", type="primary", on_click=_do_rename)
    _error(page)


@st.dialog("Model", on_dismiss=close, width="medium")
def _model() -> None:
    page, engine = mine(), resources.engine()
    if engine is not None:
        chat, strategy, embeddings = st.tabs(["Chat model", "Memory strategy", "Embeddings"])
        with chat:
            model_form.draw(page, engine, close)
        with strategy:
            strategy_form.draw(page, engine, close, open_strategies)
        with embeddings:
            embedding_form.draw(page, engine)
    _error(page)


@st.dialog("Memory strategies side by side", on_dismiss=close, width="large")
def _strategies() -> None:
    strategy_table.draw()
    st.button("Choose one", key="strategies-back", type="primary", on_click=_back)


def _back() -> None:
    open_model()
    st.rerun()


@st.dialog("Share these settings", on_dismiss=close, width="medium")
def _link() -> None:
    st.caption(
        "Whoever opens this address starts a chat with exactly these knobs. It holds no message "
        "and no key; it does hold the system prompt if you changed it."
    )
    st.code(link(st.context.url or "", mine().settings), language=None, wrap_lines=True)


@st.dialog("These settings as code", on_dismiss=close, width="large")
def _code() -> None:
    page = mine()
    st.caption("Runs as it is, beside the package `memory_core`.")
    setup = page.chat.setup if page.chat is not None else None
    st.code(snippet(page.settings, page.model, setup), language="python")


@st.dialog("Edit the state", on_dismiss=close, width="large")
def _state() -> None:
    page = mine()
    st.caption("Saved as a new version; the next prompt is made with it.")
    with st.form("edit-state", border=False):
        st.text_area("State as JSON", key=_STATE, height=360)
        st.form_submit_button("Save", type="primary", on_click=_do_edit_state)
    _error(page)
    if page.parted is not None:
        st.page_link("pages/4_Sessions.py", label="Compare both versions and merge them")


def _error(page: PageState) -> None:
    if page.dialog_error is not None:
        problems.show(page.dialog_error)
        page.dialog_error = None


def _do_rename() -> None:
    page, engine = mine(), resources.engine()
    if engine is not None:
        _try(page, lambda: sessions.rename(page, engine, str(value_of(_TITLE) or "")))


def _do_edit_state() -> None:
    page = mine()
    _try(page, lambda: _save_state(page, str(value_of(_STATE) or "")))


def _save_state(page: PageState, text: str) -> None:
    chat = page.chat
    if chat is None:
        return
    edited = _edited(chat.state, text)
    try:
        chat.edit_state(edited, expect=page.state_base)
    except StaleVersion as exc:
        mine().parted = replace(edited, version=page.state_base + 1)
        raise StaleVersion(
            f"The state is at version {exc.found} by now; you edited version {exc.expected}.",
            expected=exc.expected,
            found=exc.found,
        ) from exc


def _edited(now: states.AgentState, text: str) -> states.AgentState:
    """Return the state with the edited fields; raise :class:`InvalidInput` for other shapes."""
    try:
        value, _ = repair_json(json.loads(text, parse_constant=_no_number))
    except RecursionError as exc:
        raise InvalidInput("The state is nested too deeply.") from exc
    except ValueError as exc:
        raise InvalidInput(f"This is not readable as JSON: {exc}.") from exc
    if not isinstance(value, Mapping):
        raise InvalidInput("The state must be a JSON object.")
    fields = states.to_json(now)
    unknown = [name for name in value if name not in fields]
    if unknown:
        raise InvalidInput(f"The state has no field {str(unknown[0])[:40]!r}.")
    for name, (kind, called) in _SHAPES.items():
        if not isinstance(value.get(name, fields[name]), kind):
            raise InvalidInput(f"{name} must be {called}.")
    return replace(states.from_json({**fields, **value}), user=now.user, session=now.session)


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")


def _try(page: PageState, action: Callable[[], None]) -> None:
    """Do it and close the dialog; keep it open and say why where that fails."""
    try:
        action()
    except MemoryInspectorError as exc:
        page.dialog_error = exc
    else:
        page.dialog, page.scene = "", None
        st.rerun()


_DIALOGS: Mapping[str, Callable[[], None]] = {
    "rename": _rename,
    "model": _model,
    "strategies": _strategies,
    "link": _link,
    "code": _code,
    "state": _state,
}
