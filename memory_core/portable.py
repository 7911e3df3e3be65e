"""Sessions taken out of a store and put into another, whatever both are made of.

Everything is read and written through the store's own Protocol, turn by turn, so it works from
any backend to any other. The form in a file is that of :mod:`memory_core.portable_format`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

from memory_core.messages import StoredMessage
from memory_core.portable_format import Bundle, Session, compact
from memory_core.redaction import Redactor
from memory_core.stores.protocols import (
    SessionKey,
    Store,
    TurnRecord,
)
from memory_core.stores.redacting import redact_state, redact_turn


@dataclass(frozen=True)
class Imported:
    """What an import wrote, and what was there already."""

    sessions: tuple[SessionKey, ...] = ()
    turns: int = 0
    records: int = 0
    kept: tuple[SessionKey, ...] = ()


def export_session(store: Store, key: SessionKey, *, redactor: Redactor | None = None) -> Bundle:
    """Return one session with the records it made."""
    session = read_session(store, key)
    records = [r for r in store.records(key.user) if r.session == key.session]
    return _redact(Bundle(key.user, (session,), tuple(records)), redactor)


def export_user(store: Store, user: str, *, redactor: Redactor | None = None) -> Bundle:
    """Return all sessions of a user, deleted ones that can come back too, and all records."""
    infos = [*store.sessions(user), *store.sessions(user, deleted=True)]
    infos.sort(key=lambda info: (info.created, info.key.session))
    sessions = tuple(read_session(store, info.key) for info in infos)
    return _redact(Bundle(user, sessions, tuple(store.records(user))), redactor)


def read_session(store: Store, key: SessionKey) -> Session:
    """Return a session as it stands, even while somebody goes on writing to it."""
    info, head = store.session(key), store.head(key)
    messages: dict[int, list[StoredMessage]] = {}
    seeds_active = True
    active = {m.position for m in store.messages(key, last=head.messages)}
    for m in store.messages(key, last=head.messages, superseded=True):
        messages.setdefault(m.turn or 1, []).append(m)
        seeds_active = seeds_active and (m.turn > 0 or m.position in active)
    stored = store.turns(key, last=head.turn)
    replaced: dict[int, list[int]] = {}
    for turn in stored:
        if 0 < turn.superseded_by <= head.turn:
            replaced.setdefault(turn.superseded_by, []).append(turn.number)
    turns = []
    for turn in stored:
        mine = replaced.get(turn.number, [])
        turns.append(
            TurnRecord(
                number=turn.number,
                trace=turn.trace,
                messages=tuple(messages.get(turn.number, ())),
                summary=turn.summary,
                supersedes=mine[0] if len(mine) == 1 and seeds_active else 0,
                replaces_all=len(mine) > 1 or (len(mine) == 1 and not seeds_active),
            )
        )
    newest = head.state.version
    states = tuple(s for s in store.states(key) if s.state.version <= newest)
    return Session(info, tuple(turns), states)


def import_bundle(
    store: Store,
    bundle: Bundle,
    *,
    user: str | None = None,
    new_id: Callable[[], str] | None = None,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> Imported:
    """Write a bundle's sessions and records, for ``user`` if given.

    A session whose id is in use is kept as it is, unless ``new_id`` makes ids for all of them.
    A session that fails half-way is erased again. ``progress`` hears how many are done.
    """
    owner = user or bundle.user
    known = {i.key for i in (*store.sessions(owner), *store.sessions(owner, deleted=True))}
    written: dict[str, SessionKey] = {}
    kept, turns = [], 0
    for done, session in enumerate(bundle.sessions, 1):
        ident = session.info.key.session
        key = SessionKey(owner, new_id() if new_id else ident)
        if key in known:
            kept.append(key)
        else:
            write_session(store, _moved(session, key))
            written[ident] = key
            turns += len(session.turns)
        progress(done, len(bundle.sessions))
    stored = {r.id for r in store.records(owner)}
    ids = {session.info.key.session for session in bundle.sessions}
    records = [
        replace(
            record,
            user=owner,
            session=written.get(record.session, record).session,
            indexed=record.status != "active",
        )
        for record in bundle.records
        if record.id not in stored and (record.session in written or record.session not in ids)
    ]
    store.put_records(records)
    return Imported(tuple(written.values()), turns, len(records), tuple(kept))


def write_session(store: Store, session: Session) -> None:
    """Write a session turn by turn; when that fails nothing of it stays."""
    key = session.info.key
    store.create(session.info)
    try:
        base = _save_states(store, session, 0, 0)
        for turn in session.turns:
            store.commit(key, turn)
            base = _save_states(store, session, turn.number, base)
    except BaseException:
        store.purge(key)
        raise


def _save_states(store: Store, session: Session, turn: int, base: int) -> int:
    for saved in session.states:
        if saved.turn == turn:
            store.save_state(session.info.key, saved.state, base=base)
            base = saved.state.version
    return base


def _moved(session: Session, key: SessionKey) -> Session:
    """Return a session under another key, as its traces and states say too."""
    if session.info.key == key:
        return session

    def trace(text: str) -> str:
        try:
            value = json.loads(text)
        except ValueError:
            return text
        if isinstance(value, dict) and "session" in value:
            value["session"] = key.session
            return compact(value)
        return text

    return Session(
        replace(session.info, key=key),
        tuple(replace(turn, trace=trace(turn.trace)) for turn in session.turns),
        tuple(
            replace(s, state=replace(s.state, user=key.user, session=key.session))
            for s in session.states
        ),
    )


def _redact(bundle: Bundle, redactor: Redactor | None) -> Bundle:
    if redactor is None:
        return bundle
    told: Counter[str] = Counter()
    sessions = []
    for session in bundle.sessions:
        turns = []
        for turn in session.turns:
            redacted, counts = redact_turn(turn, redactor)
            told.update(counts)
            turns.append(redacted)
        info = replace(
            session.info,
            title=redactor.text(session.info.title).text,
            settings=redactor.json(dict(session.info.settings), told),
        )
        states = [replace(s, state=redact_state(s.state, redactor, told)) for s in session.states]
        sessions.append(Session(info, tuple(turns), tuple(states)))
    records = [replace(r, text=redactor.text(r.text).text) for r in bundle.records]
    return Bundle(bundle.user, tuple(sessions), tuple(records), redacted=True, counts=dict(told))
