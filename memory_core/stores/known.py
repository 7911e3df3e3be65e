"""What is known of the sessions in use, to go on from while their store is away.

:class:`Known` learns from every answer of the store and from every write, those that wait
included. It holds the sessions used last, and knows of a session what was read or written of it
here; it never invents the rest.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from memory_core.errors import StoreUnavailable
from memory_core.messages import StoredMessage
from memory_core.state import AgentState
from memory_core.stores import checks
from memory_core.stores.protocols import (
    Head,
    MemoryRecord,
    SessionInfo,
    SessionKey,
    StoredState,
    StoredTurn,
    TurnRecord,
)
from memory_core.stores.writes import (
    Commit,
    Create,
    Mark,
    Purge,
    PutRecords,
    SaveState,
    Update,
    Write,
)

SESSIONS_KNOWN = 100


@dataclass
class KnownSession:
    """One session as far as it is known."""

    head: Head | None = None
    info: SessionInfo | None = None
    active: dict[int, StoredMessage] = field(default_factory=dict)
    all: dict[int, StoredMessage] = field(default_factory=dict)
    turns: dict[int, StoredTurn] = field(default_factory=dict)
    states: dict[int, StoredState] = field(default_factory=dict)

    def commit(self, record: TurnRecord) -> None:
        """Take in a turn that was committed or waits to be."""
        head = self.head
        if head is None:
            return
        if record.supersedes or record.replaces_all:
            self._supersede(record)
        for m in record.messages:
            self.active[m.position] = self.all[m.position] = m
        self.turns[record.number] = StoredTurn(record.number, record.trace, 0, record.summary)
        if record.state is not None:
            self.states[record.state.version] = StoredState(record.number, record.state)
        self.head = Head(
            record.number,
            head.messages + len(record.messages),
            record.state or head.state,
            record.summary or head.summary,
        )
        if self.info is not None:
            self.info = replace(
                self.info,
                title=record.title or self.info.title,
                turns=record.number,
                messages=self.info.messages + len(record.messages),
                tokens=self.info.tokens + sum(m.tokens or 0 for m in record.messages),
                used=max([self.info.used, *(m.created for m in record.messages)]),
            )

    def _supersede(self, record: TurnRecord) -> None:
        def replaced(turn: int) -> bool:
            return turn < record.number if record.replaces_all else turn == record.supersedes

        gone = [m for m in self.active.values() if replaced(m.turn)]
        for m in gone:
            del self.active[m.position]
        for number, turn in self.turns.items():
            if replaced(number) and not turn.superseded_by:
                self.turns[number] = replace(turn, superseded_by=record.number)
        if self.info is not None:
            tokens = self.info.tokens - sum(m.tokens or 0 for m in gone)
            self.info = replace(self.info, messages=self.info.messages - len(gone), tokens=tokens)


class Known:
    """The sessions and records that are known. Not safe between threads by itself."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[SessionKey, KnownSession] = OrderedDict()
        self._records: dict[str, dict[str, MemoryRecord]] = {}

    def of(self, key: SessionKey) -> KnownSession:
        """Return what is known of a session, to be added to."""
        known = self._sessions.setdefault(key, KnownSession())
        self._sessions.move_to_end(key)
        if len(self._sessions) > SESSIONS_KNOWN:
            self._sessions.popitem(last=False)
        return known

    def has(self, key: SessionKey) -> bool:
        """Return whether it is known where a session stands."""
        return key in self._sessions and self._sessions[key].head is not None

    def forget(self, key: SessionKey) -> None:
        """Drop what is known of a session."""
        self._sessions.pop(key, None)

    def head(self, key: SessionKey) -> Head:
        """Return where a session stands; raise :class:`StoreUnavailable` when unknown."""
        head = self._sessions[key].head if key in self._sessions else None
        if head is None:
            raise _unknown()
        return head

    def info(self, key: SessionKey) -> SessionInfo:
        """Return the catalogue's entry; raise :class:`StoreUnavailable` when unknown."""
        info = self._sessions[key].info if key in self._sessions else None
        if info is None:
            raise _unknown()
        return info

    def messages(
        self, key: SessionKey, first: int, last: int | None, *, superseded: bool
    ) -> list[StoredMessage]:
        """Return the known messages of a range."""
        self.head(key)
        known = self._sessions[key]
        found = {**known.all, **known.active} if superseded else known.active
        return [found[p] for p in sorted(found) if p >= first and (last is None or p < last)]

    def turns(self, key: SessionKey, first: int, last: int | None) -> list[StoredTurn]:
        """Return the known turns of a range."""
        self.head(key)
        turns = self._sessions[key].turns
        return [turns[n] for n in sorted(turns) if n >= first and (last is None or n <= last)]

    def state(self, key: SessionKey, version: int | None) -> AgentState:
        """Return the newest state or a known version; raise when it is not known."""
        head = self.head(key)
        if version is None or version == head.state.version:
            return head.state
        found = self._sessions[key].states.get(version)
        if found is None:
            raise _unknown()
        return found.state

    def states(self, key: SessionKey) -> list[StoredState]:
        """Return the known versions of the state."""
        self.head(key)
        states = self._sessions[key].states
        return [states[v] for v in sorted(states)]

    def sessions(self, user: str, *, deleted: bool) -> list[SessionInfo]:
        """Return the known sessions of a user, last used first."""
        infos = [k.info for k in self._sessions.values() if k.info and k.info.key.user == user]
        wanted = [i for i in infos if i.deleted == deleted]
        return sorted(wanted, key=lambda i: i.used, reverse=True)

    def records(self, user: str, *, pending: bool) -> list[MemoryRecord]:
        """Return the known records of a user, oldest first."""
        known = self._records.get(user, {}).values()
        return [r for r in known if not pending or not r.indexed]

    def learn_records(self, user: str, records: Iterable[MemoryRecord], *, whole: bool) -> None:
        """Take in records that were read; ``whole`` says that these are all."""
        known = {} if whole else self._records.get(user, {})
        self._records[user] = {**known, **{r.id: r for r in records}}

    def forget_user(self, user: str) -> None:
        """Drop everything of a user."""
        self._records.pop(user, None)
        for key in [k for k in self._sessions if k.user == user]:
            del self._sessions[key]

    def check(self, write: Write) -> None:
        """Refuse a write that has to wait when the store would refuse it, as far as is known.

        Raises :class:`StoreUnavailable` for a session of which nothing is known.
        """
        if isinstance(write, Create):
            if self.has(write.key):
                raise checks.id_in_use()
        elif isinstance(write, Update | Purge):
            self.info(write.key)
        elif isinstance(write, Commit):
            head, record = self.head(write.key), write.record
            checks.check_next(record, turn=head.turn, position=head.messages)
            if record.state is not None:
                newest = head.state.version
                checks.check_state(record.state, record.state_base, newest=newest)
        elif isinstance(write, SaveState):
            newest = self.head(write.key).state.version
            checks.check_state(write.state, write.base, newest=newest)

    def apply(self, write: Write) -> None:
        """Take in a write that was made or waits to be."""
        if isinstance(write, Commit):
            self.of(write.key).commit(write.record)
            self._take_records(write.key, write.record)
        elif isinstance(write, SaveState):
            known = self.of(write.key)
            if known.head is not None:
                known.head = replace(known.head, state=write.state)
                turn = known.head.turn
                known.states[write.state.version] = StoredState(turn, write.state)
        elif isinstance(write, Create):
            known = self.of(write.key)
            empty = AgentState(user=write.key.user, session=write.key.session)
            known.head = Head(0, 0, empty)
            known.info = replace(write.info, turns=0, messages=0, tokens=0)
        elif isinstance(write, Update):
            self._edit(write.info)
        elif isinstance(write, Purge):
            self.forget(write.key)
        elif isinstance(write, PutRecords):
            self.learn_records(write.user, write.records, whole=False)
        else:
            self.mark(write)

    def mark(self, write: Mark) -> list[str]:
        """Note what the index knows; return the ids of the known records that were marked."""
        known = self._records.get(write.user, {})
        chosen = [known[i] for i in write.ids if i in known]
        marked = [r for r in chosen if write.status in (None, r.status)]
        self.learn_records(write.user, (replace(r, indexed=True) for r in marked), whole=False)
        return [r.id for r in marked]

    def _edit(self, info: SessionInfo) -> None:
        known = self.of(info.key)
        if known.info is not None:
            known.info = replace(
                known.info,
                title=info.title,
                strategy=info.strategy,
                settings=info.settings,
                archived=info.archived,
                deleted=info.deleted,
            )

    def _take_records(self, key: SessionKey, record: TurnRecord) -> None:
        known = self._records.get(key.user, {})

        def replaced(old: MemoryRecord) -> bool:
            if record.replaces_all:
                return old.turn < record.number
            return bool(record.supersedes) and old.turn == record.supersedes

        forgotten = [
            replace(old, status=checks.FORGOTTEN, indexed=False)
            for old in known.values()
            if old.session == key.session and replaced(old)
        ]
        self.learn_records(key.user, [*forgotten, *record.records], whole=False)


def _unknown() -> StoreUnavailable:
    return StoreUnavailable("The store is away, and this was not read before.")
