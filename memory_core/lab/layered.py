"""Our own memory's prompts for every cell: the real planner, asked as often as there are cells.

Nothing is approximated: :func:`~memory_core.assemble.plan_prompt` and
:func:`~memory_core.ranking.rank_hits` decide, as in a chat. What makes thousands of cells quick
is what they are given: a search that was made once, and rankings that are kept for all values of
``top_k``. State and key facts are empty, and a summary stands in for one as long as it may be
(:mod:`.schedule`): what they would hold is not known without a model.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from memory_core.assemble import Layers, PromptPlan, Rank, assemble, memory_tokens, plan_prompt
from memory_core.buffer import EXACT
from memory_core.lab.cells import BUFFER, NOWHERE, RETRIEVED, SUMMARISED, Cell
from memory_core.lab.inputs import SweepInput, message_id
from memory_core.lab.prepare import Prepared
from memory_core.lab.scenes import SESSION, Scene, remembered, scene, scenes
from memory_core.lab.schedule import (
    CALLS_A_ROUND,
    NOBODY,
    Key,
    key_of,
    schedule,
    standing_in,
)
from memory_core.lab.strategy import Placed
from memory_core.prompt import Assembly, Recall
from memory_core.ranking import rank_hits
from memory_core.settings import MemorySettings
from memory_core.summary import Summary
from memory_core.tokens import PER_MESSAGE

# The settings that decide which memories are ranked how, top_k apart.
_RANKED_BY = (
    "scope",
    "threshold",
    "recall_method",
    "weight_dense",
    "weight_bm25",
    "weight_neighbours",
    "weight_recency",
    "recency_days",
    "diversity",
)


def texts(conversation: SweepInput) -> Iterator[str]:
    """Yield the texts this strategy embeds: what each turn leaves, and every question."""
    yield from (record.text for _, record in remembered(conversation) if record is not None)
    yield from (question.text for question in conversation.questions)


def plan(prepared: Prepared, points: Sequence[Placed]) -> Iterator[Cell]:
    """Yield a cell for each point."""
    rounds = schedule(prepared, (point.settings for *_, point in points))
    most = max((point.settings.top_k for *_, point in points), default=0)
    by_model = {
        model: [_Asked(prepared, scene) for scene in scenes(prepared, model)]
        for model in dict.fromkeys(point.embedding for *_, point in points)
    }
    turns = prepared.input.turns[-1]
    records = sum(record is not None for _, record in remembered(prepared.input))
    for x, y, point in points:
        settings = point.settings
        own = rounds[key_of(settings)]
        ranked_by = _RankedBy.of(settings, most)
        planned = [
            asked.planned(ranked_by, standing_in(settings, own.covered.get(asked.scene.number, 0)))
            for asked in by_model[point.embedding]
        ]
        yield Cell(
            x,
            y,
            where=np.array([code for one in planned for code in one.where], np.int8),
            tokens=np.array([one.tokens for one in planned], np.int64),
            embeddings=_embeddings(settings, records, turns),
            model_calls=1 + CALLS_A_ROUND * own.rounds / turns,
        )


@dataclass(frozen=True, eq=False)
class Planner:
    """Plans the whole prompt of one question under any settings, as a why-not asks for it.

    What the summary stands for by then is kept for settings that differ in nothing it depends on.
    """

    prepared: Prepared
    scene: Scene
    _covered: dict[Key, int] = field(default_factory=dict)

    @classmethod
    def of(cls, prepared: Prepared, model: str, number: int) -> Planner:
        """Return the planner of a question, its memories searched by one embedding model."""
        return cls(prepared, scene(prepared, model, number))

    def __call__(self, settings: MemorySettings) -> Assembly:
        """Return the prompt under these settings, fully explained."""
        summary = standing_in(settings, self._covers(settings))
        asked = _Asked(self.prepared, self.scene)
        layers = asked.layers(settings, summary, partial(asked.rank, settings))
        return assemble(layers, settings, self.prepared.counter)

    def _covers(self, settings: MemorySettings) -> int:
        key, number = key_of(settings), self.scene.number
        if key not in self._covered:
            rounds = schedule(self.prepared, [settings], only=number)[key]
            self._covered[key] = rounds.covered.get(number, 0)
        return self._covered[key]


def _embeddings(settings: MemorySettings, records: int, turns: int) -> float:
    kept = records / turns if settings.remember_turns else 0.0
    return kept + (1.0 if settings.recall else 0.0)


@dataclass(frozen=True)
class _Planned:
    """Where each piece of a question's evidence stands, and the tokens of the prompt."""

    where: tuple[int, ...]
    tokens: int


