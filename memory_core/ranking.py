"""From candidates to hits: named gates in a fixed order, each with its two numbers. Pure.

A candidate meets the gates in this order, and the first that stops it is the reason it stays out:

1. *other session*: told in another session, and recall is scoped to this one
2. *expired* and *superseded*: no longer true
3. *already in the buffer*: its messages stand in the prompt word for word
4. *duplicate*: a better one says the same
5. *score threshold*
6. *top_k*: its rank among those that are left
7. *budget*: its tokens against those left; a shorter one behind it may still fit

:func:`rank_hits` needs neither model nor index, so another top_k, threshold, weight or budget is
tried on the same :class:`Candidates` in a millisecond.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import lru_cache

import numpy as np

from memory_core.fusion import KNOBS, Scores, fuse
from memory_core.prompt import Gate, Hit, Omission, Recall, Source
from memory_core.records import SUPERSEDED, even, lines_of
from memory_core.settings import THIS_SESSION, MemorySettings
from memory_core.shelf import Snapshot
from memory_core.stores.protocols import MemoryRecord
from memory_core.stores.vectors.base import COSINE

DIVERSE_AMONG = 200  # how many of the best diversity may reorder
_FUSED = 16  # how many weightings of one search are kept
_LINES = 4_096  # how many texts are kept as evened lines

CountTokens = Callable[[Hit], int]


@dataclass(frozen=True, eq=False)
class Candidates:
    """All memories of a user as one search found them, not yet ranked.

    ``note`` says why nothing, or not everything, was searched; ``disagreement`` are ids that
    exact search ranks high and the index did not return.
    """

    query: str
    found: Snapshot | None = None
    metric: str = COSINE
    model: str = ""
    note: str = ""
    disagreement: tuple[str, ...] = ()
    milliseconds: float = 0.0
    _fused: dict[tuple[object, ...], tuple[Scores, list[int]]] = field(
        default_factory=dict, repr=False
    )

    def fused(
        self, found: Snapshot, settings: MemorySettings, now: datetime
    ) -> tuple[Scores, list[int]]:
        """Return the scores under these weights and the rows, best first.

        A prompt, and what is tried on it, ranks the same scores many times; they are kept.
        """
        at = now if settings.weight_recency else None
        key = (*(getattr(settings, name) for name in KNOBS), at)
        known = self._fused.get(key)
        if known is None:
            scores = fuse(found.features, settings, now.timestamp())
            known = scores, np.argsort(-scores.total, kind="stable").tolist()
            if len(self._fused) >= _FUSED:
                self._fused.clear()
            self._fused[key] = known
        return known

    @classmethod
    def skipped(cls, query: str, reason: str) -> Candidates:
        """Return the candidates of a search that was not made."""
        return cls(query, note=reason)


@dataclass(frozen=True)
class _Stop:
    """Why a candidate stays out."""

    gate: Gate
    reason: str
    needed: float | None = None
    available: float | None = None


@dataclass
class _Ranked:
    """Rows by what became of them, best first: ``early`` stopped before the threshold."""

    passed: list[int] = field(default_factory=list)
    low: list[tuple[int, _Stop]] = field(default_factory=list)
    early: list[tuple[int, _Stop]] = field(default_factory=list)


def rank_hits(
    candidates: Candidates,
    *,
    settings: MemorySettings,
    session: str,
    in_buffer: frozenset[str],
    budget: int | None,
    count: CountTokens,
    now: datetime,
    everything: bool = False,
) -> Recall:
    """Return the hits and near misses of a search under these settings.

    ``in_buffer`` are the ids of messages in the prompt, ``budget`` the tokens for hits (``None``:
    no limit), ``count`` the tokens of one hit as it will stand there. Near misses are those the
    budget stopped, the best ``settings.near_misses`` of the others that were ranked, and as many
    that were stopped before; with ``everything`` they are all other memories.
    """
    recall = Recall(
        query=candidates.query,
        metric=candidates.metric,
        model=candidates.model,
        skipped=candidates.note,
        disagreement=candidates.disagreement,
        milliseconds=candidates.milliseconds,
        scope=settings.scope,
    )
    found = candidates.found
    if found is None:
        return recall
    scores, order = candidates.fused(found, settings, now)
    near = len(found.records) if everything else settings.near_misses
    ranked = _ranked(
        found, scores, order, settings, session=session, in_buffer=in_buffer, now=now, near=near
    )
    hits: list[Hit] = []
    stopped: list[tuple[Hit, Omission]] = []
    left = budget
    for rank, row in enumerate(ranked.passed, start=1):
        if rank > settings.top_k + near:
            break
        hit = _hit(row, found, scores, count, rank)
        if rank > settings.top_k:
            stop = _Stop(
                Gate.TOP_K, f"rank {rank}, top_k is {settings.top_k}", rank, settings.top_k
            )
        elif left is not None and hit.tokens > left:
            stop = _Stop(
                Gate.BUDGET, f"needs {hit.tokens:,} tokens, {left:,} left", hit.tokens, left
            )
        else:
            hits.append(hit)
            left = None if left is None else left - hit.tokens
            continue
        stopped.append((hit, _omission(hit, stop)))
    beyond = max(0, len(ranked.passed) - settings.top_k)
    for rank, (row, stop) in enumerate(ranked.low[: max(0, near - beyond)], start=1):
        hit = _hit(row, found, scores, count, len(ranked.passed) + rank)
        stopped.append((hit, _omission(hit, stop)))
    for row, stop in ranked.early:
        hit = _hit(row, found, scores, count, 0)
        stopped.append((hit, _omission(hit, stop)))
    return replace(
        recall,
        hits=tuple(hits),
        near=tuple(sorted(stopped, key=lambda pair: -pair[0].score)),
        searched=int(np.count_nonzero(~np.isnan(found.features.words))),
    )


def _ranked(
    found: Snapshot,
    scores: Scores,
    order: list[int],
    settings: MemorySettings,
    *,
    session: str,
    in_buffer: frozenset[str],
    now: datetime,
    near: int,
) -> _Ranked:
    """Send the candidates through the gates up to the threshold, best first.

    It stops as soon as nothing further could be a hit or among the ``near`` misses.
    """
    ranked = _Ranked()
    said: dict[str, int] = {}  # lines of what passed so far
    depth = max(DIVERSE_AMONG if settings.diversity else 0, settings.top_k) + near
    scope = session if settings.scope == THIS_SESSION else None
    for row in order:
        record, score = found.records[row], float(scores.total[row])
        if record is None or score == -np.inf:
            continue
        stop = _untrue(record, scope, now) or _repeated(record, in_buffer, said)
        if stop is not None:
            if len(ranked.early) < near:
                ranked.early.append((row, stop))
            continue
        for line in _lines(record.text):
            said.setdefault(line, row)
        if score >= settings.threshold:
            ranked.passed.append(row)
            if len(ranked.passed) >= depth:
                break
            continue
        ranked.low.append((row, _under(score, settings.threshold)))
        if len(ranked.low) > near:
            break
    if settings.diversity:
        ranked.passed = _diversified(ranked.passed, scores, found, settings.diversity)
    return ranked


def _untrue(record: MemoryRecord, scope: str | None, now: datetime) -> _Stop | None:
    if scope is not None and record.session != scope:
        reason = "told in another session; recall is scoped to this one"
        return _Stop(Gate.OTHER_SESSION, reason)
    if record.expires is not None and record.expires <= now:
        return _Stop(Gate.EXPIRED, f"expired {_ago(now - record.expires)} ago")
    if record.status == SUPERSEDED:
        return _Stop(Gate.SUPERSEDED, "corrected by a later memory")
    return None


def _repeated(
    record: MemoryRecord, in_buffer: frozenset[str], said: dict[str, int]
) -> _Stop | None:
    if not in_buffer.isdisjoint(record.message_ids):
        return _Stop(Gate.IN_BUFFER, "already in the buffer, word for word")
    if _lines(record.text)[0] in said:
        return _Stop(Gate.DUPLICATE, "a better memory says the same")
    return None


@lru_cache(_LINES)
def _lines(text: str) -> tuple[str, ...]:
    """Return a text evened out: as a whole, then line by line."""
    return (even(text), *lines_of(text))


def _under(score: float, threshold: float) -> _Stop:
    digits = next((n for n in range(2, 9) if f"{score:.{n}f}" != f"{threshold:.{n}f}"), 9)
    reason = f"score {score:.{digits}f} under threshold {threshold:.{digits}f}"
    return _Stop(Gate.THRESHOLD, reason, threshold, score)


def _diversified(rows: list[int], scores: Scores, found: Snapshot, diversity: float) -> list[int]:
    """Return the rows in the order of maximal marginal relevance (Carbonell, Goldstein 1998).

    Each next one has the highest ``(1 - diversity) · score - diversity · likeness``, likeness
    being the largest cosine to those before it; the order does not depend on top_k.
    """
    best, rest = rows[:DIVERSE_AMONG], rows[DIVERSE_AMONG:]
    held = len(found.vectors)
    known = [row if row < held else -1 for row in best]
    if not best or not held:
        return rows
    vectors = found.vectors[known]
    vectors[[row < 0 for row in known]] = 0
    gain = (1 - diversity) * scores.total[best]
    like = np.zeros(len(best))
    order: list[int] = []
    open_ = np.ones(len(best), dtype=np.bool_)
    for _ in best:
        pick = int(np.argmax(np.where(open_, gain - diversity * like, -np.inf)))
        open_[pick] = False
        order.append(best[pick])
        like = np.maximum(like, vectors @ vectors[pick])
    return order + rest


def _hit(row: int, found: Snapshot, scores: Scores, count: CountTokens, rank: int) -> Hit:
    record = found.records[row]
    if record is None:
        raise ValueError("a dropped memory cannot be a hit")
    signals = {name: float(values[row]) for name, values in scores.signals.items()}
    hit = Hit(
        id=record.id,
        text=record.text,
        similarity=_known(found.features.similarity[row], otherwise=0.0),
        distance=_known(found.distance[row], otherwise=1.0),
        score=float(scores.total[row]),
        rank=rank,
        tokens=0,
        turn=record.turn,
        session=record.session,
        kind=record.kind,
        message_ids=record.message_ids,
        created=record.created.isoformat(),
        signals=signals,
    )
    return replace(hit, tokens=count(hit))


def _omission(hit: Hit, stop: _Stop) -> Omission:
    return Omission(
        gate=stop.gate,
        source=Source.RETRIEVED,
        ids=(hit.id,),
        reason=stop.reason,
        needed=stop.needed,
        available=stop.available,
        tokens=hit.tokens,
        turn=hit.turn,
        score=hit.score,
    )


def _known(value: float, *, otherwise: float) -> float:
    """Return a number that JSON can hold; a memory without a vector yet is like nothing."""
    return otherwise if np.isnan(value) else float(value)


def _ago(age: timedelta) -> str:
    for unit, seconds in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        amount = int(age.total_seconds() // seconds)
        if amount:
            return f"{amount:,} {unit}{'s' if amount > 1 else ''}"
    return "less than a minute"
