"""A read conversation becomes a session: one committed turn for each question of the user.

Nothing was assembled or sent in these turns, so their traces hold no calls and name
:data:`IMPORTED` as the strategy. What they leave for the long term is planned by the function that
plans it in a chat and committed with the turn; it waits in the store to be indexed
(:mod:`memory_core.indexing`). The session's ``origin`` carries the fingerprints of the
conversation and of its file, by which :func:`imported_before` notices the same one again.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime

from memory_core.errors import StoreError
from memory_core.interchange.values import Conversation
from memory_core.messages import StoredMessage
from memory_core.records import Told, plan_records, turn_candidate
from memory_core.settings import MemorySettings
from memory_core.stores.protocols import (
    MemoryRecord,
    SessionInfo,
    SessionKey,
    Store,
    TurnRecord,
)
from memory_core.tokens import TokenCounter
from memory_core.trace import TurnTrace, trace_to_json

IMPORTED = "imported"


def store_conversation(
    conversation: Conversation,
    *,
    store: Store,
    key: SessionKey,
    counter: TokenCounter,
    file: str = "",
    now: datetime | None = None,
    remember: bool = True,
    progress: Callable[[int, int], None] | None = None,
) -> int:
    """Store a conversation as a new session and return how many turns it has.

    ``file`` is the fingerprint of the file it was read from, ``now`` the time of messages whose
    time is not known; ``remember`` says whether its turns become long-term memories, as those of
    a chat do; ``progress`` is called with the messages stored and their total. When the store
    fails on the way, what was written of the session is erased again and the error raised: a
    conversation is imported whole or not at all.

    Raises :class:`InvalidInput` when the session's id is in use, and what the store raises.
    """
    at = now or datetime.now(UTC)
    messages = list(_stored(conversation, counter, at))
    settings = MemorySettings().to_json()
    store.create(
        SessionInfo(
            key,
            conversation.title,
            created=messages[0].created,
            used=at,
            strategy="layered",
            settings=settings,
            origin=origin_of(conversation, file),
        )
    )
    try:
        turns = _turns(messages)
        known: dict[str, MemoryRecord] = {}
        for turn in turns:
            record = _record(key, turn, known if remember else None)
            known |= {memory.id: memory for memory in record.records}
            store.commit(key, record)
            if progress is not None:
                progress(turn[-1].position + 1, len(messages))
    except BaseException:
        with contextlib.suppress(StoreError):
            store.purge(key)
        raise
    return len(turns)


def origin_of(conversation: Conversation, file: str = "") -> str:
    """Return what a session says about where it was imported from."""
    return f"{IMPORTED}:{conversation.fingerprint}:{file}"


def imported_before(
    sessions: Iterable[SessionInfo], *, file: str = "", conversation: str = ""
) -> list[SessionInfo]:
    """Return the sessions that came from a file, or from an equal conversation, by fingerprint."""
    found = []
    for info in sessions:
        kind, _, rest = info.origin.partition(":")
        told, _, source = rest.partition(":")
        if kind == IMPORTED and (
            (file and source == file) or (conversation and told == conversation)
        ):
            found.append(info)
    return found


def _stored(
    conversation: Conversation, counter: TokenCounter, now: datetime
) -> Iterator[StoredMessage]:
    turn, asked, created = 1, False, None
    first = next(filter(None, conversation.times), now)
    for position, message in enumerate(conversation.messages):
        if message.role == "user":
            turn += asked
            asked = True
        created = conversation.time_of(position) or created or first
        yield StoredMessage(
            id=uuid.uuid4().hex,
            position=position,
            turn=turn,
            created=created,
            message=message,
            tokens=counter.message(message),
            counter=counter.id,
        )


def _turns(messages: list[StoredMessage]) -> list[list[StoredMessage]]:
    turns: list[list[StoredMessage]] = []
    for message in messages:
        if len(turns) < message.turn:
            turns.append([])
        turns[-1].append(message)
    return turns


def _record(
    key: SessionKey, messages: list[StoredMessage], known: Mapping[str, MemoryRecord] | None
) -> TurnRecord:
    """Return a turn to commit; ``known`` are its session's memories, ``None``: none are made."""
    told = Told(key.user, key.session, messages[0].turn, messages[0].created)
    candidates = [turn_candidate(messages)] if known is not None else []
    records, writes = plan_records(candidates, told, (known or {}).get)
    asked = next((m.message.text for m in messages if m.message.role == "user"), "")
    trace = TurnTrace(
        number=messages[0].turn,
        session=key.session,
        started=messages[0].created,
        ended=messages[-1].created,
        strategy=IMPORTED,
        settings={},
        query=asked,
        appended=tuple(m.id for m in messages),
        memories=tuple(writes),
    )
    return TurnRecord(trace.number, trace_to_json(trace), tuple(messages), records=tuple(records))
