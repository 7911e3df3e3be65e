"""The writes that wait for a store, and how they are made once it is back.

They are made in their order. When somebody else went on with a session meanwhile, waiting turns
are numbered anew and follow theirs; a state that was made from an older version becomes a
:class:`Conflict`, with both versions, for a person to decide. So does anything that the store
refuses for good: nothing is dropped in silence.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from memory_core.errors import (
    InvalidInput,
    MemoryInspectorError,
    NotFound,
    StaleVersion,
    StoreTooNew,
    StoreUnavailable,
)
from memory_core.state import AgentState
from memory_core.stores.checks import base_of
from memory_core.stores.known import Known
from memory_core.stores.protocols import Head, SessionKey, Store
from memory_core.stores.spool import Spool
from memory_core.stores.writes import (
    Commit,
    Create,
    Purge,
    SaveState,
    Write,
    key_of,
    renumbered,
    user_of,
)

log = logging.getLogger("memory_core.stores")

T = TypeVar("T")

_CHANGED = "The state was changed by somebody else meanwhile."


@dataclass(frozen=True)
class Conflict:
    """A waiting write that could not be made: our state beside the stored one, or why not.

    ``theirs`` is not known (``None``) when the conflict was found by a program that has ended.
    """

    write: Write
    reason: str
    ours: AgentState | None = None
    theirs: AgentState | None = None

    @property
    def key(self) -> SessionKey | None:
        """The session, ``None`` for records that belong to no single one."""
        return key_of(self.write)


class Caller(Protocol):
    """Asks the store something, within a time limit."""

    def __call__(self, ask: Callable[[Store], T], /) -> T:
        """Return the answer; raise :class:`StoreUnavailable` when there is none."""
        ...


class Outbox:
    """What waits, in memory and in a spool file. ``lock`` guards it together with ``known``."""

    def __init__(self, *, known: Known, lock: threading.RLock, spool: Spool | None) -> None:
        self._known = known
        self._lock = lock
        self._spool = spool
        self._waiting: deque[Write] = deque(spool.left if spool else ())
        self._conflicts = [_conflict(*found) for found in spool.aside] if spool else []
        self._flushing = threading.Lock()

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def conflicts(self) -> tuple[Conflict, ...]:
        """The writes that waited and could not be made."""
        with self._lock:
            return tuple(self._conflicts)

    def settle(self, conflict: Conflict) -> None:
        """Drop a conflict that a person has decided."""
        with self._lock:
            self._conflicts.remove(conflict)
            self._rewrite()

    def add(self, write: Write) -> None:
        """Keep a write behind those that wait."""
        with self._lock:
            if self._spool is not None:
                self._spool.add(write)
            self._waiting.append(write)

    def touched(self) -> set[SessionKey | None]:
        """Return the sessions that something waits for."""
        with self._lock:
            return {key_of(write) for write in self._waiting}

    def waits_for_user(self, user: str) -> bool:
        """Return whether something of a user waits."""
        with self._lock:
            return any(user_of(write) == user for write in self._waiting)

    def drop_user(self, user: str) -> None:
        """Drop everything of a user without a trace."""
        with self._flushing, self._lock:
            self._waiting = deque(w for w in self._waiting if user_of(w) != user)
            self._conflicts = [c for c in self._conflicts if user_of(c.write) != user]
            self._rewrite()

    def flush(self, call: Caller) -> None:
        """Make the writes that wait; raise :class:`StoreUnavailable` at the first that cannot be.

        Only one thread flushes at a time; others wait for it.
        """
        with self._flushing:
            while self._waiting:
                write = self._waiting[0]
                try:
                    call(write.do)
                except (StoreUnavailable, StoreTooNew):
                    raise
                except StaleVersion:
                    if not self._is_made(write, call):
                        continue
                except (MemoryInspectorError, ValueError) as exc:
                    if not _was_made(write, exc, call):
                        self._set_aside(Conflict(write, str(exc)))
                with self._lock:
                    if self._spool is not None:
                        self._spool.done()
                    self._waiting.popleft()

    def close(self) -> None:
        """Let go of the spool."""
        if self._spool is not None:
            self._spool.close()

    def _is_made(self, write: Write, call: Caller) -> bool:
        """Return whether a write that was refused as late is there; else let ours follow theirs."""
        key = key_of(write)
        if key is None:
            raise AssertionError("only turns and states have versions")
        head = call(lambda store: store.head(key))
        if isinstance(write, SaveState):
            if write.state == head.state:
                return True  # it is ours: its answer was lost on the way
            self._part(key, head.state)
        elif isinstance(write, Commit):
            state = write.record.state
            if state is not None and base_of(write.record) != head.state.version:
                self._part(key, head.state)
            else:
                self._renumber(key, head)
        return False

    def _part(self, key: SessionKey, theirs: AgentState) -> None:
        """Set our newest state of a session aside, and take all of ours out of what waits."""
        states: list[SaveState] = []
        kept: deque[Write] = deque()
        with self._lock:
            for write in self._waiting:
                if key_of(write) == key and isinstance(write, SaveState):
                    states.append(write)
                elif key_of(write) == key and isinstance(write, Commit) and write.record.state:
                    state = write.record.state
                    states.append(SaveState(key, state, base_of(write.record)))
                    kept.append(Commit(key, replace(write.record, state=None)))
                else:
                    kept.append(write)
            self._waiting = kept
            self._known.forget(key)
            self._set_aside(Conflict(states[-1], _CHANGED, states[-1].state, theirs))
            self._rewrite()

    def _renumber(self, key: SessionKey, head: Head) -> None:
        """Give our waiting turns of a session the numbers that follow the stored ones."""
        turn, position = head.turn, head.messages
        numbers: dict[int, int] = {}
        with self._lock:
            for place, write in enumerate(self._waiting):
                if isinstance(write, Commit) and write.key == key:
                    turn += 1
                    numbers[write.record.number] = turn
                    record = renumbered(write.record, turn, position, numbers)
                    position += len(record.messages)
                    self._waiting[place] = Commit(key, record)
            self._known.forget(key)  # its numbers are no longer right
            self._rewrite()

    def _set_aside(self, conflict: Conflict) -> None:
        log.warning("a waiting write was not made: %s", conflict.reason)
        with self._lock:
            if self._spool is not None:
                self._spool.set_aside(conflict.write, conflict.reason)
            self._conflicts.append(conflict)

    def _rewrite(self) -> None:
        if self._spool is not None:
            self._spool.rewrite(self._waiting, [(c.write, c.reason) for c in self._conflicts])


def _conflict(write: Write, reason: str) -> Conflict:
    ours = write.state if isinstance(write, SaveState) else None
    return Conflict(write, reason, ours)


def _was_made(write: Write, refusal: Exception, call: Caller) -> bool:
    """Return whether a refused write is there already, its answer lost on the way."""
    if isinstance(write, Purge):
        return isinstance(refusal, NotFound)
    if not isinstance(write, Create) or not isinstance(refusal, InvalidInput):
        return False
    stored = call(lambda store: store.session(write.key))
    return (stored.created, stored.origin) == (write.info.created, write.info.origin)
