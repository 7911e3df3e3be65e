"""Each question at its place: the messages before it, and its search of the memories by then.

A sweep asks what would have been in the prompt had the question been asked at its position. So
turns are remembered one after the other, by the functions that a chat remembers with, and every
question is searched for, once, among what was remembered by then. Nothing here depends on a knob.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from memory_core.buffer import History
from memory_core.lab.inputs import SweepInput
from memory_core.lab.prepare import Prepared
from memory_core.messages import StoredMessage
from memory_core.ranking import Candidates
from memory_core.records import Told, plan_records, turn_candidate, vector_id
from memory_core.shelf import Shelf
from memory_core.stores.protocols import MemoryRecord

USER, SESSION = "sweep", "sweep"


@dataclass(frozen=True, eq=False)
class Scene:
    """One question, everything said before it and what its search found.

    ``messages`` and ``history`` end with the question itself, in a turn of its own.
    """

    number: int
    messages: list[StoredMessage]
    history: History
    candidates: Candidates
    now: datetime
    evidence: tuple[int, ...]


def remembered(conversation: SweepInput) -> Iterator[tuple[int, MemoryRecord | None]]:
    """Yield for each turn the position after it and the record it leaves, ``None`` if skipped."""
    known: dict[str, MemoryRecord] = {}
    for turn, group in groupby(conversation.said, key=lambda stored: stored.turn):
        messages = list(group)
        told = Told(USER, SESSION, turn, messages[0].created)
        records, _ = plan_records([turn_candidate(messages)], told, known.get)
        known |= {record.id: record for record in records}
        yield messages[-1].position + 1, records[0] if records else None


def scenes(prepared: Prepared, model: str) -> list[Scene]:
    """Return the scene of every question, searched by one embedding model."""
    everyone = range(len(prepared.input.questions))
    return sorted(_scenes(prepared, model, everyone), key=lambda scene: scene.number)


def scene(prepared: Prepared, model: str, number: int) -> Scene:
    """Return the scene of one question, without making those of the others."""
    return next(_scenes(prepared, model, [number]))


def _scenes(prepared: Prepared, model: str, numbers: Iterable[int]) -> Iterator[Scene]:
    """Yield the scenes of these questions in the order in which they are asked."""
    asked, embedded = prepared.input.questions, prepared.vectors(model)
    turns = list(remembered(prepared.input))
    shelf, history = Shelf(), History(prepared.counter.text)
    learned = 0
    for number in sorted(numbers, key=lambda n: asked[n].position):
        question = asked[number]
        for stored in prepared.stored[len(history) : question.position]:
            history.append(stored.message, stored.tokens or 0)
        while learned < len(turns) and turns[learned][0] <= question.position:
            record = turns[learned][1]
            learned += 1
            if record is not None:
                shelf.learn(record)
                shelf.take({vector_id(record.id): embedded.of([record.text])[0]})
        words = shelf.lexicon.shares(question.text, shelf.rows)
        last = prepared.question(number)
        own = history.copy()
        own.append(last.message, last.tokens or 0)
        found = shelf.look(words, embedded.of([question.text])[0])
        yield Scene(
            number=number,
            messages=[*prepared.stored[: question.position], last],
            history=own,
            candidates=Candidates(question.text, found, model=model),
            now=last.created,
            evidence=question.evidence,
        )
