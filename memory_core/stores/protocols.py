"""What a session store must do, whatever it is made of.

A turn is committed in one transaction: its messages, its trace, the new state and summary, and
the long-term records it made or forgot. Vectors are derived: records wait as *pending* until the
vector index has taken them, so they can be caught up at any time.

Every call names its user; a session of another user is :class:`~memory_core.errors.NotFound`.
All times are aware UTC.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from memory_core.messages import Json, StoredMessage
from memory_core.state import AgentState
from memory_core.summary import NO_SUMMARY, Summary


@dataclass(frozen=True)
class SessionKey:
    """Names one session of one user. Both ids are opaque."""

    user: str
    session: str


@dataclass(frozen=True)
class SessionInfo:
    """A session as the catalogue lists it. ``settings`` is an opaque JSON object of the app.

    ``messages`` and ``tokens`` count what is active, not what was superseded.
    """

    key: SessionKey
    title: str
    created: datetime
    used: datetime
    turns: int = 0
    messages: int = 0
    tokens: int = 0
    strategy: str = ""
    settings: Mapping[str, Json] = field(default_factory=dict)
    archived: bool = False
    deleted: bool = False
    origin: str = ""


@dataclass(frozen=True)
class MemoryRecord:
    """One thing kept for the long term: a turn or a fact.

    Equal texts of one session are one record with a ``count``, and of one user one vector (see
    :mod:`memory_core.records`). ``status`` is ``active``, ``superseded`` (corrected by another
    record) or ``forgotten``; ``indexed`` says whether the vector index knows of it in its
    present status.
    """

    id: str
    user: str
    session: str
    turn: int
    kind: str
    text: str
    message_ids: tuple[str, ...]
    created: datetime
    count: int = 1
    status: str = "active"
    expires: datetime | None = None
    indexed: bool = False


@dataclass(frozen=True)
class TurnRecord:
    """Everything that one turn writes. ``trace`` is its JSON text.

    ``supersedes`` is the number of the turn whose messages and memories this one replaces, 0:
    none; with ``replaces_all`` it is every turn before. ``state_base`` is the state version that
    ``state`` was made from, when a turn changed it more than once; without it that is
    ``state.version - 1``.
    """

    number: int
    trace: str
    messages: tuple[StoredMessage, ...]
    state: AgentState | None = None
    summary: Summary | None = None
    records: tuple[MemoryRecord, ...] = ()
    supersedes: int = 0
    title: str = ""
    state_base: int | None = None
    replaces_all: bool = False


@dataclass(frozen=True)
class StoredTurn:
    """A committed turn: number, trace JSON, the turn that superseded it (0: none), its summary."""

    number: int
    trace: str
    superseded_by: int = 0
    summary: Summary | None = None


@dataclass(frozen=True)
class StoredState:
    """A version of the state, and the newest turn at the time it was saved."""

    turn: int
    state: AgentState


@dataclass(frozen=True)
class Head:
    """Where a session stands: what is needed to go on from here, besides its messages.

    ``turn`` is the newest turn, ``messages`` the position of the next message.
    """

    turn: int
    messages: int
    state: AgentState
    summary: Summary = NO_SUMMARY


class TurnStore(Protocol):
    """Messages and turns, append-only."""

    def commit(self, key: SessionKey, record: TurnRecord) -> None:
        """Write a turn whole or not at all.

        The turn's number is the newest one plus 1 and its messages stand at the next positions.
        Committing the very same turn again changes nothing.

        Raises :class:`~memory_core.errors.StaleVersion` when the turn number is taken or the
        state was changed meanwhile, :class:`~memory_core.errors.InvalidInput` for what cannot be
        stored, :class:`~memory_core.errors.StoreUnavailable` when nothing was written.
        """
        ...

    def head(self, key: SessionKey) -> Head:
        """Return where the session stands (turn 0 and an empty state when it is new)."""
        ...

    def messages(
        self,
        key: SessionKey,
        *,
        first: int = 0,
        last: int | None = None,
        superseded: bool = False,
    ) -> list[StoredMessage]:
        """Return the active messages at positions ``first`` to ``last``, exclusive.

        With ``superseded`` also those of turns that another one replaced.
        """
        ...

    def turns(
        self, key: SessionKey, *, first: int = 1, last: int | None = None
    ) -> list[StoredTurn]:
        """Return the turns numbered ``first`` to ``last``, inclusive, oldest first."""
        ...


class StateStore(Protocol):
    """Versions of the structured state."""

    def state(self, key: SessionKey, version: int | None = None) -> AgentState:
        """Return the newest state, or one version of it."""
        ...

    def states(self, key: SessionKey) -> list[StoredState]:
        """Return every version that was saved, oldest first."""
        ...

    def save_state(self, key: SessionKey, state: AgentState, *, base: int | None = None) -> None:
        """Save ``state``, which was made from version ``base`` (default: the one before it).

        Raises :class:`~memory_core.errors.StaleVersion` unless ``base`` is the newest version.
        """
        ...


class SessionCatalogue(Protocol):
    """The sessions of each user."""

    def create(self, info: SessionInfo) -> None:
        """Add an empty session; its counters are the store's.

        Raises :class:`~memory_core.errors.InvalidInput` when the id is in use or cannot be one.
        """
        ...

    def session(self, key: SessionKey) -> SessionInfo:
        """Return one session, also a deleted one."""
        ...

    def sessions(self, user: str, *, deleted: bool = False) -> list[SessionInfo]:
        """Return a user's sessions, last used first; with ``deleted`` those that can come back."""
        ...

    def update(self, info: SessionInfo) -> None:
        """Change title, settings, strategy, archived or deleted of a session."""
        ...

    def purge(self, key: SessionKey) -> None:
        """Erase a session for good, with all it holds.

        Its long-term records become forgotten ones without text, pending until the index has
        let go of them.
        """
        ...


