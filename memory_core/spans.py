"""Where things held, column by column, kept as the edges at which that changed.

A row that was in the prompt in columns 3 to 6 and again in column 9 has the edges
``[3, 7, 9, 10]``; while it is still in, the last edge is missing: ``[3, 7, 9]``. Writing costs
what changed, asking is a binary search, painting costs the part of the picture asked for.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Spans:
    """For each row the columns in which one thing held. Columns are written in order."""

    def __init__(self) -> None:
        self._edges: dict[int, list[int]] = {}
        self._marked: frozenset[int] = frozenset()

    def start(self, row: int, column: int) -> None:
        """Let the row hold from this column on; nothing changes when it does already."""
        edges = self._edges.setdefault(row, [])
        if len(edges) % 2:
            return
        if edges and edges[-1] == column:
            edges.pop()
        else:
            edges.append(column)

    def stop(self, row: int, column: int) -> None:
        """Let the row no longer hold from this column on; nothing changes when it did not."""
        edges = self._edges.get(row)
        if not edges or len(edges) % 2 == 0:
            return
        if edges[-1] == column:
            edges.pop()
        else:
            edges.append(column)

    def mark(self, rows: Iterable[int], column: int) -> None:
        """Let exactly these rows hold in this column; only what differs from before is written."""
        now = frozenset(rows)
        for row in self._marked - now:
            self.stop(row, column)
        for row in now - self._marked:
            self.start(row, column)
        self._marked = now

    def holds(self, row: int, column: int) -> bool:
        """Return whether the row holds in this column."""
        return bisect_right(self._edges.get(row, ()), column) % 2 == 1

    def first(self, row: int) -> int | None:
        """Return the first column in which the row held, ``None`` when it never did."""
        edges = self._edges.get(row)
        return edges[0] if edges else None

    def runs(self, row: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield the first and last column of each stretch before the column ``end``."""
        edges = self._edges.get(row, [])
        closed = [*edges, end] if len(edges) % 2 else edges
        for first, stop in zip(closed[::2], closed[1::2], strict=True):
            if first < min(stop, end):
                yield first, min(stop, end) - 1

    def count(self, row: int, end: int) -> int:
        """Return in how many columns before ``end`` the row held."""
        return sum(last - first + 1 for first, last in self.runs(row, end))

    def paint(self, out: NDArray[np.uint8], row: int, column: int, code: int) -> None:
        """Write ``code`` where rows hold; ``out[0, 0]`` is the cell at ``row`` and ``column``."""
        height, width = out.shape
        for y in range(height):
            edges = self._edges.get(row + y)
            if not edges:
                continue
            at = bisect_right(edges, column)
            if at % 2:
                at -= 1
            while at < len(edges) and edges[at] < column + width:
                stop = edges[at + 1] if at + 1 < len(edges) else column + width
                out[y, max(0, edges[at] - column) : stop - column] = code
                at += 2
