"""What two sweeps differ in: another conversation import, another strategy, other weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from memory_core.errors import InvalidInput
from memory_core.lab.axes import Value
from memory_core.lab.cells import Measure
from memory_core.lab.table import SweepResult


@dataclass(frozen=True)
class Difference:
    """One setting that two sweeps share: evidence and tokens of both.

    ``gained`` and ``lost`` are the texts of questions that the second serves better or worse;
    questions that only one of the two asks count for neither.
    """

    x: Value
    y: Value
    evidence: tuple[float, float]
    tokens: tuple[float, float]
    gained: tuple[str, ...]
    lost: tuple[str, ...]


def compare(
    first: SweepResult, second: SweepResult, measure: Measure = Measure.SHARE
) -> list[Difference]:
    """Return how two sweeps differ where both have a cell with the same values on the same axes.

    Evidence and tokens are over the questions that both ask. Raises :class:`InvalidInput` when
    they have no cell or no question in common.
    """
    if (first.x.name, first.y.name) != (second.x.name, second.y.name):
        raise InvalidInput(
            f"One sweep is over {first.x.title} and {first.y.title}, the other over "
            f"{second.x.title} and {second.y.title}.",
            next_step="Compare sweeps over the same two knobs.",
        )
    places = {(q.text, q.position): n for n, q in enumerate(second.questions)}
    pairs = [
        (n, places[q.text, q.position])
        for n, q in enumerate(first.questions)
        if (q.text, q.position) in places
    ]
    others = {(second.x.values[c.x], second.y.values[c.y]): c for c in second.cells}
    matched = [
        (cell, others[at])
        for cell in first.cells
        if (at := (first.x.values[cell.x], first.y.values[cell.y])) in others
    ]
    if not pairs or not matched:
        missing = "question" if not pairs else "cell"
        raise InvalidInput(f"The two sweeps have no {missing} in common.")
    ours, theirs = (list(side) for side in zip(*pairs, strict=True))
    out = []
    for one, two in matched:
        before, after = first.scores(one, measure)[ours], second.scores(two, measure)[theirs]
        out.append(
            Difference(
                x=first.x.values[one.x],
                y=first.y.values[one.y],
                evidence=(float(before.mean()), float(after.mean())),
                tokens=(float(one.tokens[ours].mean()), float(two.tokens[theirs].mean())),
                gained=tuple(first.questions[ours[i]].text for i in np.flatnonzero(after > before)),
                lost=tuple(first.questions[ours[i]].text for i in np.flatnonzero(after < before)),
            )
        )
    return out
