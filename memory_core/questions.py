"""Recall questions: what a memory must still know later, and the messages that told it.

A question comes with a file, is written by hand, or is proposed and then waits to be accepted.
:func:`propose_questions` proposes by rule: a sentence that states a fact about its speaker ("I
live in …", "My X is Y", "The meeting is on …") becomes a question whose expected text stands word
for word in the turn that is its evidence. The rules (:mod:`memory_core.question_rules`) read
English and know only what they match; for the rest :func:`questions_prompt` asks a chat model
and :func:`read_questions` reads its reply.

>>> message = Message.of("user", "By the way, I'm allergic to peanuts.")
>>> [(q.question, q.answer) for q in propose_questions([message])]
[('What am I allergic to?', 'peanuts')]
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from memory_core.messages import Json, Message, repair_text
from memory_core.question_rules import facts_in

FILE, HAND, RULE, MODEL = "file", "hand", "rule", "model"  # where a question comes from
QUESTIONS_TASK = "propose-recall-questions"


@dataclass(frozen=True)
class RecallQuestion:
    """A question, the text expected in its answer, and the indexes of the messages that tell it.

    ``answer`` is empty where the conversation does not tell. ``origin`` is where it comes from;
    what was proposed by rule or model counts only once ``accepted``.
    """

    question: str
    answer: str
    evidence: tuple[int, ...]
    category: str = ""
    origin: str = FILE
    accepted: bool = True


@dataclass(frozen=True)
class ReadQuestions:
    """What a model's reply proposed; ``rejected`` says of the rest why it cannot be used."""

    questions: tuple[RecallQuestion, ...]
    rejected: tuple[str, ...]


def propose_questions(messages: Sequence[Message]) -> list[RecallQuestion]:
    """Return the questions that the rules find, in the order of the turns that tell the facts.

    Facts are read from user messages; where the speakers have names, from all of them. A fact
    told again replaces the earlier one (its last telling is the evidence), except for likes and
    the like, of which there may be many.
    """
    names = {m.name for m in messages if m.role in ("user", "assistant")} - {""}
    found: dict[str, RecallQuestion] = {}
    for index, message in enumerate(messages):
        speaker = message.name if len(names) > 1 else ""
        if message.role != "user" and not (speaker and message.role == "assistant"):
            continue
        for fact in facts_in(message.text, speaker=speaker):
            before = found.pop(fact.question, None)
            answer, evidence = fact.answer, [index]
            if fact.many and before:
                evidence = [*(i for i in before.evidence if i != index), index]
                known = before.answer.split("; ")
                answer = "; ".join([*known, *([] if answer in known else [answer])])
            found[fact.question] = RecallQuestion(
                fact.question, answer, tuple(evidence), fact.rule, RULE, accepted=False
            )
    return sorted(found.values(), key=lambda q: (q.evidence[-1], q.question))


def questions_prompt(
    messages: Sequence[Message], *, first: int = 0, count: int = 5
) -> list[Message]:
    """Return the messages that ask a model for questions about a stretch of a conversation.

    ``first`` is the index of ``messages[0]`` in the conversation.
    """
    rules = (
        f"Task: {QUESTIONS_TASK}. Below is a part of a conversation, each message with its number. "
        f"Write up to {count} questions that test whether an assistant remembers facts told there: "
        "names, numbers, dates, preferences, decisions. Write one JSON object a line and nothing "
        'else: {"question": "…", "answer": "…", "messages": [12]}. The answer is as short as can '
        "be, in the conversation's own words; messages are the numbers of those that tell it."
    )
    lines = [f"[{n}] {m.name or m.role}: {m.text}" for n, m in enumerate(messages, start=first)]
    return [Message.of("system", rules), Message.of("user", "\n".join(lines))]


def read_questions(reply: str, *, first: int, last: int) -> ReadQuestions:
    """Return the questions in a reply to :func:`questions_prompt`.

    What was asked about are the messages ``first`` to ``last``, exclusive.
    """
    questions: list[RecallQuestion] = []
    rejected = []
    for value in _objects(reply):
        problem = _problem(value, first, last)
        if problem:
            rejected.append(f"{json.dumps(value)[:80]}: {problem}")
            continue
        text, answer = (repair_text(value[k].strip())[0] for k in ("question", "answer"))
        evidence = tuple(sorted({int(n) for n in value["messages"]}))
        questions.append(RecallQuestion(text, answer, evidence, origin=MODEL, accepted=False))
    if not questions and not rejected:
        rejected.append("no question could be read")
    return ReadQuestions(tuple(questions), tuple(rejected))


def _objects(reply: str) -> Iterator[Mapping[str, Json]]:
    """Yield the JSON objects in a text, whatever stands around them."""
    decoder, at = json.JSONDecoder(strict=False), 0
    while (at := reply.find("{", at)) >= 0:
        try:
            value, at = decoder.raw_decode(reply, at)
        except ValueError:
            at += 1
            continue
        except RecursionError:  # a model that repeats itself; every further brace would be the same
            return
        yield value


def _problem(value: Mapping[str, Json], first: int, last: int) -> str:
    for name in ("question", "answer"):
        text = value.get(name)
        if not isinstance(text, str) or not text.strip():
            return f"it has no {name}"
    numbers = value.get("messages")
    if not isinstance(numbers, list) or not numbers:
        return "it names no messages"
    wrong = [str(n) for n in numbers if not _is_index(n, first, last)]
    return f"there is no message {wrong[0][:20]} in what was asked about" if wrong else ""


def _is_index(value: Json, first: int, last: int) -> bool:
    text = str(value)
    return text.isascii() and text.isdigit() and len(text) < 10 and first <= int(text) < last
