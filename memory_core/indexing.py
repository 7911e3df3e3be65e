"""One user's memory in step with its two places: the session store and the vector index.

The store's records are the truth; a record is *pending* there until the index knows it in its
present status. :meth:`UserIndex.catch_up` is that outbox: delete what was forgotten, embed what
is new, mark both. Each step may be done twice without harm, so it can be killed anywhere and run
again, here or in another process. :meth:`UserIndex.rebuild` fills an empty or stale collection
from all records and takes out what no record stands behind.

The shelf in memory follows incrementally; when the index's count is not what this process left,
somebody else wrote and both places are compared.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from memory_core.errors import MemoryInspectorError, ModelRefused, VectorError
from memory_core.records import FORGOTTEN, vector_id
from memory_core.shelf import EXACT_UP_TO, Shelf, Snapshot
from memory_core.stores.protocols import MemoryRecord, RecordStore
from memory_core.stores.vectors.base import (
    CollectionSpec,
    Description,
    Entry,
    Near,
    VectorDatabase,
    VectorIndex,
    Vectors,
    mismatch,
)

log = logging.getLogger("memory_core.longterm")

BATCH = 64  # texts embedded and stored at a time
CHECKED = 50  # answers of the index that are compared with exact search
ASKED = 256  # answers wanted of an index too large to compare exactly
BY_WORDS = 64  # memories read from such an index because their words fit best
RETRY_AFTER = 15.0  # seconds before an index that failed is tried again
_ROUNDS = 3  # of catching up with what others change meanwhile
_READ = 1_000  # vectors read at a time
_TIE = 1e-4  # distances closer than this are equal in float32

T = TypeVar("T")


Steps = Generator[tuple[int, int], None, T]
"""Work in steps; each tells how many of how many texts are done. Locks are free in between."""


class Embedder(Protocol):
    """Turns texts into vectors."""

    @property
    def name(self) -> str:
        """The model's name, as recorded in the collection."""
        ...

    @property
    def dimension(self) -> int:
        """The length of its vectors."""
        ...

    @property
    def embedded(self) -> int:
        """How many texts it was given so far."""
        ...

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one vector per text, as rows."""
        ...


@dataclass(frozen=True)
class CaughtUp:
    """What catching up did: texts embedded, vectors deleted, texts that still have no vector."""

    embedded: int = 0
    deleted: int = 0
    waiting: int = 0


@dataclass(frozen=True)
class Standing:
    """How a user's long-term memory stands.

    ``waiting`` texts have no vector in this model's collection, ``orphans`` are vectors of no
    memory; ``others`` are the user's collections of other models. ``notices`` are sentences that
    say what is wrong and what to do.
    """

    memories: int
    pending: int
    waiting: int
    orphans: int
    collection: Description | None
    others: tuple[Description, ...]
    notices: tuple[str, ...]


class UserIndex:
    """The shelf and the collection of one user. Not safe to use from several threads at once."""

    def __init__(
        self,
        user: str,
        *,
        vectors: VectorDatabase,
        embedder: Embedder,
        store: RecordStore,
        exact_up_to: int = EXACT_UP_TO,
    ) -> None:
        self.user = user
        self.shelf = Shelf(exact_up_to=exact_up_to)
        self.problem = ""
        self._vectors, self._embedder, self._store = vectors, embedder, store
        self._exact_up_to = exact_up_to
        self._index: VectorIndex | None = None
        self._count: int | None = None  # of the index, when last in step
        self._read_once = False
        self._retry_at = 0.0

    @property
    def metric(self) -> str:
        """The metric of the collection, once it is open."""
        return self._index.metric if self._index is not None else ""

    def load(self) -> None:
        """Read the records once; the index is not touched."""
        if not self._read_once:
            self._read_records()

    def refresh(self) -> None:
        """Follow what others wrote, if the index's count tells that they did.

        An index that cannot be used is noted in :attr:`problem`, and tried again after
        :data:`RETRY_AFTER`; what the shelf holds can be searched meanwhile.
        """
        self.load()
        if self.problem and time.monotonic() < self._retry_at:
            return
        try:
            index = self._index or self._open()
            count = index.count()
            names = None if count == self._count else set(index.ids())
        except MemoryInspectorError as exc:
            self._failed(exc)
            return
        self._index, self.problem = index, ""
        if names is None:
            return
        self._read_records()
        self.shelf.miss(self.shelf.indexed - names)
        self.shelf.note(names)
        try:
            self._hold(index, names)
        except MemoryInspectorError as exc:
            self._failed(exc)
            return
        self._count = count

    def catch_up(self) -> Steps[CaughtUp]:
        """Bring the index up to the store's pending records, a batch per step.

        Raises the error of the index or the embedding model; what is not done stays pending.
        """
        self.refresh()
        embedded = deleted = 0
        for _ in range(_ROUNDS):
            pending = self._store.records(self.user, pending=True)
            for record in pending:
                self.shelf.learn(record)
            if not pending:
                break
            index = self._usable()
            gone = [record for record in pending if record.status == FORGOTTEN]
            live = [record for record in pending if record.status != FORGOTTEN]
            deleted += self._let_go(index, gone)
            self._hold(index, (vector_id(record.id) for record in live))
            embedded += yield from self._embed(index, live)
        if embedded or deleted:
            self._count = self._usable().count()
            log.info("long-term memory: %d texts embedded, %d forgotten", embedded, deleted)
        return CaughtUp(embedded, deleted, len(self.shelf.lacking))

    def rebuild(self) -> Steps[int]:
        """Make the collection hold exactly the live memories, a batch per step.

        Returns how many texts were embedded; an interrupted run goes on where it stopped.
        """
        self._retry_at = 0.0
        self._count = None
        caught = yield from self.catch_up()
        index = self._usable()
        index.delete(self.shelf.orphans)
        self.shelf.miss(self.shelf.orphans)
        embedded = 0
        yield self._done()
        for names in _in_batches(self.shelf.lacking, BATCH):
            embedded += self._add(index, names)
            yield self._done()
        self._count = index.count()
        return caught.embedded + embedded

    def ask(
        self, vector: Vectors, words: NDArray[np.float64]
    ) -> tuple[list[Near] | None, dict[str, Vectors]]:
        """Return the index's own answer (``None``: not asked) and vectors the shelf lacks room for.

        An index that looks at everything needs no check while the shelf holds everything.
        """
        index = self._index
        large = len(self.shelf) > self._exact_up_to
        if index is None or self.problem or (index.exact and not large):
            return None, {}
        try:
            near = index.query(vector, ASKED if large else CHECKED)
            names = [n.id for n in near] + self.shelf.unseen(words, BY_WORDS) if large else []
            return near, index.vectors(list(dict.fromkeys(names)))
        except MemoryInspectorError as exc:
            self._failed(exc)
            return None, {}

    def missed(self, answers: Sequence[Near], found: Snapshot) -> tuple[str, ...]:
        """Return the memories that lie nearer than the index's farthest answer but are not in it.

        Fewer answers than there could be reach as far as one likes.
        """
        returned = {answer.id for answer in answers}
        complete = len(answers) >= min(CHECKED, self.shelf.vectors)
        farthest = answers[-1].distance if answers and complete else np.inf
        slack = _TIE * max(1.0, abs(farthest)) if complete else 0.0
        near = np.where(np.isnan(found.distance), np.inf, found.distance)
        rows = np.argsort(near, kind="stable")[: min(CHECKED, len(near))]
        nearest = [found.records[row] for row in rows if near[row] < farthest - slack]
        return tuple(r.id for r in nearest if r is not None and vector_id(r.id) not in returned)

    def standing(self) -> Standing:
        """Return how this memory stands, the collection read anew."""
        self._retry_at = 0.0
        self._count = None
        self.refresh()
        collection: Description | None = None
        others: list[Description] = []
        if self._index is not None and not self.problem:
            collection = self._index.describe()
            others = [c for c in self._vectors.collections(self.user) if c.name != collection.name]
        waiting = len(self.shelf.lacking)
        notices = list(collection.notices if collection is not None else (self.problem,))
        if waiting > BATCH or (waiting and others):
            models = ", ".join(sorted({c.model or "an unknown model" for c in others}))
            made = f" They were embedded by {models}." if models else ""
            notices.append(
                f"{waiting:,} texts have no vector of {self._embedder.name} yet.{made} "
                "Re-embed them to search by meaning."
            )
        return Standing(
            memories=len(self.shelf),
            pending=len(self._store.records(self.user, pending=True)),
            waiting=waiting,
            orphans=len(self.shelf.orphans),
            collection=collection,
            others=tuple(others),
            notices=tuple(notice for notice in notices if notice),
        )

    def _open(self) -> VectorIndex:
        model, dimension = self._embedder.name, self._embedder.dimension
        spec = CollectionSpec(f"{self.user} · {model}", model, dimension, self.user)
        index = self._vectors.open(spec)
        if index.dimension not in (0, dimension):
            raise mismatch(index.describe(), spec, dimension)
        return index

    def _usable(self) -> VectorIndex:
        if self._index is None or self.problem:
            raise VectorError(self.problem or "The vector index is not open.")
        return self._index

    def _failed(self, exc: MemoryInspectorError) -> None:
        log.warning("vector index not usable: %s", exc)
        self.problem = str(exc)
        self._index = None
        self._count = None
        self._retry_at = time.monotonic() + RETRY_AFTER

    def _read_records(self) -> None:
        stored = self._store.records(self.user)
        for record in stored:
            self.shelf.learn(record)
        there = {record.id for record in stored}
        for record in self.shelf.records:
            if record.id not in there:
                self.shelf.drop(record.id)
        self._read_once = True

    def _done(self) -> tuple[int, int]:
        waiting, there = len(self.shelf.lacking), self.shelf.vectors
        return there, there + waiting

    def _hold(self, index: VectorIndex, names: Iterable[str]) -> None:
        for some in _in_batches(self.shelf.wanted(names), _READ):
            self.shelf.take(index.vectors(some))

    def _let_go(self, index: VectorIndex, gone: Sequence[MemoryRecord]) -> int:
        names = {vector_id(r.id) for r in gone if not self.shelf.holders(vector_id(r.id))}
        index.delete(sorted(names))
        self.shelf.miss(names)
        self._mark(gone)
        return len(names)

    def _embed(self, index: VectorIndex, live: Sequence[MemoryRecord]) -> Steps[int]:
        """Embed what is pending, and a few strays that lost their vector, batch by batch."""
        lacking = self.shelf.lacking
        wanted = {vector_id(record.id) for record in live}
        todo = lacking if len(lacking) <= BATCH else [name for name in lacking if name in wanted]
        waiting = set(todo)
        self._mark([record for record in live if vector_id(record.id) not in waiting])
        done = 0
        for names in _in_batches(todo, BATCH):
            done += self._add(index, names)
            added = set(names)
            self._mark([record for record in live if vector_id(record.id) in added])
            yield self._done()
        return done

    def _add(self, index: VectorIndex, names: Sequence[str]) -> int:
        held = {name: self.shelf.holders(name) for name in names}
        first = {name: records[0] for name, records in held.items() if records}
        vectors = self._vectors_of({name: record.text for name, record in first.items()})
        entries = [
            Entry(
                name,
                record.text,
                vectors[name],
                {
                    "session": record.session,
                    "turn": record.turn,
                    "kind": record.kind,
                    "created": record.created.isoformat(),
                },
            )
            for name, record in first.items()
            if name in vectors
        ]
        index.add(entries, replace=True)
        self.shelf.take(vectors)
        return len(entries)

    def _vectors_of(self, texts: Mapping[str, str]) -> dict[str, Vectors]:
        """Embed texts by name; one that the model refuses does not keep the others back.

        It is found by words only. Raises the model's error when it refuses all of them.
        """
        try:
            made = self._embedder.embed(list(texts.values())) if texts else ()
        except ModelRefused:
            if len(texts) < 2:
                raise
            vectors: dict[str, Vectors] = {}
            refused: ModelRefused | None = None
            for name, text in texts.items():
                try:
                    vectors |= self._vectors_of({name: text})
                except ModelRefused as exc:
                    refused = exc
                    log.warning("a memory has no vector: %s", exc)
            if refused is not None and not vectors:
                raise refused from None
            return vectors
        return {n: np.asarray(v, np.float32) for n, v in zip(texts, made, strict=True)}

    def _mark(self, records: Sequence[MemoryRecord]) -> None:
        by_status: dict[str, list[str]] = {}
        for record in records:
            by_status.setdefault(record.status, []).append(record.id)
        for status, ids in by_status.items():
            self._store.mark_indexed(self.user, ids, status=status)


def _in_batches(names: Sequence[str], size: int) -> Iterable[Sequence[str]]:
    return (names[start : start + size] for start in range(0, len(names), size))