class RecordStore(Protocol):
    """Long-term records, of which the vector index is derived."""

    def records(self, user: str, *, pending: bool = False) -> Sequence[MemoryRecord]:
        """Return a user's records, oldest first; with ``pending`` those the index must learn."""
        ...

    def put_records(self, records: Sequence[MemoryRecord]) -> None:
        """Add or replace records by id."""
        ...

    def mark_indexed(
        self, user: str, ids: Sequence[str], *, status: str | None = None
    ) -> list[str]:
        """Note that the index knows these records; return the ids that were marked.

        With ``status`` only those that still have it: what somebody forgot while it was being
        indexed is not marked and must be taken out of the index again.
        """
        ...


@dataclass(frozen=True)
class Erased:
    """What was erased of a user, by kind (``sessions``, ``messages``, ``records``, …)."""

    user: str
    counts: Mapping[str, int]


@dataclass(frozen=True)
class StoreFacts:
    """A backend as the Storage page shows it. ``where`` names it without a password.

    ``rows`` counts by kind; ``size`` is in bytes; ``notes`` are sentences an operator should
    know (no encryption, a time to live, a setting that may lose writes).
    """

    backend: str
    where: str
    version: int
    rows: Mapping[str, int]
    size: int
    notes: tuple[str, ...] = ()


class Upkeep(Protocol):
    """What an operator needs."""

    def users(self) -> list[str]:
        """Return every user that has something stored, sorted."""
        ...

    def erase_user(self, user: str) -> Erased:
        """Erase everything of a user so that no byte of it is left in the store."""
        ...

    def facts(self) -> StoreFacts:
        """Return what the backend is and holds."""
        ...


class Store(TurnStore, StateStore, SessionCatalogue, RecordStore, Upkeep, Protocol):
    """All of them, as one backend offers them."""

    def close(self) -> None:
        """Let go of connections and files."""
        ...
