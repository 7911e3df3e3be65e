"""Every strategy in one table: what it keeps, forgets and costs, where it runs, its old names.

The tables are those of ``docs/strategies.md``, made by the catalogue itself.
"""

from __future__ import annotations

import streamlit as st

from ui.state import value_of
from ui.view_models.strategies import known_as

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
    keeps.markdown(table())
    agents.markdown(agent_table())
    runs.markdown(pairing_table())
