"""Which cell to take: enough evidence for the fewest tokens, and whether that holds elsewhere.

A grid has many cells and a conversation few questions, so the best cell of a sweep is partly
luck. Three guards: intervals by bootstrap over questions (Efron 1979, percentile method), a
half of the questions that is held out of the choice (:func:`halves`), and the Pareto front, which
shows what a token buys. Everything is seeded: the same sweep gives the same answer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from memory_core.errors import InvalidInput
from memory_core.lab.cells import Cell, Floats, Mask, Measure
from memory_core.lab.inputs import SweepQuestion
from memory_core.lab.table import SweepResult

KEEP = 0.9
ROUNDS = 1_000
SEED = 20_260


@dataclass(frozen=True)
class Interval:
    """A mean with its bootstrap interval; all from 0 to 1."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Choice:
    """The cell that was chosen and how it does.

    ``chosen`` is its evidence over the questions it was chosen on, ``held_out`` over the others
    (``None`` when there are none). ``wanted`` is what it had to reach, ``best`` what the best
    cell of the grid reaches. ``saved`` is the share of the best cell's tokens that it saves.
    """

    cell: Cell
    measure: Measure
    wanted: float
    best: float
    chosen: Interval
    held_out: Interval | None
    tokens: float
    saved: float


def halves(questions: Sequence[SweepQuestion]) -> tuple[Mask, Mask]:
    """Return two masks: the half of the questions to choose on, and the half held out.

    The halves are equally large, and who is in which depends on the questions' texts alone, not
    on their order, so that parts of a conversation are in both.
    """
    digests = [
        hashlib.blake2b(f"{q.position}\0{q.text}".encode("utf-8", "replace")).digest()
        for q in questions
    ]
    order = sorted(range(len(digests)), key=digests.__getitem__)
    first = np.zeros(len(questions), np.bool_)
    first[order[::2]] = True
    return first, ~first


def bootstrap(scores: Floats, *, rounds: int = ROUNDS, level: float = 0.95) -> list[Interval]:
    """Return the mean of each row and its interval, resampling columns (questions).

    All rows share the same samples, so rows can be compared.
    """
    count = scores.shape[1]
    if not count:
        return [Interval(0.0, 0.0, 1.0) for _ in scores]
    picks = np.random.default_rng(SEED).multinomial(count, np.full(count, 1 / count), size=rounds)
    means = scores @ picks.T / count
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2], axis=1)
    own = scores.mean(axis=1)
    return [Interval(*map(float, three)) for three in zip(own, low, high, strict=True)]


def intervals(
    result: SweepResult, measure: Measure = Measure.SHARE, *, which: Mask | None = None
) -> list[Interval]:
    """Return the interval of each cell, in the order of ``result.cells``."""
    return bootstrap(_scores(result, measure, which))


def pareto(
    result: SweepResult, measure: Measure = Measure.SHARE, *, which: Mask | None = None
) -> list[Cell]:
    """Return the cells that no other one beats in both evidence and tokens, cheapest first."""
    evidence, tokens = _evidence_and_tokens(result, measure, which)
    front, reached = [], -1.0
    for index in np.lexsort((-evidence, tokens)).tolist():
        if evidence[index] > reached:
            front.append(result.cells[index])
            reached = evidence[index]
    return front


def cheapest(
    result: SweepResult,
    measure: Measure = Measure.SHARE,
    *,
    keep: float = KEEP,
    hold_out: bool = True,
) -> Choice:
    """Return the cell with the fewest tokens that keeps ``keep`` of the best cell's evidence.

    With ``hold_out`` only half of the questions decide, and the other half tells whether the
    choice holds there; with a single question all decide. Raises :class:`InvalidInput` for a
    sweep without cells and a ``keep`` that is not from 0 to 1.
    """
    if not 0 <= keep <= 1:
        raise InvalidInput(f"The share of evidence to keep must be from 0 to 1, not {keep}.")
    tuned, other = halves(result.questions)
    if not hold_out or not other.any():
        tuned, other = np.ones_like(tuned), np.zeros_like(tuned)
    evidence, tokens = _evidence_and_tokens(result, measure, tuned)
    best = float(evidence.max())
    wanted = keep * best
    enough = np.flatnonzero(evidence >= wanted - 1e-12)
    index = min(enough.tolist(), key=lambda i: (tokens[i], -evidence[i]))
    strongest = tokens[evidence == best].min()
    scores = result.scores(result.cells[index], measure)[None, :]
    return Choice(
        cell=result.cells[index],
        measure=measure,
        wanted=wanted,
        best=best,
        chosen=bootstrap(scores[:, tuned])[0],
        held_out=bootstrap(scores[:, other])[0] if other.any() else None,
        tokens=float(tokens[index]),
        saved=float(1 - tokens[index] / strongest) if strongest else 0.0,
    )


def _scores(result: SweepResult, measure: Measure, which: Mask | None) -> Floats:
    if not result.cells:
        raise InvalidInput("The sweep has no cells yet.", next_step="Let it run for a moment.")
    scores = np.stack([result.scores(cell, measure) for cell in result.cells])
    return scores if which is None else scores[:, which]


def _evidence_and_tokens(
    result: SweepResult, measure: Measure, which: Mask | None
) -> tuple[Floats, Floats]:
    evidence = _scores(result, measure, which).mean(axis=1)
    tokens = np.stack([cell.tokens for cell in result.cells])
    return evidence, (tokens if which is None else tokens[:, which]).mean(axis=1)
