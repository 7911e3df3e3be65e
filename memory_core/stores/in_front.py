"""A store in front of another: hands everything on, so that a kind of it changes only its part."""

from __future__ import annotations

from collections.abc import Sequence

from memory_core.messages import StoredMessage
from memory_core.state import AgentState
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


class StoreInFront:
    """A :class:`~memory_core.stores.protocols.Store` that is the one behind it."""

    def __init__(self, inner: Store) -> None:
        self.inner = inner

    def commit(self, key: SessionKey, record: TurnRecord) -> None:
        """Write a turn whole or not at all."""
        self.inner.commit(key, record)

    def head(self, key: SessionKey) -> Head:
        """Return where the session stands."""
        return self.inner.head(key)

    def messages(
        self,
        key: SessionKey,
        *,
        first: int = 0,
        last: int | None = None,
        superseded: bool = False,
    ) -> list[StoredMessage]:
        """Return the messages at positions ``first`` to ``last``, exclusive."""
        return self.inner.messages(key, first=first, last=last, superseded=superseded)

    def turns(
        self, key: SessionKey, *, first: int = 1, last: int | None = None
    ) -> list[StoredTurn]:
        """Return the turns numbered ``first`` to ``last``, inclusive, oldest first."""
        return self.inner.turns(key, first=first, last=last)

    def state(self, key: SessionKey, version: int | None = None) -> AgentState:
        """Return the newest state, or one version of it."""
        return self.inner.state(key, version)

    def states(self, key: SessionKey) -> list[StoredState]:
        """Return every version that was saved, oldest first."""
        return self.inner.states(key)

    def save_state(self, key: SessionKey, state: AgentState, *, base: int | None = None) -> None:
        """Save ``state`` as the next version."""
        self.inner.save_state(key, state, base=base)

    def create(self, info: SessionInfo) -> None:
        """Add an empty session."""
        self.inner.create(info)

    def session(self, key: SessionKey) -> SessionInfo:
        """Return one session as the catalogue lists it."""
        return self.inner.session(key)

    def sessions(self, user: str, *, deleted: bool = False) -> list[SessionInfo]:
        """Return a user's sessions, last used first."""
        return self.inner.sessions(user, deleted=deleted)

    def update(self, info: SessionInfo) -> None:
        """Change title, settings, strategy, archived or deleted of a session."""
        self.inner.update(info)

    def purge(self, key: SessionKey) -> None:
        """Erase a session for good."""
        self.inner.purge(key)

    def records(self, user: str, *, pending: bool = False) -> Sequence[MemoryRecord]:
        """Return a user's records, oldest first; with ``pending`` those to be indexed."""
        return self.inner.records(user, pending=pending)

    def put_records(self, records: Sequence[MemoryRecord]) -> None:
        """Add or replace records by id."""
        self.inner.put_records(records)

    def mark_indexed(
        self, user: str, ids: Sequence[str], *, status: str | None = None
    ) -> list[str]:
        """Note that the index knows these records; return the ids that were marked."""
        return self.inner.mark_indexed(user, ids, status=status)

    def users(self) -> list[str]:
        """Return every user that has something stored, sorted."""
        return self.inner.users()

    def erase_user(self, user: str) -> Erased:
        """Erase everything of a user."""
        return self.inner.erase_user(user)

    def facts(self) -> StoreFacts:
        """Return what the backend is and holds."""
        return self.inner.facts()

    def close(self) -> None:
        """Let go of connections and files."""
        self.inner.close()
