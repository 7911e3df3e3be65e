"""Conversations that we wrote, each with planted facts and the questions that ask for them.

A sample is one JSON file in ``sample_data/`` (its README documents the format). A turn holds
what the person says and what the original assistant answered; either those scripted replies or
a model's own can be played in, so every planted fact stands word for word in the *person's*
message, and every question's answer in the person's message of each of its evidence turns.
Reading a file checks exactly that: a sample that promises what it does not say is refused, with
the place named.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from memory_core.errors import InvalidInput
from memory_core.messages import Json, repair_text

SAMPLES = Path(__file__).resolve().parents[1] / "sample_data"

RECALL, UPDATED, ABSENT = "recall", "updated", "absent"  # kinds of question
LIMITS = ("token_limit", "context_window")  # default settings a sample may say it overflows
MAX_TEXT = 2_000  # characters of one message, question or description
MAX_FILE = 2_000_000  # bytes

_NEXT_STEP = "Correct the file; sample_data/README.md documents the format."
_SAFE_ID = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


@dataclass(frozen=True)
class Fact:
    """Something the person says that is worth remembering, word for word as it was said."""

    id: str
    text: str


@dataclass(frozen=True)
class SampleTurn:
    """What the person says, what the original assistant answered, and the facts planted in it."""

    user: str
    assistant: str
    facts: tuple[Fact, ...] = ()


@dataclass(frozen=True)
class Question:
    """A question about the conversation and how to tell a right answer.

    ``answer`` is a fragment that a right answer holds and ``evidence`` the turns, counted from 1,
    that say it. Of kind ``updated`` the value was corrected on the way and ``outdated`` is the
    fragment that is no longer right; of kind ``absent`` the conversation says nothing about it
    and both ``answer`` and ``evidence`` are empty.
    """

    id: str
    question: str
    answer: str
    evidence: tuple[int, ...]
    kind: str
    outdated: str = ""

    def answered_in(self, text: str) -> bool:
        """Tell whether a text holds the expected fragment, whatever its case and line breaks."""
        return bool(self.answer) and _plain(self.answer) in _plain(text)


@dataclass(frozen=True)
class Sample:
    """One conversation with its questions.

    ``overflows`` names the default settings (of :data:`LIMITS`) that the scripted conversation
    is longer than, in tokens.
    """

    id: str
    title: str
    description: str
    teaches: str
    overflows: tuple[str, ...]
    turns: tuple[SampleTurn, ...]
    questions: tuple[Question, ...]


def load_samples(folder: Path = SAMPLES) -> list[Sample]:
    """Return all samples of a folder in the order of their ids; without files, an empty list.

    Raises :class:`InvalidInput` for the first file that cannot be used.
    """
    return [_read(path) for path in sorted(folder.glob("*.json"))]


def load_sample(id: str, folder: Path = SAMPLES) -> Sample:  # noqa: A002
    """Return one sample; raise :class:`InvalidInput` when there is none or it cannot be used."""
    path = folder / f"{id}.json"
    if not _SAFE_ID.fullmatch(id) or not path.is_file():
        known = ", ".join(sorted(p.stem for p in folder.glob("*.json"))) or "none"
        raise InvalidInput(
            f"There is no sample {id[:60]!r}.", next_step=f"Choose one of the samples: {known}."
        )
    return _read(path)


def _read(path: Path) -> Sample:
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_FILE + 1)
        if len(raw) > MAX_FILE:
            raise _refusal(path.name, f"larger than {MAX_FILE:,} bytes")
        value = json.loads(raw.decode("utf-8-sig"))
    except (OSError, ValueError, RecursionError) as exc:
        raise _refusal(path.name, f"not readable as JSON ({exc})") from exc
    sample = _sample(value, path.name)
    if sample.id != path.stem:
        raise _refusal(f"{path.name}, id", f"must be the file's name {path.stem!r}")
    return sample


def _sample(value: Json, place: str) -> Sample:
    item = _object(value, place)
    sample = Sample(
        id=_text(item, "id", place),
        title=_text(item, "title", place),
        description=_text(item, "description", place),
        teaches=_text(item, "teaches", place),
        overflows=tuple(_list(item, "overflows", place)),
        turns=tuple(
            _turn(turn, f"{place}, turn {number}")
            for number, turn in enumerate(_list(item, "turns", place), start=1)
        ),
        questions=tuple(
            _question(question, f"{place}, question {number}")
            for number, question in enumerate(_list(item, "questions", place), start=1)
        ),
    )
    if not _SAFE_ID.fullmatch(sample.id):
        raise _refusal(f"{place}, id", "must be lower-case words joined by hyphens")
    if unknown := [name for name in sample.overflows if name not in LIMITS]:
        raise _refusal(f"{place}, overflows", f"{unknown[0]!r} is none of {', '.join(LIMITS)}")
    if not sample.turns:
        raise _refusal(f"{place}, turns", "must hold at least one turn")
    _unique([fact.id for turn in sample.turns for fact in turn.facts], f"{place}, facts")
    _unique([question.id for question in sample.questions], f"{place}, questions")
    for question in sample.questions:
        _check_evidence(question, sample.turns, f"{place}, question {question.id}")
    return sample


def _turn(value: Json, place: str) -> SampleTurn:
    item = _object(value, place)
    user = _text(item, "user", place)
    facts = []
    for number, raw in enumerate(_list(item, "facts", place, optional=True), start=1):
        at = f"{place}, fact {number}"
        fact = _object(raw, at)
        facts.append(Fact(_text(fact, "id", at), _text(fact, "text", at)))
        if facts[-1].text not in user:
            raise _refusal(at, "must stand word for word in the turn's user message")
    return SampleTurn(user, _text(item, "assistant", place), tuple(facts))


def _question(value: Json, place: str) -> Question:
    item = _object(value, place)
    kind = _text(item, "kind", place)
    if kind not in (RECALL, UPDATED, ABSENT):
        raise _refusal(f"{place}, kind", f"{kind!r} is none of {RECALL}, {UPDATED}, {ABSENT}")
    return Question(
        id=_text(item, "id", place),
        question=_text(item, "question", place),
        answer=_text(item, "answer", place, empty=kind == ABSENT),
        evidence=tuple(_list(item, "evidence", place)),
        kind=kind,
        outdated=_text(item, "outdated", place) if kind == UPDATED else "",
    )


def _check_evidence(question: Question, turns: tuple[SampleTurn, ...], place: str) -> None:
    if question.kind == ABSENT:
        if question.answer or question.evidence:
            raise _refusal(place, "is of kind absent, so answer and evidence must be empty")
        return
    if not question.evidence:
        raise _refusal(f"{place}, evidence", "must name at least one turn")
    for number in question.evidence:
        if type(number) is not int or not 1 <= number <= len(turns):
            raise _refusal(f"{place}, evidence", f"{number!r} is no turn from 1 to {len(turns)}")
        if not question.answered_in(turns[number - 1].user):
            raise _refusal(
                f"{place}, evidence", f"the user message of turn {number} lacks the answer"
            )


def _object(value: Json, place: str) -> Mapping[str, Json]:
    if not isinstance(value, dict):
        raise _refusal(place, "must be a JSON object")
    return value


def _list(item: Mapping[str, Json], key: str, place: str, *, optional: bool = False) -> list[Json]:
    value = item.get(key, [] if optional else None)
    if not isinstance(value, list):
        raise _refusal(f"{place}, {key}", "must be a list")
    return value


def _text(item: Mapping[str, Json], key: str, place: str, *, empty: bool = False) -> str:
    value = item.get(key)
    if not isinstance(value, str) or not (value.strip() or empty):
        raise _refusal(f"{place}, {key}", "must be a text that is not empty")
    if len(value) > MAX_TEXT:
        raise _refusal(
            f"{place}, {key}", f"is {len(value):,} characters long, at most {MAX_TEXT:,} fit"
        )
    if repair_text(value)[1]:
        raise _refusal(f"{place}, {key}", "holds half of an emoji or a NUL character")
    return value


def _unique(ids: list[str], place: str) -> None:
    if twice := [id_ for n, id_ in enumerate(ids) if id_ in ids[:n]]:
        raise _refusal(place, f"the id {twice[0]!r} is used twice")


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _refusal(place: str, problem: str) -> InvalidInput:
    return InvalidInput(f"{place}: {problem}.", next_step=_NEXT_STEP)
