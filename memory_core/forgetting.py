"""Forget me: erase a user everywhere, and say what was erased where.

The session store goes first (its rows decide what is true), then the vector collections, then
the backups that this program made. What only an operator can erase (a server's own write-ahead
logs, replicas and copies) is named in the report.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from memory_core.backups import BackupIndex
from memory_core.stores.ids import check_id
from memory_core.stores.protocols import Store
from memory_core.stores.vectors.base import VectorDatabase

SERVERS = "Write-ahead logs, replicas and copies of database servers are in their operator's hands."


@dataclass(frozen=True)
class ForgetReport:
    """What was erased of a user: rows of the store by kind, collections, backups rewritten."""

    user: str
    rows: Mapping[str, int]
    collections: int
    vectors: int
    backups: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def nothing(self) -> bool:
        """Whether there was nothing of this user."""
        return not (any(self.rows.values()) or self.collections or self.backups)


def forget_me(
    user: str,
    *,
    store: Store,
    vectors: VectorDatabase | None = None,
    vector_folder: Path | None = None,
    backups: BackupIndex | None = None,
) -> ForgetReport:
    """Erase everything of a user and return a report.

    ``vector_folder`` is where an embedded vector database lives; its file is rid of deleted bytes.
    Raises :class:`~memory_core.errors.StoreUnavailable` while a part is out of reach: what was
    erased until then stays erased, and it can be run again.
    """
    check_id(user, "user id")
    erased = store.erase_user(user)
    collections = vectors.collections(user) if vectors is not None else []
    for found in collections:
        if vectors is not None:
            vectors.drop(found.name)
    if collections and vector_folder is not None:
        scrub_sqlite(vector_folder / "chroma.sqlite3")
    rewritten = backups.forget(user) if backups is not None else ()
    served = store.facts().backend in ("PostgreSQL", "Redis")
    return ForgetReport(
        user,
        erased.counts,
        len(collections),
        sum(found.count for found in collections),
        tuple(rewritten),
        (SERVERS,) if served else (),
    )


def scrub_sqlite(path: Path) -> None:
    """Rid a SQLite file of the bytes of deleted rows; nothing happens when there is no file."""
    if not path.exists():
        return
    with closing(sqlite3.connect(path, timeout=10, isolation_level=None)) as db:
        db.execute("PRAGMA secure_delete=ON")
        db.execute("VACUUM")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
