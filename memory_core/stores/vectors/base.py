"""What a vector index must do, whatever it is made of: one collection of one embedding model.

Vectors are derived data: an index can be dropped and filled again from the stored records. What
is *shown* of a collection (metric, dimension, model, counts) is read back from it, never taken
from what was asked for; where the two part, :func:`notices` says so in plain words.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from memory_core.errors import CollectionMismatch, IdInUse, InvalidInput, PartialWrite

Vectors = NDArray[np.float32]
Metadata = Mapping[str, str | int | float | bool]

COSINE, L2, IP = "cosine", "l2", "ip"  # l2 is the squared distance, ip is 1 - inner product
METRICS = (COSINE, L2, IP)
LONGEST_TITLE = 2_000  # characters


@dataclass(frozen=True)
class CollectionSpec:
    """Which collection is wanted: a title people read, and the embedding model it is for."""

    title: str
    model: str
    dimension: int
    user: str = ""
    metric: str = COSINE


@dataclass(frozen=True)
class Description:
    """A collection as it really is.

    ``dimension`` is 0 while it is empty and nobody said. ``searchable`` is how many records a
    search can reach, ``count`` how many there are; ``model`` is the name recorded when it was
    made. ``notices`` are sentences about what differs from what was wanted.
    """

    name: str
    title: str
    user: str
    model: str
    dimension: int
    metric: str
    count: int
    searchable: int
    backend: str
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Entry:
    """One record of a collection."""

    id: str
    text: str
    vector: Vectors
    metadata: Metadata = field(default_factory=dict)


@dataclass(frozen=True)
class Near:
    """One answer of a search: the raw distance under the collection's metric."""

    id: str
    distance: float


class VectorIndex(Protocol):
    """One collection."""

    @property
    def exact(self) -> bool:
        """Whether a search looks at every record."""
        ...

    @property
    def metric(self) -> str:
        """The metric, read back from the collection."""
        ...

    @property
    def dimension(self) -> int:
        """The length of its vectors, 0 while nobody said."""
        ...

    def describe(self) -> Description:
        """Return what the collection is and holds."""
        ...

    def count(self) -> int:
        """Return how many records there are."""
        ...

    def ids(self) -> list[str]:
        """Return the ids of all records."""
        ...

    def read(self, ids: Sequence[str]) -> list[Entry]:
        """Return the records with these ids, in their order; unknown ids are left out."""
        ...

    def vectors(self, ids: Sequence[str]) -> dict[str, Vectors]:
        """Return the vectors of the records with these ids; unknown ids are left out."""
        ...

    def add(self, entries: Sequence[Entry], *, replace: bool = False) -> None:
        """Add records; with ``replace`` they take the place of those with their ids.

        A record that is there already, word for word, counts as stored, so an interrupted call
        can simply be made again. Raises :class:`IdInUse` when another record has the id,
        :class:`CollectionMismatch` for vectors of another length, :class:`PartialWrite` when a
        later step failed.
        """
        ...

    def delete(self, ids: Sequence[str]) -> None:
        """Remove records; unknown ids are ignored."""
        ...

    def query(self, vector: Vectors, n: int) -> list[Near]:
        """Return the ``n`` nearest records, nearest first."""
        ...


class VectorDatabase(Protocol):
    """A place that holds collections."""

    def open(self, spec: CollectionSpec) -> VectorIndex:
        """Return the collection of that title, made if it is not there."""
        ...

    def collections(self, user: str | None = None) -> list[Description]:
        """Return all collections, or those of one user, by name."""
        ...

    def drop(self, name: str) -> None:
        """Remove a collection with all it holds; an unknown one is ignored."""
        ...

    def reload(self) -> None:
        """Open the place anew, so that what others wrote is seen (or a vanished one is remade)."""
        ...


def safe_name(title: str) -> str:
    """Return a name every backend takes, made from what a person typed.

    Letters, digits and hyphens, 22 to 62 characters; the digest at the end keeps different titles
    apart. Raises :class:`InvalidInput` for an empty title.

    >>> safe_name("Chat History")
    'chat-history-9afcb68bb73213cbdd4c'
    """
    if not title.strip():
        raise InvalidInput("A name needs at least one character.")
    if len(title) > LONGEST_TITLE:
        raise InvalidInput(
            f"The name has {len(title):,} characters; at most {LONGEST_TITLE:,} are allowed."
        )
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode()
    slug = re.sub(r"[^a-z0-9]+", "-", plain.lower())[:40].strip("-") or "x"
    digest = hashlib.blake2b(title.encode("utf-8", "surrogatepass"), digest_size=10).hexdigest()
    return f"{slug}-{digest}"


