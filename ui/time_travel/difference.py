"""The right column: what differs from another turn, in the order in which it matters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape

import streamlit as st

from memory_core.turn_diff import ADDED, REMOVED, Piece
from ui.panels.tables import columns, table_height
from ui.time_travel.chronicle import Chronicle
from ui.time_travel.place import Place
from ui.view_models.time_travel import DiffView, diff_view

_MOST = 40  # moves listed
_STYLES = {
    ADDED: ("ins", "background:#009E7338;text-decoration:none"),
    REMOVED: ("del", "background:#D55E0038"),
}


def draw(place: Place, past: Chronicle, *, compared_with: Callable[[Place, int], None]) -> None:
    """Draw the difference; ``compared_with`` draws the choice of the other turn."""
    compared_with(place, past.turns)
    if not place.other:
        st.caption(
            "This is the first turn. Move on, and what entered and left the prompt since the "
            "turn before stands here: messages, memories, key facts, summary, state, budget."
        )
        return
    view = diff_view(past.view_at(place.other), past.view_at(place.turn), past.message)
    st.markdown(f"**From turn {view.before} to turn {view.after}** · {view.headline}")
    _moves(view.moved)
    _budget(view)
    if view.rewritten:
        st.markdown("**Summary**")
        st.html(pieces_html(view.summary))
    for title, lines in (("State", view.state), ("Settings", view.settings)):
        if lines:
            st.markdown(f"**{title}**")
            st.code("\n".join(lines), language="diff", wrap_lines=True)
    same = [
        name
        for name, differs in (
            ("summary", view.rewritten),
            ("state", view.state),
            ("settings", view.settings),
        )
        if not differs
    ]
    if same:
        st.caption(f"The same in both: {', '.join(same)}.")


def pieces_html(pieces: Sequence[Piece]) -> str:
    """Return a text with what was added and removed marked, every character escaped."""
    out = []
    for piece in pieces:
        text = escape(piece.text)
        tag, style = _STYLES.get(piece.kind, ("", ""))
        out.append(f'<{tag} style="{style}">{text}</{tag}>' if tag else text)
    block = "white-space:pre-wrap;overflow-wrap:anywhere;font:.85rem monospace"
    return f'<div style="{block}">{"".join(out)}</div>'


def _moves(lines: Sequence[str]) -> None:
    if not lines:
        st.caption("The same messages, memories and key facts are in both prompts.")
        return
    st.markdown("**In and out of the prompt**")
    st.code("\n".join(lines[:_MOST]), language="diff", wrap_lines=True)
    if len(lines) > _MOST:
        st.caption(f"and {len(lines) - _MOST:,} more")


def _budget(view: DiffView) -> None:
    if not view.budget:
        return
    st.markdown("**Budget**")
    rows = [
        {
            "source": row.label,
            f"turn {view.before}": row.before,
            f"turn {view.after}": row.after,
            "change": row.after - row.before,
        }
        for row in view.budget
    ]
    st.dataframe(
        columns(rows),
        key="travel-budget",
        hide_index=True,
        height=table_height(len(rows)),
        column_config={"change": st.column_config.NumberColumn("change", format="%+d")},
        alt="Tokens of each source in both turns",
    )
