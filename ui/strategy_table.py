"""Every strategy in one table: what it keeps, forgets and costs, where it runs, its old names.

The tables are those of ``docs/strategies.md``, made by the catalogue itself.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import streamlit as st

from ui.state import value_of
from ui.view_models.strategies import known_as

if TYPE_CHECKING:
    from memory_core.strategies import Table

_NAME = "strategies-name"


def draw() -> None:
    """Draw the tables, and the search for a name out of an older tutorial."""
    from memory_core.strategies import agent_table, pairing_table, table

    st.text_input(
        "A name from a tutorial or from older code",
        key=_NAME,
        placeholder="ConversationBufferMemory, Memory.from_blocks, FunctionCallingAgentWorker …",
    )
    wanted = str(value_of(_NAME) or "").strip()
    if wanted:
        found = known_as(wanted)
        for line in found:
            st.markdown(line)
        if not found:
            st.caption("No strategy and no agent is known by this name.")
    keeps, agents, runs = st.tabs(["Strategies", "Agents around them", "What runs in what"])
    for place, shown in ((keeps, table()), (agents, agent_table()), (runs, pairing_table())):
        place.html(table_html(shown))


def table_html(shown: Table) -> str:
    """Return a table that scrolls sideways where the window is narrow."""
    line = "border:1px solid #8C8C8C66;padding:.35em .6em;text-align:left;vertical-align:top"
    first = f"{line};max-width:11em"
    head = "".join(
        f'<th scope="col" style="{line if n else first}">{escape(name)}</th>'
        for n, name in enumerate(shown.head)
    )
    rows = "".join(
        f'<tr><th scope="row" style="{first}">{escape(name)}</th>'
        + "".join(f'<td style="{line}">{escape(cell)}</td>' for cell in cells)
        + "</tr>"
        for name, *cells in shown.rows
    )
    notes = "".join(f"<li>{escape(note)}</li>" for note in shown.below)
    return (
        '<div style="overflow-x:auto;font-size:.85rem" tabindex="0" role="region" '
        f'aria-label="{escape(shown.head[0])} by {escape(shown.head[1])}">'
        '<table style="border-collapse:collapse;min-width:60rem">'
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
        + (f'<ol style="font-size:.85rem">{notes}</ol>' if notes else "")
    )
