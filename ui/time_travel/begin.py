"""How the pages about a session's past begin: the engine, the session, the link, what to say."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from memory_core.errors import MemoryInspectorError
from ui import opening, problems, resources, sessions
from ui.state import PageState, mine, seed, value_of
from ui.time_travel.place import Place, follow_link, place_of

if TYPE_CHECKING:
    from memory_core.engine import Engine

_SESSION = "past-session"


def begin(page: PageState, *, teaches: str) -> Place | None:
    """Return where the visitor stands; draw what is missing and return ``None`` without a turn.

    ``teaches`` says in two sentences what the page will show.
    """
    engine = opening.prepare(page)
    if engine is None:
        st.caption(teaches)
        opening.wait(page)
        return None
    try:
        follow_link(page, engine)
    except MemoryInspectorError as exc:
        page.lost = exc
    if page.lost is not None:
        problems.show(page.lost)
    if page.notice:
        st.info(problems.plain(page.notice))
        page.notice = ""
    _choose(page, engine)
    place = place_of(page)
    if place is None:
        st.markdown(teaches)
        st.page_link(
            "app.py",
            label="Open the Playground and play a sample conversation",
            icon=":material/play_arrow:",
        )
    elif page.live is not None or page.player is not None:
        st.caption(":material/hourglass_top: A turn is still running in the Playground.")
    return place


def _choose(page: PageState, engine: Engine) -> None:
    """Draw the choice of the session in the sidebar."""
    listed = {info.key.session: info for info in engine.sessions(page.user) if info.turns}
    if page.info is not None:
        listed.setdefault(page.info.key.session, page.info)
        seed(_SESSION, page.info.key.session)
    st.sidebar.selectbox(
        "Session",
        list(listed),
        key=_SESSION,
        format_func=lambda id_: f"{listed[id_].title} · {listed[id_].turns}",
        disabled=page.live is not None or page.player is not None,
        on_change=_switch,
    )


def _switch() -> None:
    page, engine, wanted = mine(), resources.engine(), str(value_of(_SESSION))
    if engine is None:
        return
    found = next((i for i in engine.sessions(page.user) if i.key.session == wanted), None)
    if found is None:
        return
    try:
        sessions.open_session(page, engine, found)
        st.query_params.clear()
    except MemoryInspectorError as exc:
        page.notice = f"{exc} {exc.next_step}".strip()
