"""The page Why?: the matrix on the left, the chosen thing's life on the right, gates below."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from memory_core.fate import KINDS
from memory_core.ledger import Ledger
from ui import problems
from ui.charts import CONFIG
from ui.state import PageState, mine, seed, value_of
from ui.time_travel import folding
from ui.time_travel.chronicle import chronicle_of
from ui.time_travel.place import Place, go, keep_link, place_of
from ui.view_models.text import plural
from ui.view_models.why import NAMES, called, counts, look, matrix_view
from ui.why import gates, story, without
from ui.why.asking import Asking, asking_of
from ui.why.figures import matrix_figure
from ui.why.legend import legend_html

_KIND, _MATRIX, _ROWS, _COLUMNS = "why-kind", "why-matrix", "why-rows", "why-columns"


def draw(page: PageState) -> None:
    """Draw the page for a session that has turns."""
    past = chronicle_of(page)
    if past is None:
        return
    if not past.complete:
        folding.draw()
        return
    asking, place = asking_of(page, past), place_of(page)
    if place is None:
        return
    with problems.guarded("the link"):
        asking.follow(place.asked)
    if place.asked != asking.asked:
        page.place = place = replace(place, asked=asking.asked)
    keep_link(place, asked=True)
    _kinds(past.ledger, asking)
    if not len(past.ledger.tracks[asking.kind]):
        st.info(_EMPTY[asking.kind])
        return
    left, right = st.columns([6, 5], gap="medium")
    with left, problems.guarded("the matrix"):
        _matrix(past.ledger, asking, place)
    with right, problems.guarded("the life story"):
        story.draw(asking)
    st.divider()
    left, right = st.columns([6, 5], gap="medium")
    with left:
        gates.draw(page, asking, place)
    with right:
        without.draw(page, asking, place)


def _kinds(ledger: Ledger, asking: Asking) -> None:
    found = counts(ledger)
    seed(_KIND, asking.kind)
    st.segmented_control(
        "What",
        KINDS,
        key=_KIND,
        required=True,
        format_func=lambda kind: f"{NAMES[kind]} {found[kind]:,}",
        label_visibility="collapsed",
        on_change=_to_kind,
    )


def _matrix(ledger: Ledger, asking: Asking, place: Place) -> None:
    track = ledger.tracks[asking.kind]
    rows = _range(asking.rows, len(track))
    columns = _range(asking.columns, len(ledger.columns))
    stored = asking.chronicle.message
    view = matrix_view(
        ledger, asking.kind, rows, columns, lambda i: called(ledger, asking.kind, i, stored)
    )
    st.html(legend_html([look(fate, asking.kind) for fate in view.fates]))
    st.plotly_chart(
        matrix_figure(view, item=asking.item, turn=place.turn),
        key=_MATRIX,
        config=CONFIG,
        alt=view.alt,
        on_select=_clicked,
        selection_mode="points",
    )
    if view.every != (1, 1):
        st.caption(
            f"Drawn: one of every {plural(view.every[0], 'row')} and one of every "
            f"{plural(view.every[1], 'turn')}. Zoom in to see all."
        )
    for key, label, whole, part in (
        (_ROWS, f"Zoom: {NAMES[asking.kind].lower()}, oldest to newest", len(track), rows),
        (_COLUMNS, "Zoom: turns", len(ledger.columns), columns),
    ):
        if whole > 2:
            seed(key, (part.start + 1, part.stop))
            st.slider(label, 1, whole, key=key, on_change=_zoom)


def _range(part: tuple[int, int] | None, whole: int) -> range:
    if part is None:
        return range(whole)
    first = min(max(1, part[0]), max(1, whole))
    return range(first - 1, min(max(first, part[1]), whole))


def _to_kind() -> None:
    asking = mine().asking
    if asking is not None:
        asking.choose(str(value_of(_KIND)))


def _zoom() -> None:
    asking = mine().asking
    if asking is None:
        return
    track, past = asking.chronicle.ledger.tracks[asking.kind], asking.chronicle.ledger
    rows, columns = value_of(_ROWS), value_of(_COLUMNS)
    asking.rows = None if rows is None or rows == (1, len(track)) else rows
    asking.columns = None if columns is None or columns == (1, len(past.columns)) else columns


def _clicked() -> None:
    """Take the cell that was clicked: its row is the thing, its column the turn."""
    page, event = mine(), value_of(_MATRIX)
    asking = page.asking
    points = event.selection.points if event is not None else []
    if asking is None or not points:
        return
    ledger = asking.chronicle.ledger
    track = ledger.tracks[asking.kind]
    view = matrix_view(
        ledger,
        asking.kind,
        _range(asking.rows, len(track)),
        _range(asking.columns, len(ledger.columns)),
        str,
    )
    row, column = int(points[0]["y"]), int(points[0]["x"])
    if row < len(view.ids) and column < len(view.turns):
        asking.choose(asking.kind, view.ids[row])
        asking.question = ""
        go(page, view.turns[column])


_EMPTY = {
    "message": "No message was said yet.",
    "fact": "No key fact was noted yet. A summary round notes them, or a tool does.",
    "summary": "No summary yet. It is written when enough messages have left the buffer.",
    "memory": "No long-term memory yet. Every turn is remembered after it ends.",
    "state": "The state is empty. A tool sets workflow, slots and preferences, or you by hand.",
}
