"""Prompts that ask for something else than a reply: what they ask, and for what text.

Our own prompts name their task (:mod:`memory_core.summary`). LlamaIndex's are recognised by the
words they are made of: the extraction and the condensing of ``FactExtractionMemoryBlock``, the
transcript of ``ChatSummaryMemoryBuffer``, and the follow-up questions of its chat engines.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from memory_core.messages import Message
from memory_core.models.offline.passages import last_user, transcript
from memory_core.questions import QUESTIONS_TASK
from memory_core.summary import FACTS_TASK, SUMMARY_TASK

_SUMMARY_TOKENS = 200  # where a prompt names no limit
_AT_MOST_TOKENS = re.compile(r"at most (\d+) tokens")
_AT_MOST_LINES = re.compile(r"at most (\d+) lines")
_UP_TO = re.compile(r"up to (\d+) questions")
_NUMBERED = re.compile(r"\[(\d{1,9})\] ([^:\n]{1,80}): (.*)")
_FEWER_THAN = re.compile(r"fewer than (\d+) facts")
_FACT = re.compile(r"<fact>(.*?)</fact>", re.DOTALL)
_FOLLOW_UPS = (
    re.compile(
        r"Chat History:(?P<history>.*)Follow Up Input:(?P<question>.*?)\n\s*"
        r"Standalone question:\s*$",
        re.DOTALL,
    ),
    re.compile(
        r"<Chat History>(?P<history>.*)<Follow Up Message>(?P<question>.*)"
        r"<Standalone question>\s*$",
        re.DOTALL,
    ),
)


class Form(Enum):
    """In which form facts are listed."""

    LINES = "lines"
    TAGS = "tags"


@dataclass(frozen=True)
class SummaryTask:
    """Summarise ``said`` and what was summarised before."""

    previous: str
    facts: tuple[str, ...]
    said: tuple[tuple[str, str], ...]
    max_tokens: int


@dataclass(frozen=True)
class FactsTask:
    """List the facts in ``texts`` that are not known."""

    texts: tuple[str, ...]
    known: tuple[str, ...]
    most: int
    form: Form


@dataclass(frozen=True)
class CondenseTask:
    """Bring a list of facts down to ``most``."""

    facts: tuple[str, ...]
    most: int


@dataclass(frozen=True)
class StandaloneTask:
    """Make a question understandable without what was said before."""

    question: str
    said: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class QuestionsTask:
    """Ask up to ``most`` questions about facts that numbered messages tell."""

    said: tuple[tuple[int, str, str], ...]
    most: int


Task = SummaryTask | FactsTask | CondenseTask | StandaloneTask | QuestionsTask


def task_of(messages: Sequence[Message]) -> Task | None:
    """Return the task a prompt sets, ``None`` when it wants a reply."""
    if not messages:
        return None
    rules, body = messages[0].text, messages[-1].text
    if messages[0].role == "system" and rules.startswith(f"Task: {SUMMARY_TASK}"):
        return SummaryTask(
            previous=_between(body, "previous-summary"),
            facts=tuple(_between(body, "key-facts").splitlines()),
            said=tuple(transcript(_between(body, "messages"))),
            max_tokens=_number(_AT_MOST_TOKENS, rules, _SUMMARY_TOKENS),
        )
    if messages[0].role == "system" and rules.startswith(f"Task: {FACTS_TASK}"):
        said = transcript(_between(body, "messages"))
        return FactsTask(
            texts=tuple(text for role, text in said if role == "user"),
            known=tuple(_between(body, "known-facts").splitlines()),
            most=_number(_AT_MOST_LINES, rules, 10),
            form=Form.LINES,
        )
    if messages[0].role == "system" and rules.startswith(f"Task: {QUESTIONS_TASK}"):
        lines = map(_NUMBERED.fullmatch, body.splitlines())
        return QuestionsTask(
            said=tuple((int(line[1]), line[2], line[3]) for line in lines if line),
            most=_number(_UP_TO, rules, 5),
        )
    return _task_of_llama_index(messages)


def _task_of_llama_index(messages: Sequence[Message]) -> Task | None:
    body = messages[-1].text
    if "<existing_facts>" in body and "<facts>" in body:
        listed = body.partition("<existing_facts>")[2].partition("</existing_facts>")[0]
        known = tuple(fact.strip() for fact in _FACT.findall(listed))
        fewer = _FEWER_THAN.search(body)
        if fewer:
            return CondenseTask(known, int(fewer[1]) - 1)
        texts = tuple(m.text for m in messages[:-1] if m.role == "user")
        return FactsTask(texts, known, 20, Form.TAGS)
    if body.startswith('"Transcript so far: '):
        said = transcript(body.removeprefix('"Transcript so far: ').rstrip().removesuffix('"'))
        previous = " ".join(text for role, text in said if role == "system")
        told = tuple((role, text) for role, text in said if role != "system")
        return SummaryTask(previous, (), told, _SUMMARY_TOKENS)
    for pattern in _FOLLOW_UPS:
        found = pattern.search(body)
        if found and last_user(messages) == len(messages) - 1:
            said = transcript(found["history"])
            return StandaloneTask(found["question"].strip(), tuple(said))
    return None


def _between(text: str, tag: str) -> str:
    """Return what stands in a section; its end is the last one, whatever it quotes."""
    start, end = text.find(f"<{tag}>\n"), text.rfind(f"\n</{tag}>")
    return text[start + len(tag) + 3 : end] if 0 <= start < end else ""


def _number(pattern: re.Pattern[str], text: str, default: int) -> int:
    found = pattern.search(text)
    return int(found[1]) if found else default
