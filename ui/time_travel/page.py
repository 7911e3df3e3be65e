"""Time travel: the slider, all panels as they were, the difference to another turn, and a fork.

The controls with everything that depends on the turn are one fragment, which also plays; the
chart over all turns is another, since it follows the ledger and not the clock.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import streamlit as st

from memory_core.errors import MemoryInspectorError
from ui import problems, resources, sessions
from ui.charts import CONFIG
from ui.inspector import BLOCKS, panels_of
from ui.panels import blocks, budget, buffer, prompt, retrieved, state, summary, turn
from ui.past import Past
from ui.scene import Scene
from ui.state import ALL, PageState, mine, seed, value_of
from ui.time_travel import difference, folding
from ui.time_travel.chronicle import Chronicle, chronicle_of
from ui.time_travel.figures import area_figure
from ui.time_travel.place import Place, go, keep_link, place_of
from ui.view_models.time_travel import area

EVERY = 1.2  # seconds a turn stays while playing
_SLIDER, _PANEL, _AGAINST, _FIXED = "travel-turn", "travel-panel", "travel-against", "travel-fixed"
_BEFORE, _THIS_ONE = "the turn before", "a turn of my choice"

Draw = Callable[[Scene, Past, bool], None]
PANELS: Mapping[str, Draw] = {
    "Buffer": lambda scene, past, brief: buffer.draw(scene, past, brief=brief),
    BLOCKS: lambda scene, past, brief: blocks.draw(scene, past, brief=brief),
    "Retrieved": lambda scene, *_: retrieved.draw(scene),
    "Summary": lambda scene, past, _: summary.draw(scene, past),
    "State": lambda scene, *_: state.draw(scene),
    "Prompt": lambda scene, _, brief: prompt.draw(scene, brief=brief),
    "Turn": lambda scene, *_: turn.draw(scene),
}


def draw(place: Place) -> None:
    """Draw the page for a session that has turns."""
    st.fragment(_turn, run_every=EVERY if place.playing else None, key="travel")()
    _over_turns()


def _turn() -> None:
    page = mine()
    place, past = place_of(page), chronicle_of(page)
    if place is None or past is None:
        return
    if place.playing:
        ends = place.turn >= past.turns
        go(page, min(place.turn + 1, past.turns), playing=not ends)
        if ends:
            st.rerun()
        place = place_of(page) or place
    _controls(page, place, past)
    keep_link(place)
    with problems.guarded("this turn"):
        question = past.trace(place.turn).query
        if question:
            st.text(f"Turn {place.turn} · you: {' '.join(question.split())[:200]}")
        here, there = st.columns([6, 5], gap="medium")
        with here:
            _as_it_was(page, place, past)
        with there:
            difference.draw(place, past, compared_with=_compared_with)


def _controls(page: PageState, place: Place, past: Chronicle) -> None:
    """Draw slider, steps, play and fork."""
    last = past.turns
    if last > 1:
        seed(_SLIDER, place.turn)
        st.slider(
            f"Turn of {last:,}",
            1,
            last,
            key=_SLIDER,
            help="Arrow keys move it a turn at a time.",
            on_change=_slide,
        )
    with st.container(horizontal=True, vertical_alignment="center"):
        for key, label, icon, to, keys in (
            ("first", "First", "first_page", 1, "Shift+Home"),
            ("back", "Back", "chevron_left", place.turn - 1, "Shift+Left"),
        ):
            _step(key, label, icon, to, keys, disabled=place.turn <= 1)
        playing = place.playing
        if st.button(
            "Pause" if playing else "Play",
            key="travel-play",
            icon=":material/pause:" if playing else ":material/play_arrow:",
            shortcut="Shift+Space",
            disabled=last < 2,
        ):
            ends = place.turn >= last and not playing
            go(page, 1 if ends else place.turn, playing=not playing)
            st.rerun()
        for key, label, icon, to, keys in (
            ("on", "On", "chevron_right", place.turn + 1, "Shift+Right"),
            ("last", "Last", "last_page", last, "Shift+End"),
        ):
            _step(key, label, icon, to, keys, disabled=place.turn >= last)
        if st.button(
            "Fork here",
            key="travel-fork",
            icon=":material/call_split:",
            type="primary",
            help="A new session with everything up to this turn; the original stays as it is.",
        ):
            _fork(page, place)


def _step(key: str, label: str, icon: str, to: int, keys: str, *, disabled: bool) -> None:
    st.button(
        label,
        key=f"travel-{key}",
        icon=f":material/{icon}:",
        shortcut=keys,
        disabled=disabled,
        on_click=_go,
        args=(to,),
    )


def _as_it_was(page: PageState, place: Place, past: Chronicle) -> None:
    scene = past.scene_at(place.turn, page)
    if scene is None:
        st.info(f"Turn {place.turn} sent no prompt, so there is nothing to draw of it.")
        error = past.trace(place.turn).error
        if error:
            problems.show(MemoryInspectorError(error))
        return
    budget.draw(scene, past.past.bars())
    shown = panels_of(scene, PANELS)
    panel = place.panel if place.panel in (*shown, ALL) else shown[0]
    seed(_PANEL, panel)
    st.segmented_control(
        "Panel",
        [*shown, ALL],
        key=_PANEL,
        required=True,
        label_visibility="collapsed",
        wrap=True,
        on_change=_turn_to,
    )
    for name in shown if panel == ALL else (panel,):
        with st.container(border=panel == ALL):
            if panel == ALL:
                st.markdown(f"**{name}**")
            with problems.guarded(f"the panel {name}"):
                PANELS[name](scene, past.past, panel == ALL)


def _compared_with(place: Place, last: int) -> None:
    """Draw the choice of the turn that is compared with."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        seed(_FIXED, _THIS_ONE if place.against else _BEFORE)
        st.segmented_control(
            "Compared with",
            [_BEFORE, _THIS_ONE],
            key=_FIXED,
            required=True,
            on_change=_fix,
        )
        if place.against:
            seed(_AGAINST, place.against)
            st.number_input("Turn", 1, last, key=_AGAINST, width=120, on_change=_compare)


