"""Flat rows from values, and values from rows, the same in every backend.

A row is a dict of texts, whole numbers and ``None``: columns of a table, fields of a hash, or a
JSON object in a file. Whatever no backend could hold is refused here, before anything is written.
Times are microseconds since 1970, truth values 0 or 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memory_core.messages import Json, StoredMessage, repair_text
from memory_core.state import AgentState
from memory_core.stores.checks import check_record
from memory_core.stores.encoding import Encoding, from_micros, to_micros
from memory_core.stores.protocols import (
    MemoryRecord,
    SessionInfo,
    SessionKey,
    StoredState,
    StoredTurn,
    TurnRecord,
)

Values = dict[str, Json]
Row = Mapping[Any, Json]

PLAIN = "Text is stored in plain form: MEMORY_ENCRYPTION_KEY is not set."

COUNTERS: Values = {  # of a session, as they begin
    "turn": 0,  # the newest turn
    "next_position": 0,
    "active": 0,  # messages that are not superseded, and their tokens
    "tokens": 0,
    "state_version": 0,
    "summary_turn": 0,  # the turn that made the newest summary
}


class Rows:
    """Translates between values and rows by one :class:`Encoding`."""

    def __init__(self, encoding: Encoding) -> None:
        self.encoding = encoding

    def new_session(self, info: SessionInfo) -> Values:
        """Return the row of a new session."""
        return {
            "user_id": info.key.user,
            "session_id": info.key.session,
            "created": to_micros(info.created),
            "used": to_micros(info.used),
            "origin": self.encoding.text(info.origin, "origin"),
            **self.editable(info),
        }

    def editable(self, info: SessionInfo) -> Values:
        """Return what of a session can be changed."""
        return {
            "title": self.title(info.title),
            "strategy": self.encoding.text(info.strategy, "strategy"),
            "settings": self.encoding.json(dict(info.settings), "settings"),
            "archived": int(info.archived),
            "deleted": int(info.deleted),
        }

    def title(self, title: str) -> str:
        """Return a title as stored text; titles are cut from chats, so they are repaired."""
        return self.encoding.text(repair_text(title)[0], "title")

    def session(self, row: Row) -> SessionInfo:
        """Return a session of the catalogue."""
        read = self.encoding.read_text
        return SessionInfo(
            key=SessionKey(row["user_id"], row["session_id"]),
            title=read(row["title"]),
            created=from_micros(row["created"]),
            used=from_micros(row["used"]),
            turns=row["turn"],
            messages=row["active"],
            tokens=row["tokens"],
            strategy=read(row["strategy"]),
            settings=self.encoding.read_json(row["settings"]),
            archived=bool(row["archived"]),
            deleted=bool(row["deleted"]),
            origin=read(row["origin"]),
        )

    def new_message(self, stored: StoredMessage) -> Values:
        """Return the row of a message, without its session."""
        return {
            "position": stored.position,
            "id": stored.id,
            "turn": stored.turn,
            "created": to_micros(stored.created),
            "body": self.encoding.message(stored.message, f"message at {stored.position}"),
            "tokens": stored.tokens,
            "counter": self.encoding.text(stored.counter, "counter"),
            "superseded_by": 0,
        }

    def message(self, row: Row) -> StoredMessage:
        """Return a message at its place."""
        return StoredMessage(
            id=row["id"],
            position=row["position"],
            turn=row["turn"],
            created=from_micros(row["created"]),
            message=self.encoding.read_message(row["body"]),
            tokens=row["tokens"],
            counter=self.encoding.read_text(row["counter"]),
        )

    def new_turn(self, record: TurnRecord) -> Values:
        """Return the row of a turn, without its session."""
        summary = record.summary
        return {
            "number": record.number,
            "trace": self.encoding.text(record.trace, "trace"),
            "summary": None if summary is None else self.encoding.summary(summary),
            "superseded_by": 0,
        }

    def turn(self, row: Row) -> StoredTurn:
        """Return a committed turn."""
        summary = None if row["summary"] is None else self.encoding.read_summary(row["summary"])
        return StoredTurn(
            row["number"], self.encoding.read_text(row["trace"]), row["superseded_by"], summary
        )

    def new_state(self, state: AgentState, turn: int) -> Values:
        """Return the row of a state version, without its session."""
        return {"version": state.version, "turn": turn, "body": self.encoding.state(state)}

    def state(self, row: Row) -> StoredState:
        """Return a state version."""
        return StoredState(row["turn"], self.encoding.read_state(row["body"]))

    def new_record(self, record: MemoryRecord) -> Values:
        """Return the row of a long-term record."""
        check_record(record)
        return {
            "user_id": record.user,
            "id": record.id,
            "session_id": record.session,
            "turn": record.turn,
            "kind": self.encoding.text(record.kind, "kind"),
            "body": self.encoding.text(record.text, "text to remember"),
            "message_ids": self.encoding.json(list(record.message_ids), "message ids"),
            "created": to_micros(record.created),
            "times": record.count,
            "status": record.status,
            "expires": None if record.expires is None else to_micros(record.expires),
            "indexed": int(record.indexed),
        }

    def record(self, row: Row) -> MemoryRecord:
        """Return a long-term record."""
        return MemoryRecord(
            id=row["id"],
            user=row["user_id"],
            session=row["session_id"],
            turn=row["turn"],
            kind=self.encoding.read_text(row["kind"]),
            text=self.encoding.read_text(row["body"]),
            message_ids=tuple(self.encoding.read_json(row["message_ids"])),
            created=from_micros(row["created"]),
            count=row["times"],
            status=row["status"],
            expires=None if row["expires"] is None else from_micros(row["expires"]),
            indexed=bool(row["indexed"]),
        )
