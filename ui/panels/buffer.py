"""The rolling window: what is in, the limit as a line through the list, what is out and why."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from ui.panels.tables import chosen, columns, table_height
from ui.past import Past
from ui.scene import Scene
from ui.state import value_of
from ui.view_models.buffer import PAGE, BufferRow, Whereabouts, buffer_view, kept_by_class
from ui.view_models.text import excerpt

_PAGER = "buffer-page"


def draw(scene: Scene, past: Past, *, brief: bool) -> None:
    """Draw one page of the history; a selected row is shown whole below."""
    size = PAGE if not brief else PAGE // 5
    page = int(value_of(_PAGER, 1))
    view = buffer_view(
        scene.messages,
        scene.assembly,
        turn=scene.turn,
        went=_went(scene, past, page, size),
        page=page,
        size=size,
    )
    if not view.kept and not view.left_out:
        st.caption(
            "Every message will be listed here, newest first, with its tokens and its age. "
            "When the limit is reached the oldest leave; the row then says why and where it went."
        )
        return
    picked = _table(view.inside, "in", scene.turn)
    if view.line:
        st.markdown(f":red[**┄┄┄**] {view.line} :red[**┄┄┄**]")
    picked = _table(view.outside, "out", scene.turn) or picked
    if view.pages > 1:
        st.pagination(view.pages, key=_PAGER)
    if picked is not None:
        st.caption(
            f"turn {picked.turn} · {picked.role} · {picked.tokens:,} tokens · {picked.reason}"
        )
        st.code(picked.text, language=None, wrap_lines=True)


def _went(scene: Scene, past: Past, page: int, size: int) -> Whereabouts:
    """Look up where the messages of this page went when they left the window."""
    if scene.assembly.allotment is None:
        return Whereabouts(
            summary=scene.summary.version,
            covers=scene.summary.covers,
            kept=kept_by_class(past.newest()),
        )
    plan = scene.assembly.window
    total = len(scene.messages) if plan is None else min(plan.total, len(scene.messages))
    last = max(0, total - (page - 1) * size)
    rows = range(max(0, last - size), last)
    out = {scene.messages[i].turn for i in rows if plan is not None and not plan.keeps(i)}
    return Whereabouts(
        summary=scene.summary.version,
        covers=scene.summary.covers,
        remembered=past.remembered(out),
    )


def _table(rows: Sequence[BufferRow], place: str, turn: int) -> BufferRow | None:
    if not rows:
        return None
    noted = place == "out" or any(row.reason for row in rows)
    event = st.dataframe(
        columns([_cells(row, place, noted=noted) for row in rows]),
        key=f"buffer-{place}-{turn}",
        hide_index=True,
        height=table_height(len(rows)),
        on_select="rerun",
        selection_mode="single-row",
        alt=f"Messages {place} the buffer, newest first",
    )
    return chosen(event, rows)


def _cells(row: BufferRow, place: str, *, noted: bool) -> dict[str, object]:
    cells: dict[str, object] = {place: row.role, "turn": row.turn, "tokens": row.tokens}
    if noted:
        cells["why"] = row.reason
    return {**cells, "age": row.age, "text": excerpt(row.text, 60)}
