"""How well memories fit a query: signals on one scale, fused into a score that can be taken apart.

``dense`` and ``bm25`` alone score by one signal as it is: the cosine similarity, and the share of
the query's words found (see :mod:`memory_core.lexicon`). ``hybrid`` fuses both::

    z_s   = (x_s - mean_s) / spread_s            how much the memory stands out by signal s
    base  = Σ w_s · z_s  /  Σ w_s · best_s       best_s = z_s of a perfect match, x_s = 1
    score = base + w_neighbours · lent + w_recency · 0.5 ^ (age / recency_days)

Mean and spread are those of this user's memories for this query, so 0 is the average memory and 1
one that says just what the query says, whatever the query and the embedding model: scores of
different queries compare, and one threshold serves all. With few memories mean and spread are
drawn towards typical values (as if :data:`PRIOR` typical memories stood beside them). A memory
without a vector yet counts as average by ``dense``.

A conversation carries its subject over turns, so neighbours in the same session lend what they
have above average: the turn before all of it, the turn after half, those two away a third.

Sums of z-scores are the common scale that worked best on public conversations
(benchmarks/recall.py); the scaling by ``best_s`` changes no order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memory_core.settings import BM25, DENSE, MemorySettings

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

PRIOR = 10
TYPICAL = {"dense": (0.1, 0.12), "bm25": (0.02, 0.06)}  # mean, spread
LENT = {-1: 1.0, 1: 1 / 2, -2: 1 / 3, 2: 1 / 3}  # by distance in turns: -1 is the turn before
KNOBS = (  # the settings that decide a score
    "recall_method",
    "weight_dense",
    "weight_bm25",
    "weight_neighbours",
    "weight_recency",
    "recency_days",
)
_SECONDS_PER_DAY = 86_400


@dataclass(frozen=True, eq=False)
class Features:
    """What is known of each memory for one query; rows are memories.

    ``similarity`` is the cosine (NaN where there is no vector), ``words`` the share of the
    query's words (NaN in an empty row). ``place`` numbers the turn a memory stands in,
    ``beside[place]`` are the places at the distances of :data:`LENT`, -1 where there is none.
    ``lends`` tells which memories count for their neighbours. ``created`` is in seconds since
    1970.
    """

    similarity: Floats
    words: Floats
    place: Ints
    beside: Ints
    lends: NDArray[np.bool_]
    created: Floats


@dataclass(frozen=True, eq=False)
class Scores:
    """The score of each memory and the signals that sum to it; ``-inf``: cannot be ranked."""

    total: Floats
    signals: Mapping[str, Floats]


def fuse(features: Features, settings: MemorySettings, now: float) -> Scores:
    """Return the scores under these settings; ``now`` is in seconds since 1970."""
    if settings.recall_method in (DENSE, BM25):
        dense = settings.recall_method == DENSE
        values = features.similarity if dense else features.words
        total = np.where(np.isnan(values), -np.inf, values)
        return Scores(total, {"dense" if dense else "bm25": total})
    signals = _standing_out(features, settings)
    base = signals["dense"] + signals["bm25"]
    if settings.weight_neighbours:
        signals["neighbours"] = settings.weight_neighbours * _lent(features, base)
    if settings.weight_recency:
        age = np.maximum(0.0, now - features.created) / _SECONDS_PER_DAY
        signals["recency"] = settings.weight_recency * 0.5 ** (age / settings.recency_days)
    total = np.zeros(len(base))
    for signal in signals.values():
        total = total + signal
    return Scores(total, signals)


def _standing_out(features: Features, settings: MemorySettings) -> dict[str, Floats]:
    columns = {
        "dense": (features.similarity, settings.weight_dense),
        "bm25": (features.words, settings.weight_bm25),
    }
    weighted, best = {}, 0.0
    for name, (values, weight) in columns.items():
        known = values[~np.isnan(values)]
        mean, spread = _mean_and_spread(known, *TYPICAL[name])
        weighted[name] = np.nan_to_num(weight * (values - mean) / spread)
        best += weight * max(1 - mean, spread) / spread if known.size else 0.0
    return {name: values / (best or 1.0) for name, values in weighted.items()}


def _mean_and_spread(values: Floats, mean: float, spread: float) -> tuple[float, float]:
    count = len(values) + PRIOR
    own = (float(values.sum()) + PRIOR * mean) / count
    variance = float(((values - own) ** 2).sum()) + PRIOR * ((mean - own) ** 2 + spread**2)
    return own, float(np.sqrt(variance / count))


def _lent(features: Features, base: Floats) -> Floats:
    """Return what the turns beside each memory lend it."""
    best = np.zeros(len(features.beside) + 1)  # subtle: the last one stands for "no such turn"
    lending = features.lends
    np.maximum.at(best, features.place[lending], base[lending])
    best[-1] = 0.0
    per_place = best[features.beside] @ np.array(list(LENT.values()))
    return np.asarray(per_place[features.place])
