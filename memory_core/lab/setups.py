"""From a cell of a sweep to what a session runs: the strategy with the knobs that were measured."""

from __future__ import annotations

from memory_core import strategies as s
from memory_core.lab import asking
from memory_core.lab.axes import Point
from memory_core.lab.sweep import LAYERED
from memory_core.models.catalogue import MINILM, WORDLLAMA, EmbeddingChoice
from memory_core.native.knobs import FactBlock, MemoryKnobs, SummaryBufferKnobs
from memory_core.strategies import Setup

_BUILT_IN = {"wordllama-256": WORDLLAMA, "all-MiniLM-L6-v2": MINILM}


def setup_of(point: Point) -> Setup | None:
    """Return the strategy of a cell as a session runs it, ``None`` where no session can.

    The tutorials' memory is measured, and is no strategy of a session.
    """
    limit = point.settings.token_limit
    if point.strategy in (LAYERED, asking.OURS):
        return Setup()
    if point.strategy == asking.SUMMARY_BUFFER:
        return Setup(s.SUMMARY_BUFFER, knobs=SummaryBufferKnobs(token_limit=limit))
    if point.strategy == asking.FACTS:
        knobs = MemoryKnobs(
            token_limit=limit,
            token_flush_size=asking.flush_size(limit),
            blocks=(FactBlock(max_facts=asking.MOST_FACTS),),
        )
        return Setup(s.MEMORY_BLOCKS, knobs=knobs)
    return None


def embedding_of(point: Point) -> EmbeddingChoice | None:
    """Return the built-in embedding model of a cell, ``None`` when it is another one."""
    kind = _BUILT_IN.get(point.embedding)
    return EmbeddingChoice(kind) if kind is not None else None
