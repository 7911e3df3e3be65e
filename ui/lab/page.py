"""The Tuning lab from top to bottom: what is measured, the map, the misses, what a token buys."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from ui import problems
from ui.lab import front, heat, keeping, missing, questions, setup, subject
from ui.lab.place import LabPlace, place_of
from ui.problems import plain
from ui.state import PageState

if TYPE_CHECKING:
    from memory_core.engine import Engine


def draw(page: PageState, engine: Engine) -> None:
    """Draw the page for this visitor."""
    place = place_of(page)
    heat.settle(place)
    questions.settle(place)
    _told(place)
    left, centre, right = st.columns([4, 5, 4], gap="medium")
    with left:
        st.subheader("Conversation")
        with problems.guarded("the conversation"):
            subject.draw(page, engine, place)
        if place.subject is not None:
            with problems.guarded("the questions"):
                questions.draw(page, place)
            with problems.guarded("the knobs"):
                setup.draw(page, place)
    with centre:
        st.subheader("Evidence in the prompt")
        if place.subject is not None:
            setup.draw_button(place)
        if place.running is not None:
            heat.draw_running()
        elif place.result is not None and place.result.cells:
            with problems.guarded("the map"):
                heat.draw(place, place.result)
        else:
            _teach()
    shown = place.result is not None and place.running is None
    with right:
        if shown:
            with problems.guarded("the misses"):
                missing.draw(page, place)
    if shown:
        st.divider()
        with problems.guarded("the front"):
            front.draw(page, engine, place)
    with problems.guarded("the saved sweeps"):
        keeping.draw(page, engine, place)


def _teach() -> None:
    st.markdown(
        "People tune memory by feel; here you measure it. A sweep plans the prompt of every "
        "question under every pair of two settings, without a model, and shows where the "
        "messages that hold the answers still get in.\n\n"
        "1. Choose a conversation: the open session, a sample, or a file of your own.\n"
        "2. Look at its recall questions; propose some or write your own.\n"
        "3. Run the sweep, click a cell to see what it misses, and apply the cheapest one "
        "that keeps enough."
    )


def _told(place: LabPlace) -> None:
    if place.error is not None:
        problems.show(place.error)
        place.error = None
    if place.told:
        st.success(plain(place.told))
        place.told = ""
