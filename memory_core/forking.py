"""Forks: a session gone on with from an earlier turn, beside the original and apart from it.

A fork is a copy of a session up to a turn (:mod:`memory_core.copying`) with the long-term
memories that it had left by then, kept under the fork's own name. Both can be chatted on: what is
remembered or forgotten by request in one session's own memories is not seen by the other, while
memories of the user's other sessions are seen by both. Its entry names its origin as
``<session>/<turn>``, which no session id can look like.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime

from memory_core.copying import copy_session
from memory_core.errors import NotFound
from memory_core.messages import Message
from memory_core.records import FORGOTTEN, REMEMBERED, Sees, record_id
from memory_core.session import utc_now
from memory_core.stores.protocols import MemoryRecord, SessionInfo, SessionKey, Store
from memory_core.strategies import LAYERED
from memory_core.trace import TurnTrace, trace_from_json


def fork_session(
    store: Store,
    source: SessionKey,
    turn: int,
    *,
    title: str,
    clock: Callable[[], datetime] = utc_now,
) -> SessionInfo:
    """Start a session that goes on from after ``turn`` of another one; return its entry.

    Raises :class:`NotFound` when there is no such turn. The copied memories wait to be indexed.
    A fork that fails half-way is erased again.
    """
    rows = store.turns(source, first=turn, last=turn)
    if not rows:
        raise NotFound(f"This session has no turn {turn} to go on from.")
    trace = trace_from_json(rows[0].trace, lambda ids: {i: Message("") for i in ids})
    origin = f"{source.session}/{turn}"
    info = copy_session(
        store, source, title=title, last=turn, origin=origin, memories=True, clock=clock
    )
    try:
        known = {stored.id for stored in store.messages(info.key, superseded=True)}
        left = records_left(store.records(source.user), trace)
        store.put_records([_moved(record, info.key, known) for record in left])
    except BaseException:
        store.purge(info.key)
        raise
    return info


def forked_from(info: SessionInfo) -> tuple[str, int] | None:
    """Return the session and turn that a session was forked from, ``None`` when it was not."""
    session, slash, turn = info.origin.rpartition("/")
    return (session, int(turn)) if slash and turn.isdigit() else None


def visible(sessions: Iterable[SessionInfo], own: str) -> Sees | None:
    """Return which of a user's memories a session sees, ``None``: all of them.

    ``sessions`` are all of the user's. A fork is apart from what it was forked from, however
    often; everybody is apart from forks.
    """
    forks = {info.key.session: origin for info in sessions if (origin := forked_from(info))}
    if not forks:
        return None
    above, line = own, {own}
    while above in forks and forks[above][0] not in line:
        above = forks[above][0]
        line.add(above)
    apart = (line | set(forks)) - {own}
    return lambda record: record.session not in apart


def records_left(records: Iterable[MemoryRecord], trace: TurnTrace) -> list[MemoryRecord]:
    """Return the long-term memories that a session had left by the end of a turn.

    What the turn itself left is taken from its trace where it was superseded since.
    """
    own = [r for r in records if r.session == trace.session and r.status != FORGOTTEN]
    left = [r for r in own if r.created <= trace.started and r.turn <= trace.number]
    held = {record.id for record in left}
    return left + [record for record in told_in(trace) if record.id not in held]


def told_in(trace: TurnTrace) -> list[MemoryRecord]:
    """Return the memories that a turn told for the first time, as its trace has them.

    What a strategy of LlamaIndex's remembered is its own; it is no memory of the user's.
    """
    if trace.strategy != LAYERED:
        return []
    return [
        MemoryRecord(
            id=write.id,
            user="",
            session=trace.session,
            turn=trace.number,
            kind=write.kind,
            text=write.text,
            message_ids=write.message_ids or (trace.appended if write.kind == "turn" else ()),
            created=trace.started,
        )
        for write in trace.memories
        if write.action == REMEMBERED
    ]


def _moved(record: MemoryRecord, key: SessionKey, known: set[str]) -> MemoryRecord:
    return replace(
        record,
        id=record_id(key.user, key.session, record.text),
        user=key.user,
        session=key.session,
        message_ids=tuple(i for i in record.message_ids if i in known),
        indexed=False,
    )
