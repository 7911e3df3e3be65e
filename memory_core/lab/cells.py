"""What is measured in one cell of the grid: where each piece of evidence is, and what it costs.

Evidence of all questions is laid out in one row (:class:`Evidence`), so a cell is two small
arrays: a code a piece that says where in the prompt it stands, and the prompt's tokens a
question. Everything else is arithmetic on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from memory_core.lab.inputs import SweepQuestion

Codes = NDArray[np.int8]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

# Where a piece of evidence is. What is only told in a summary's words is not in the prompt.
NOWHERE, SUMMARISED, BUFFER, RETRIEVED, ELSEWHERE = range(5)
PLACES = {BUFFER: "buffer", RETRIEVED: "retrieved", ELSEWHERE: "elsewhere", SUMMARISED: "summary"}


class Measure(StrEnum):
    """How much of a question's evidence counts: one piece, every piece, or its share."""

    ANY = "any"
    ALL = "all"
    SHARE = "share"


@dataclass(frozen=True, eq=False)
class Evidence:
    """The pieces of evidence of all questions in one row, question after question.

    ``owner`` is the question of each piece and ``message`` the message it stands in.
    """

    owner: Ints
    message: Ints

    @classmethod
    def of(cls, questions: Sequence[SweepQuestion]) -> Evidence:
        """Lay out the evidence of questions that have at least one piece each."""
        counts = [len(question.evidence) for question in questions]
        pieces = [index for question in questions for index in question.evidence]
        return cls(np.repeat(np.arange(len(counts)), counts), np.array(pieces, np.int64))

    @cached_property
    def first(self) -> Ints:
        """Where each question's pieces begin."""
        return np.flatnonzero(np.diff(self.owner, prepend=-1))

    @cached_property
    def counts(self) -> Ints:
        """How many pieces each question has."""
        return np.diff(self.first, append=len(self.owner))

    def share(self, held: Mask) -> Floats:
        """Return the share of each question's pieces for which ``held`` is true."""
        return np.add.reduceat(held, self.first, dtype=np.float64) / self.counts

    def measured(self, held: Mask, measure: Measure) -> Floats:
        """Return how far each question's evidence is held, from 0 to 1."""
        share = self.share(held)
        if measure is Measure.ANY:
            return (share > 0).astype(np.float64)
        return (share == 1).astype(np.float64) if measure is Measure.ALL else share


@dataclass(frozen=True, eq=False)
class Cell:
    """One cell: the x-th and y-th value of the axes.

    ``where`` is a code a piece of evidence, ``tokens`` the prompt's tokens for each question.
    ``embeddings`` and ``model_calls`` are averages a turn of the conversation.
    """

    x: int
    y: int
    where: Codes
    tokens: Ints
    embeddings: float
    model_calls: float

    @property
    def held(self) -> Mask:
        """Whether each piece of evidence is in the prompt, word for word."""
        return self.where >= BUFFER

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Cell)
            and (self.x, self.y, self.embeddings, self.model_calls)
            == (other.x, other.y, other.embeddings, other.model_calls)
            and np.array_equal(self.where, other.where)
            and np.array_equal(self.tokens, other.tokens)
        )

    __hash__ = None  # type: ignore[assignment]
