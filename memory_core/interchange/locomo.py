"""LoCoMo: very long conversations of two people, with questions and their evidence.

The form is that of snap-research/locomo (Maharana et al., 2024): ``conversation`` holds numbered
sessions of turns, ``qa`` the questions, whose evidence names turns by ``dia_id`` ("D3:11" is turn
11 of session 3; a few ids are malformed). The first speaker is read as the user, the second as
the assistant, both keep their names. Captions of shared pictures are part of what was said and
are added to the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from memory_core.errors import InvalidInput
from memory_core.interchange.clean import as_text, clean_text, text_block
from memory_core.interchange.document import Document
from memory_core.interchange.draft import Draft, left_out
from memory_core.interchange.roles import ASSISTANT, USER
from memory_core.interchange.sample import Sample
from memory_core.interchange.values import Conversation
from memory_core.messages import Json, Message
from memory_core.questions import RecallQuestion

CATEGORIES: Mapping[Json, str] = {
    1: "multi-hop",
    2: "temporal",
    3: "open-domain",
    4: "single-hop",
    5: "adversarial",
}
_SESSION = re.compile(r"session_(\d{1,6})", re.ASCII)
_TURN = re.compile(r"D:?(\d{1,6}):(\d{1,6})", re.ASCII)
_NOT_TAKEN = ("img_url", "query", "re-download")


def recognises(sample: Sample) -> bool:
    """Tell whether a file begins like LoCoMo."""
    item = sample.item
    talk = item.get("conversation")
    if isinstance(talk, dict):
        return "speaker_a" in talk or any(map(_SESSION.fullmatch, talk))
    questions = item.get("qa")
    return isinstance(questions, list) and any(
        isinstance(q, dict) and "evidence" in q for q in questions
    )


def read(document: Document) -> Iterator[Conversation]:
    """Yield the conversations of a LoCoMo file with their questions."""
    yield from document.each(document.items(), lambda item, place: [_conversation(item, place)])


def _conversation(item: Json, place: str) -> Conversation:
    talk = item.get("conversation") if isinstance(item, dict) else None
    if not isinstance(talk, dict):
        raise InvalidInput("It has no conversation with sessions.")
    draft = Draft(item.get("sample_id") or place)
    numbers = sorted(int(m[1]) for key in talk if (m := _SESSION.fullmatch(key)))
    places: dict[tuple[int, int], int] = {}
    for session in numbers:
        _session(draft, talk, session, places)
    _questions(draft, item.get("qa"), places)
    if rest := item.keys() - {"conversation", "qa", "sample_id"}:
        draft.notes.add("conversation", left_out(rest))
    return draft.finish()


def _session(
    draft: Draft, talk: Mapping[str, Json], number: int, places: dict[tuple[int, int], int]
) -> None:
    turns = talk[f"session_{number}"]
    time = talk.get(f"session_{number}_date_time")
    if not isinstance(turns, list):
        draft.notes.add(f"session {number}", "left out: it is no list of turns")
        return
    for position, turn in enumerate(turns, start=1):
        at = f"session {number}, turn {position}"
        if not isinstance(turn, dict):
            draft.notes.add(at, "left out: it is no turn object")
            continue
        match = _TURN.fullmatch(as_text(turn.get("dia_id") or ""))
        places[(int(match[1]), int(match[2])) if match else (number, position)] = len(draft)
        speaker = as_text(turn.get("speaker") or "")
        blocks = [text_block(as_text(turn.get("text") or ""))]
        if turn.get("blip_caption"):
            draft.notes.add(at, "the caption of a shared picture was added to the text")
            blocks.append(text_block(f"[picture: {as_text(turn['blip_caption'])}]"))
        for name in filter(turn.get, _NOT_TAKEN):
            draft.notes.add(at, left_out([name]))
        role = ASSISTANT if speaker and speaker == talk.get("speaker_b") else USER
        message = Message(role, tuple(blocks), {"name": speaker} if speaker else {})
        draft.add(message, place=at, time=time, id=turn.get("dia_id"))


def _questions(draft: Draft, qa: Json, places: Mapping[tuple[int, int], int]) -> None:
    for number, raw in enumerate(qa if isinstance(qa, list) else (), start=1):
        at = f"question {number:,}"
        if not isinstance(raw, dict) or not raw.get("question"):
            draft.notes.add(at, "left out: it is no question")
            continue
        named = raw.get("evidence")
        told = " ".join(map(as_text, named)) if isinstance(named, list) else as_text(named or "")
        found = [(int(a), int(b)) for a, b in _TURN.findall(told)]
        known = [places[turn] for turn in found if turn in places]
        wanted = len(named) if isinstance(named, list) else bool(named)
        if len(known) < max(len(found), wanted):
            draft.notes.add(at, "evidence that names no turn left out")
        if raw.get("adversarial_answer") is not None:
            draft.notes.add(at, "has no answer in the conversation; the misleading one left out")
        category = raw.get("category")
        label = CATEGORIES.get(category) if isinstance(category, int) else None
        answer = raw.get("answer")
        draft.questions.append(
            RecallQuestion(
                question=clean_text(as_text(raw["question"]), at, draft.notes),
                answer="" if answer is None else clean_text(as_text(answer), at, draft.notes),
                evidence=tuple(dict.fromkeys(known)),
                category=label or as_text(category or ""),
            )
        )
