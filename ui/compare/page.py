"""The Compare page from top to bottom: what is compared, how it runs, what came of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from memory_core.errors import MemoryInspectorError
from ui import problems
from ui.compare import keeping, result, setup, subject
from ui.compare.place import SAMPLE, ComparePlace, place_of
from ui.problems import plain
from ui.state import PageState, mine

if TYPE_CHECKING:
    from memory_core.engine import Engine


def draw(page: PageState, engine: Engine) -> None:
    """Draw the page for this visitor."""
    place = place_of(page)
    try:
        keeping.follow_link(page, engine, place)
    except MemoryInspectorError as exc:
        place.error = exc
    setup.settle(place)
    _told(place)
    shown = place.result is not None and place.running is None
    if not shown and place.running is None:
        _teach(page, engine, place)
    if place.running is not None:
        setup.draw_running()
    idle = not shown and place.running is None
    with st.expander("What is compared", expanded=idle, key=f"compare-setup-{idle}"):
        with problems.guarded("the conversation"):
            subject.draw(page, engine, place)
        with problems.guarded("the configurations"):
            setup.draw(page, engine, place)
    if shown and place.result is not None:
        with problems.guarded("the comparison"):
            result.draw(place, place.result)
    with problems.guarded("the saved comparisons"):
        keeping.draw(page, engine, place)
    keeping.keep_link(place)


def _teach(page: PageState, engine: Engine, place: ComparePlace) -> None:
    st.markdown(
        "Here one conversation goes through two to six memories side by side: turn by turn what "
        "each of them holds, where they part, and which of them still has the answers. Choose a "
        "conversation, set the configurations, and compare."
    )
    if not subject.listed(page, engine) and place.source != SAMPLE:
        st.button(
            "Try it with a sample",
            key="compare-try",
            type="primary",
            icon=":material/science:",
            on_click=_try_sample,
        )


def _told(place: ComparePlace) -> None:
    if place.error is not None:
        problems.show(place.error)
        place.error = None
    if place.told:
        st.success(plain(place.told))
        place.told = ""


def _try_sample() -> None:
    place_of(mine()).source = SAMPLE
