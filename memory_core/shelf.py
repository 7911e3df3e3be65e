"""One user's memories laid out for search: records, unit vectors, words and neighbourhoods.

Rows are numbered in the order memories were learned and never reused, so what one search handed
out stays valid while the shelf grows; a dropped memory leaves an empty row. Everything is kept up
incrementally: learning one more memory costs the same at 100 and at 10,000.

Up to :data:`EXACT_UP_TO` vectors are held here and compared exactly; the index is asked for the
rest. Not safe to use from several threads at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory_core.fusion import LENT, Features
from memory_core.lexicon import Lexicon
from memory_core.records import ACTIVE, FORGOTTEN, vector_id
from memory_core.stores.protocols import MemoryRecord
from memory_core.stores.vectors.base import COSINE, IP, Near, Vectors

EXACT_UP_TO = 20_000
_FIRST = 64  # rows allocated at first; doubled when full


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The memories as one search found them; rows as in ``features``, ``None``: dropped."""

    records: tuple[MemoryRecord | None, ...]
    features: Features
    distance: NDArray[np.float64]
    vectors: Vectors

    def without(self, session: str, turn: int) -> Snapshot:
        """Return the memories as if this turn had left none."""
        gone = [
            row
            for row, record in enumerate(self.records)
            if record is not None and (record.session, record.turn) == (session, turn)
        ]
        if not gone:
            return self
        features = replace(
            self.features,
            similarity=self.features.similarity.copy(),
            words=self.features.words.copy(),
            lends=self.features.lends.copy(),
        )
        features.similarity[gone] = features.words[gone] = np.nan
        features.lends[gone] = False
        left = frozenset(gone)
        records = tuple(None if row in left else r for row, r in enumerate(self.records))
        return replace(self, records=records, features=features)


