"""ShareGPT and the training sets made like it: ``conversations`` of ``from`` and ``value``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from memory_core.errors import InvalidInput
from memory_core.interchange.chat import add_message
from memory_core.interchange.document import Document
from memory_core.interchange.draft import Draft, left_out
from memory_core.interchange.roles import ALIASES
from memory_core.interchange.sample import Sample
from memory_core.interchange.values import Conversation
from memory_core.messages import Json

_LISTS = ("conversations", "conversation", "items")
_ROLE, _TEXT = ("from", "role", "user"), ("value", "content", "text")


def recognises(sample: Sample) -> bool:
    """Tell whether a file begins like ShareGPT."""
    turns = _turns(sample.item) or ()
    return any(isinstance(turn, dict) and _fields(turn) is not None for turn in turns)


def read(document: Document) -> Iterator[Conversation]:
    """Yield the conversations of a ShareGPT file."""
    yield from document.each(document.items(), lambda item, place: [_conversation(item, place)])


def _conversation(item: Json, place: str) -> Conversation:
    turns = _turns(item) if isinstance(item, dict) else None
    if turns is None:
        raise InvalidInput("It has no list of conversations.")
    draft = Draft(item.get("title") or item.get("id") or place)
    system = item.get("system")
    if system:
        add_message(draft, {"role": "system", "content": system}, place="system")
    for number, turn in enumerate(turns, start=1):
        at = f"message {number:,}"
        names = _fields(turn) if isinstance(turn, dict) else None
        if names is None:
            draft.notes.add(at, "left out: it has no speaker and text")
            continue
        role, text = names
        more = {k: v for k, v in turn.items() if k not in names and k not in ("weight", "loss")}
        value = more | {"role": turn[role], "content": turn[text]}
        add_message(draft, value, place=at, native=ALIASES)
    if rest := {k for k, v in item.items() if v} - {*_LISTS, "id", "title", "system"}:
        draft.notes.add("conversation", left_out(rest))
    return draft.finish()


def _turns(item: Mapping[str, Json]) -> list[Json] | None:
    return next((item[name] for name in _LISTS if isinstance(item.get(name), list)), None)


def _fields(turn: Mapping[str, Json]) -> tuple[str, str] | None:
    role = next((name for name in _ROLE if name in turn), None)
    text = next((name for name in _TEXT if name in turn), None)
    return (role, text) if role and text else None
