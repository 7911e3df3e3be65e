"""A sweep: one conversation, two axes, and a cell for every pair of their values.

:func:`prepare_sweep` checks everything and does what is slow (embedding, kept on disk);
:meth:`Sweep.cells` then plans, here or in a :class:`~memory_core.lab.pool.Pool`, and yields each
cell as soon as it is known, so that a heat map fills while it runs. Several conversations are
several sweeps (:func:`run_many`), :func:`merge` makes one table of them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import TYPE_CHECKING

import numpy as np

from memory_core.errors import InvalidInput
from memory_core.lab import layered, tutorial
from memory_core.lab.axes import EMBEDDING, STRATEGY, Axis, Point, grid
from memory_core.lab.cells import Cell
from memory_core.lab.embedded import EmbeddingCache, Progress
from memory_core.lab.inputs import SweepInput
from memory_core.lab.pool import MOST_JOBS, Pool
from memory_core.lab.prepare import Prepared, prepare
from memory_core.lab.strategy import Placed, Strategy
from memory_core.lab.table import SweepResult
from memory_core.tokens import TokenCounter

if TYPE_CHECKING:
    from memory_core.models.embeddings import Embedder

LAYERED, TUTORIAL = "layered", "tutorial"
MOST_PROMPTS = 5_000_000  # cells times questions
LARGE = 400_000  # prompts that take one process longer than others take to start
HERE = Pool()

STRATEGIES: Mapping[str, Strategy] = {
    LAYERED: Strategy(
        "Layered memory",
        "This program's memory: window, summary and recalled turns under one budget.",
        layered.texts,
        layered.plan,
    ),
    TUTORIAL: Strategy(
        "Buffer and nearest messages",
        "What most tutorials build: ChatMemoryBuffer, and top_k messages by cosine.",
        tutorial.texts,
        tutorial.plan,
    ),
}
"""Who can plan without a model."""


@dataclass(frozen=True, eq=False)
class Sweep:
    """A sweep that is ready to run; running it twice gives the same cells."""

    prepared: Prepared
    x: Axis
    y: Axis
    base: Point
    strategies: Mapping[str, Strategy] = field(default_factory=lambda: STRATEGIES)

    @property
    def prompts(self) -> int:
        """How many prompts it plans: one a cell and question."""
        return len(self.x.values) * len(self.y.values) * len(self.prepared.input.questions)

    def cells(self, pool: Pool = HERE) -> Iterator[Cell]:
        """Plan every cell and yield each as soon as it is known, in any order."""
        parts = list(self._parts(pool.parts))
        if pool.here:
            for part in parts:
                yield from part.plan()
            return
        for cells in pool.map(_planned, parts):
            yield from cells

    def result(self, cells: Iterable[Cell], *, seconds: float = 0.0) -> SweepResult:
        """Return these cells, all of them or those known so far, as a table."""
        conversation = self.prepared.input
        return SweepResult(
            title=conversation.title,
            x=self.x,
            y=self.y,
            base=self.base,
            questions=conversation.questions,
            cells=tuple(sorted(cells, key=lambda cell: (cell.y, cell.x))),
            counter=self.prepared.counter.id,
            notices=(*conversation.notices, *self._cut(), *self._estimated()),
            seconds=seconds,
        )

    def run(self, pool: Pool = HERE) -> SweepResult:
        """Plan every cell and return the table."""
        began = time.perf_counter()
        cells = list(self.cells(pool))
        return self.result(cells, seconds=time.perf_counter() - began)

    def _cut(self) -> Iterator[str]:
        """Yield a sentence when the context window leaves less room than a token limit asks."""
        points = (point for row in grid(self.x, self.y, self.base) for point in row)
        rooms = {
            (p.settings.context_window, p.settings.reply_reserve)
            for p in points
            if p.strategy == LAYERED
            and p.settings.token_limit > p.settings.context_window - p.settings.reply_reserve
        }
        for window, reserve in sorted(rooms):
            yield (
                f"Token limits over {max(0, window - reserve):,} are cut there: the context window "
                f"holds {window:,} and {reserve:,} are reserved for the reply."
            )

    def _estimated(self) -> Iterator[str]:
        """Yield a sentence when summaries are counted that nobody has written."""
        points = (point for row in grid(self.x, self.y, self.base) for point in row)
        if any(p.strategy == LAYERED and p.settings.summarise for p in points):
            yield (
                "An estimate: each summary is counted as long as it may be. Played turn by turn "
                "(strategy layered_played), shorter ones leave more room."
            )

    def _parts(self, count: int) -> Iterator[_Part]:
        """Cut the grid in about ``count`` parts, each of one strategy."""
        points = [
            (i, j, point)
            for j, row in enumerate(grid(self.x, self.y, self.base))
            for i, point in enumerate(row)
        ]
        for name in dict.fromkeys(point.strategy for *_, point in points):
            mine = [placed for placed in points if placed[2].strategy == name]
            alone = self.strategies[name].plays and count > 1
            size = 1 if alone else -(-len(points) // count)
            for start in range(0, len(mine), size):
                part = tuple(mine[start : start + size])
                yield _Part(self.prepared, self.strategies[name], part)


@dataclass(frozen=True, eq=False)
class _Part:
    prepared: Prepared
    strategy: Strategy
    points: tuple[Placed, ...]

    def plan(self) -> Iterator[Cell]:
        return self.strategy.plan(self.prepared, self.points)


def prepare_sweep(
    conversation: SweepInput,
    x: Axis,
    y: Axis,
    *,
    base: Point,
    counter: TokenCounter,
    embedders: Sequence[Embedder],
    cache: EmbeddingCache,
    strategies: Mapping[str, Strategy] = STRATEGIES,
    tool_tokens: int = 0,
    progress: Progress = lambda _done, _total: None,
) -> Sweep:
    """Embed what the grid needs and return the sweep, ready to run.

    ``tool_tokens`` are those of the tool definitions sent with every prompt; ``progress`` is told
    how many of how many texts are embedded. Raises :class:`InvalidInput` for axes that make no
    grid or too large a one and for a strategy or model that is not given, and what the embedding
    models raise.
    """
    points = [point for row in grid(x, y, base) for point in row]
    prompts = len(points) * len(conversation.questions)
    if prompts > MOST_PROMPTS:
        raise InvalidInput(
            f"{len(points):,} cells for {len(conversation.questions):,} questions are "
            f"{prompts:,} prompts; at most {MOST_PROMPTS:,} can be planned.",
            next_step="Take fewer values on an axis, or fewer questions.",
        )
    asked = _named(STRATEGY, (point.strategy for point in points), strategies)
    by_name = {embedder.name: embedder for embedder in embedders}
    models = _named(EMBEDDING, (point.embedding for point in points), by_name)
    texts = [text for name in asked for text in strategies[name].texts(conversation)]
    prepared = prepare(
        conversation,
        texts,
        counter=counter,
        embedders=[by_name[name] for name in models],
        cache=cache,
        tool_tokens=tool_tokens,
        progress=progress,
    )
    return Sweep(prepared, x, y, base, {name: strategies[name] for name in asked})


def pool_for(sweeps: Sequence[Sweep]) -> Pool:
    """Return where sweeps are best run on this machine.

    What is planned in seconds stays in this process; larger work, and strategies that play each
    cell, get a process for each processor.
    """
    plays = any(strategy.plays for sweep in sweeps for strategy in sweep.strategies.values())
    if not plays and sum(sweep.prompts for sweep in sweeps) <= LARGE:
        return HERE
    return Pool(max(1, min(os.cpu_count() or 1, MOST_JOBS)))


def run_many(sweeps: Sequence[Sweep], pool: Pool = HERE) -> Iterator[tuple[int, SweepResult]]:
    """Run several conversations, one a worker; yield each table with the number of its sweep."""
    yield from pool.map(_run, list(enumerate(sweeps)))


def cells_of(sweeps: Sequence[Sweep], pool: Pool = HERE) -> Iterator[tuple[int, Cell]]:
    """Yield the cells of several sweeps as soon as they are known, with the number of the sweep.

    They take turns, so that a table over all of them fills evenly; elsewhere the work of all is
    spread together, so that a few long ones keep every worker busy.
    """
    if pool.here:
        for turn in zip_longest(*(sweep.cells() for sweep in sweeps)):
            yield from ((number, cell) for number, cell in enumerate(turn) if cell is not None)
        return
    count = max(2, -(-pool.parts // max(1, len(sweeps))))
    turns = zip_longest(*(sweep._parts(count) for sweep in sweeps))  # noqa: SLF001
    parts = [(n, part) for some in turns for n, part in enumerate(some) if part is not None]
    for number, cells in pool.map(_planned_of, parts):
        for cell in cells:
            yield number, cell


def table_of(
    sweeps: Sequence[Sweep], cells: Iterable[tuple[int, Cell]], title: str, *, seconds: float = 0.0
) -> SweepResult | None:
    """Return the cells that are known of one or several sweeps as a table.

    Of several, a cell is in it once every conversation has it; ``None`` while there is none.
    """
    held: list[list[Cell]] = [[] for _ in sweeps]
    for number, cell in cells:
        held[number].append(cell)
    results = [sweep.result(known) for sweep, known in zip(sweeps, held, strict=True)]
    table = results[0] if len(results) == 1 else merge(results, title)
    return replace(table, seconds=seconds) if table.cells else None


def merge(results: Sequence[SweepResult], title: str) -> SweepResult:
    """Return one table over the questions of several conversations, swept over the same axes.

    A cell's embeddings and model calls are averages over the conversations. Raises
    :class:`InvalidInput` when axes or settings differ, or there is nothing to merge.
    """
    if not results:
        raise InvalidInput("There is no sweep to merge.")
    first = results[0]
    if any((one.x, one.y, one.base) != (first.x, first.y, first.base) for one in results):
        raise InvalidInput("Only sweeps over the same axes and settings can be merged.")
    held = [{(cell.x, cell.y): cell for cell in one.cells} for one in results]
    cells = []
    for x, y in held[0]:
        if all((x, y) in cells_of for cells_of in held):
            same = [cells_of[x, y] for cells_of in held]
            cells.append(
                Cell(
                    x,
                    y,
                    where=np.concatenate([cell.where for cell in same]),
                    tokens=np.concatenate([cell.tokens for cell in same]),
                    embeddings=float(np.mean([cell.embeddings for cell in same])),
                    model_calls=float(np.mean([cell.model_calls for cell in same])),
                )
            )
    return replace(
        first,
        title=title,
        questions=tuple(question for one in results for question in one.questions),
        cells=tuple(cells),
        notices=tuple(f"{one.title}: {notice}" for one in results for notice in one.notices),
        seconds=sum(one.seconds for one in results),
    )


def _planned(part: _Part) -> list[Cell]:
    return list(part.plan())


def _planned_of(numbered: tuple[int, _Part]) -> tuple[int, list[Cell]]:
    number, part = numbered
    return number, list(part.plan())


def _run(numbered: tuple[int, Sweep]) -> tuple[int, SweepResult]:
    number, sweep = numbered
    return number, sweep.run()


def _named(axis: str, names: Iterable[str], known: Mapping[str, object]) -> list[str]:
    wanted = list(dict.fromkeys(names))
    missing = [name for name in wanted if name not in known]
    if missing:
        kind = {STRATEGY: "strategy", EMBEDDING: "embedding model"}[axis]
        raise InvalidInput(
            f"There is no {kind} {missing[0]!r:.60} here.",
            next_step=f"Choose one of: {', '.join(known) or 'none was given'}.",
        )
    return wanted
