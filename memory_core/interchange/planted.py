"""The conversations of ``sample_data/``: turns of a person and an assistant, with questions.

The form is documented in ``sample_data/README.md``. A question's evidence are the person's
messages of the turns that it names, counted from 1. What a sample promises beside (planted
facts, limits that it overflows) is checked by :mod:`memory_core.samples` and not taken over.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from memory_core.errors import InvalidInput
from memory_core.interchange.chat import add_message
from memory_core.interchange.clean import as_text, clean_text
from memory_core.interchange.document import Document
from memory_core.interchange.draft import Draft, left_out
from memory_core.interchange.sample import Sample
from memory_core.interchange.values import Conversation
from memory_core.messages import Json
from memory_core.questions import RecallQuestion

_TAKEN = frozenset({"id", "title", "turns", "questions"})
_ABOUT = frozenset({"description", "teaches", "overflows"})  # of the sample, not of the talk
_SAID = ("user", "assistant")


def recognises(sample: Sample) -> bool:
    """Tell whether a file begins like one of the samples."""
    turns = sample.item.get("turns")
    first = turns[0] if isinstance(turns, list) and turns else None
    return isinstance(first, dict) and "user" in first and "content" not in first


def read(document: Document) -> Iterator[Conversation]:
    """Yield the conversation of each sample, with its questions."""
    yield from document.each(document.items(), lambda item, place: [_conversation(item, place)])


def _conversation(item: Json, place: str) -> Conversation:
    turns = item.get("turns") if isinstance(item, dict) else None
    if not isinstance(turns, list):
        raise InvalidInput("It has no turns.")
    draft = Draft(item.get("title") or item.get("id") or place)
    told_in: dict[int, int] = {}  # the person's message of each turn
    for number, turn in enumerate(turns, start=1):
        where = f"turn {number:,}"
        if not isinstance(turn, dict):
            draft.notes.add(where, "left out: it is no object")
            continue
        for role in _SAID:
            if turn.get(role) is None:
                draft.notes.add(where, f"it has no {role}")
                continue
            if role == "user":
                told_in[number] = len(draft)
            add_message(draft, {"role": role, "content": turn[role]}, place=where)
        if rest := turn.keys() - {*_SAID, "facts"}:
            draft.notes.add(where, left_out(rest))
    _ask(draft, item.get("questions"), told_in)
    if rest := item.keys() - _TAKEN - _ABOUT:
        draft.notes.add("conversation", left_out(rest))
    return draft.finish()


def _ask(draft: Draft, questions: Json, told_in: Mapping[int, int]) -> None:
    """Add the questions whose form can be read; of the others a note says so."""
    for number, asked in enumerate(questions if isinstance(questions, list) else (), start=1):
        where = f"question {number:,}"
        if not isinstance(asked, dict) or not asked.get("question"):
            draft.notes.add(where, "left out: it asks nothing")
            continue
        named = asked.get("evidence")
        turns = [turn for turn in named if type(turn) is int] if isinstance(named, list) else []
        evidence = tuple(sorted({told_in[turn] for turn in turns if turn in told_in}))
        if len(evidence) < len(named if isinstance(named, list) else ()):
            draft.notes.add(where, "evidence that names no turn was left out")
        draft.questions.append(
            RecallQuestion(
                question=clean_text(as_text(asked["question"]), where, draft.notes),
                answer=clean_text(as_text(asked.get("answer") or ""), where, draft.notes),
                evidence=evidence,
                category=clean_text(as_text(asked.get("kind") or ""), where, draft.notes),
            )
        )
