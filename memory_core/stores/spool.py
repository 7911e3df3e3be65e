"""Writes that wait for their store, kept in a file so that they outlive the program.

Each running program has a spool of its own, ``waiting-<name>.jsonl``, and holds its lock. The
spool of a program that was killed is unlocked: the next one takes it over. Lines are appended: a
write that waits, one that was set aside because it cannot be made, or a note that the oldest is
done. When nothing is left the file is emptied. Any other change writes a new file and then drops
the old one: killed in between, both are taken over, and a turn that is sent twice is stored once.
"""

from __future__ import annotations

import fcntl
import os
import uuid
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Self

from memory_core.messages import Json
from memory_core.stores.encoding import Encoding
from memory_core.stores.files_disk import dump_line, load_line, sync_folder
from memory_core.stores.rows import Rows
from memory_core.stores.writes import Write, from_row, to_row

PATTERN = "waiting-*.jsonl"

Aside = tuple[Write, str]  # a write that cannot be made, and why


class Spool:
    """The file of one program: what is left in it, and what was set aside."""

    def __init__(self, folder: Path, *, encoding: Encoding) -> None:
        self._folder = folder
        self._rows = Rows(encoding)
        self._path, self._file = self._create()
        self.left: list[Write] = []
        self.aside: list[Aside] = []

    @classmethod
    def open(cls, folder: Path, *, encoding: Encoding) -> Self:
        """Start a spool in a folder with the writes that dead programs left there."""
        folder.mkdir(parents=True, exist_ok=True)
        spool = cls(folder, encoding=encoding)
        for path in sorted(folder.glob(PATTERN)):
            if path != spool._path:
                spool._take_over(path)
        return spool

    def add(self, write: Write) -> None:
        """Keep a write behind those that wait; on disk before this returns."""
        self._append([self._line("add", write)])
        self.left.append(write)

    def set_aside(self, write: Write, reason: str) -> None:
        """Keep a write that cannot be made."""
        self._append([self._line("aside", write, reason)])
        self.aside.append((write, reason))

    def done(self) -> None:
        """Note that the oldest write is in its store."""
        if len(self.left) == 1 and not self.aside:
            self._file.truncate(0)
        else:
            self._append([{"op": "done"}])
        del self.left[0]

    def rewrite(self, left: Iterable[Write], aside: Iterable[Aside]) -> None:
        """Hold exactly this from now on, without a trace of what else there was."""
        old_path, old_file = self._path, self._file
        self.left, self.aside = list(left), list(aside)
        lines = [self._line("add", write) for write in self.left]
        lines += [self._line("aside", write, reason) for write, reason in self.aside]
        self._path, self._file = self._create()
        self._append(lines)
        old_path.unlink()
        old_file.close()

    def close(self) -> None:
        """Let go of the file; an empty one is removed."""
        if not self.left and not self.aside:
            with suppress(FileNotFoundError):
                self._path.unlink()
        self._file.close()

    def _create(self) -> tuple[Path, BinaryIO]:
        path = self._folder / f"waiting-{uuid.uuid4().hex}.jsonl"
        file = path.open("a+b", buffering=0)
        fcntl.flock(file, fcntl.LOCK_EX)
        sync_folder(self._folder)
        return path, file

    def _line(self, op: str, write: Write, reason: str = "") -> dict[str, Json]:
        return {"op": op, "write": to_row(write, self._rows), "reason": reason}

    def _append(self, lines: Iterable[dict[str, Json]]) -> None:
        self._file.write("".join(map(dump_line, lines)).encode())
        os.fsync(self._file.fileno())

    def _take_over(self, path: Path) -> None:
        with path.open("r+b") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return  # its program is running
            left, aside = _replay(file, self._rows)
            self._append([self._line("add", write) for write in left])
            self._append([self._line("aside", write, reason) for write, reason in aside])
            self.left += left
            self.aside += aside
            path.unlink()


def _replay(lines: Iterable[bytes], rows: Rows) -> tuple[list[Write], list[Aside]]:
    left: deque[Write] = deque()
    aside: list[Aside] = []
    for line in lines:
        found = load_line(line)
        if found is None:
            break  # an unfinished line: its writer was never told that it is kept
        if found["op"] == "done":
            left.popleft()
        elif found["op"] == "add":
            left.append(from_row(found["write"], rows))
        else:
            aside.append((from_row(found["write"], rows), found["reason"]))
    return list(left), aside
