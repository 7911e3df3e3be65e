"""The Sessions page from top to bottom: conflicts first, then the view that is chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from ui import problems
from ui.problems import plain
from ui.sessions_page import actions, conflicts, exporting, importing, rows
from ui.sessions_page.place import (
    ARCHIVED,
    AT_ONCE,
    DELETED,
    EXPORT,
    IMPORT,
    SESSIONS,
    VIEWS,
    place_of,
)
from ui.state import PageState, mine, seed, value_of
from ui.view_models.text import plural

if TYPE_CHECKING:
    from memory_core.engine import Engine

_VIEW = "sessions-view"


def draw(page: PageState, engine: Engine) -> None:
    """Draw the page for this user."""
    place = place_of(page)
    if place.comparing:
        chosen, place.comparing = place.comparing, ""
        st.switch_page("pages/3_Compare.py", query_params={"session": chosen})
    if place.error is not None:
        problems.show(place.error)
        place.error = None
    if place.said:
        st.success(plain(place.said))
        place.said = ""
    with problems.guarded("the conflicts"):
        conflicts.draw(page, engine)
    with problems.guarded("the sessions"):
        live, archived, deleted = actions.lists(page, engine)
        counts = {SESSIONS: len(live), ARCHIVED: len(archived), DELETED: len(deleted)}
        seed(_VIEW, place.view)
        st.segmented_control(
            "View",
            VIEWS,
            key=_VIEW,
            required=True,
            format_func=lambda v: f"{v} {counts[v]:,}" if counts.get(v) else v,
            label_visibility="collapsed",
            on_change=_turn_to,
        )
        if place.view == SESSIONS and not any(info.turns for info in live):
            st.info(
                "Every chat is a session: it is kept here with all its turns, can be searched, "
                "renamed, copied, exported and deleted. You have said nothing yet: play a sample "
                f"in the Playground, or import a conversation. ({plural(len(live), 'session')})"
            )
            st.page_link("app.py", label="Open the Playground", icon=":material/play_arrow:")
        if place.view == IMPORT:
            importing.draw(page, engine)
        elif place.view == EXPORT:
            exporting.draw(page, [*live, *archived])
        else:
            rows.draw(page, engine, {SESSIONS: live, ARCHIVED: archived}.get(place.view, deleted))


def _turn_to() -> None:
    place = place_of(mine())
    place.view, place.shown = str(value_of(_VIEW) or SESSIONS), AT_ONCE
    place.search, place.found, place.erasing, place.renaming = "", (), "", ""
