"""A session copied turn by turn, so that two ways can be tried from the same point.

Everything that was committed is committed again under another id: messages, traces, state
versions and summaries, superseded turns included. Long-term memories belong to the user and are
not doubled; those that the original made stay its own.
"""

from __future__ import annotations

import json
import uuid
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from memory_core.messages import Json, StoredMessage
from memory_core.records import record_id_in
from memory_core.session import utc_now
from memory_core.state import AgentState
from memory_core.stores.protocols import SessionInfo, SessionKey, Store, TurnRecord
from memory_core.trace import TurnTrace, trace_from_json, trace_to_json

_IDS = frozenset({"id", "ids", "replaces", "disagreement"})  # fields of a trace that hold ids


def copy_session(
    store: Store,
    source: SessionKey,
    *,
    title: str,
    last: int | None = None,
    origin: str = "",
    memories: bool = False,
    clock: Callable[[], datetime] = utc_now,
) -> SessionInfo:
    """Copy a session up to turn ``last`` (default: all of it) and return the copy's entry.

    ``origin`` is what the entry names as its origin, without it the session copied. With
    ``memories`` the copied traces name the copy's own memories instead of the original's; the
    caller writes those (see :mod:`memory_core.forking`).
    Raises :class:`~memory_core.errors.NotFound` when the user has no such session. A copy that
    fails half-way is erased again.
    """
    original = store.session(source)
    key = SessionKey(source.user, uuid.uuid4().hex)
    now = clock()
    info = replace(
        original,
        key=key,
        title=title,
        created=now,
        used=now,
        archived=False,
        deleted=False,
        origin=origin or source.session,
    )
    store.create(info)
    try:
        _copy_turns(store, source, key, last, memories=memories)
    except BaseException:
        store.purge(key)
        raise
    return store.session(key)


def _copy_turns(
    store: Store, source: SessionKey, key: SessionKey, last: int | None, *, memories: bool
) -> None:
    messages: dict[int, list[StoredMessage]] = defaultdict(list)
    for message in store.messages(source, superseded=True):
        messages[message.turn].append(message)
    by_id = {m.id: m.message for turn in messages.values() for m in turn}
    states: dict[int, list[AgentState]] = defaultdict(list)
    for stored in store.states(source):
        states[stored.turn].append(replace(stored.state, session=key.session))
    base = _save_edits(store, key, states[0], base=0)
    for turn in store.turns(source, last=last):
        trace = trace_from_json(turn.trace, lambda ids: {i: by_id[i] for i in ids})
        in_turn = [s for s in states[turn.number] if s.version <= trace.state_version]
        by_hand = [s for s in states[turn.number] if s.version > trace.state_version]
        moved = trace_to_json(_moved(trace, source, key))
        record = TurnRecord(
            number=turn.number,
            trace=_renamed(moved, source, key) if memories else moved,
            messages=tuple(messages[turn.number]),
            state=in_turn[-1] if in_turn else None,
            summary=turn.summary,
            supersedes=trace.supersedes,
            state_base=base,
        )
        store.commit(key, record)
        base = in_turn[-1].version if in_turn else base
        base = _save_edits(store, key, by_hand, base=base)


def _save_edits(store: Store, key: SessionKey, states: Sequence[AgentState], *, base: int) -> int:
    """Save states that were edited between turns; return the newest version."""
    for state in states:
        store.save_state(key, state, base=base)
        base = state.version
    return base


def _moved(trace: TurnTrace, source: SessionKey, key: SessionKey) -> TurnTrace:
    return replace(trace, session=key.session, origin=f"{source.session}/{trace.number}")


def _renamed(trace: str, source: SessionKey, key: SessionKey) -> str:
    """Return a trace, as JSON, that calls the memories of ``source`` by their ids in ``key``."""

    def walk(value: Json, name: str = "") -> Json:
        if isinstance(value, dict):
            return {k: walk(v, k) for k, v in value.items()}
        if isinstance(value, list):
            return [walk(v, name) for v in value]
        if not isinstance(value, str):
            return value
        if name == "session":
            return key.session if value == source.session else value
        return record_id_in(value, source, key.session) if name in _IDS else value

    return json.dumps(walk(json.loads(trace)), ensure_ascii=False)
