"""LongMemEval: one question over a haystack of sessions, evidence marked at the turns.

The form is that of xiaowu0162/LongMemEval (Wu et al., 2024): ``haystack_sessions`` with
``haystack_dates`` and ``haystack_session_ids``, turns with ``role``, ``content`` and, where they
hold evidence, ``has_answer``. All sessions of an instance become one conversation.
"""

from __future__ import annotations

from collections.abc import Iterator

from memory_core.errors import InvalidInput
from memory_core.interchange.chat import add_message
from memory_core.interchange.clean import as_text, clean_text
from memory_core.interchange.document import Document
from memory_core.interchange.draft import Draft, left_out
from memory_core.interchange.sample import Sample
from memory_core.interchange.values import Conversation
from memory_core.messages import Json
from memory_core.questions import RecallQuestion

_TAKEN = frozenset(
    {"question_id", "question_type", "question", "answer"}
    | {"haystack_sessions", "haystack_dates", "haystack_session_ids", "answer_session_ids"}
)


def recognises(sample: Sample) -> bool:
    """Tell whether a file begins like LongMemEval."""
    return "haystack_sessions" in sample.item or "haystack_session_ids" in sample.item


def read(document: Document) -> Iterator[Conversation]:
    """Yield one conversation an instance, with its question."""
    yield from document.each(document.items(), lambda item, place: [_conversation(item, place)])


def _conversation(item: Json, place: str) -> Conversation:
    sessions = item.get("haystack_sessions") if isinstance(item, dict) else None
    if not isinstance(sessions, list):
        raise InvalidInput("It has no haystack_sessions.")
    draft = Draft(item.get("question_id") or place)
    dates = _list(item.get("haystack_dates"))
    names = _list(item.get("haystack_session_ids"))
    answers = _list(item.get("answer_session_ids"))
    evidence: list[int] = []
    in_answers: list[int] = []
    for number, turns in enumerate(sessions):
        if not isinstance(turns, list):
            draft.notes.add(f"session {number + 1:,}", "left out: it is no list of turns")
            continue
        date = dates[number] if number < len(dates) else None
        first = len(draft)
        for position, turn in enumerate(turns, start=1):
            before = len(draft)
            plain = turn
            if isinstance(turn, dict):
                plain = {k: v for k, v in turn.items() if k != "has_answer"} | {"timestamp": date}
            add_message(draft, plain, place=f"session {number + 1:,}, turn {position:,}")
            if isinstance(turn, dict) and turn.get("has_answer"):
                evidence += range(before, len(draft))
        if number < len(names) and names[number] in answers:
            in_answers += range(first, len(draft))
    if not evidence and in_answers:
        draft.notes.add("question", "no turn is marked as evidence, the whole session was taken")
        evidence = in_answers
    if item.get("question"):
        draft.questions.append(
            RecallQuestion(
                question=clean_text(as_text(item["question"]), "question", draft.notes),
                answer=clean_text(as_text(item.get("answer") or ""), "question", draft.notes),
                evidence=tuple(evidence),
                category=as_text(item.get("question_type") or ""),
            )
        )
    if rest := item.keys() - _TAKEN:
        draft.notes.add("conversation", left_out(rest))
    return draft.finish()


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []
