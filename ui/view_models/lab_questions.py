"""Recall questions as a table that can be edited: rows out, edits in, nothing lost.

Messages are numbered from 1 on the page and from 0 in the core.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from memory_core.errors import InvalidInput
from memory_core.messages import Message, StoredMessage, repair_text
from memory_core.questions import FILE, HAND, MODEL, RULE, RecallQuestion
from memory_core.samples import Sample
from ui.view_models.text import excerpt, plural

USE, QUESTION, EXPECTED, MESSAGES, FROM = "use", "question", "expected", "messages", "from"
ORIGINS = {FILE: "came along", HAND: "written", RULE: "proposed", MODEL: "proposed by model"}
MOST_TEXT = 2_000  # characters of a question or an answer
MOST_CHOICES = 200  # messages offered at once
_LABEL = 90

Questions = tuple[RecallQuestion, ...]


def question_rows(questions: Iterable[RecallQuestion]) -> list[dict[str, object]]:
    """Return the table."""
    return [
        {
            USE: question.accepted,
            QUESTION: question.question,
            EXPECTED: question.answer,
            MESSAGES: ", ".join(str(index + 1) for index in question.evidence),
            FROM: ORIGINS.get(question.origin, question.origin),
        }
        for question in questions
    ]


def edited(
    table: Sequence[RecallQuestion], edits: Mapping[int, Mapping[str, object]], count: int
) -> tuple[Questions, tuple[str, ...]]:
    """Return the questions with edits by row taken in, and what could not be taken.

    ``count`` is how many messages the conversation has.
    """
    out, problems = list(table), []
    for row, changes in edits.items():
        if not 0 <= row < len(out):
            continue
        try:
            out[row] = _changed(out[row], changes, count)
        except InvalidInput as exc:
            problems.append(f"Row {row + 1}: {exc}")
    return tuple(out), tuple(problems)


def numbers(text: str, count: int) -> tuple[int, ...]:
    """Return the message indexes in "1, 5 12"; raise :class:`InvalidInput` for others.

    >>> numbers("5, 1 5", 10)
    (0, 4)
    """
    found = set()
    for piece in text.replace(",", " ").split():
        known = piece.isascii() and piece.isdigit() and len(piece) < 10
        if not known or not 1 <= int(piece) <= count:
            raise InvalidInput(f"there is no message {piece[:20]!r}; they run from 1 to {count:,}.")
        found.add(int(piece) - 1)
    return tuple(sorted(found))


def written(question: str, expected: str, evidence: Iterable[int]) -> RecallQuestion:
    """Return a question written by hand; raise :class:`InvalidInput` when something is missing."""
    text, answer = (repair_text(t)[0].strip()[:MOST_TEXT] for t in (question, expected))
    pieces = tuple(sorted(set(evidence)))
    if not text:
        raise InvalidInput("The question is empty.", next_step="Write what is to be remembered.")
    if not pieces:
        raise InvalidInput(
            "No message is marked as evidence.", next_step="Choose the messages that tell it."
        )
    return RecallQuestion(text, answer, pieces, origin=HAND)


def added(questions: Questions, new: Iterable[RecallQuestion]) -> Questions:
    """Return the questions with those new ones whose text is not there yet."""
    known = {question.question for question in questions}
    return (*questions, *(q for q in new if q.question not in known))


def of_sample(sample: Sample, messages: Sequence[StoredMessage]) -> Questions:
    """Return a sample's questions about the session it was played into."""
    out = []
    for asked in sample.questions:
        evidence = tuple(
            index
            for index, stored in enumerate(messages)
            if stored.message.role == "user"
            and stored.turn in asked.evidence
            and asked.answered_in(stored.message.text)
        )
        if evidence:
            out.append(RecallQuestion(asked.question, asked.answer, evidence, asked.kind))
    return tuple(out)


def found(messages: Sequence[Message], text: str, kept: Iterable[int]) -> list[int]:
    """Return the messages that hold a text, and those already chosen, in order."""
    wanted = text.casefold().strip()
    hits = [i for i, m in enumerate(messages) if m.text.strip() and wanted in m.text.casefold()]
    return sorted({*hits[:MOST_CHOICES], *kept})


def label(messages: Sequence[Message], index: int) -> str:
    """Return a message as a choice: number, speaker, beginning."""
    message = messages[index]
    line = " ".join(message.text.split())
    return f"{index + 1} {message.name or message.role}: {excerpt(line, _LABEL)}"


def tally(questions: Sequence[RecallQuestion]) -> str:
    """Return how many there are and how many wait to be accepted."""
    used = sum(q.accepted for q in questions)
    waiting = len(questions) - used
    more = f", {waiting:,} not used (tick them to use them)" if waiting else ""
    return f"{plural(used, 'question')} to ask{more}"


def _changed(question: RecallQuestion, changes: Mapping[str, object], count: int) -> RecallQuestion:
    if USE in changes:
        question = replace(question, accepted=bool(changes[USE]))
    if QUESTION in changes:
        text = repair_text(str(changes[QUESTION] or ""))[0].strip()[:MOST_TEXT]
        if not text:
            raise InvalidInput("the question is empty.")
        question = replace(question, question=text)
    if EXPECTED in changes:
        answer = repair_text(str(changes[EXPECTED] or ""))[0].strip()[:MOST_TEXT]
        question = replace(question, answer=answer)
    if MESSAGES in changes:
        question = replace(question, evidence=numbers(str(changes[MESSAGES] or ""), count))
    return question
