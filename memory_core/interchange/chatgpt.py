"""ChatGPT account exports (``conversations.json``): each conversation is a tree of messages.

The way from the root to ``current_node`` is what the user last saw; it is taken, other branches
are counted and come as conversations of their own when asked for. Messages to a tool become tool
calls, thoughts join the answer they lead to, pictures and files (which are not in the JSON) are
replaced by their names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from memory_core.errors import InvalidInput
from memory_core.interchange.blocks import Block, thinking, tool_call
from memory_core.interchange.clean import as_text, text_block
from memory_core.interchange.document import Document
from memory_core.interchange.draft import Draft
from memory_core.interchange.roles import ASSISTANT, SYSTEM, TOOL, read_role
from memory_core.interchange.sample import Sample
from memory_core.interchange.tree import other_leaves, path_to
from memory_core.interchange.values import Conversation, Notes
from memory_core.messages import Json, Message

_TO_ALL = (None, "all", "assistant")
_TEXT_KINDS = ("code", "execution_output", "system_error", "tether_quote", "computer_output")


def recognises(sample: Sample) -> bool:
    """Tell whether a file begins like a ChatGPT export."""
    return isinstance(sample.item.get("mapping"), dict)


def read(document: Document) -> Iterator[Conversation]:
    """Yield the conversations of an export, with their branches where those are asked for."""
    yield from document.each(
        document.items(), lambda item, place: _conversation(item, place, branches=document.branches)
    )


def _conversation(item: Json, place: str, *, branches: bool) -> Iterator[Conversation]:
    mapping = item.get("mapping") if isinstance(item, dict) else None
    if not isinstance(mapping, dict):
        raise InvalidInput("It has no mapping of messages.")
    title = item.get("title") or place
    parents = _parents(mapping)
    current = item.get("current_node")
    main = path_to(current, parents) if isinstance(current, str) else []
    draft = Draft(title)
    if not main:
        main = max((path_to(leaf, parents) for leaf in _last(parents)), key=len, default=[])
        draft.notes.add("", "the current message is not named, the longest branch was taken")
    others = other_leaves(main, parents, lambda node: _tells(mapping[node]))
    draft.branches = len(others)
    yield _read_path(draft, mapping, main)
    if branches:
        for number, leaf in enumerate(others, start=2):
            branch = Draft(f"{title} (branch {number} of {len(others) + 1})")
            yield _read_path(branch, mapping, path_to(leaf, parents))


def _parents(mapping: Mapping[str, Json]) -> dict[str, str]:
    parents = {}
    for name, node in mapping.items():
        parent = node.get("parent") if isinstance(node, dict) else None
        parents[name] = parent if isinstance(parent, str) else ""
    return parents


def _last(parents: Mapping[str, str]) -> list[str]:
    """Return the last leaf in file order, where the newest message stands."""
    inner = set(parents.values())
    return [node for node in parents if node not in inner][-1:]


def _message_of(node: Json) -> Mapping[str, Json]:
    message = node.get("message") if isinstance(node, dict) else None
    return message if isinstance(message, dict) else {}


def _tells(node: Json) -> bool:
    content = _message_of(node).get("content")
    if not isinstance(content, dict):
        return bool(content)
    return any(v for k, v in content.items() if k != "content_type" and v not in ("", [""], []))


@dataclass
class _Reading:
    """What is open while a path is read: calls that wait for an answer, thoughts for a reply."""

    draft: Draft
    calls: dict[str, str] = field(default_factory=dict)
    thoughts: list[Block] = field(default_factory=list)


def _read_path(draft: Draft, mapping: Mapping[str, Json], path: list[str]) -> Conversation:
    reading = _Reading(draft)
    for node in path:
        message = _message_of(mapping[node])
        if not message:
            continue
        if _tells(mapping[node]):
            _add(reading, message, f"message {len(draft) + 1:,}")
        else:
            draft.notes.add("", "empty messages left out")
    if reading.thoughts:
        blocks = tuple(reading.thoughts)
        draft.add(Message(ASSISTANT, blocks), place=f"message {len(draft) + 1:,}")
    return draft.finish()


def _add(reading: _Reading, message: Mapping[str, Json], place: str) -> None:
    draft = reading.draft
    author = message.get("author")
    who: Mapping[str, Json] = author if isinstance(author, dict) else {}
    role, speaker = read_role(who.get("role"), place=place, notes=draft.notes)
    content, id_ = message.get("content"), message.get("id")
    kind = content.get("content_type") if isinstance(content, dict) else None
    if kind == "reasoning_recap":
        draft.notes.add(place, "left out: how long the model thought")
        return
    if kind in ("user_editable_context", "model_editable_context"):
        draft.notes.add(place, "custom instructions were read as a system message")
        role = SYSTEM
    blocks = _blocks(content, place, draft.notes) + _attachments(message, place, draft.notes)
    kwargs: dict[str, Json] = {"name": speaker} if speaker else {}
    recipient = message.get("recipient")
    if kind == "thoughts":
        reading.thoughts += blocks
        return
    if role == ASSISTANT and recipient not in _TO_ALL:
        text = "\n".join(as_text(b.get("text") or "") for b in blocks)
        name = as_text(recipient)
        blocks = [tool_call(id_, name, text)]
        reading.calls[name] = as_text(id_ or "")
    elif role == TOOL:
        name = as_text(who.get("name") or "")
        call = reading.calls.get(name) or next(reversed(reading.calls.values()), "")
        kwargs |= {k: v for k, v in (("name", name), ("tool_call_id", call)) if v}
    if role == ASSISTANT and reading.thoughts:
        blocks, reading.thoughts = reading.thoughts + blocks, []
    time = message.get("create_time")
    draft.add(Message(role, tuple(blocks), kwargs), place=place, time=time, id=id_)


def _blocks(content: Json, place: str, notes: Notes) -> list[Block]:
    if not isinstance(content, dict):
        return [text_block(as_text(content, place, notes))]
    kind, parts = content.get("content_type"), content.get("parts")
    if isinstance(parts, list):
        return [block for part in parts if part for block in _part(part, place, notes)]
    if kind in _TEXT_KINDS and isinstance(content.get("text"), str):
        return [text_block(content["text"])]
    if kind == "thoughts" and isinstance(content.get("thoughts"), list):
        return [thinking(_thought(t)) for t in content["thoughts"]]
    told = [as_text(content[name]) for name in _CONTEXT if content.get(name)]
    if told:
        return [text_block("\n\n".join(told))]
    notes.add(place, f"content of type {str(kind)[:40]!r} was kept as its JSON text")
    return [text_block(as_text(content, place, notes))]


_CONTEXT = ("user_profile", "user_instructions", "model_set_context", "result", "summary")


def _thought(value: Json) -> str:
    if not isinstance(value, dict):
        return as_text(value)
    return "\n".join(as_text(value[k]) for k in ("summary", "content") if value.get(k))


def _part(part: Json, place: str, notes: Notes) -> list[Block]:
    if isinstance(part, str):
        return [text_block(part)]
    kind = str(part.get("content_type") if isinstance(part, dict) else "")
    if kind == "audio_transcription" and isinstance(part.get("text"), str):
        return [text_block(part["text"])]
    if kind.endswith("asset_pointer"):
        name = "picture" if kind.startswith("image") else "recording"
        notes.add(place, f"a {name} that is not in the JSON was replaced by the word for it")
        return [text_block(f"[{name}]")]
    notes.add(place, f"a part of type {kind[:40]!r} was kept as its JSON text")
    return [text_block(as_text(part, place, notes))]


def _attachments(message: Mapping[str, Json], place: str, notes: Notes) -> list[Block]:
    metadata = message.get("metadata")
    files = metadata.get("attachments") if isinstance(metadata, dict) else None
    names = [f.get("name") for f in files or () if isinstance(f, dict)]
    if not names:
        return []
    notes.add(place, "attached files are not in the JSON, their names were kept", len(names))
    return [text_block(f"[file: {as_text(name or 'unnamed')}]") for name in names]