@dataclass(frozen=True)
class _RankedBy:
    """Settings, and what of them decides a ranking that serves every top_k of the grid.

    ``widest`` asks for the most hits of all. Gates and budget take memories in the order of
    their ranks, so the hits of a smaller top_k are the first of those.
    """

    settings: MemorySettings
    widest: MemorySettings
    knobs: tuple[object, ...]

    @classmethod
    def of(cls, settings: MemorySettings, most: int) -> _RankedBy:
        """Return how these settings rank, for up to ``most`` hits."""
        widest = replace(settings, top_k=most, near_misses=0)
        return cls(settings, widest, tuple(getattr(settings, name) for name in _RANKED_BY))


@dataclass(frozen=True, eq=False)
class _Asked:
    """One question, planned under many settings; rankings are kept."""

    prepared: Prepared
    scene: Scene
    _recalls: dict[tuple[object, ...], Recall] = field(default_factory=dict)
    _able: dict[tuple[object, ...], frozenset[str]] = field(default_factory=dict)

    def planned(self, ranked_by: _RankedBy, summary: Summary) -> _Planned:
        """Plan the prompt under these settings."""
        settings = ranked_by.settings
        layers = self.layers(settings, summary, self._rank(ranked_by))
        plan = plan_prompt(layers, settings, self.prepared.counter)
        carried = {i for hit in plan.recall.hits for i in hit.message_ids} if plan.recall else set()
        where = tuple(
            BUFFER
            if plan.window.keeps(index)
            else RETRIEVED
            if message_id(index) in carried
            else SUMMARISED
            if index < summary.covers
            else NOWHERE
            for index in self.scene.evidence
        )
        return _Planned(where, self._tokens(plan))

    def layers(self, settings: MemorySettings, summary: Summary, rank: Rank | None) -> Layers:
        """Return what the prompt is made of."""
        return Layers(
            messages=self.scene.messages,
            history=self.scene.history,
            state=NOBODY,
            summary=summary,
            rank=rank if settings.recall else None,
            tool_tokens=self.prepared.tool_tokens if settings.tools else 0,
            open_turn=len(self.scene.messages) - 1,
        )

    def rank(self, settings: MemorySettings, in_buffer: frozenset[str], budget: int) -> Recall:
        """Rank the memories as a chat would."""
        return rank_hits(
            self.scene.candidates,
            settings=settings,
            session=SESSION,
            in_buffer=in_buffer,
            budget=budget,
            count=lambda hit: memory_tokens(hit, self.prepared.counter),
            now=self.scene.now,
        )

    def _rank(self, ranked_by: _RankedBy) -> Rank:
        settings, knobs = ranked_by.settings, ranked_by.knobs
        able = self._able.get(knobs)
        if able is None:
            able = self._able[knobs] = self._can_be_hits(settings)

        def rank(in_buffer: frozenset[str], budget: int) -> Recall:
            standing = in_buffer & able
            key = (knobs, standing, budget)
            recall = self._recalls.get(key)
            if recall is None:
                recall = self._recalls[key] = self.rank(ranked_by.widest, standing, budget)
            hits = tuple(hit for hit in recall.hits if hit.rank <= settings.top_k)
            return recall if len(hits) == len(recall.hits) else Recall(recall.query, hits)

        return rank

    def _can_be_hits(self, settings: MemorySettings) -> frozenset[str]:
        """Return the ids of messages whose memories reach the threshold.

        Others are no hits whether they stand in the buffer or not, so that need not be known.
        """
        found = self.scene.candidates.found
        if found is None:
            return frozenset()
        scores, _ = self.scene.candidates.fused(found, settings, self.scene.now)
        rows = np.flatnonzero(scores.total >= settings.threshold).tolist()
        records = (found.records[row] for row in rows)
        return frozenset(i for record in records if record for i in record.message_ids)

    def _tokens(self, plan: PromptPlan) -> int:
        """Return the tokens of all parts of the prompt."""
        window = plan.window
        buffer = window.tokens
        if window.rule != EXACT:
            buffer = sum(self.scene.messages[i].tokens or 0 for i in window.kept())
        silent = not (plan.rules or plan.sections or plan.retrieved)
        return window.initial + buffer - (PER_MESSAGE if silent else 0)
