"""The store in plain JSON files, one folder for each user, for people who want to look inside.

::

    version.json                     {"version": 1}
    locks/                           one lock for every 256th of the users
    users/<name>/user.json           {"user": id}
    users/<name>/records.jsonl       long-term records
    users/<name>/journal             what is being written to several files at once
    users/<name>/sessions/<name>.json     catalogue fields
    users/<name>/sessions/<name>.jsonl    the log: a turn or a state a line

A turn is one line, appended and on disk before it is acknowledged. Each line carries the
session's counters after it and where the newest state and summary stand, so the next turn reads
only the last line however long the log is. Names are made of the id's harmless letters and a
digest. Writers of one user wait for each other, across processes too.
"""

from __future__ import annotations

import json
import shutil
import threading
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from memory_core.errors import StoreUnavailable
from memory_core.messages import StoredMessage
from memory_core.state import AgentState
from memory_core.stores import checks
from memory_core.stores.encoding import Encoding, to_micros
from memory_core.stores.files_disk import (
    Journal,
    replace_file,
    sync_folder,
)
from memory_core.stores.files_records import RecordsFile
from memory_core.stores.files_session import FileSession, as_json, file_name
from memory_core.stores.ids import check_id, check_key
from memory_core.stores.locking import locked
from memory_core.stores.protocols import (
    Erased,
    Head,
    MemoryRecord,
    SessionInfo,
    SessionKey,
    StoredState,
    StoredTurn,
    StoreFacts,
    TurnRecord,
)
from memory_core.stores.rows import PLAIN, Rows, Values

VERSION = 1  # of the layout above

_USERS_KNOWN = 64  # whose records are kept in memory


