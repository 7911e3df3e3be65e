"""A store whose reads and writes are measured on the way."""

from __future__ import annotations

from memory_core.messages import StoredMessage
from memory_core.metrics import Meter
from memory_core.state import AgentState
from memory_core.stores.in_front import StoreInFront
from memory_core.stores.protocols import (
    Erased,
    Head,
    SessionKey,
    Store,
    StoredTurn,
    TurnRecord,
)


class MeteredStore(StoreInFront):
    """A :class:`~memory_core.stores.protocols.Store` in front of another, with a meter."""

    def __init__(self, inner: Store, *, meter: Meter) -> None:
        super().__init__(inner)
        self._meter = meter

    def commit(self, key: SessionKey, record: TurnRecord) -> None:
        """Write a turn whole or not at all."""
        with self._meter.persist.timed():
            self.inner.commit(key, record)
        self._meter.committed(key, record)

    def save_state(self, key: SessionKey, state: AgentState, *, base: int | None = None) -> None:
        """Save ``state`` as the next version."""
        with self._meter.persist.timed():
            self.inner.save_state(key, state, base=base)

    def head(self, key: SessionKey) -> Head:
        """Return where the session stands."""
        with self._meter.load.timed():
            head = self.inner.head(key)
        self._meter.loaded(key, head.messages)
        return head

    def messages(
        self,
        key: SessionKey,
        *,
        first: int = 0,
        last: int | None = None,
        superseded: bool = False,
    ) -> list[StoredMessage]:
        """Return the messages at positions ``first`` to ``last``, exclusive."""
        with self._meter.load.timed():
            return self.inner.messages(key, first=first, last=last, superseded=superseded)

    def turns(
        self, key: SessionKey, *, first: int = 1, last: int | None = None
    ) -> list[StoredTurn]:
        """Return the turns numbered ``first`` to ``last``, inclusive, oldest first."""
        with self._meter.load.timed():
            return self.inner.turns(key, first=first, last=last)

    def erase_user(self, user: str) -> Erased:
        """Erase everything of a user, also from the meter."""
        self._meter.forget(user)
        return self.inner.erase_user(user)
