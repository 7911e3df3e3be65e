"""What a sweep yields: the cells of the grid, read as a table, a heat map or one cell's misses.

A :class:`SweepResult` may hold some of its cells only (a sweep that still runs, or was stopped);
what is missing is ``NaN`` on the map. Every figure can be taken over some of the questions
(``which``), so that settings can be chosen on one half and reported on the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from memory_core.errors import InvalidInput
from memory_core.lab.axes import Axis, Point, Value, grid
from memory_core.lab.cells import PLACES, Cell, Evidence, Floats, Mask, Measure
from memory_core.lab.inputs import SweepQuestion
from memory_core.messages import Json
from memory_core.models.catalogue import Price


@dataclass(frozen=True)
class Row:
    """One cell in figures, averaged over questions.

    ``any``, ``all`` and ``share`` are evidence in the prompt, 0 to 1; ``places`` splits ``share``
    by where the evidence stands (``summary``, told there in other words, comes on top).
    ``tokens`` is the prompt's mean, ``most_tokens`` its largest. ``cost`` is US dollars a turn
    for the prompt, ``None`` without a price. ``embeddings`` and ``model_calls`` are a turn's.
    """

    x: Value
    y: Value
    any: float
    all: float
    share: float
    places: dict[str, float]
    tokens: float
    most_tokens: int
    cost: float | None
    embeddings: float
    model_calls: float


@dataclass(frozen=True)
class Missed:
    """A question that a cell does not serve whole, and the messages of evidence it lacks."""

    number: int
    question: SweepQuestion
    missing: tuple[int, ...]


@dataclass(frozen=True)
class SweepResult:
    """A sweep: its axes, the point that the other knobs stand at, questions and cells.

    ``counter`` is the id of the token counter. ``seconds`` is how long planning took.
    """

    title: str
    x: Axis
    y: Axis
    base: Point
    questions: tuple[SweepQuestion, ...]
    cells: tuple[Cell, ...]
    counter: str = ""
    notices: tuple[str, ...] = ()
    seconds: float = 0.0

    @cached_property
    def evidence(self) -> Evidence:
        """How the evidence of all questions is laid out in a cell."""
        return Evidence.of(self.questions)

    @cached_property
    def _at(self) -> dict[tuple[int, int], Cell]:
        return {(cell.x, cell.y): cell for cell in self.cells}

    @property
    def complete(self) -> bool:
        """Whether every cell of the grid is there."""
        return len(self._at) == len(self.x.values) * len(self.y.values)

    def cell(self, x: int, y: int) -> Cell:
        """Return the cell at the x-th and y-th value; raise :class:`InvalidInput` if not there."""
        found = self._at.get((x, y))
        if found is None:
            raise InvalidInput(f"The sweep has no cell at {x}, {y}.")
        return found

    def point(self, cell: Cell) -> Point:
        """Return all knobs as they stand in a cell."""
        return self.x.set(self.y.set(self.base, self.y.values[cell.y]), self.x.values[cell.x])

    def settings(self, cell: Cell) -> dict[str, Json]:
        """Return a cell's memory settings as the JSON object that a session takes."""
        return self.point(cell).settings.to_json()

    def scores(self, cell: Cell, measure: Measure = Measure.SHARE) -> Floats:
        """Return how far each question's evidence is in the cell's prompts, 0 to 1."""
        return self.evidence.measured(cell.held, measure)

    def row(self, cell: Cell, *, which: Mask | None = None, price: Price | None = None) -> Row:
        """Return a cell's figures over some or all of the questions."""
        chosen = np.ones(len(self.questions), np.bool_) if which is None else which
        share = self.scores(cell)[chosen]
        tokens = cell.tokens[chosen]
        mean = float(tokens.mean())
        return Row(
            x=self.x.values[cell.x],
            y=self.y.values[cell.y],
            any=float((share > 0).mean()),
            all=float((share == 1).mean()),
            share=float(share.mean()),
            places={
                name: float(self.evidence.share(cell.where == code)[chosen].mean())
                for code, name in PLACES.items()
            },
            tokens=mean,
            most_tokens=int(tokens.max()),
            cost=None if price is None else mean * price.prompt / 1_000_000,
            embeddings=cell.embeddings,
            model_calls=cell.model_calls,
        )

    def rows(self, *, which: Mask | None = None, price: Price | None = None) -> Iterator[Row]:
        """Yield the figures of every cell there is, row after row of the map."""
        for cell in sorted(self.cells, key=lambda cell: (cell.y, cell.x)):
            yield self.row(cell, which=which, price=price)

    def heat(self, measure: Measure = Measure.SHARE, *, which: Mask | None = None) -> Floats:
        """Return the map of evidence in the prompt, of shape ``(y values, x values)``."""
        return self._map({(c.x, c.y): self.scores(c, measure) for c in self.cells}, which)

    def tokens(self, *, which: Mask | None = None) -> Floats:
        """Return the map of the prompt's mean tokens, of the same shape."""
        return self._map({(c.x, c.y): c.tokens for c in self.cells}, which)

    def missed(self, cell: Cell) -> list[Missed]:
        """Return the questions whose evidence is not all in the cell's prompts."""
        out = []
        lacking = ~cell.held
        for number in np.unique(self.evidence.owner[lacking]).tolist():
            mine = lacking & (self.evidence.owner == number)
            missing = tuple(self.evidence.message[mine].tolist())
            out.append(Missed(number, self.questions[number], missing))
        return out

    def check(self) -> None:
        """Raise :class:`InvalidInput` when axes, knobs and cells do not belong together."""
        grid(self.x, self.y, self.base)
        pieces = len(self.evidence.owner)
        for cell in self.cells:
            inside = 0 <= cell.x < len(self.x.values) and 0 <= cell.y < len(self.y.values)
            if not inside or len(cell.where) != pieces or len(cell.tokens) != len(self.questions):
                raise InvalidInput(f"Cell {cell.x}, {cell.y} does not belong to this sweep.")
        if len(self._at) != len(self.cells):
            raise InvalidInput("A cell of the sweep is there twice.")

    def _map(self, values: dict[tuple[int, int], np.ndarray], which: Mask | None) -> Floats:
        out = np.full((len(self.y.values), len(self.x.values)), np.nan)
        for (x, y), row in values.items():
            out[y, x] = row.mean() if which is None else row[which].mean()
        return out