class FileStore:
    """A :class:`~memory_core.stores.protocols.Store` in a folder."""

    def __init__(self, root: Path, *, encoding: Encoding) -> None:
        self._root = root
        self._encoding = encoding
        self._rows = Rows(encoding)
        self._records: dict[Path, RecordsFile] = {}
        self._lock = threading.Lock()

    @classmethod
    def open(cls, root: Path, *, encoding: Encoding | None = None) -> Self:
        """Open the store in a folder, which is laid out if it is empty.

        Raises :class:`StoreUnavailable` when it cannot be written to and
        :class:`~memory_core.errors.StoreTooNew` when a newer program wrote it.
        """
        with _translated():
            (root / "locks").mkdir(parents=True, exist_ok=True)
            (root / "users").mkdir(exist_ok=True)
            with locked(root / "locks" / "open"):
                version = root / "version.json"
                if not version.exists():
                    replace_file(version, json.dumps({"version": VERSION}).encode())
                checks.check_version(json.loads(version.read_bytes())["version"], VERSION)
                for gone in (root / "users").glob(".gone-*"):
                    shutil.rmtree(gone)
        return cls(root, encoding=encoding or Encoding())

    def commit(self, key: SessionKey, record: TurnRecord) -> None:
        """Write a turn whole or not at all; the very same turn again changes nothing."""
        checks.check_turn(key, record)
        entry: Values = {
            "kind": "turn",
            **self._rows.new_turn(record),
            "supersedes": record.supersedes,
            "replaces_all": record.replaces_all,
            "messages": [self._rows.new_message(m) for m in record.messages],
            "state": None,
        }
        records = [self._rows.new_record(r) for r in record.records]
        title = self._rows.title(record.title) if record.title else None
        if record.state is not None:
            entry["state"] = self._rows.new_state(record.state, record.number)
        with self._session(key) as session:
            after, end = session.after()
            if self._is_written(session, after, record):
                return
            checks.check_next(record, turn=after["turn"], position=after["next_position"])
            if record.state is not None:
                checks.check_state(record.state, record.state_base, newest=after["state_version"])
                after |= {"state_version": record.state.version, "state_at": end}
                after["states"] += 1
            if record.summary is not None:
                after |= {"summary_turn": record.number, "summary_at": end}
            count, tokens = session.replaced(after, record)
            used = max([after["used"], *(to_micros(m.created) for m in record.messages)])
            after |= {
                "turn": record.number,
                "next_position": after["next_position"] + len(record.messages),
                "active": after["active"] - count + len(record.messages),
                "tokens": after["tokens"] - tokens + sum(m.tokens or 0 for m in record.messages),
                "used": used,
            }
            edits = [session.append(end, {**entry, "after": after})]
            operations = session.records.put(records)
            if record.supersedes or record.replaces_all:
                before = record.number if record.replaces_all else 0
                forget = session.records.forget(key.session, [record.supersedes], before=before)
                operations.insert(0, forget)
            if operations:
                edits.append(session.records.edit(operations))
            if title is not None:
                edits.append(session.rewrite({"title": title}))
            session.journal.apply(edits)

    def head(self, key: SessionKey) -> Head:
        """Return where the session stands."""
        with self._session(key) as session:
            after, _ = session.after()
            state, summary = AgentState(user=key.user, session=key.session), None
            if after["state_at"] >= 0:
                state = self._rows.state(session.log.at(after["state_at"])["state"]).state
            if after["summary_at"] >= 0:
                summary = session.log.at(after["summary_at"])["summary"]
        return Head(
            after["turn"], after["next_position"], state, self._encoding.read_summary(summary)
        )

    def messages(
        self,
        key: SessionKey,
        *,
        first: int = 0,
        last: int | None = None,
        superseded: bool = False,
    ) -> list[StoredMessage]:
        """Return the messages at positions ``first`` to ``last``, exclusive."""
        found: list[Values] = []
        with self._session(key) as session:
            for entry, marks in session.turns_backwards():
                rows = entry["messages"]
                for row in reversed(rows):
                    inside = row["position"] >= first and (last is None or row["position"] < last)
                    if inside and (superseded or not marks.of(row["turn"])):
                        found.append(row)
                if rows and rows[0]["position"] <= first:
                    break
        return [self._rows.message(row) for row in reversed(found)]

    def turns(
        self, key: SessionKey, *, first: int = 1, last: int | None = None
    ) -> list[StoredTurn]:
        """Return the turns numbered ``first`` to ``last``, inclusive, oldest first."""
        found: list[StoredTurn] = []
        with self._session(key) as session:
            for entry, marks in session.turns_backwards():
                number = entry["number"]
                if number < first:
                    break
                if last is None or number <= last:
                    row = {**entry, "superseded_by": marks.of(number)}
                    found.append(self._rows.turn(row))
        return found[::-1]

    def state(self, key: SessionKey, version: int | None = None) -> AgentState:
        """Return the newest state, or one version of it."""
        if version is None:
            return self.head(key).state
        with self._session(key) as session:
            for entry in session.log.backwards():
                row = entry.value["state"]
                if row is not None and row["version"] == version:
                    return self._rows.state(row).state
        if version == 0:
            return AgentState(user=key.user, session=key.session)
        raise checks.no_state(version)

    def states(self, key: SessionKey) -> list[StoredState]:
        """Return every version that was saved, oldest first."""
        with self._session(key) as session:
            rows = [entry.value["state"] for entry in session.log.backwards()]
        return [self._rows.state(row) for row in reversed(rows) if row is not None]

    def save_state(self, key: SessionKey, state: AgentState, *, base: int | None = None) -> None:
        """Save ``state`` as the next version."""
        checks.check_owner(key, state)
        row = self._rows.new_state(state, 0)
        with self._session(key) as session:
            after, end = session.after()
            checks.check_state(state, base, newest=after["state_version"])
            after |= {"state_version": state.version, "state_at": end}
            after["states"] += 1
            entry = {"kind": "state", "state": {**row, "turn": after["turn"]}, "after": after}
            session.journal.apply([session.append(end, entry)])

    def create(self, info: SessionInfo) -> None:
        """Add an empty session; raise :class:`InvalidInput` when its id is in use."""
        check_key(info.key)
        row = self._rows.new_session(info)
        with self._user(info.key.user, make=True) as folder:
            session = FileSession(folder, info.key.session, self._records_of(folder))
            if session.path.exists():
                raise checks.id_in_use()
            replace_file(session.log.path, b"")
            replace_file(session.path, as_json(row))

    def session(self, key: SessionKey) -> SessionInfo:
        """Return one session as the catalogue lists it."""
        with self._session(key) as session:
            return self._rows.session(session.row())

    def sessions(self, user: str, *, deleted: bool = False) -> list[SessionInfo]:
        """Return a user's sessions, last used first."""
        check_id(user, "user id")
        with self._user(user) as folder:
            rows = [session.row() for session in self._all(folder)]
        rows.sort(key=lambda row: row["used"], reverse=True)
        return [self._rows.session(row) for row in rows if bool(row["deleted"]) == deleted]

    def update(self, info: SessionInfo) -> None:
        """Change title, settings, strategy, archived or deleted of a session."""
        changes = self._rows.editable(info)
        with self._session(info.key) as session:
            session.journal.apply([session.rewrite(changes)])

    def purge(self, key: SessionKey) -> None:
        """Erase a session for good; its records stay, without text, until unindexed."""
        with self._session(key) as session:
            edits = session.removal()
            if any(row["session_id"] == key.session for row in session.records.rows()):
                edits.append(session.records.rewrite(without=key.session))
            session.journal.apply(edits)

    def records(self, user: str, *, pending: bool = False) -> list[MemoryRecord]:
        """Return a user's records, oldest first; with ``pending`` those to be indexed."""
        check_id(user, "user id")
        with self._user(user) as folder:
            rows = self._records_of(folder).rows(pending=pending)
        return [self._rows.record(row) for row in rows]

    def put_records(self, records: Sequence[MemoryRecord]) -> None:
        """Add or replace records by id."""
        by_user: dict[str, list[Values]] = {}
        for record in records:
            by_user.setdefault(record.user, []).append(self._rows.new_record(record))
        for user, rows in by_user.items():
            with self._user(user, make=True) as folder:
                file = self._records_of(folder)
                Journal(folder).apply([file.edit(file.put(rows))])

    def mark_indexed(
        self, user: str, ids: Sequence[str], *, status: str | None = None
    ) -> list[str]:
        """Note that the index knows these records; return the ids that were marked."""
        check_id(user, "user id")
        with self._user(user) as folder:
            file = self._records_of(folder)
            found = [(ident, file.row(ident)) for ident in ids]
            marked = [i for i, row in found if row and status in (None, row["status"])]
            if marked:
                Journal(folder).apply([file.edit([file.mark(marked)])])
        return marked

    def users(self) -> list[str]:
        """Return every user that has something stored, sorted."""
        with _translated():
            files = sorted((self._root / "users").glob("[!.]*/user.json"))
            found = [json.loads(path.read_bytes())["user"] for path in files]
        return sorted(user for user in found if any(self._counts(user).values()))

    def erase_user(self, user: str) -> Erased:
        """Remove a user's folder."""
        with self._user(user) as folder:
            counts = self._count(folder)
            if folder.exists():
                gone = folder.with_name(f".gone-{uuid.uuid4().hex}")
                folder.rename(gone)
                sync_folder(gone.parent)
                shutil.rmtree(gone)
        return Erased(user, counts)

    def facts(self) -> StoreFacts:
        """Return what the folder is and holds."""
        rows: Counter[str] = Counter()
        for user in self.users():
            rows.update(self._counts(user))
            rows["pending records"] += len(self.records(user, pending=True))
        with _translated():
            size = sum(p.stat().st_size for p in self._root.rglob("*") if p.is_file())
        notes = (PLAIN,) if self._encoding.cipher is None else ()
        return StoreFacts("Files", str(self._root), VERSION, rows, size, notes)

    def close(self) -> None:
        """Forget what was read; no file is held open."""
        with self._lock:
            self._records.clear()

    @contextmanager
    def _user(self, user: str, *, make: bool = False) -> Iterator[Path]:
        """Hold the lock of a user and give the folder, which may not be there."""
        name = file_name(check_id(user, "user id"))
        folder = self._root / "users" / name
        with _translated(), locked(self._root / "locks" / name[-2:]):
            if make and not (folder / "user.json").exists():
                (folder / "sessions").mkdir(parents=True, exist_ok=True)
                replace_file(folder / "user.json", as_json({"user": user}))
                sync_folder(folder.parent)
            Journal(folder).recover()
            yield folder

    @contextmanager
    def _session(self, key: SessionKey) -> Iterator[FileSession]:
        """Hold the lock of a session's user; raise :class:`NotFound` when it is not there."""
        check_key(key)
        with self._user(key.user) as folder:
            session = FileSession(folder, key.session, self._records_of(folder))
            if not session.path.exists():
                raise checks.no_session()
            yield session

    def _all(self, folder: Path) -> Iterator[FileSession]:
        for path in sorted((folder / "sessions").glob("*.json")):
            ident = json.loads(path.read_bytes())["session_id"]
            yield FileSession(folder, ident, self._records_of(folder))

    def _counts(self, user: str) -> Values:
        with self._user(user) as folder:
            return self._count(folder)

    def _count(self, folder: Path) -> Values:
        counts = dict.fromkeys(("sessions", "messages", "turns", "states", "records"), 0)
        for session in self._all(folder):
            after, _ = session.after()
            counts["sessions"] += 1
            counts["messages"] += after["next_position"]
            counts["turns"] += after["turn"]
            counts["states"] += after["states"]
        counts["records"] = len(self._records_of(folder).rows())
        return counts

    def _records_of(self, folder: Path) -> RecordsFile:
        """Return what is known of a user's records; the caller holds the user's lock."""
        with self._lock:
            file = self._records.pop(folder, None) or RecordsFile(folder)
            self._records[folder] = file  # the last used is at the end
            if len(self._records) > _USERS_KNOWN:
                del self._records[next(iter(self._records))]
            return file

    def _is_written(self, session: FileSession, after: Values, record: TurnRecord) -> bool:
        """Return whether this very turn was committed before, its answer lost on the way."""
        if not record.messages or record.number > after["turn"]:
            return False
        found = next(e for e, _ in session.turns_backwards() if e["number"] == record.number)
        ids = [row["id"] for row in found["messages"]]
        same = ids == [m.id for m in record.messages]
        return same and self._encoding.read_text(found["trace"]) == record.trace


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        raise StoreUnavailable(f"The folder does not take files: {exc.strerror}.") from exc