@st.fragment(key="travel-area")
def _over_turns() -> None:
    page = mine()
    place, past = place_of(page), chronicle_of(page)
    if place is None or past is None:
        return
    st.subheader("Budget over turns")
    with problems.guarded("the chart over turns"):
        if not past.complete:
            folding.draw()
            return
        view = area(past.ledger.columns)
        if not view.turns:
            st.caption("No turn has sent a prompt yet.")
            return
        figure = area_figure(view, turn=place.turn, other=place.other)
        st.plotly_chart(figure, key="chart-area", config=CONFIG, alt=view.alt, theme="streamlit")
        if view.skipped:
            st.caption(f"{view.skipped:,} turns in between are not drawn.")


def _fork(page: PageState, place: Place) -> None:
    engine = resources.engine()
    if engine is None or page.info is None:
        return
    origin = page.info
    title = f"{origin.title[: sessions.MAX_TITLE - 24]} (fork of turn {place.turn})"
    try:
        fork = engine.fork(origin.key, place.turn, title)
        sessions.open_session(page, engine, fork)
    except MemoryInspectorError as exc:
        problems.show(exc)
        return
    page.notice = (
        f"This session was forked from “{origin.title}” after turn {place.turn}. "
        "Both can be chatted on."
    )
    st.switch_page("app.py")


def _go(turn: int) -> None:
    go(mine(), turn)
    st.rerun(list(_REDRAW))


def _slide() -> None:
    _go(int(value_of(_SLIDER)))


def _turn_to() -> None:
    page = mine()
    if page.place is not None:
        page.place = replace(page.place, panel=str(value_of(_PANEL)))


def _fix() -> None:
    page = mine()
    if page.place is not None:
        fixed = value_of(_FIXED) == _THIS_ONE
        page.place = replace(page.place, against=max(1, page.place.turn - 1) if fixed else 0)


def _compare() -> None:
    page = mine()
    if page.place is not None:
        page.place = replace(page.place, against=int(value_of(_AGAINST)))


_REDRAW = ("travel", "travel-area")