def notices(found: Description, wanted: CollectionSpec) -> tuple[str, ...]:
    """Return what differs between a collection and what was asked for, with what to do."""
    out = []
    if found.dimension and found.dimension != wanted.dimension:
        out.append(
            f"{_holds(found)}; {wanted.model} makes {wanted.dimension:,}. Search and add are "
            "refused: re-embed into a new collection, or choose the model it was made with."
        )
    elif found.model and found.model != wanted.model:
        out.append(
            f"“{found.title}” was filled by {found.model}, the model now is {wanted.model}. Both "
            f"make {wanted.dimension:,} numbers, so the database cannot notice, but their "
            "vectors mean different things: re-embed into a new collection."
        )
    if found.metric != wanted.metric:
        out.append(
            f"“{found.title}” measures by {found.metric}; the wish for {wanted.metric} was not "
            "applied, since a collection's metric cannot be changed. Copy it into a new "
            f"collection made with {wanted.metric}."
        )
    if found.searchable < found.count:
        out.append(
            f"Another process wrote to “{found.title}”: it holds {found.count:,} records, a search "
            f"reaches {found.searchable:,}. Reload to find all of them."
        )
    return tuple(out)


def mismatch(found: Description, wanted: CollectionSpec, got: int) -> CollectionMismatch:
    """Return the error for vectors of another length, naming both numbers and both models."""
    return CollectionMismatch(
        f"{_holds(found)}; {wanted.model} made {got:,}. Nothing was changed.",
    )


def _holds(found: Description) -> str:
    model = found.model or "an unknown model"
    return f"“{found.title}” holds vectors of {found.dimension:,} numbers made by {model}"


def check_entries(entries: Sequence[Entry]) -> None:
    """Raise :class:`InvalidInput` for records that no index can hold."""
    seen: set[str] = set()
    for entry in entries:
        if not entry.id or entry.id in seen:
            what = "has no id" if not entry.id else f"comes twice: {entry.id!r:.80}"
            raise InvalidInput(f"A record {what}.")
        seen.add(entry.id)
        if not len(entry.vector) or not np.isfinite(entry.vector).all():
            raise InvalidInput(f"The vector of {entry.id!r:.80} holds no or not finite numbers.")


def check_in_use(new: Sequence[Entry], stored: Sequence[Entry]) -> None:
    """Raise :class:`IdInUse` when a stored record differs from the new one of its id."""
    by_id = {entry.id: entry for entry in new}
    taken = [entry.id for entry in stored if not _same(entry, by_id[entry.id])]
    if taken:
        more = f" and {len(taken) - 1:,} more" if len(taken) > 1 else ""
        raise IdInUse(f"The id {taken[0]!r:.80}{more} is in use by another record.")


def _same(stored: Entry, new: Entry) -> bool:
    return (
        stored.text in (new.text, "")
        and len(stored.vector) == len(new.vector)
        and bool(np.allclose(stored.vector, new.vector, rtol=1e-4, atol=1e-6))
    )


def in_steps(entries: Sequence[Entry], size: int, write: Callable[[Sequence[Entry]], None]) -> None:
    """Write records in steps of at most ``size``.

    Raises :class:`PartialWrite` when a step after the first fails; the first one's error is
    passed on as it is.
    """
    for start in range(0, len(entries), size):
        try:
            write(entries[start : start + size])
        except Exception as exc:
            if not start:
                raise
            raise PartialWrite(
                f"{start:,} of {len(entries):,} records are stored, then writing failed: {exc}",
                stored=start,
                total=len(entries),
            ) from exc


def reembed(
    source: VectorIndex,
    target: VectorIndex,
    *,
    embed: Callable[[Sequence[str]], Vectors] | None = None,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
    batch: int = 128,
) -> int:
    """Copy a collection into another one, embedding its texts anew; return how many were added.

    Without ``embed`` the vectors are taken over as they are (for another metric). What the
    target has already is left alone, so an interrupted run goes on where it stopped; the source
    is never changed. ``progress`` is told how many of how many are done.
    """
    every = source.ids()
    there = set(target.ids())
    missing = [i for i in every if i not in there]
    progress(len(every) - len(missing), len(every))
    for start in range(0, len(missing), batch):
        found = source.read(missing[start : start + batch])
        if embed is not None:
            made = embed([entry.text for entry in found])
            found = [
                Entry(old.id, old.text, vector, old.metadata)
                for old, vector in zip(found, made, strict=True)
            ]
        target.add(found)
        progress(len(every) - len(missing) + min(start + batch, len(missing)), len(every))
    return len(missing)
