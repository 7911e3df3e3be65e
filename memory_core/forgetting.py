"""Forget me: erase a user everywhere, and say what was erased where.

The session store goes first (its rows decide what is true), then the vector collections, then
the backups that this program made. What only an operator can erase (a server's own write-ahead
logs, replicas and copies) is named in the report.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from memory_core.backups import BackupIndex
from memory_core.scrubbing import scrub_chroma
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

    ``vector_folder`` is where an embedded Chroma database lives; its files are rid of what was
    deleted.
    Raises :class:`~memory_core.errors.StoreUnavailable` while a part is out of reach: what was
    erased until then stays erased, and it can be run again.
    """
    check_id(user, "user id")
    erased = store.erase_user(user)
    collections = vectors.collections(user) if vectors is not None else []
    if vectors is not None:
        for found in collections:
            vectors.drop(found.name)
        if vector_folder is not None:
            vectors.reload()  # nothing is written while it has not been asked again
            scrub_chroma(vector_folder)
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
