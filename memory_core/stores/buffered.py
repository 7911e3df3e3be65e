"""A store that goes on while the one behind it is down, slow or read-only.

Every call is handed on with a time limit. When the store behind does not answer, reads are served
from what is known (:mod:`memory_core.stores.known`) and writes wait
(:mod:`memory_core.stores.outbox`), in memory and in a spool file, until a thread in the
background reaches the store again. Until then :attr:`BufferedStore.banner` says what is wrong
and how much is waiting, and no call waits for the store.

A write may have reached the store although its answer was lost. The very same turn can be sent
twice, so that is harmless.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar

from memory_core.errors import MemoryInspectorError, StoreUnavailable
from memory_core.messages import StoredMessage
from memory_core.state import AgentState
from memory_core.stores import checks
from memory_core.stores.deadline import within
from memory_core.stores.ids import check_id, check_key
from memory_core.stores.known import Known
from memory_core.stores.outbox import Conflict, Outbox
from memory_core.stores.protocols import (
    Erased,
    Head,
    MemoryRecord,
    SessionInfo,
    SessionKey,
    Store,
    StoredState,
    StoredTurn,
    StoreFacts,
    TurnRecord,
)
from memory_core.stores.spool import Spool
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

log = logging.getLogger("memory_core.stores")

TIMEOUT = 5.0  # seconds that the store behind may take for one answer
RETRY = 2.0  # seconds between two attempts to reach it again

_NOBODY = "nobody"  # asked for to see whether the store answers

T = TypeVar("T")


class BufferedStore:
    """A :class:`~memory_core.stores.protocols.Store` in front of another.

    ``open_inner`` opens the store behind, again and again until it succeeds. Without a ``spool``
    what waits is lost when the program ends.
    """

    def __init__(
        self,
        open_inner: Callable[[], Store],
        *,
        timeout: float = TIMEOUT,
        retry: float = RETRY,
        spool: Spool | None = None,
    ) -> None:
        self._open_inner = open_inner
        self._timeout = timeout
        self._retry = retry
        self._inner: Store | None = None
        self._opening = threading.Lock()
        self._lock = threading.RLock()  # guards what is below; never held during a call
        self._known = Known()
        self._outbox = Outbox(known=self._known, lock=self._lock, spool=spool)
        self._down = ""  # why the store did not answer
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None
        if self._outbox:
            self._watch()

    @property
    def banner(self) -> str:
        """What to tell every visitor, empty when all is well."""
        with self._lock:
            count, reason = len(self._outbox), self._down
        if not reason and not count:
            return ""
        waiting = f" Waiting to be written: {count}." if count else ""
        return f"The chat goes on from memory. {reason}".rstrip() + waiting

    @property
    def waiting(self) -> int:
        """How many writes wait for the store."""
        return len(self._outbox)

    @property
    def conflicts(self) -> tuple[Conflict, ...]:
        """The writes that waited and could not be made."""
        return self._outbox.conflicts

    def settle(self, conflict: Conflict) -> None:
        """Drop a conflict that a person has decided."""
        self._outbox.settle(conflict)

    def flush(self) -> bool:
        """Try to write what waits; return whether the store answers and nothing waits."""
        try:
            self._call(lambda store: store.sessions(_NOBODY))
            self._outbox.flush(self._call)
        except MemoryInspectorError as exc:
            self._went_down(exc)
            return False
        with self._lock:
            self._down = ""
        return True

    # --- reads -----------------------------------------------------------------------------

    def head(self, key: SessionKey) -> Head:
        """Return where the session stands, with what waits."""
        check_key(key)
        found = self._ask(lambda store: store.head(key), key)
        with self._lock:
            if found is None:
                return self._known.head(key)
            self._known.of(key).head = found
            return found

    def messages(
        self,
        key: SessionKey,
        *,
        first: int = 0,
        last: int | None = None,
        superseded: bool = False,
    ) -> list[StoredMessage]:
        """Return the messages of a range, with those that wait."""
        check_key(key)
        found = self._ask(
            lambda store: store.messages(key, first=first, last=last, superseded=superseded), key
        )
        with self._lock:
            if found is None:
                return self._known.messages(key, first, last, superseded=superseded)
            known = self._known.of(key)
            (known.all if superseded else known.active).update((m.position, m) for m in found)
            return found

    def turns(
        self, key: SessionKey, *, first: int = 1, last: int | None = None
    ) -> list[StoredTurn]:
        """Return the turns of a range, with those that wait."""
        check_key(key)
        found = self._ask(lambda store: store.turns(key, first=first, last=last), key)
        with self._lock:
            if found is None:
                return self._known.turns(key, first, last)
            self._known.of(key).turns.update((t.number, t) for t in found)
            return found

    def state(self, key: SessionKey, version: int | None = None) -> AgentState:
        """Return the newest state, or one version of it."""
        check_key(key)
        found = self._ask(lambda store: store.state(key, version), key)
        if found is not None:
            return found
        with self._lock:
            return self._known.state(key, version)

    def states(self, key: SessionKey) -> list[StoredState]:
        """Return every version that is known."""
        check_key(key)
        found = self._ask(lambda store: store.states(key), key)
        with self._lock:
            if found is None:
                return self._known.states(key)
            self._known.of(key).states.update((s.state.version, s) for s in found)
            return found

    def session(self, key: SessionKey) -> SessionInfo:
        """Return one session as the catalogue lists it."""
        check_key(key)
        found = self._ask(lambda store: store.session(key), key)
        with self._lock:
            if found is None:
                return self._known.info(key)
            self._known.of(key).info = found
            return found

    def sessions(self, user: str, *, deleted: bool = False) -> list[SessionInfo]:
        """Return a user's sessions, last used first."""
        check_id(user, "user id")
        found = self._ask(lambda store: store.sessions(user, deleted=deleted))
        with self._lock:
            known = self._known.sessions(user, deleted=deleted)
            if found is None:
                return known
            newer = self._outbox.touched()
            for info in found:
                if info.key not in newer:
                    self._known.of(info.key).info = info
            if not newer:
                return found
            merged = [i for i in found if i.key not in newer]
            merged += [i for i in known if i.key in newer]
            return sorted(merged, key=lambda i: i.used, reverse=True)

    def records(self, user: str, *, pending: bool = False) -> Sequence[MemoryRecord]:
        """Return a user's records, oldest first."""
        check_id(user, "user id")
        found = self._ask(lambda store: store.records(user, pending=pending))
        with self._lock:
            newer = self._outbox.waits_for_user(user)
            if found is not None and not newer:
                self._known.learn_records(user, found, whole=not pending)
                return found
            return self._known.records(user, pending=pending)

    def users(self) -> list[str]:
        """Return every user, asked of the store behind."""
        return self._call(lambda store: store.users())

    def facts(self) -> StoreFacts:
        """Return what the store behind is and holds."""
        return self._call(lambda store: store.facts())

    # --- writes ----------------------------------------------------------------------------

    def commit(self, key: SessionKey, record: TurnRecord) -> None:
        """Write a turn, now or when the store is back."""
        checks.check_turn(key, record)
        self._write(Commit(key, record))

    def save_state(self, key: SessionKey, state: AgentState, *, base: int | None = None) -> None:
        """Save a state, now or when the store is back."""
        checks.check_owner(key, state)
        self._write(SaveState(key, state, state.version - 1 if base is None else base))

    def create(self, info: SessionInfo) -> None:
        """Add a session, now or when the store is back."""
        check_key(info.key)
        self._write(Create(info))

    def update(self, info: SessionInfo) -> None:
        """Change a session, now or when the store is back."""
        check_key(info.key)
        self._write(Update(info))

    def purge(self, key: SessionKey) -> None:
        """Erase a session, now or when the store is back."""
        self._write(Purge(check_key(key)))

    def put_records(self, records: Sequence[MemoryRecord]) -> None:
        """Add or replace records, now or when the store is back."""
        by_user: dict[str, list[MemoryRecord]] = {}
        for record in records:
            checks.check_record(record)
            by_user.setdefault(record.user, []).append(record)
        for user, own in by_user.items():
            self._write(PutRecords(user, tuple(own)))

    def mark_indexed(
        self, user: str, ids: Sequence[str], *, status: str | None = None
    ) -> list[str]:
        """Note what the index knows, now or when the store is back."""
        check_id(user, "user id")
        mark = Mark(user, tuple(ids), status)
        if not self._must_wait():
            try:
                marked = self._call(lambda store: store.mark_indexed(user, ids, status=status))
            except StoreUnavailable as exc:
                self._went_down(exc)
            else:
                with self._lock:
                    self._known.mark(mark)
                return marked
        with self._lock:
            marked = self._known.mark(mark)
            self._outbox.add(mark)
        self._watch()
        return marked

    def erase_user(self, user: str) -> Erased:
        """Erase a user in the store behind, which must answer; what waits of it is dropped."""
        check_id(user, "user id")
        self._outbox.drop_user(user)
        with self._lock:
            self._known.forget_user(user)
        # Erasing rewrites whole files and may take long: it is not given up on.
        return self._reached().erase_user(user)

    def close(self) -> None:
        """Write what waits if the store answers, then let go of everything."""
        if self.waiting:
            self.flush()
        self._closed.set()
        thread = self._thread
        if thread is not None:
            thread.join(2 * self._timeout)
        self._outbox.close()
        inner, self._inner = self._inner, None
        if inner is not None:
            with suppress(StoreUnavailable):
                within(self._timeout, inner.close)

    # --- inside ----------------------------------------------------------------------------

    def _reached(self) -> Store:
        with self._opening:
            if self._inner is None:
                self._inner = self._open_inner()
            return self._inner

    def _call(self, ask: Callable[[Store], T]) -> T:
        """Ask the store behind, within the time limit."""
        return within(self._timeout, lambda: ask(self._reached()))

    def _ask(self, ask: Callable[[Store], T], key: SessionKey | None = None) -> T | None:
        """Ask the store for something; ``None`` when what is known must do.

        That is so while it is away, and for a session of which something waits: what is known
        is newer then.
        """
        with self._lock:
            newer = key is not None and key in self._outbox.touched() and self._known.has(key)
            if self._down or newer:
                return None
        try:
            return self._call(ask)
        except StoreUnavailable as exc:
            self._went_down(exc)
            return None

    def _write(self, write: Write) -> None:
        """Make a write, or keep it when the store is away or others wait before it."""
        if not self._must_wait():
            try:
                self._call(write.do)
            except StoreUnavailable as exc:
                self._went_down(exc)
            else:
                with self._lock:
                    self._known.apply(write)
                return
        with self._lock:
            self._known.check(write)
            self._outbox.add(write)
            self._known.apply(write)
        self._watch()

    def _must_wait(self) -> bool:
        with self._lock:
            return bool(self._down or self._outbox)

    def _went_down(self, exc: MemoryInspectorError) -> None:
        with self._lock:
            if not self._down:
                log.warning("session store away: %s", exc)
            self._down = str(exc)
        self._watch()

    def _watch(self) -> None:
        """Have a thread look for the store until it is back and nothing waits."""
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._look, daemon=True, name="store-watch")
                self._thread.start()

    def _look(self) -> None:
        while not self._closed.wait(self._retry):
            if self.flush():
                with self._lock:
                    if not self._must_wait():
                        self._thread = None
                        return
