"""A user's long-term records in a log of operations, and what they amount to.

The file holds one operation a line: ``put`` a record, ``mark`` records as indexed, ``forget``
what turns of a session made. :class:`RecordsFile` replays what it has not seen yet, so asking
again costs only what was added. The log is written anew when most of it is out of date; its first
line then names it anew, so that other programs notice.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path

from memory_core.errors import StoreError
from memory_core.messages import Json
from memory_core.stores.checks import FORGOTTEN
from memory_core.stores.files_disk import Edit, dump_line, load_line

NAME = "records.jsonl"

_SLACK = 1000  # operations that may be out of date before the log is written anew


class RecordsFile:
    """The records of one user; its callers hold the lock of the user's folder."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / NAME
        self._first = b""
        self._end = 0
        self._operations = 0
        self._rows: dict[str, dict[str, Json]] = {}
        self._pending: dict[str, None] = {}  # in the order they became pending

    def rows(self, *, pending: bool = False) -> list[dict[str, Json]]:
        """Return the records, oldest first."""
        self._catch_up()
        if not pending:
            return list(self._rows.values())
        wanted = set(self._pending)
        if len(wanted) * 10 < len(self._rows):
            return sorted((self._rows[i] for i in wanted), key=lambda r: r["no"])
        return [row for i, row in self._rows.items() if i in wanted]

    def row(self, ident: str) -> dict[str, Json] | None:
        """Return one record."""
        self._catch_up()
        return self._rows.get(ident)

    def put(self, rows: Iterable[dict[str, Json]]) -> list[dict[str, Json]]:
        """Return the operations that add or replace records."""
        return [{"op": "put", "row": row} for row in rows]

    def forget(self, session: str, turns: Sequence[int], *, before: int) -> dict[str, Json]:
        """Return the operation that forgets what turns (or all before one) of a session made."""
        return {"op": "forget", "session": session, "turns": list(turns), "before": before}

    def mark(self, ids: Sequence[str]) -> dict[str, Json]:
        """Return the operation that notes what the index knows."""
        return {"op": "mark", "ids": list(ids)}

    def edit(self, operations: Sequence[dict[str, Json]]) -> Edit:
        """Return the change of the file that these operations make."""
        self._catch_up()
        if self._operations > 2 * len(self._rows) + _SLACK:
            return self.rewrite(operations)
        if not self._end:
            return self.rewrite(operations)
        return Edit(NAME, "".join(map(dump_line, operations)), self._end)

    def rewrite(self, operations: Sequence[dict[str, Json]] = (), *, without: str = "") -> Edit:
        """Return the change that writes the file anew, with one session's texts left out."""
        self._catch_up()
        rows = []
        for row in self._rows.values():
            if without and row["session_id"] == without:
                blank = {"body": "", "message_ids": "[]", "session_id": "", "indexed": 0}
                rows.append({**row, **blank, "status": FORGOTTEN})
            else:
                rows.append(row)
        first = {"op": "begin", "file": uuid.uuid4().hex}
        return Edit(NAME, "".join(map(dump_line, [first, *self.put(rows), *operations])))

    def _catch_up(self) -> None:
        if not self._path.exists():
            self._reset(b"")
            return
        with self._path.open("rb") as file:
            first = file.readline()
            if first != self._first:
                self._reset(first)
            file.seek(self._end)
            for line in file:
                operation = load_line(line) if line.endswith(b"\n") else None
                if operation is None:
                    if file.read(1):
                        raise StoreError(f"{self._path.name} is damaged at byte {self._end}.")
                    return  # an unfinished line, never acknowledged; the next write cuts it off
                self._replay(operation)
                self._end += len(line)

    def _reset(self, first: bytes) -> None:
        self._first = first
        self._end = self._operations = 0
        self._rows.clear()
        self._pending.clear()

    def _replay(self, operation: dict[str, Json]) -> None:
        self._operations += 1
        if operation["op"] == "put":
            row = operation["row"]
            known = self._rows.get(row["id"])
            row["no"] = known["no"] if known else self._operations
            self._set(row)
        elif operation["op"] == "mark":
            for ident in operation["ids"]:
                row = self._rows.get(ident)
                if row is not None and row["session_id"] == "":
                    del self._rows[ident]
                    self._pending.pop(ident, None)
                elif row is not None:
                    self._set({**row, "indexed": 1})
        elif operation["op"] == "forget":
            turns, before = operation["turns"], operation["before"]
            for row in list(self._rows.values()):
                chosen = row["turn"] in turns or row["turn"] < before
                if row["session_id"] == operation["session"] and chosen:
                    self._set({**row, "status": FORGOTTEN, "indexed": 0})

    def _set(self, row: dict[str, Json]) -> None:
        self._rows[row["id"]] = row
        if row["indexed"]:
            self._pending.pop(row["id"], None)
        else:
            self._pending[row["id"]] = None
