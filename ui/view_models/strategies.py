"""Which strategy or agent of today a name from older code stands for."""

from __future__ import annotations

from memory_core.strategies import AGENTS, STRATEGIES, AgentKind, Strategy


def known_as(name: str) -> list[str]:
    """Return a line of Markdown for each strategy or agent that goes by such a name.

    Case does not matter, and a part of the name is enough.

    >>> known_as("dynamicmemoryblock")
    ['`DynamicMemoryBlock` is **Memory with blocks** today.']
    """
    known: tuple[Strategy | AgentKind, ...] = (*STRATEGIES, *AGENTS)
    wanted = name.casefold().replace("`", "").strip()
    return [
        f"`{old}` is **{item.title}** today."
        for item in known
        for old in (*item.old_names, item.title)
        if wanted and wanted in old.casefold()
    ]