class Shelf:
    """Holds one user's live memories in rows."""

    def __init__(self, *, exact_up_to: int = EXACT_UP_TO) -> None:
        self.lexicon = Lexicon()
        self._exact_up_to = exact_up_to
        self._records: list[MemoryRecord | None] = []
        self._row: dict[str, int] = {}
        self._rows_of: dict[str, list[int]] = {}  # by vector id
        self._indexed: set[str] = set()  # vector ids that the index holds
        self._lacking: dict[str, None] = {}  # vector ids that it does not, oldest first
        self._places: dict[tuple[str, int], int] = {}
        self._place = np.zeros(_FIRST, dtype=np.int64)
        self._beside = np.full((_FIRST, len(LENT)), -1, dtype=np.int64)
        self._lends = np.zeros(_FIRST, dtype=np.bool_)
        self._live = np.zeros(_FIRST, dtype=np.bool_)
        self._created = np.zeros(_FIRST)
        self._vectors: Vectors = np.zeros((0, 0), dtype=np.float32)
        self._lengths = np.full(_FIRST, np.nan)  # of the raw vectors; NaN: not held here

    def __len__(self) -> int:
        return len(self._row)

    @property
    def records(self) -> list[MemoryRecord]:
        """The live records, in the order they were learned."""
        return [record for record in self._records if record is not None]

    @property
    def rows(self) -> int:
        """How many rows there are, dropped ones included."""
        return len(self._records)

    def find(self, record: str) -> MemoryRecord | None:
        """Return a live record by id."""
        row = self._row.get(record)
        return None if row is None else self._records[row]

    @property
    def lacking(self) -> list[str]:
        """The vector ids of live memories that the index does not hold, oldest first."""
        return list(self._lacking)

    @property
    def indexed(self) -> frozenset[str]:
        """The vector ids that the index holds."""
        return frozenset(self._indexed)

    @property
    def vectors(self) -> int:
        """How many vectors the index holds."""
        return len(self._indexed)

    @property
    def orphans(self) -> list[str]:
        """The vector ids that the index holds for no live memory."""
        return sorted(self._indexed.difference(self._rows_of))

    def holders(self, vector: str) -> list[MemoryRecord]:
        """Return the live records that share a vector."""
        found = (self._records[row] for row in self._rows_of.get(vector, ()))
        return [record for record in found if record is not None]

    def learn(self, record: MemoryRecord) -> None:
        """Take in a record in its present state; a forgotten one is dropped."""
        row = self._row.get(record.id)
        if record.status == FORGOTTEN:
            if row is not None:
                self.drop(record.id)
            return
        if row is None:
            row = self._new_row(record)
        else:
            self._records[row] = record
            self._place[row] = self._place_of(record)
        self._lends[row] = record.status == ACTIVE

    def drop(self, record: str) -> None:
        """Let go of a record by id; its vector stays in the index until that is told."""
        row = self._row.pop(record)
        vector = vector_id(record)
        self._records[row] = None
        self._live[row] = self._lends[row] = False
        self._lengths[row] = np.nan
        if row < len(self._vectors):
            self._vectors[row] = 0
        self.lexicon.remove(row)
        rows = self._rows_of[vector]
        rows.remove(row)
        if not rows:
            del self._rows_of[vector]
            self._lacking.pop(vector, None)

    def take(self, vectors: Mapping[str, Vectors]) -> None:
        """Note that the index holds these vectors, and hold them here too where there is room."""
        for name, raw in vectors.items():
            self._note(name)
            for row in self._rows_of.get(name, ()):
                self._hold(row, raw)

    def note(self, names: Iterable[str]) -> None:
        """Note that the index holds vectors which are not read."""
        for name in names:
            self._note(name)

    def miss(self, names: Iterable[str]) -> None:
        """Note that the index holds these vectors no longer."""
        for name in names:
            self._indexed.discard(name)
            for row in self._rows_of.get(name, ()):
                self._lengths[row] = np.nan
                self._lacking[name] = None

    def wanted(self, names: Iterable[str]) -> list[str]:
        """Return those of the index's vectors that this shelf has a use and room for."""
        return [
            name
            for name in names
            if any(
                row < self._exact_up_to and np.isnan(self._lengths[row])
                for row in self._rows_of.get(name, ())
            )
        ]

    def unseen(self, words: NDArray[np.float64], best: int) -> list[str]:
        """Return the vectors not held here of the memories that ``words`` speaks for most."""
        without = np.flatnonzero(np.isnan(self._lengths[: len(words)]) & (words > 0))
        order = without[np.argsort(-words[without], kind="stable")][:best]
        found = (self._records[row] for row in order)
        names = dict.fromkeys(vector_id(r.id) for r in found if r is not None)
        return [name for name in names if name in self._indexed]

    def only(self, keep: Callable[[MemoryRecord], bool]) -> Shelf:
        """Return a shelf of the live memories that ``keep`` wants, as if no other were there."""
        kept = [r for r in self.records if keep(r)]
        shelf, held = Shelf(exact_up_to=self._exact_up_to), {}
        for record in kept:
            shelf.learn(record)
            row = self._row[record.id]
            if not np.isnan(self._lengths[row]):
                held[vector_id(record.id)] = self._vectors[row] * np.float32(self._lengths[row])
        shelf.take(held)
        return shelf

    def look(
        self,
        words: NDArray[np.float64],
        vector: Vectors | None,
        *,
        metric: str = COSINE,
        fetched: Mapping[str, Vectors] | None = None,
        answers: Iterable[Near] = (),
    ) -> Snapshot:
        """Return all memories with what is known of each for one query.

        ``vector`` is the query's embedding; ``fetched`` are vectors just read from the index, and
        ``answers`` its own distances, which are shown in place of computed ones.
        """
        rows = len(self._records)
        words = np.where(self._live[:rows], words, np.nan)
        similarity = np.full(rows, np.nan)
        distance = np.full(rows, np.nan)
        if vector is not None and self._vectors.size:
            held = min(rows, len(self._vectors))
            length = float(np.linalg.norm(vector))
            direction = vector / (length or 1.0)
            cosines = (self._vectors[:held] @ direction.astype(np.float32)).astype(np.float64)
            lengths = self._lengths[:held]
            cosines[np.isnan(lengths)] = np.nan
            similarity[:held] = np.clip(cosines, -1.0, 1.0)
            distance[:held] = _distance(metric, similarity[:held], lengths, length)
        for name, raw in (fetched or {}).items() if vector is not None else ():
            near, away = _compare(metric, np.asarray(raw, np.float64), np.asarray(vector, float))
            for row in self._rows_of.get(name, ()):
                if np.isnan(similarity[row]):
                    similarity[row], distance[row] = near, away
        for answer in answers:
            distance[self._rows_of.get(answer.id, [])] = answer.distance
        places = len(self._places)
        return Snapshot(
            records=tuple(self._records),
            features=Features(
                similarity=similarity,
                words=words,
                place=self._place[:rows].copy(),
                beside=self._beside[:places].copy(),
                lends=self._lends[:rows].copy(),
                created=self._created[:rows],
            ),
            distance=distance,
            vectors=self._vectors,
        )

    def _new_row(self, record: MemoryRecord) -> int:
        row = len(self._records)
        self._grow(row + 1)
        self._records.append(record)
        self._row[record.id] = row
        name = vector_id(record.id)
        twins = self._rows_of.setdefault(name, [])
        twins.append(row)
        self._live[row] = True
        self._place[row] = self._place_of(record)
        self._created[row] = record.created.timestamp()
        self.lexicon.add(row, record.text)
        held = [twin for twin in twins[:-1] if not np.isnan(self._lengths[twin])]
        if held:
            self._hold(row, self._vectors[held[0]] * np.float32(self._lengths[held[0]]))
        if name not in self._indexed and record.text.strip():
            self._lacking[name] = None
        return row

    def _place_of(self, record: MemoryRecord) -> int:
        key = (record.session, record.turn)
        place = self._places.get(key)
        if place is not None:
            return place
        place = self._places[key] = len(self._places)
        if place >= len(self._beside):
            grown = np.full((2 * len(self._beside), len(LENT)), -1, dtype=np.int64)
            grown[: len(self._beside)] = self._beside
            self._beside = grown
        steps = list(LENT)
        for column, step in enumerate(steps):
            other = self._places.get((record.session, record.turn + step))
            if other is not None:
                self._beside[place, column] = other
                self._beside[other, steps.index(-step)] = place
        return place

    def _note(self, name: str) -> None:
        self._indexed.add(name)
        self._lacking.pop(name, None)

    def _hold(self, row: int, raw: Vectors) -> None:
        if row >= self._exact_up_to:
            return
        if row >= len(self._vectors) or len(raw) != self._vectors.shape[1]:
            size = min(self._exact_up_to, max(_FIRST, 2 * len(self._vectors), row + 1))
            grown = np.zeros((size, len(raw)), dtype=np.float32)
            if self._vectors.size:
                grown[: len(self._vectors)] = self._vectors
            self._vectors = grown
        length = float(np.linalg.norm(raw))
        self._vectors[row] = raw / (length or 1.0)
        self._lengths[row] = length

    def _grow(self, rows: int) -> None:
        if rows <= len(self._created):
            return
        size = max(rows, 2 * len(self._created))
        self._place = _longer(self._place, size, 0)
        self._lends = _longer(self._lends, size, fill=False)
        self._live = _longer(self._live, size, fill=False)
        self._created = _longer(self._created, size, 0.0)
        self._lengths = _longer(self._lengths, size, np.nan)


def _longer(values: NDArray[Any], size: int, fill: float) -> NDArray[Any]:
    grown = np.full(size, fill, dtype=values.dtype)
    grown[: len(values)] = values
    return grown


def _compare(
    metric: str, stored: NDArray[np.float64], query: NDArray[np.float64]
) -> tuple[float, float]:
    length, own = float(np.linalg.norm(stored)), float(np.linalg.norm(query))
    cosine = float(stored @ query) / ((length * own) or 1.0)
    away = _distance(metric, np.array([cosine]), np.array([length]), own)
    return cosine, float(away[0])


def _distance(
    metric: str, cosine: NDArray[np.float64], lengths: NDArray[np.float64], own: float
) -> NDArray[np.float64]:
    """Return the distances as the index's metric has them: Chroma's ``l2`` is squared."""
    if metric == COSINE:
        return 1 - cosine
    inner = cosine * lengths * own
    return 1 - inner if metric == IP else lengths**2 + own**2 - 2 * inner
