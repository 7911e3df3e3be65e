"""What a sweep is run on: a conversation, and questions asked at a place in it.

A question names the messages that hold its answer, its *evidence*, by index, and its *position*:
how many messages had been said when it was asked. Only what was said before can be evidence.
What cannot be measured is left out with a sentence that says so, never in silence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property

from memory_core.errors import InvalidInput
from memory_core.interchange.values import Conversation
from memory_core.messages import Message, StoredMessage, repair, repair_text
from memory_core.questions import RecallQuestion
from memory_core.samples import Sample

MOST_QUESTIONS = 10_000
_BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
APART = timedelta(minutes=1)
_NEXT_STEP = "Accept or write recall questions and mark the messages that hold their answers."


@dataclass(frozen=True)
class SweepQuestion:
    """A question asked after ``position`` messages; ``evidence`` are ascending message indexes.

    ``conversation`` is the title of the one it is about.
    """

    text: str
    position: int
    evidence: tuple[int, ...]
    expected: str = ""
    category: str = ""
    conversation: str = ""


@dataclass(frozen=True)
class SweepInput:
    """A conversation with its questions. ``times`` is empty or one aware UTC time a message.

    ``notices`` are sentences about questions and evidence that were left out.
    """

    title: str
    messages: tuple[Message, ...]
    questions: tuple[SweepQuestion, ...]
    times: tuple[datetime | None, ...] = ()
    notices: tuple[str, ...] = ()

    @cached_property
    def turns(self) -> tuple[int, ...]:
        """The turn of each message, from 1: every user message begins one, as when chatting."""
        numbers, turn, asked = [], 1, False
        for message in self.messages:
            if message.role == "user":
                turn += asked
                asked = True
            numbers.append(turn)
        return tuple(numbers)

    @cached_property
    def said(self) -> tuple[StoredMessage, ...]:
        """The messages at their places, not counted; where no time is known, a minute apart."""
        out: list[StoredMessage] = []
        times = self.times or (None,) * len(self.messages)
        now = next(filter(None, times), _BEGIN)
        for position, message in enumerate(self.messages):
            now = times[position] or (now + APART if position else now)
            turn = self.turns[position]
            out.append(StoredMessage(message_id(position), position, turn, now, message))
        return tuple(out)


def message_id(position: int) -> str:
    """Return the id that the message at a position has in a sweep."""
    return f"m{position}"


def make_input(
    title: str,
    messages: Iterable[Message],
    questions: Iterable[RecallQuestion],
    *,
    times: Sequence[datetime | None] = (),
    asked_at: Mapping[int, int] | None = None,
) -> SweepInput:
    """Return what a sweep needs of a conversation.

    ``asked_at`` tells the position of some questions, by their number from 0; the others are
    asked at the end. Raises :class:`InvalidInput` when no question is left to ask.
    """
    title = repair_text(title)[0]
    said = tuple(repair(message)[0] for message in messages)
    asked, without, stray, proposed = [], 0, 0, 0
    for number, question in enumerate(questions):
        if not question.accepted:
            proposed += 1
            continue
        position = min(max(0, (asked_at or {}).get(number, len(said))), len(said))
        known = sorted({i for i in question.evidence if 0 <= i < position})
        stray += len(set(question.evidence)) - len(known)
        if not known or not question.question.strip():
            without += 1
            continue
        asked.append(
            SweepQuestion(
                text=repair_text(question.question)[0],
                position=position,
                evidence=tuple(known),
                expected=repair_text(question.answer)[0],
                category=repair_text(question.category)[0],
                conversation=title,
            )
        )
    notices = []
    if without:
        notices.append(f"{without:,} questions without evidence in the conversation were left out.")
    if proposed:
        notices.append(f"{proposed:,} questions that were only proposed were left out.")
    if stray:
        notices.append(f"{stray:,} pieces of evidence that are not said before were left out.")
    if not asked:
        told = " ".join([f"There is no question to ask about “{title[:80]}”.", *notices])
        raise InvalidInput(told, next_step=_NEXT_STEP)
    if len(asked) > MOST_QUESTIONS:
        raise InvalidInput(
            f"{len(asked):,} questions are too many for one sweep; at most "
            f"{MOST_QUESTIONS:,} can be asked.",
            next_step="Sweep fewer questions at a time.",
        )
    return SweepInput(title, said, tuple(asked), tuple(times), tuple(notices))


def from_conversation(
    conversation: Conversation, questions: Iterable[RecallQuestion] | None = None
) -> SweepInput:
    """Return an imported conversation with its own questions, or with others."""
    asked = conversation.questions if questions is None else questions
    return make_input(conversation.title, conversation.messages, asked, times=conversation.times)


def from_session(
    title: str, messages: Sequence[StoredMessage], questions: Iterable[RecallQuestion]
) -> SweepInput:
    """Return a session's active messages with questions about them."""
    times = [stored.created for stored in messages]
    return make_input(title, (stored.message for stored in messages), questions, times=times)


def from_sample(sample: Sample) -> SweepInput:
    """Return a sample conversation with its questions; evidence is what the person said."""
    messages: list[Message] = []
    for turn in sample.turns:
        messages += [Message.of("user", turn.user), Message.of("assistant", turn.assistant)]
    questions = [
        RecallQuestion(
            question=question.question,
            answer=question.answer,
            evidence=tuple(2 * (number - 1) for number in question.evidence),
            category=question.kind,
        )
        for question in sample.questions
    ]
    return make_input(sample.title, messages, questions)
