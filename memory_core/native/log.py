"""A strategy's own state, one line a turn, appended before the turn is committed.

Our record of a session says what was said; this log says what the strategy made of it (a
summary, facts, what was archived, vector records). Each line names the turn it belongs to and the
turn it began from, so the state after any turn is found by walking back: a restart, a crash
between the two writes and a superseded turn all read the line that belongs to the record, and
lines that were never committed are passed over.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from memory_core.errors import StoreUnavailable
from memory_core.messages import Json
from memory_core.native.adapter import State

_VERSION = 1


def copy_log(source: Path, target: Path, *, last: int, rename: tuple[str, str]) -> None:
    """Copy the states up to turn ``last`` for another session.

    ``rename`` is the session's id and that of the other: records and batches bear it. Raises
    :class:`StoreUnavailable` when a file cannot be read or written.
    """
    before, after = (json.dumps(name, ensure_ascii=False)[1:-1] for name in rename)
    log = StateLog(source)
    copy = StateLog(target)
    for turn, line in sorted(log.lines.items()):
        if turn <= last:
            copy.add(json.loads(json.dumps(line, ensure_ascii=False).replace(before, after)))


class StateLog:
    """The states of one session's strategy, in a file or, without a path, in memory."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self.lines: dict[int, Mapping[str, Json]] = {}
        if path is not None and path.exists():
            self._read(path)

    def state(self, turn: int) -> State | None:
        """Return the whole state after a turn, ``None`` when it was never written.

        ``added`` then holds every record there is.
        """
        if turn not in self.lines:
            return None
        chain, at = [], turn
        while at in self.lines:
            chain.append(self.lines[at])
            base = int(chain[-1]["base"])
            if base >= at:
                break
            at = base
        records: dict[str, Json] = {}
        for line in reversed(chain):
            for record_id in line["removed"]:
                records.pop(record_id, None)
            for record in line["added"]:
                records[record["id"]] = record
        return State(dict(self.lines[turn]["data"]), tuple(records.values()))

    def base(self, turn: int) -> int | None:
        """Return the turn whose state a turn began from, ``None`` when it was never written."""
        line = self.lines.get(turn)
        return int(line["base"]) if line is not None else None

    def write(self, turn: int, base: int, state: State) -> None:
        """Add the state after ``turn``, which began from that after ``base`` (-1: from nothing).

        Raises :class:`StoreUnavailable` when the file cannot be written.
        """
        line = {
            "v": _VERSION,
            "turn": turn,
            "base": base,
            "data": state.data,
            "added": list(state.added),
            "removed": list(state.removed),
        }
        self.add(line)

    def add(self, line: Mapping[str, Json]) -> None:
        """Add a line as it is; raise :class:`StoreUnavailable` when it cannot be written."""
        if self._path is not None:
            self._append(self._path, json.dumps(line, ensure_ascii=False))
        self.lines[int(line["turn"])] = line

    def _append(self, path: Path, text: str) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a+b") as file:
                torn = _ends_torn(file)
                file.write((b"\n" if torn else b"") + text.encode("utf-8", "replace") + b"\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as exc:
            raise StoreUnavailable(f"The strategy's state cannot be kept: {exc}.") from exc

    def _read(self, path: Path) -> None:
        try:
            raw = path.read_bytes()
        except OSError as exc:
            raise StoreUnavailable(f"The strategy's state cannot be read: {exc}.") from exc
        for line in raw.splitlines():
            try:
                value = json.loads(line)
                turn = int(value["turn"])
                whole = {"base", "data", "added", "removed"} <= value.keys()
            except (ValueError, KeyError, TypeError, AttributeError):
                continue  # torn by a crash; what it belonged to was never committed
            if whole and value.get("v") == _VERSION:
                self.lines[turn] = value


def _ends_torn(file: IO[bytes]) -> bool:
    """Return whether a crash left the last line without its end."""
    if not file.seek(0, os.SEEK_END):
        return False
    file.seek(-1, os.SEEK_END)
    return file.read(1) != b"\n"
