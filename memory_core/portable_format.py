"""Sessions as one JSON file that other people and other stores can read.

::

    {"format": "memory-inspector", "version": 1, "exported": time, "redacted": false,
     "user": id,
     "sessions": [{"id", "title", "created", "used", "strategy", "settings", "archived",
                   "deleted", "origin",
                   "turns": [{"number", "supersedes", "replaces_all", "trace": {…}, "summary",
                              "messages": [{"id", "position", "turn", "created", "tokens",
                                            "counter", "role", "blocks", "kwargs"}]}],
                   "states": [{"turn", "state": {…}}]}],
     "records": [{"id", "session", "turn", "kind", "text", "message_ids", "created", "count",
                  "status", "expires"}],
     "checksum": "sha256:…"}

Times are ISO 8601 in UTC. The checksum is over the object without it, written with sorted keys
and no blanks (:func:`checksum`). Vectors are not in the file: records come in as pending and are
embedded again. :func:`read_bundle` checks everything before anything is written.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import datetime

from memory_core.errors import InvalidInput, MemoryInspectorError
from memory_core.messages import Json, Message, StoredMessage
from memory_core.state import from_json as state_from_json
from memory_core.state import to_json as state_to_json
from memory_core.stores.checks import check_turn
from memory_core.stores.encoding import summary_from_json
from memory_core.stores.ids import check_id, check_key
from memory_core.stores.protocols import (
    MemoryRecord,
    SessionInfo,
    SessionKey,
    StoredState,
    TurnRecord,
)

FORMAT, VERSION = "memory-inspector", 1


@dataclass(frozen=True)
class Session:
    """A whole session: catalogue entry, turns and state versions, oldest first."""

    info: SessionInfo
    turns: tuple[TurnRecord, ...] = ()
    states: tuple[StoredState, ...] = ()


@dataclass(frozen=True)
class Bundle:
    """What one file holds: some sessions of a user, and long-term records."""

    user: str
    sessions: tuple[Session, ...]
    records: tuple[MemoryRecord, ...] = ()
    redacted: bool = False
    counts: Mapping[str, int] = field(default_factory=dict)  # what was redacted, by kind


def write_bundle(bundle: Bundle, *, now: datetime) -> str:
    """Return a bundle as the text of one file."""
    out: dict[str, Json] = {
        "format": FORMAT,
        "version": VERSION,
        "exported": now.isoformat(),
        "redacted": bundle.redacted,
        "user": bundle.user,
        "sessions": [_session_json(s) for s in bundle.sessions],
        "records": [_record_json(r) for r in bundle.records],
    }
    return json.dumps({**out, "checksum": checksum(out)}, ensure_ascii=False, indent=1)


def compact(value: Json) -> str:
    """Return JSON text as traces are written: no blanks, every script as it is."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def checksum(value: Mapping[str, Json]) -> str:
    """Return the checksum of a file's object without its ``checksum`` field."""
    bare = {k: v for k, v in value.items() if k != "checksum"}
    text = json.dumps(bare, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def read_bundle(text: str) -> Bundle:
    """Return the bundle in the text of a file.

    Raises :class:`InvalidInput`, naming the place, for another format, a newer version, a wrong
    checksum or a value that no store could take.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise InvalidInput(f"The file is no JSON: {exc}.") from exc
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise InvalidInput("The file was not exported by Memory Inspector.")
    if value.get("version") != VERSION:
        raise InvalidInput(
            f"The file has version {value.get('version')!r}; this program reads version {VERSION}.",
            next_step="Update Memory Inspector.",
        )
    try:
        right = value.get("checksum") == checksum(value)
    except UnicodeEncodeError as exc:
        raise InvalidInput("The file holds half of a character.") from exc
    if not right:
        raise InvalidInput("The file was changed or damaged: its checksum does not fit.")
    with _place("the file"):
        user = check_id(value["user"], "user id")
        sessions = tuple(
            _read_session(user, item, place) for place, item in enumerate(value["sessions"], 1)
        )
        ids = [s.info.key.session for s in sessions]
        if len(set(ids)) < len(ids):
            raise InvalidInput("Two sessions have the same id.")
        records = tuple(
            _read_record(user, item, place) for place, item in enumerate(value["records"], 1)
        )
        return Bundle(user, sessions, records, bool(value["redacted"]))


def _session_json(session: Session) -> dict[str, Json]:
    info = session.info
    return {
        "id": info.key.session,
        "title": info.title,
        "created": info.created.isoformat(),
        "used": info.used.isoformat(),
        "strategy": info.strategy,
        "settings": dict(info.settings),
        "archived": info.archived,
        "deleted": info.deleted,
        "origin": info.origin,
        "turns": [_turn_json(turn) for turn in session.turns],
        "states": [{"turn": s.turn, "state": state_to_json(s.state)} for s in session.states],
    }


def _turn_json(turn: TurnRecord) -> dict[str, Json]:
    try:
        trace = json.loads(turn.trace)
    except ValueError:
        trace = turn.trace
    return {
        "number": turn.number,
        "supersedes": turn.supersedes,
        "replaces_all": turn.replaces_all,
        "trace": trace,
        "summary": None if turn.summary is None else asdict(turn.summary),
        "messages": [
            {
                "id": m.id,
                "position": m.position,
                "turn": m.turn,
                "created": m.created.isoformat(),
                "tokens": m.tokens,
                "counter": m.counter,
                **m.message.to_json(),
            }
            for m in turn.messages
        ],
    }


def _record_json(record: MemoryRecord) -> dict[str, Json]:
    return {
        "id": record.id,
        "session": record.session,
        "turn": record.turn,
        "kind": record.kind,
        "text": record.text,
        "message_ids": list(record.message_ids),
        "created": record.created.isoformat(),
        "count": record.count,
        "status": record.status,
        "expires": record.expires.isoformat() if record.expires else None,
    }


def _read_session(user: str, value: Json, place: int) -> Session:
    with _place(f"session {place}"):
        key = check_key(SessionKey(user, value["id"]))
        info = SessionInfo(
            key=key,
            title=_text(value["title"]),
            created=_time(value["created"]),
            used=_time(value["used"]),
            strategy=_text(value["strategy"]),
            settings=dict(value["settings"]),
            archived=bool(value["archived"]),
            deleted=bool(value["deleted"]),
            origin=_text(value["origin"]),
        )
        turns = tuple(_read_turn(key, item, n) for n, item in enumerate(value["turns"], 1))
        states = tuple(
            StoredState(int(item["turn"]), state_from_json(item["state"]))
            for item in value["states"]
        )
        if any((s.state.user, s.state.session) != (user, key.session) for s in states):
            raise InvalidInput("A state belongs to another session.")
        versions = [s.state.version for s in states]
        if versions != sorted(set(versions)) or any(s.turn > len(turns) for s in states):
            raise InvalidInput("The versions of its state do not follow each other.")
        positions = [m.position for turn in turns for m in turn.messages]
        if positions != list(range(len(positions))):
            raise InvalidInput("The positions of its messages do not follow each other.")
        return Session(info, turns, states)


def _read_turn(key: SessionKey, value: Json, number: int) -> TurnRecord:
    with _place(f"turn {number}"):
        trace = value["trace"]
        summary = value["summary"]
        turn = TurnRecord(
            number=int(value["number"]),
            trace=trace if isinstance(trace, str) else compact(trace),
            messages=tuple(_read_message(item) for item in value["messages"]),
            summary=None if summary is None else summary_from_json(summary),
            supersedes=int(value["supersedes"]),
            replaces_all=bool(value["replaces_all"]),
        )
        if turn.number != number:
            raise InvalidInput(f"It has the number {turn.number}.")
        check_turn(key, turn)
        return turn


def _read_message(value: Json) -> StoredMessage:
    tokens = value["tokens"]
    return StoredMessage(
        id=value["id"],
        position=int(value["position"]),
        turn=int(value["turn"]),
        created=_time(value["created"]),
        message=Message.from_json(value),
        tokens=None if tokens is None else int(tokens),
        counter=_text(value["counter"]),
    )


def _read_record(user: str, value: Json, place: int) -> MemoryRecord:
    with _place(f"record {place}"):
        expires = value["expires"]
        return MemoryRecord(
            id=check_id(value["id"], "record id"),
            user=user,
            session=_text(value["session"]),
            turn=int(value["turn"]),
            kind=_text(value["kind"]),
            text=_text(value["text"]),
            message_ids=tuple(check_id(i, "message id") for i in value["message_ids"]),
            created=_time(value["created"]),
            count=int(value["count"]),
            status=_text(value["status"]),
            expires=None if expires is None else _time(expires),
        )


def _time(value: Json) -> datetime:
    found = datetime.fromisoformat(value)
    if found.tzinfo is None:
        raise ValueError(f"the time {value} has no time zone")
    return found


def _text(value: Json) -> str:
    if not isinstance(value, str):
        raise TypeError(f"text is expected, not {type(value).__name__}")
    return value


@contextmanager
def _place(name: str) -> Iterator[None]:
    """Name the place in the file in whatever is wrong there."""
    try:
        yield
    except MemoryInspectorError as exc:
        raise InvalidInput(f"In {name}: {exc}") from exc
    except KeyError as exc:
        raise InvalidInput(f"In {name}: the field {exc} is missing.") from exc
    except (TypeError, ValueError, AttributeError) as exc:
        raise InvalidInput(f"In {name}: {exc}.") from exc
