"""Always in sight: where every token of the prompt comes from, and what a change would do."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from ui.charts import CONFIG, budget_figure
from ui.problems import plain
from ui.scene import Scene
from ui.view_models.budget import TurnBar, budget_bar
from ui.view_models.whatif import Moved, WhatIf

_NAMED = 4  # moves named before the rest is counted


def draw(scene: Scene, turns: Sequence[TurnBar]) -> None:
    """Draw the bar, its headline, collisions, and the what-if line."""
    bar = budget_bar(scene.assembly)
    notes = (f":material/info: {plain(note)}" for note in bar.notes)
    st.caption("  \n".join((bar.headline, *notes)))
    st.plotly_chart(budget_figure(bar, turns), key="chart-budget", config=CONFIG, alt=bar.alt)
    if scene.what_if is not None:
        _draw_what_if(scene.what_if)


def _draw_what_if(what: WhatIf) -> None:
    lines = [*_lines("+", what.newly_in), *_lines("-", what.newly_out)]
    headline = f"What your change does: {what.headline}"
    st.code("\n".join((headline, *lines)), language=None, wrap_lines=True)


def _lines(mark: str, moves: Sequence[Moved]) -> list[str]:
    lines = [f"{mark} {m.label}: {' '.join(m.text.split())}" for m in moves[:_NAMED]]
    if len(moves) > _NAMED:
        lines.append(f"{mark} and {len(moves) - _NAMED} more")
    return lines
