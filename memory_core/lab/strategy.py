"""Who plans the prompts of a sweep, as two functions that can travel to another process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from memory_core.lab.axes import Point
from memory_core.lab.cells import Cell
from memory_core.lab.inputs import SweepInput
from memory_core.lab.prepare import Prepared

Placed = tuple[int, int, Point]
"""A point and its place in the grid: the x-th and the y-th value."""


@dataclass(frozen=True)
class Strategy:
    """A way to make prompts of a conversation.

    ``texts`` are those whose vectors it needs; ``plan`` yields a cell for each point, in any
    order. Both must be importable by name. ``title`` and ``about`` are for people; ``plays`` says
    that each cell runs the whole conversation instead of planning it.
    """

    title: str
    about: str
    texts: Callable[[SweepInput], Iterable[str]]
    plan: Callable[[Prepared, Sequence[Placed]], Iterator[Cell]]
    plays: bool = False
