"""The sidebar below the page links: sessions, the model, the knobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from memory_core.errors import MemoryInspectorError
from memory_core.models.catalogue import LOCAL, OFFLINE, OPENAI
from ui import dialogs, knobs, problems, resources, sessions
from ui.inspector import REDRAW
from ui.problems import plain
from ui.state import PageState, keyed, mine, value_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from memory_core.engine import Engine
    from memory_core.stores.protocols import SessionInfo

_SESSION, _MENU = "session", "session-menu"
_RENAME, _COPY, _COMPARE, _LINK, _CODE, _DELETE = (
    "Rename",
    "Duplicate",
    "Compare memories on it",
    "Share settings as a link",
    "Copy settings as code",
    "Delete",
)


def draw(page: PageState, engine: Engine | None) -> None:
    """Draw everything; without an engine, what can be drawn without one."""
    busy = engine is None or page.live is not None or page.player is not None
    if engine is not None:
        _sessions(page, engine, disabled=busy)
    name = {OFFLINE: "offline reader", LOCAL: "local file"}.get(page.model.kind, page.model.model)
    st.button(
        f"Model: {name}",
        key="model-open",
        icon=":material/smart_toy:" if page.model.kind != OPENAI else ":material/cloud:",
        width="stretch",
        disabled=busy,
        on_click=dialogs.open_model,
    )
    knobs.draw(redraw=REDRAW, disabled=busy)


def _sessions(page: PageState, engine: Engine, *, disabled: bool) -> None:
    listed = {info.key.session: info for info in engine.sessions(page.user) if not info.archived}
    open_one = page.info.key.session if page.info is not None else ""
    if page.info is not None:
        listed.setdefault(open_one, page.info)
    labels = _labels(list(listed.values()))
    st.selectbox(
        "Session",
        list(listed),
        index=list(listed).index(open_one) if open_one in listed else None,
        key=keyed(page, _SESSION),
        format_func=labels.__getitem__,
        disabled=disabled,
        on_change=_switch,
    )
    with st.container(horizontal=True):
        st.button(
            "New chat", key="session-new", icon=":material/add:", disabled=disabled, on_click=_new
        )
        st.menu_button(
            "More",
            [_RENAME, _COPY, _COMPARE, _LINK, _CODE, _DELETE],
            key=_MENU,
            disabled=disabled,
            on_click=_chosen,
        )
    if page.dialog == _COMPARE and page.info is not None:
        page.dialog = ""
        st.switch_page("pages/3_Compare.py", query_params={"session": open_one})
    if page.deleted is not None:
        st.button(
            f"Undo: bring back “{plain(page.deleted.title)}”",
            key="session-undo",
            icon=":material/undo:",
            type="primary",
            on_click=_acting(sessions.undelete),
        )


def _labels(infos: Sequence[SessionInfo]) -> dict[str, str]:
    """Return a label for each session; no two are the same, for the browser answers by label."""
    labels: dict[str, str] = {}
    for info in infos:
        label = f"{info.title} · {info.turns}" if info.turns else info.title
        if label in labels.values():
            label = f"{label} · {info.created:%d %b %H:%M:%S}"
        if label in labels.values():
            label = f"{label} · {info.key.session[:6]}"
        labels[info.key.session] = label
    return labels


def _switch() -> None:
    page = mine()
    wanted, engine = str(value_of(keyed(page, _SESSION))), resources.engine()
    if engine is None or (page.info is not None and page.info.key.session == wanted):
        return
    found = next((i for i in engine.sessions(page.user) if i.key.session == wanted), None)
    if found is not None:
        _acting(lambda page, engine: sessions.open_session(page, engine, found))()


def _new() -> None:
    _acting(sessions.open_new)()


def _chosen() -> None:
    choice = value_of(_MENU)
    if choice == _COPY:
        _acting(sessions.duplicate)()
    elif choice == _DELETE:
        _acting(sessions.delete)()
    elif choice == _COMPARE:
        mine().dialog = _COMPARE
    elif choice in (_RENAME, _LINK, _CODE):
        mine().dialog = {_RENAME: "rename", _LINK: "link", _CODE: "code"}[str(choice)]


def _acting(action: Callable[[PageState, Engine], None]) -> Callable[[], None]:
    """Return a callback that does something with the engine; an error is kept for the page."""

    def act() -> None:
        page, engine = mine(), resources.engine()
        if engine is None:
            return
        page.deleted = page.deleted if action is sessions.undelete else None

        def tell(error: MemoryInspectorError) -> None:
            page.notice = f"{error} {error.next_step}".strip()

        with problems.caught(tell, "the session list"):
            action(page, engine)

    return act
