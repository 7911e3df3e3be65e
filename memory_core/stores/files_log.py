"""A session's log: one JSON object a line, appended to, read from its end.

A line that was not finished when the program was killed is at the end and fails its checksum; it
was never acknowledged, so it is passed over and cut off by the next write. A damaged line
anywhere else is an error that names the place.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from memory_core.errors import StoreError
from memory_core.messages import Json
from memory_core.stores.files_disk import load_line

_BLOCK = 1 << 16


@dataclass(frozen=True)
class Entry:
    """One line of a log: where it begins and ends, in bytes, and what it says."""

    start: int
    end: int
    value: dict[str, Json]


class Log:
    """Reads one log file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def last(self) -> Entry | None:
        """Return the newest whole entry, ``None`` in an empty log."""
        return next(self.backwards(), None)

    def backwards(self) -> Iterator[Entry]:
        """Yield the whole entries, newest first."""
        newest = True
        for start, line in _lines_backwards(self.path):
            value = load_line(line) if line.endswith(b"\n") else None
            if value is not None:
                yield Entry(start, start + len(line), value)
            elif not newest:
                raise StoreError(f"{self.path.name} is damaged at byte {start}.")
            newest = newest and not line.endswith(b"\n")

    def at(self, start: int) -> dict[str, Json]:
        """Return the entry that begins at a byte offset."""
        with self.path.open("rb") as file:
            file.seek(start)
            value = load_line(file.readline())
        if value is None:
            raise StoreError(f"{self.path.name} is damaged at byte {start}.")
        return value


def _lines_backwards(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield ``(offset, line)`` from the end of a file; the first may lack its line break."""
    with path.open("rb") as file:
        position = file.seek(0, 2)
        rest = b""  # what was read but not yielded: the file from ``position`` on
        block = _BLOCK
        while position or rest:
            cut = rest.rfind(b"\n", 0, len(rest) - 1)
            if cut >= 0 or not position:
                yield position + cut + 1, rest[cut + 1 :]
                rest = rest[: cut + 1]
                continue
            step = min(block, position)
            block *= 2  # subtle: a long line is joined in a logarithmic number of steps
            position -= step
            file.seek(position)
            rest = file.read(step) + rest
