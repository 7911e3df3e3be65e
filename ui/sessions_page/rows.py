"""The list of sessions: search, a line each with its actions, and more on request."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import streamlit as st

from memory_core.errors import MemoryInspectorError
from memory_core.listing import search_sessions, session_size
from memory_core.session import utc_now
from memory_core.stores.protocols import SessionInfo
from ui import resources, sessions
from ui.sessions_page import actions
from ui.sessions_page.place import (
    ARCHIVED,
    AT_ONCE,
    DELETED,
    EXPORT,
    SESSIONS,
    SessionsPlace,
    place_of,
)
from ui.state import PageState, mine, value_of
from ui.view_models.sessions_page import SessionRow, session_row
from ui.view_models.text import plural

if TYPE_CHECKING:
    from memory_core.engine import Engine

_RENAME, _COPY, _COMPARE, _EXPORT, _ARCHIVE, _UNARCHIVE, _DELETE = (
    "Rename",
    "Duplicate",
    "Compare memories on it",
    "Export",
    "Archive",
    "Back from the archive",
    "Delete",
)
_SEARCH, _TITLE = "sessions-search", "sessions-title"
_EMPTY = {
    SESSIONS: "No session is in use. Start one in the Playground, or import a conversation.",
    ARCHIVED: "The archive is empty. Archived sessions stay out of the lists and lose nothing.",
    DELETED: "Nothing is deleted. What you delete waits here until you erase it for good.",
}


def draw(page: PageState, engine: Engine, infos: Sequence[SessionInfo]) -> None:
    """Draw the sessions of the view that is open."""
    place = place_of(page)
    if place.gone is not None and place.view != DELETED:
        _undo(place.gone)
    if not infos:
        st.info(_EMPTY[place.view], icon=":material/folder_open:")
        return
    if place.view == DELETED:
        _erase_all(place, infos)
    else:
        infos = _search(place, infos)
    excerpts = {hit.info.key.session: hit.excerpt for hit in place.found}
    for info in infos[: place.shown]:
        size = _size(place, engine, info)
        found = excerpts.get(info.key.session, "")
        _row(page, place, session_row(info, now=utc_now(), size=size, found=found))
    if len(infos) > place.shown:
        more = min(AT_ONCE, len(infos) - place.shown)
        st.button(f"Show {more} more", key="sessions-more", width="stretch", on_click=_more)


def act(action: Callable[[PageState, Engine], object], said: str = "") -> None:
    """Do something with the engine from a callback; an error is kept for the page."""
    page, engine = mine(), resources.engine()
    if engine is None:
        return
    place = place_of(page)
    place.said, place.error = "", None
    try:
        action(page, engine)
        place.said = said
    except MemoryInspectorError as exc:
        place.error = exc


def _row(page: PageState, place: SessionsPlace, row: SessionRow) -> None:
    with st.container(border=True, key=f"session-row-{row.id}"):
        text, buttons = st.columns([5, 2], vertical_alignment="center")
        with text:
            if place.renaming == row.id:
                _rename_form(row)
            else:
                st.text(row.title)
            is_open = page.info is not None and page.info.key.session == row.id
            st.caption(f"{row.line}{' · open in the Playground' if is_open else ''}")
            if row.excerpt:
                st.text(row.excerpt)
        with buttons, st.container(horizontal=True, horizontal_alignment="right"):
            if place.view == DELETED:
                _deleted_buttons(place, row)
            else:
                busy = page.live is not None or page.player is not None
                _buttons(place, row, disabled=busy)


def _buttons(place: SessionsPlace, row: SessionRow, *, disabled: bool) -> None:
    if st.button("Open", key=f"open-{row.id}", icon=":material/forum:", disabled=disabled):
        act(lambda page, engine: actions.open_in_playground(page, engine, row.id))
        if place.error is None:
            st.switch_page("app.py")
        st.rerun()
    archive = _UNARCHIVE if row.archived else _ARCHIVE
    st.menu_button(
        "More",
        [_RENAME, _COPY, _COMPARE, _EXPORT, archive, _DELETE],
        key=f"do-{row.id}",
        disabled=disabled,
        on_click=_chosen,
        args=(row.id,),
    )


def _deleted_buttons(place: SessionsPlace, row: SessionRow) -> None:
    st.button(
        "Bring back", key=f"back-{row.id}", icon=":material/undo:", on_click=_back, args=(row.id,)
    )
    if place.erasing == row.id:
        st.button(
            "Erase, it cannot be undone",
            key=f"sure-{row.id}",
            type="primary",
            on_click=_erase,
            args=([row.id],),
        )
        st.button("Keep", key=f"keep-{row.id}", on_click=_ask, args=("",))
    else:
        st.button("Erase for good", key=f"erase-{row.id}", on_click=_ask, args=(row.id,))


def _erase_all(place: SessionsPlace, infos: Sequence[SessionInfo]) -> None:
    ids = [info.key.session for info in infos]
    with st.container(horizontal=True):
        if place.erasing == "all":
            st.button(
                f"Erase {plural(len(ids), 'session')}, it cannot be undone",
                key="sure-all",
                type="primary",
                on_click=_erase,
                args=(ids,),
            )
            st.button("Keep", key="keep-all", on_click=_ask, args=("",))
        else:
            st.button(
                "Erase all of them for good",
                key="erase-all",
                icon=":material/delete_forever:",
                on_click=_ask,
                args=("all",),
            )


def _search(place: SessionsPlace, infos: Sequence[SessionInfo]) -> Sequence[SessionInfo]:
    with st.form("sessions-search-form", border=False):
        left, right = st.columns([5, 1], vertical_alignment="bottom")
        left.text_input(
            "Search in titles and messages",
            key=_SEARCH,
            max_chars=500,
            placeholder="a word or a phrase",
        )
        right.form_submit_button(
            "Search", icon=":material/search:", width="stretch", on_click=_look
        )
    if not place.search:
        return infos
    listed = {info.key.session for info in infos}
    hits = [hit for hit in place.found if hit.info.key.session in listed]
    with st.container(horizontal=True, vertical_alignment="center"):
        times = sum(hit.messages for hit in hits)
        st.text(f"“{place.search}”: {plural(len(hits), 'session')}, {plural(times, 'message')}")
        st.button("Show all again", key="sessions-all", on_click=_clear)
    return [hit.info for hit in hits]


def _rename_form(row: SessionRow) -> None:
    with st.form(f"rename-{row.id}", border=False):
        st.text_input("Title", row.title, key=_TITLE, max_chars=sessions.MAX_TITLE)
        with st.container(horizontal=True):
            st.form_submit_button("Rename", type="primary", on_click=_rename, args=(row.id,))
            st.form_submit_button("Cancel", on_click=_cancel)


def _undo(gone: SessionInfo) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.text(f"Deleted: “{gone.title}”")
        st.button(
            "Undo",
            key="sessions-undo",
            icon=":material/undo:",
            type="primary",
            on_click=_back,
            args=(gone.key.session,),
        )


def _size(place: SessionsPlace, engine: Engine, info: SessionInfo) -> int | None:
    key = (info.key.session, info.turns, info.messages)
    if key not in place.sizes:
        try:
            place.sizes[key] = session_size(engine.store, info.key)
        except MemoryInspectorError:
            return None  # a list without sizes is better than none
    return place.sizes[key]


def _look() -> None:
    text = str(value_of(_SEARCH) or "")

    def look(page: PageState, engine: Engine) -> None:
        place = place_of(page)
        place.search, place.found = "", ()
        place.found = tuple(search_sessions(engine.store, engine.sessions(page.user), text))
        place.search = text.strip()

    act(look)


def _chosen(id_: str) -> None:
    choice, place = value_of(f"do-{id_}"), place_of(mine())
    if choice == _RENAME:
        place.renaming = id_
    elif choice == _COPY:
        act(lambda page, engine: actions.duplicate(page, engine, id_), "The copy is on top.")
    elif choice == _COMPARE:
        place.comparing = id_
    elif choice == _EXPORT:
        place.view, place.export_id, place.prepared = EXPORT, id_, None
    elif choice in (_ARCHIVE, _UNARCHIVE):
        to = choice == _ARCHIVE
        act(lambda page, engine: actions.archive(page, engine, id_, archived=to))
    elif choice == _DELETE:
        act(lambda page, engine: actions.delete(page, engine, id_))


def _rename(id_: str) -> None:
    title = str(value_of(_TITLE) or "")
    act(lambda page, engine: actions.rename(page, engine, id_, title))
    place = place_of(mine())
    if place.error is None:
        place.renaming = ""


def _cancel() -> None:
    place_of(mine()).renaming = ""


def _more() -> None:
    place_of(mine()).shown += AT_ONCE


def _clear() -> None:
    place = place_of(mine())
    place.search, place.found = "", ()


def _back(id_: str) -> None:
    act(lambda page, engine: actions.bring_back(page, engine, id_))


def _ask(id_: str) -> None:
    place_of(mine()).erasing = id_


def _erase(ids: list[str]) -> None:
    place_of(mine()).erasing = ""
    act(lambda page, engine: actions.erase(page, engine, ids), "Erased for good.")
