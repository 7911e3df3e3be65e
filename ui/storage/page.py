"""The Storage page from top to bottom: backends, numbers, warnings, upkeep."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from memory_core.listing import Strain, strain
from ui import problems
from ui.operators import is_operator
from ui.problems import plain
from ui.state import PageState
from ui.storage import backends, upkeep
from ui.storage.place import place_of
from ui.view_models.storage import numbers, warnings

if TYPE_CHECKING:
    from memory_core.engine import Engine

LOOKED_AT = 50  # sessions, the last used ones, whose newest turns are looked at


def draw(page: PageState, engine: Engine) -> None:
    """Draw the page for this user."""
    place, operator = place_of(page), is_operator(page.user)
    if place.error is not None:
        problems.show(place.error)
        place.error = None
    if place.said:
        st.success(plain(place.said))
        place.said = ""
    left, right = st.columns(2, gap="medium")
    with left, problems.guarded("the session store"):
        backends.draw_store(engine, operator=operator)
    with right, problems.guarded("long-term memory"):
        backends.draw_vectors(page, engine)
    with problems.guarded("the numbers"):
        _numbers(page, engine)
    left, right = st.columns(2, gap="medium")
    if operator:
        box = left.container(border=True, key="storage-backups")
        with box, problems.guarded("the backups"):
            upkeep.draw_backups(page, engine)
    box = (right if operator else left).container(border=True, key="storage-forget")
    with box, problems.guarded("forget me"):
        upkeep.draw_forget(page, engine)


def _numbers(page: PageState, engine: Engine) -> None:
    infos = engine.sessions(page.user)
    strains = _strains(engine, page)
    st.subheader("Numbers")
    if engine.opened is None:
        return
    view = numbers(engine.opened.meter, page.user, strains, [info.messages for info in infos])
    since, lately = "Since the program started, for everybody.", "In the last five turns of each."
    _tiles(
        ("Load p50 / p95", view.load, f"Reads of a session from its store. {since}"),
        ("Persist p50 / p95", view.persist, f"Writes of a turn or a state. {since}"),
        ("Messages, median / most", view.messages, "Per session of yours."),
    )
    _tiles(
        ("Sessions at their cap", view.capped, f"A token limit kept a message out. {lately}"),
        ("Degraded turns", view.degraded, f"Something did not work as it should. {lately}"),
        ("Writes that wait", f"{engine.opened.buffered.waiting:,}", "For the store to be back."),
    )
    for sentence in warnings(strains):
        st.warning(plain(sentence), icon=":material/speed:")
    if not any(s.turns for s in strains):
        st.caption("These fill as you chat: every turn is read and written through the store.")
        st.page_link("app.py", label="Open the Playground", icon=":material/play_arrow:")


def _tiles(*tiles: tuple[str, str, str]) -> None:
    for column, (label, value, tells) in zip(st.columns(len(tiles)), tiles, strict=True):
        column.metric(label, value, help=tells, border=True)


def _strains(engine: Engine, page: PageState) -> list[Strain]:
    # Looked up behind the meter, so that looking does not change what is measured.
    store = engine.opened.buffered if engine.opened is not None else engine.store
    return [strain(store, info) for info in engine.sessions(page.user)[:LOOKED_AT]]
