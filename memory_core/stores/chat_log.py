"""A plain list of messages for each session, kept in an append-only store.

What LlamaIndex asks of a chat store (add, replace, delete, archive the oldest) is said here in
commits: every change is one transaction, so it happens whole or not at all, and two writers never
lose each other's messages. Nothing is overwritten: a replaced or deleted message is superseded.
Which messages are archived is kept in the session's state.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from memory_core.errors import InvalidInput, NotFound, StaleVersion
from memory_core.messages import Message, StoredMessage, repair
from memory_core.state import AgentState
from memory_core.stores.protocols import Head, SessionInfo, SessionKey, Store, TurnRecord
from memory_core.trace import TurnTrace, trace_to_json

STRATEGY = "llama-index"  # what such sessions say of themselves in the catalogue

_BEFORE, _ALSO = "archived_before", "archived_also"  # slots of the state: positions


@dataclass(frozen=True)
class Line:
    """One message of a list, and whether it is archived."""

    stored: StoredMessage
    archived: bool = False


def utc_now() -> datetime:
    """Return the time, aware, in UTC."""
    return datetime.now(UTC)


class ChatLog:
    """The lists of one user, by session id. Safe between threads and processes."""

    def __init__(self, store: Store, *, user: str, clock: Callable[[], datetime] = utc_now) -> None:
        self._store = store
        self._user = user
        self._clock = clock
        self._locks: dict[str, threading.Lock] = {}
        self._guard = threading.Lock()

    def ids(self) -> list[str]:
        """Return the sessions that hold messages, the oldest first."""
        infos = [info for info in self._store.sessions(self._user) if info.messages]
        return [i.key.session for i in sorted(infos, key=lambda i: (i.created, i.key.session))]

    def lines(self, ident: str) -> list[Line]:
        """Return the messages of a session, oldest first; none where there is no session."""
        key = SessionKey(self._user, ident)
        try:
            head = self._store.head(key)
            stored = self._store.messages(key, last=head.messages)
        except NotFound:
            return []
        return [Line(m, _is_archived(head.state, m.position)) for m in stored]

    def add(self, ident: str, messages: Sequence[Message], *, archived: bool = False) -> None:
        """Append messages together; no messages change nothing."""
        if messages:
            chosen = [(m, archived) for m in messages]
            self._change(ident, lambda key, head: self._turn(key, head, chosen))

    def set(self, ident: str, messages: Sequence[Message], *, archived: bool = False) -> None:
        """Put messages in the place of all that is there."""
        chosen = [(m, archived) for m in messages]
        self._change(ident, lambda key, head: self._turn(key, head, chosen, replaces=True))

    def drop(self, ident: str, choose: Callable[[list[Line]], list[Line]]) -> list[Line]:
        """Drop the messages that ``choose`` picks of all and return them."""
        gone: list[Line] = []

        def turn(key: SessionKey, head: Head) -> TurnRecord | None:
            lines = self.lines(ident)
            gone[:] = choose(lines)
            if not gone:
                return None
            number = gone[0].stored.turn
            if len(gone) == 1 and number and sum(li.stored.turn == number for li in lines) == 1:
                return self._turn(key, head, [], supersedes=number)  # it is a turn of its own
            places = {line.stored.position for line in gone}
            kept = [li for li in lines if li.stored.position not in places]
            chosen = [(li.stored.message, li.archived) for li in kept]
            return self._turn(key, head, chosen, replaces=True)

        if self.lines(ident):
            self._change(ident, turn)
        return gone

    def archive(self, ident: str, count: int) -> list[Line]:
        """Archive the oldest messages that are not, and return them."""
        key = SessionKey(self._user, ident)
        while True:
            with suppress(StaleVersion), self._locked(ident):
                oldest = [line for line in self.lines(ident) if not line.archived][:count]
                if oldest:
                    state = self._store.state(key)
                    before = oldest[-1].stored.position + 1
                    also = [p for p in state.slots.get(_ALSO, ()) if p >= before]
                    self._store.save_state(key, _archived(state, before, also))
                return oldest

    def erase(self, ident: str) -> None:
        """Erase a session for good."""
        with suppress(NotFound):
            self._store.purge(SessionKey(self._user, ident))

    def _change(self, ident: str, make: Callable[[SessionKey, Head], TurnRecord | None]) -> None:
        """Commit the turn that is made; when somebody else was first, look and make it again."""
        key = SessionKey(self._user, ident)
        while True:
            with suppress(StaleVersion), self._locked(ident):
                record = make(key, self._head(key))
                if record is not None:
                    self._store.commit(key, record)
                return

    def _turn(
        self,
        key: SessionKey,
        head: Head,
        chosen: Sequence[tuple[Message, bool]],
        *,
        replaces: bool = False,
        supersedes: int = 0,
    ) -> TurnRecord:
        now, number = self._clock(), head.turn + 1
        stored = tuple(
            StoredMessage(uuid.uuid4().hex, head.messages + n, number, now, repair(message)[0])
            for n, (message, _) in enumerate(chosen)
        )
        also = [m.position for m, (_, archived) in zip(stored, chosen, strict=True) if archived]
        state = None
        if also:
            before = head.state.slots.get(_BEFORE, 0)
            state = _archived(head.state, before, [*head.state.slots.get(_ALSO, ()), *also])
        trace = TurnTrace(
            number=number,
            session=key.session,
            started=now,
            ended=now,
            strategy=STRATEGY,
            settings={},
            query=next((m.message.text for m in stored if m.message.role == "user"), ""),
            appended=tuple(m.id for m in stored),
            state_version=(state or head.state).version,
            supersedes=supersedes,
        )
        return TurnRecord(
            number=number,
            trace=trace_to_json(trace),
            messages=stored,
            state=state,
            supersedes=supersedes,
            replaces_all=replaces and head.turn > 0,
        )

    def _head(self, key: SessionKey) -> Head:
        """Return where a session stands, which is made when it is not there."""
        try:
            return self._store.head(key)
        except NotFound:
            now = self._clock()
            info = SessionInfo(key, key.session, now, now, strategy=STRATEGY)
            with suppress(InvalidInput):  # somebody else made it just now
                self._store.create(info)
            return self._store.head(key)

    def _locked(self, ident: str) -> threading.Lock:
        """Return what threads of this program wait for, rather than trying again and again."""
        with self._guard:
            return self._locks.setdefault(ident, threading.Lock())


def _is_archived(state: AgentState, position: int) -> bool:
    return position < state.slots.get(_BEFORE, 0) or position in state.slots.get(_ALSO, ())


def _archived(state: AgentState, before: int, also: Sequence[int]) -> AgentState:
    slots = {**state.slots, _BEFORE: before, _ALSO: list(also)}
    return replace(state, slots=slots, version=state.version + 1)
