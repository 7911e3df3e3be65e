"""The sidebar's knobs of a strategy of LlamaIndex's: each change is shown on the next prompt.

A value is kept with the session at once, as our own memory's are. The real object is opened
again with it from the state that was logged after the last turn, so nothing it had is lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import streamlit as st

from memory_core.errors import MemoryInspectorError
from ui import resources, sessions, strategy_fields
from ui.state import keyed, mine, value_of

if TYPE_CHECKING:
    from memory_core.strategies import Setup


def draw(setup: Setup, redraw: Sequence[str], *, disabled: bool) -> None:
    """Draw the strategy's name and its knobs, blocks excepted: they have a form of their own."""
    from memory_core.native import knobs
    from memory_core.strategies import find_agent, find_strategy

    strategy = find_strategy(setup.strategy)
    st.caption(f"**{strategy.title}** in {find_agent(setup.agent).title}")
    now = knobs.to_json(setup.knobs)
    fields = knobs.schema(strategy.knobs)
    for knob in fields:
        if knob.kind != "blocks":
            strategy_fields.draw(
                knob,
                now[knob.name],
                _key(setup.strategy, knob.name),
                on_change=_changed,
                args=(knob.name, redraw),
                disabled=disabled,
            )
    if not fields:
        st.caption("This strategy has nothing to set.")
    elif any(knob.kind == "blocks" for knob in fields):
        st.caption("Blocks are set under Model, Memory strategy.")


def _key(strategy: str, name: str) -> str:
    return keyed(mine(), f"knob-{strategy}-{name}")


def _changed(name: str, redraw: Sequence[str]) -> None:
    page, engine = mine(), resources.engine()
    if page.chat is None or engine is None:
        return
    try:
        sessions.use_knob(page, engine, name, value_of(_key(page.chat.setup.strategy, name)))
    except MemoryInspectorError as exc:
        page.notice = str(exc)
        st.rerun()
    st.rerun(list(redraw))
