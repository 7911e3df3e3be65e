"""Recall questions proposed by a chat model: the conversation is read to it stretch by stretch.

The prompts and the reading of replies are those of :mod:`memory_core.questions`. A stretch is as
long as the model's context window allows, a long message is shown in part and that is told. When
the model fails on the way, what it proposed before stays and the error says why there is no more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from memory_core.errors import MemoryInspectorError
from memory_core.messages import Message
from memory_core.questions import RecallQuestion, questions_prompt, read_questions
from memory_core.tokens import TokenCounter

if TYPE_CHECKING:
    from llama_index.core.llms import LLM

    from memory_core.models.catalogue import ModelChoice

MOST_STRETCH = 1_500  # tokens of a stretch: small enough that no fact in it is passed over
LONGEST = 4_000  # characters of a message that are shown
PER_STRETCH = 5  # questions asked for
_RULES = 300  # tokens of the rules around a stretch
_REPLY = 400  # tokens left for the reply
_NEXT_STEP = "Check the model in the Playground's settings, or propose by rule."


@dataclass(frozen=True)
class Proposed:
    """What a model proposed in ``asked`` of ``stretches`` calls.

    ``rejected`` says of what cannot be used why; ``error`` is what ended it early.
    """

    questions: tuple[RecallQuestion, ...] = ()
    rejected: tuple[str, ...] = ()
    asked: int = 0
    stretches: int = 0
    error: MemoryInspectorError | None = None


def stretches(
    messages: Sequence[Message], *, context_window: int, counter: TokenCounter
) -> list[range]:
    """Return the message indexes that are shown in each call, all of them once, in order.

    Each stretch has at least one message.
    """
    room = max(100, min(MOST_STRETCH, context_window - _RULES - _REPLY))
    out, start, tokens = [], 0, 0
    for index, message in enumerate(messages):
        needs = counter.message(_shown(message))
        if index > start and tokens + needs > room:
            out.append(range(start, index))
            start, tokens = index, 0
        tokens += needs
    if messages:
        out.append(range(start, len(messages)))
    return [part for part in out if any(messages[i].text.strip() for i in part)]


def propose_by_model(
    messages: Sequence[Message],
    llm: LLM,
    *,
    choice: ModelChoice,
    counter: TokenCounter,
    count: int = PER_STRETCH,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
    stopped: Callable[[], bool] = lambda: False,
) -> Proposed:
    """Ask a model for questions about a conversation; they wait to be accepted.

    ``choice`` is what the model was made from, ``count`` how many questions a stretch may give,
    ``progress`` is told how many of how many stretches were read, ``stopped`` asked before each
    whether to end. What the model raises is in the result, translated.
    """
    parts = stretches(messages, context_window=choice.context_window, counter=counter)
    done = Proposed(stretches=len(parts))
    long = sum(len(m.text) > LONGEST for m in messages)
    if long:
        told = f"{long:,} long messages were shown to the model up to {LONGEST:,} characters."
        done = replace(done, rejected=(told,))
    progress(0, len(parts))
    for part in parts:
        if stopped():
            break
        try:
            reply = _ask(llm, choice, [_shown(messages[i]) for i in part], part.start, count)
        except MemoryInspectorError as exc:
            return replace(done, error=exc)
        read = read_questions(reply, first=part.start, last=part.stop)
        done = replace(
            done,
            questions=tuple(_once((*done.questions, *read.questions))),
            rejected=(*done.rejected, *read.rejected),
            asked=done.asked + 1,
        )
        progress(done.asked, len(parts))
    return done


def _ask(llm: LLM, choice: ModelChoice, part: list[Message], first: int, count: int) -> str:
    from memory_core.llama import from_chat, to_chat
    from memory_core.models.failures import explain

    prompt = [to_chat(m) for m in questions_prompt(part, first=first, count=count)]
    try:
        return from_chat(llm.chat(prompt).message).text
    except Exception as exc:
        error = explain(exc, choice)
        error.next_step = _NEXT_STEP
        raise error from exc


def _shown(message: Message) -> Message:
    """Return a message as it is shown: its beginning, in one line, so that numbers are clear."""
    text = " ".join(message.text.split())
    return Message.of(message.role, text[:LONGEST], name=message.name)


def _once(questions: Sequence[RecallQuestion]) -> Iterator[RecallQuestion]:
    """Yield each question once; asked again, the later telling counts."""
    last = {question.question: question for question in questions}
    yield from last.values()
