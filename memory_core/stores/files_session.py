"""One session in plain files: its catalogue entry, its log, and how a turn changes them.

Everything here is read and made while the lock of the user's folder is held.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path

from memory_core.stores.files_disk import Edit, Journal, dump_line
from memory_core.stores.files_log import Log
from memory_core.stores.files_records import RecordsFile
from memory_core.stores.protocols import TurnRecord
from memory_core.stores.rows import COUNTERS, Values

START: Values = {**COUNTERS, "used": 0, "states": 0, "state_at": -1, "summary_at": -1}


class Marks:
    """Which turns were superseded by which, gathered from the newest turn to the oldest."""

    def __init__(self) -> None:
        self._by: dict[int, int] = {}
        self._clears: list[int] = []

    def add(self, entry: Values) -> None:
        """Take in a turn that is newer than all that is asked about from now on."""
        if entry["supersedes"]:
            self._by[entry["supersedes"]] = entry["number"]
        if entry["replaces_all"]:
            self._clears.append(entry["number"])

    def of(self, turn: int) -> int:
        """Return the first turn that superseded this one, 0: none."""
        found = [n for n in self._clears if n > turn]
        return min([*found, self._by[turn]] if turn in self._by else found, default=0)


class FileSession:
    """The two files of a session and the records of its user, while the lock is held."""

    def __init__(self, folder: Path, ident: str, records: RecordsFile) -> None:
        self._folder = folder
        stem = folder / "sessions" / file_name(ident)
        self.path = stem.with_name(stem.name + ".json")
        self.log = Log(stem.with_name(stem.name + ".jsonl"))
        self.journal = Journal(folder)
        self.records = records

    def row(self) -> Values:
        """Return the catalogue's fields with the counters."""
        info: Values = json.loads(self.path.read_bytes())
        after, _ = self.after()
        return {**info, **after, "used": max(info["used"], after["used"])}

    def after(self) -> tuple[Values, int]:
        """Return the counters after the newest entry, and where the next one begins."""
        entry = self.log.last()
        return (dict(START), 0) if entry is None else (dict(entry.value["after"]), entry.end)

    def turns_backwards(self) -> Iterator[tuple[Values, Marks]]:
        """Yield the turns, newest first, with what is known to supersede them."""
        marks = Marks()
        for entry in self.log.backwards():
            if entry.value["kind"] == "turn":
                yield entry.value, marks
                marks.add(entry.value)

    def replaced(self, after: Values, record: TurnRecord) -> tuple[int, int]:
        """Return how many active messages a turn replaces, and their tokens."""
        if record.replaces_all:
            return after["active"], after["tokens"]
        if not record.supersedes:
            return 0, 0
        rows: list[Values] = []
        for entry, marks in self.turns_backwards():
            if marks.of(record.supersedes):
                return 0, 0
            rows += [row for row in entry["messages"] if row["turn"] == record.supersedes]
            if entry["number"] == record.supersedes:
                break
        return len(rows), sum(row["tokens"] or 0 for row in rows)

    def append(self, end: int, entry: Values) -> Edit:
        """Return the change that adds an entry to the log."""
        return Edit(self._relative(self.log.path), dump_line(entry), end)

    def rewrite(self, changes: Values) -> Edit:
        """Return the change of the catalogue's fields."""
        info = {**json.loads(self.path.read_bytes()), **changes}
        return Edit(self._relative(self.path), as_json(info).decode())

    def removal(self) -> list[Edit]:
        """Return the changes that remove the session; its catalogue entry goes first."""
        return [Edit(self._relative(path), None) for path in (self.path, self.log.path)]

    def _relative(self, path: Path) -> str:
        return str(path.relative_to(self._folder))


def file_name(ident: str) -> str:
    """Return a file name for an id: readable, safe everywhere, and never that of another id."""
    digest = hashlib.sha256(ident.encode()).hexdigest()[:24]
    return f"{re.sub('[^a-z0-9]+', '-', ident.lower())[:32].strip('-')}-{digest}"


def as_json(value: Values) -> bytes:
    """Return a JSON object as people read it."""
    return json.dumps(value, ensure_ascii=False, indent=1).encode()
