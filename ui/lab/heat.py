"""The heat map: filling while the sweep runs, clicked once it is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from memory_core.lab.cells import Measure
from memory_core.lab.report import plain
from ui.charts import CONFIG
from ui.lab.figures import heat_figure
from ui.lab.place import LabPlace, place_of
from ui.state import mine, seed, value_of
from ui.view_models.lab import MEASURES, heat_view
from ui.view_models.text import plural

if TYPE_CHECKING:
    from memory_core.lab.table import SweepResult

LOOK_IN = 0.5  # seconds between two looks at a sweep that runs
_MAP, _MEASURE, _X, _Y = "lab-map", "lab-measure", "lab-cell-x", "lab-cell-y"


def settle(place: LabPlace) -> None:
    """Take over a sweep that is over: its table, or what went wrong."""
    running = place.running
    if running is None or not running.done:
        return
    place.running = None
    place.error = running.error
    result = running.now()
    place.show(result, tuple(sweep.prepared for sweep in running.sweeps))
    if running.stopped:
        known = len(result.cells) if result is not None else 0
        place.told = f"Stopped: {known:,} of {plural(running.total, 'cell')} were measured."


@st.fragment(run_every=LOOK_IN, key="lab-running")
def draw_running() -> None:
    """Draw how far the sweep is and the cells there are; when it is over the page follows."""
    place = place_of(mine())
    running = place.running
    if running is None or running.done:
        st.rerun()
    st.progress(running.share, running.words)
    st.button("Stop", key="lab-stop", icon=":material/stop_circle:", on_click=running.stop)
    result = running.now()
    if result is not None:
        view = heat_view(result, place.measure)
        figure = heat_figure(view, chosen=None, best=None)
        st.plotly_chart(figure, key="lab-filling", config=CONFIG, alt=view.alt)


def draw(place: LabPlace, result: SweepResult) -> None:
    """Draw the map with the chosen cell outlined and the recommended one starred."""
    seed(_MEASURE, place.measure)
    st.segmented_control(
        "Counted",
        list(Measure),
        key=_MEASURE,
        required=True,
        format_func=lambda measure: MEASURES[measure],
        label_visibility="collapsed",
        on_change=_to_measure,
    )
    view, best = heat_view(result, place.measure), place.found(result).choice.cell
    st.plotly_chart(
        heat_figure(view, chosen=place.chosen, best=(best.x, best.y)),
        key=_MAP,
        config=CONFIG,
        alt=view.alt,
        on_select=_clicked,
        selection_mode="points",
    )
    whole = len(result.x.values) * len(result.y.values)
    st.caption(
        f"{plural(len(result.questions), 'question')}, {len(result.cells):,} of "
        f"{plural(whole, 'cell')} in {result.seconds:.1f} s. ★ the cheapest that keeps enough. "
        "Figures in %. Click a cell, or choose it:"
    )
    x, y = place.chosen or (best.x, best.y)
    with st.container(horizontal=True):
        for key, axis, at in ((_X, result.x, x), (_Y, result.y, y)):
            seed(key, at)
            st.selectbox(
                axis.title,
                list(range(len(axis.values))),
                key=key,
                format_func=[plain(value) for value in axis.values].__getitem__,
                on_change=_to_cell,
            )
    for notice in result.notices:
        st.caption(notice)


def _to_measure() -> None:
    place_of(mine()).measure = Measure(value_of(_MEASURE) or Measure.SHARE)


def _clicked() -> None:
    """Take the cell that was clicked."""
    event = value_of(_MAP)
    points = event.selection.points if event is not None else []
    if points:
        _choose(int(points[0]["x"]), int(points[0]["y"]))


def _to_cell() -> None:
    _choose(int(value_of(_X)), int(value_of(_Y)))


def _choose(x: int, y: int) -> None:
    place = place_of(mine())
    result = place.result
    if result is None:
        return
    if any((cell.x, cell.y) == (x, y) for cell in result.cells):
        place.chosen, place.asked = (x, y), None
    else:
        place.told = "That cell was not measured before the sweep was stopped."
