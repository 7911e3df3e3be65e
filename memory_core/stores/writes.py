"""A write to a store as a value: it can wait, be kept in a file, and be done later.

:func:`to_row` and :func:`from_row` turn one into a JSON object and back, text sealed as in the
stores themselves.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from memory_core.messages import Json
from memory_core.state import AgentState
from memory_core.stores.protocols import (
    MemoryRecord,
    SessionInfo,
    SessionKey,
    Store,
    TurnRecord,
)
from memory_core.stores.rows import COUNTERS, Rows, Values


@dataclass(frozen=True)
class Commit:
    """Write a turn."""

    key: SessionKey
    record: TurnRecord

    def do(self, store: Store) -> None:
        """Perform the write."""
        store.commit(self.key, self.record)


@dataclass(frozen=True)
class SaveState:
    """Save a state that was changed by hand."""

    key: SessionKey
    state: AgentState
    base: int

    def do(self, store: Store) -> None:
        """Perform the write."""
        store.save_state(self.key, self.state, base=self.base)


@dataclass(frozen=True)
class Create:
    """Add a session."""

    info: SessionInfo

    @property
    def key(self) -> SessionKey:
        """The session."""
        return self.info.key

    def do(self, store: Store) -> None:
        """Perform the write."""
        store.create(self.info)


@dataclass(frozen=True)
class Update:
    """Change what can be changed of a session."""

    info: SessionInfo

    @property
    def key(self) -> SessionKey:
        """The session."""
        return self.info.key

    def do(self, store: Store) -> None:
        """Perform the write."""
        store.update(self.info)


@dataclass(frozen=True)
class Purge:
    """Erase a session."""

    key: SessionKey

    def do(self, store: Store) -> None:
        """Perform the write."""
        store.purge(self.key)


@dataclass(frozen=True)
class PutRecords:
    """Add or replace long-term records of one user."""

    user: str
    records: tuple[MemoryRecord, ...]

    def do(self, store: Store) -> None:
        """Perform the write."""
        store.put_records(self.records)


@dataclass(frozen=True)
class Mark:
    """Note what the index knows."""

    user: str
    ids: tuple[str, ...]
    status: str | None

    def do(self, store: Store) -> None:
        """Perform the write."""
        store.mark_indexed(self.user, self.ids, status=self.status)


Write = Commit | SaveState | Create | Update | Purge | PutRecords | Mark


def user_of(write: Write) -> str:
    """Return whose write it is."""
    return write.user if isinstance(write, PutRecords | Mark) else write.key.user


def key_of(write: Write) -> SessionKey | None:
    """Return the session of a write, ``None`` when it belongs to no single one."""
    return None if isinstance(write, PutRecords | Mark) else write.key


def to_row(write: Write, rows: Rows) -> Values:
    """Return a write as a JSON object; raise for what no store could hold."""
    out: Values = {"kind": type(write).__name__, "user": user_of(write)}
    key = key_of(write)
    if key is not None:
        out["session"] = key.session
    if isinstance(write, Commit):
        out |= _turn_row(write.record, rows)
    elif isinstance(write, SaveState):
        out |= {"state": rows.new_state(write.state, 0), "base": write.base}
    elif isinstance(write, Create | Update):
        out["info"] = rows.new_session(write.info)
    elif isinstance(write, PutRecords):
        out["records"] = [rows.new_record(r) for r in write.records]
    elif isinstance(write, Mark):
        out |= {"ids": list(write.ids), "status": write.status}
    return out


def from_row(row: Values, rows: Rows) -> Write:
    """Return the write that :func:`to_row` got."""
    kind, user = row["kind"], row["user"]
    if kind == "PutRecords":
        return PutRecords(user, _records(row["records"], rows))
    if kind == "Mark":
        return Mark(user, tuple(row["ids"]), row["status"])
    key = SessionKey(user, row["session"])
    if kind == "Commit":
        return Commit(key, _turn(row, rows))
    if kind == "SaveState":
        return SaveState(key, rows.state(row["state"]).state, row["base"])
    if kind == "Purge":
        return Purge(key)
    info = rows.session({**COUNTERS, **row["info"]})
    return Create(info) if kind == "Create" else Update(info)


def renumbered(
    record: TurnRecord, number: int, position: int, numbers: Mapping[int, int]
) -> TurnRecord:
    """Return a turn with another number, its messages from ``position`` on.

    ``numbers`` says what became of the turns that it may supersede.
    """
    old = record.number
    supersedes = numbers.get(record.supersedes, record.supersedes)
    shift = position - record.messages[0].position if record.messages else 0

    def moved(turn: int) -> int:
        return number if turn == old else turn

    with suppress(ValueError):
        trace = json.loads(record.trace)
        if isinstance(trace, dict):
            trace |= {"number": number, "supersedes": supersedes}
            record = replace(record, trace=json.dumps(trace, ensure_ascii=False))
    return replace(
        record,
        number=number,
        supersedes=supersedes,
        messages=tuple(
            replace(m, position=m.position + shift, turn=moved(m.turn)) for m in record.messages
        ),
        records=tuple(replace(r, turn=moved(r.turn)) for r in record.records),
    )


def _turn_row(record: TurnRecord, rows: Rows) -> Values:
    state = record.state
    return {
        "turn": rows.new_turn(record),
        "messages": [rows.new_message(m) for m in record.messages],
        "records": [rows.new_record(r) for r in record.records],
        "state": None if state is None else rows.new_state(state, record.number),
        "state_base": record.state_base,
        "supersedes": record.supersedes,
        "replaces_all": record.replaces_all,
        "title": rows.title(record.title),
    }


def _turn(row: Values, rows: Rows) -> TurnRecord:
    turn, state = rows.turn(row["turn"]), row["state"]
    return TurnRecord(
        number=turn.number,
        trace=turn.trace,
        messages=tuple(rows.message(m) for m in row["messages"]),
        state=None if state is None else rows.state(state).state,
        summary=turn.summary,
        records=_records(row["records"], rows),
        supersedes=row["supersedes"],
        title=rows.encoding.read_text(row["title"]),
        state_base=row["state_base"],
        replaces_all=row["replaces_all"],
    )


def _records(values: Sequence[Json], rows: Rows) -> tuple[MemoryRecord, ...]:
    return tuple(rows.record(value) for value in values)
