"""Sessions over a real SQLite store, for tests of the memory and the agent."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from memory_core.loop import iterate
from memory_core.settings import MemorySettings
from memory_core.stores.protocols import SessionInfo, SessionKey, Store
from memory_core.stores.sql import SqlStore

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def sqlite(folder: Path) -> SqlStore:
    """Open a SQLite store in a folder."""
    return SqlStore.open(f"sqlite:///{folder / 'memory.db'}")


def new_session(store: Store, name: str = "s1", user: str = "local") -> SessionKey:
    """Add an empty session."""
    key = SessionKey(user, name)
    store.create(SessionInfo(key, name, NOW, NOW, settings=MemorySettings().to_json()))
    return key


def run(events) -> list:
    """Run a turn's async events to their end and return them."""
    return list(iterate(events))
