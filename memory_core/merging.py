"""Two versions of one state made into one, field by field as a person chooses.

The differences are those of :func:`memory_core.state.diff`: workflow, step, and each slot,
preference and key fact by itself. What both versions agree on is not asked about.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TypeVar

from memory_core.state import AgentState, KeyFact, diff

T = TypeVar("T")


def merge_states(ours: AgentState, theirs: AgentState, mine: Collection[str]) -> AgentState:
    """Return ``theirs`` with the differences at the paths in ``mine`` decided for ``ours``.

    A path is one of :func:`memory_core.state.diff`; unknown ones are ignored. The result has the
    version of ``theirs``: saving it makes the next one.
    """
    chosen = {change.path for change in diff(theirs, ours)} & set(mine)
    return replace(
        theirs,
        workflow=(ours if "workflow" in chosen else theirs).workflow,
        step=(ours if "step" in chosen else theirs).step,
        slots=_merged(ours.slots, theirs.slots, "slots.", chosen),
        preferences=_merged(ours.preferences, theirs.preferences, "preferences.", chosen),
        key_facts=_facts(ours.key_facts, theirs.key_facts, chosen),
    )


def _merged(
    ours: Mapping[str, T], theirs: Mapping[str, T], prefix: str, chosen: Collection[str]
) -> dict[str, T]:
    names = [*theirs, *(name for name in ours if name not in theirs)]
    out: dict[str, T] = {}
    for name in names:
        source = ours if f"{prefix}{name}" in chosen else theirs
        if name in source:
            out[name] = source[name]
    return out


def _facts(
    ours: tuple[KeyFact, ...], theirs: tuple[KeyFact, ...], chosen: Collection[str]
) -> tuple[KeyFact, ...]:
    merged = _merged({f.id: f for f in ours}, {f.id: f for f in theirs}, "key_facts.", chosen)
    return tuple(merged.values())
