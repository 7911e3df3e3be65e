"""Items of OpenAI's Responses API, in and out.

There one answer of the model is several items: reasoning, a message, tool calls. On the way in
they become one message, as LlamaIndex has it: reasoning or a message opens it, tool calls join
it, anything else closes it. On the way out a message item is written wherever it is needed to
tell two answers apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from memory_core.interchange.blocks import (
    Block,
    ToolResult,
    flat_text,
    image_url,
    read_content,
    tool_call,
)
from memory_core.interchange.blocks import thinking as thinking_block
from memory_core.interchange.chat import add_message, add_split
from memory_core.interchange.clean import as_text, text_block
from memory_core.interchange.draft import Draft
from memory_core.interchange.roles import ASSISTANT, TOOL
from memory_core.interchange.values import Conversation, Notes
from memory_core.interchange.writing import Written, json_bytes
from memory_core.messages import TEXT, THINKING, TOOL_CALL, Json, Message

_OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output"})
_CALLS = frozenset({"function_call", "custom_tool_call"})
_TYPES = _OUTPUTS | _CALLS | {"message", "reasoning", "item_reference"}


def looks_like_item(value: Json) -> bool:
    """Tell whether a value is an item of the Responses API."""
    kind = value.get("type") if isinstance(value, dict) else None
    return isinstance(kind, str) and (kind in _TYPES or kind.endswith("_call"))


class ItemReader:
    """Adds items, and plain chat messages among them, to a draft."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._blocks: list[Block | ToolResult] | None = None  # of the answer that is open
        self._place, self._id = "", None
        self._spoken = False

    def take(self, value: Json, place: str) -> None:
        """Add one item or message."""
        if not looks_like_item(value):
            self.close()
            add_message(self._draft, value, place=place)
            return
        kind = value["type"]
        if kind == "reasoning":
            self._open(place).append(_reasoning(value))
        elif kind == "message" and value.get("role", ASSISTANT) == ASSISTANT:
            self._message(value, place)
        elif kind in _CALLS:
            blocks = self._open(place) if self._blocks is None else self._blocks
            arguments = value.get("arguments", value.get("input"))
            blocks.append(tool_call(value.get("call_id"), value.get("name"), arguments))
            self._spoken = True
        else:
            self.close()
            self._other(kind, value, place)

    def close(self) -> None:
        """Add the answer that is open, if there is one."""
        blocks, self._blocks = self._blocks, None
        if blocks is not None:
            add_split(self._draft, ASSISTANT, blocks, {}, place=self._place, id=self._id)

    def _open(self, place: str) -> list[Block | ToolResult]:
        self.close()
        self._blocks = []
        self._place, self._id, self._spoken = place, None, False
        return self._blocks

    def _message(self, value: Mapping[str, Json], place: str) -> None:
        opened = self._blocks if not self._spoken else None
        blocks = self._open(place) if opened is None else opened
        self._id = value.get("id")
        blocks += read_content(value.get("content"), place=place, notes=self._draft.notes)
        self._spoken = True

    def _other(self, kind: str, value: Mapping[str, Json], place: str) -> None:
        notes = self._draft.notes
        if kind == "message":
            plain = {k: v for k, v in value.items() if k not in ("type", "status")}
            add_message(self._draft, plain, place=place)
        elif kind in _OUTPUTS:
            text = flat_text(value.get("output"), place=place, notes=notes)
            kwargs = {"tool_call_id": as_text(value.get("call_id") or "")}
            message = Message(TOOL, (text_block(text),), kwargs)
            self._draft.add(message, place=place, id=value.get("id"))
        else:
            notes.add(place, f"an item of type {kind[:40]!r} was kept as its JSON text")
            block = text_block(as_text(value, place, notes))
            self._draft.add(Message(ASSISTANT, (block,)), place=place, id=value.get("id"))


def write(conversations: Sequence[Conversation]) -> Written:
    """Return one conversation as a list of items, several as a list of records with ``input``."""
    notes = Notes()
    records = []
    for conversation in conversations:
        if conversation.times or conversation.questions:
            notes.add(conversation.title, "times and questions have no place in items")
        records.append({"title": conversation.title, "input": list(_items(conversation, notes))})
    value = records[0]["input"] if len(records) == 1 else records
    return Written(json_bytes(value), "application/json", "items.json", notes.notices())


def _items(conversation: Conversation, notes: Notes) -> Iterator[dict[str, Json]]:
    before = ""
    for number, message in enumerate(conversation.messages):
        place = f"{conversation.title}, message {number + 1:,}"
        id_ = conversation.ids[number] if conversation.ids else ""
        if lost := message.kwargs.keys() - ({"tool_call_id"} if message.role == TOOL else set()):
            notes.add(place, f"fields left out: {', '.join(sorted(lost))[:80]}")
        if message.role == TOOL:
            if [b.get("block_type") for b in message.blocks] != [TEXT]:
                notes.add(place, "the parts of a tool result were joined to one text")
            yield {
                "type": "function_call_output",
                "call_id": message.tool_call_id or "",
                "output": message.text,
            } | ({"id": id_} if id_ else {})
        else:
            yield from _message_items(message, id_, before, place, notes)
        before = message.role


def _message_items(
    message: Message, id_: str, before: str, place: str, notes: Notes
) -> Iterator[dict[str, Json]]:
    thought = [b for b in message.blocks if b.get("block_type") == THINKING]
    calls = [b for b in message.blocks if b.get("block_type") == TOOL_CALL]
    said = [b for b in message.blocks if b.get("block_type") not in (THINKING, TOOL_CALL)]
    if [*thought, *said, *calls] != list(message.blocks):
        notes.add(place, "its parts were put in the order reasoning, content, tool calls")
    if len(thought) > 1:
        notes.add(place, "several pieces of thinking were joined")
    if thought:
        text = "\n".join(as_text(b.get("content") or "") for b in thought)
        info = thought[0].get("additional_information") or {}
        summary = [{"type": "summary_text", "text": text}] if text else []
        yield {**info, "type": "reasoning", "summary": summary}
    needed = not calls or said or id_ or (before == ASSISTANT and not thought)
    if message.role != ASSISTANT or needed:
        spoken = "output_text" if message.role == ASSISTANT else "input_text"
        parts = [part for b in said if (part := _part(b, spoken, place, notes))]
        item = {"type": "message", "role": message.role, "content": parts}
        yield item | ({"id": id_} if id_ else {})
    for block in calls:
        yield {
            "type": "function_call",
            "call_id": block.get("tool_call_id") or "",
            "name": block["tool_name"],
            "arguments": as_text(block.get("tool_kwargs") or {}),
        }


def _part(
    block: Mapping[str, Json], spoken: str, place: str, notes: Notes
) -> dict[str, Json] | None:
    if block.get("block_type") == TEXT:
        return {"type": spoken, "text": block["text"]}
    if block.get("block_type") == "image":
        detail = {"detail": block["detail"]} if block.get("detail") is not None else {}
        return {"type": "input_image", "image_url": image_url(block), **detail}
    notes.add(place, f"a block of type {block.get('block_type')!r} left out")
    return None


def _reasoning(value: Mapping[str, Json]) -> Block:
    texts = []
    for name in ("summary", "content"):
        parts = value.get(name)
        for part in parts if isinstance(parts, list) else [parts]:
            text = part.get("text") if isinstance(part, dict) else part
            texts += [as_text(text)] if text else []
    known = {k: v for k, v in value.items() if k not in ("type", "summary", "content", "status")}
    return thinking_block("\n".join(texts), known)
