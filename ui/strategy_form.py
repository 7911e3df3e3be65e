"""The memory strategy: ours or one of LlamaIndex's own, its knobs, and the agent around it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import streamlit as st

from memory_core.errors import MemoryInspectorError
from ui import block_form, sessions, strategy_fields
from ui.state import PageState, mine, seed, value_of

if TYPE_CHECKING:
    from memory_core.engine import Engine
    from memory_core.strategies import Setup

_STRATEGY, _AGENT = "strategy-name", "strategy-agent"


def draw(
    page: PageState, engine: Engine, close: Callable[[], None], compare: Callable[[], None]
) -> None:
    """Draw the form for the open session; ``compare`` opens the table of all strategies."""
    from memory_core.native import knobs
    from memory_core.strategies import (
        AGENTS,
        LAYERED,
        MEMORY_BLOCKS,
        STRATEGIES,
        find_strategy,
        pairing,
    )

    if page.chat is None:
        return
    now = page.chat.setup
    titles = {s.id: s.title for s in STRATEGIES}
    seed(_STRATEGY, value_of(_STRATEGY) or now.strategy)
    strategy = find_strategy(
        str(
            st.selectbox(
                "Memory strategy", list(titles), key=_STRATEGY, format_func=titles.__getitem__
            )
        )
    )
    st.button(
        "All strategies side by side",
        key="strategy-table",
        icon=":material/table:",
        type="tertiary",
        on_click=compare,
    )
    st.caption(
        f"Keeps {strategy.keeps}. Forgets {strategy.forgets}. Model calls: {strategy.calls}. "
        f"Choose it for {strategy.choose}.".replace("$", "\\$")
    )
    agents = {a.id: a.title for a in AGENTS if pairing(strategy.id, a.id).works}
    seed(_AGENT, _possible(value_of(_AGENT), now.agent, agents))
    agent = st.selectbox("Agent", list(agents), key=_AGENT, format_func=agents.__getitem__)
    note = pairing(strategy.id, str(agent)).note
    if note:
        st.caption(note)
    if strategy.id == LAYERED:
        st.caption("Its knobs are those in the sidebar.")
    else:
        known = knobs.to_json(now.knobs) if now.strategy == strategy.id else {}
        for knob in knobs.schema(strategy.knobs):
            key = f"strategy-{strategy.id}-{knob.name}"
            if knob.kind != "blocks":
                strategy_fields.draw(knob, known.get(knob.name, knob.default), key)
            elif strategy.id == MEMORY_BLOCKS:
                given = known.get(knob.name, knob.default)
                block_form.draw(given if isinstance(given, list) else [])
    st.button(
        "Use this strategy",
        key="strategy-use",
        type="primary",
        on_click=_use,
        args=(engine, close),
    )


def _possible(value: Any, now: str, agents: dict[str, str]) -> str:
    for wanted in (value, now):
        if wanted in agents:
            return str(wanted)
    return next(iter(agents))


def _use(engine: Engine, close: Callable[[], None]) -> None:
    page = mine()
    page.dialog_error = None
    try:
        sessions.use_strategy(page, engine, _setup())
    except MemoryInspectorError as exc:
        page.dialog_error = exc
        return
    close()
    st.rerun()


def _setup() -> Setup:
    """Read the form; raise :class:`InvalidInput` for what cannot be used."""
    from memory_core.native import knobs
    from memory_core.strategies import MEMORY_BLOCKS, find_strategy, setup_from_json

    strategy = find_strategy(str(value_of(_STRATEGY)))
    given: dict[str, Any] = {}
    for knob in knobs.schema(strategy.knobs):
        value = value_of(f"strategy-{strategy.id}-{knob.name}")
        if knob.kind == "blocks":
            given[knob.name] = block_form.read() if strategy.id == MEMORY_BLOCKS else []
        elif value is not None:
            given[knob.name] = value
    return setup_from_json(
        {"strategy": strategy.id, "agent": str(value_of(_AGENT)), "knobs": given}
    )
