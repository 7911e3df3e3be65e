"""Short ways to make sessions, turns and records for the store tests."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta

from memory_core.errors import StaleVersion
from memory_core.messages import Message, StoredMessage
from memory_core.stores.protocols import (
    MemoryRecord,
    SessionInfo,
    SessionKey,
    Store,
    TurnRecord,
)

NOON = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)
KEY = SessionKey("dana@example.org", "s-1")


def start(store: Store, key: SessionKey = KEY, **changes) -> SessionKey:
    """Create a session and return its key."""
    values = {"title": "Bakery", "created": NOON, "used": NOON, **changes}
    store.create(SessionInfo(key, **values))
    return key


def turn(number: int, *texts: str, position: int | None = None, tokens: int = 3, **changes):
    """Return a turn of user and assistant messages with two messages a turn before it."""
    first = 2 * (number - 1) if position is None else position
    messages = tuple(
        StoredMessage(
            id=f"m{number}-{i}-{uuid.uuid4().hex[:8]}",
            position=first + i,
            turn=number,
            created=NOON + timedelta(seconds=number),
            message=text if isinstance(text, Message) else Message.of(_role(i), text),
            tokens=tokens,
            counter="o200k",
        )
        for i, text in enumerate(texts)
    )
    trace = changes.pop("trace", f'{{"number":{number},"id":"{uuid.uuid4().hex}"}}')
    return TurnRecord(number=number, trace=trace, messages=messages, **changes)


def memory(ident: str, key: SessionKey = KEY, **changes) -> MemoryRecord:
    """Return a long-term record."""
    values = {
        "turn": 1,
        "kind": "turn",
        "text": f"text of {ident}",
        "message_ids": ("m1",),
        "created": NOON,
        **changes,
    }
    return MemoryRecord(id=ident, user=key.user, session=key.session, **values)


def append(store: Store, key: SessionKey, *texts: str, attempts: int = 10_000) -> int:
    """Append a turn behind whatever others append meanwhile; return its number."""
    for _ in range(attempts):
        head = store.head(key)
        record = turn(head.turn + 1, *texts, position=head.messages)
        try:
            store.commit(key, record)
        except StaleVersion:
            continue
        return record.number
    raise AssertionError("never got in")


def texts(store: Store, key: SessionKey = KEY, **options) -> list[str]:
    """Return the texts of a session's messages."""
    return [m.message.text for m in store.messages(key, **options)]


def _role(index: int) -> str:
    return "assistant" if index % 2 else "user"
