"""Chat messages as plain values, and the identity that storage gives them.

A :class:`Message` mirrors LlamaIndex's ``ChatMessage`` field by field (role, content blocks,
additional kwargs) as JSON values, so that nothing is lost on the way in or out, without
importing LlamaIndex. Everything else here reads it: the visible text, the tool calls in either
storage style, the id a tool result answers.

A message has no identity of its own. A :class:`StoredMessage` is a message that stands at one
position of one session and was said in one turn; ids belong to storage and are never reused.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

Json = Any  # a JSON value: None, bool, number, text, list or dict with text keys

TEXT, IMAGE, TOOL_CALL, THINKING = "text", "image", "tool_call", "thinking"


@dataclass(frozen=True)
class ToolCall:
    """One request of the model to run a tool. ``arguments`` is the JSON text as it is counted."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True)
class Message:
    """A chat message: role, content blocks and additional kwargs, all JSON values.

    Each block is a dict with a ``block_type`` as LlamaIndex dumps it (``text``, ``image``,
    ``tool_call``, ``thinking``, …).
    """

    role: str
    blocks: tuple[Mapping[str, Json], ...] = ()
    kwargs: Mapping[str, Json] = field(default_factory=dict)

    @classmethod
    def of(cls, role: str, text: str, **kwargs: Json) -> Message:
        """Return a message with one text block."""
        return cls(role, ({"block_type": TEXT, "text": text},), kwargs)

    @cached_property
    def text(self) -> str:
        """The visible text: all text blocks, joined by line breaks as ``ChatMessage.content``."""
        return "\n".join(str(b.get("text") or "") for b in self.blocks_of(TEXT))

    @cached_property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The tools this message asks for, whichever of the two styles holds them."""
        in_blocks = [_call_from_block(b) for b in self.blocks_of(TOOL_CALL)]
        if in_blocks:
            return tuple(in_blocks)
        calls = self.kwargs.get("tool_calls")
        if not isinstance(calls, Sequence) or isinstance(calls, str):
            return ()
        return tuple(_call_from_kwargs(c) for c in calls if isinstance(c, Mapping))

    @cached_property
    def tool_call_id(self) -> str | None:
        """The id of the call that this tool result answers, if it says."""
        value = self.kwargs.get("tool_call_id")
        return str(value) if value is not None else None

    @cached_property
    def name(self) -> str:
        """The participant or tool name that is sent along, or an empty text."""
        return str(self.kwargs.get("name") or "")

    @cached_property
    def thinking(self) -> str:
        """The text of thinking blocks."""
        return "\n".join(str(b.get("content") or "") for b in self.blocks_of(THINKING))

    @property
    def images(self) -> int:
        """How many pictures the message holds."""
        return sum(1 for _ in self.blocks_of(IMAGE))

    def blocks_of(self, kind: str) -> Iterable[Mapping[str, Json]]:
        """Yield the content blocks of one kind, in order."""
        return (b for b in self.blocks if b.get("block_type") == kind)

    def to_json(self) -> dict[str, Json]:
        """Return the message as a JSON object that :meth:`from_json` reads back unchanged."""
        out: dict[str, Json] = {"role": self.role, "blocks": [dict(b) for b in self.blocks]}
        if self.kwargs:
            out["kwargs"] = dict(self.kwargs)
        return out

    @classmethod
    def from_json(cls, value: Mapping[str, Json]) -> Message:
        """Return the message that :meth:`to_json` wrote."""
        return cls(
            str(value["role"]), tuple(value.get("blocks") or ()), dict(value.get("kwargs") or {})
        )


@dataclass(frozen=True)
class StoredMessage:
    """A message at its place in a session.

    ``position`` counts from 0 over the whole session, superseded attempts included;
    ``turn`` counts from 1 (0: seeded before the first turn). ``tokens`` is the count under the
    counter named ``counter`` (see :class:`memory_core.tokens.TokenCounter`), or ``None`` when it
    was never counted.
    """

    id: str
    position: int
    turn: int
    created: datetime
    message: Message
    tokens: int | None = None
    counter: str = ""


def repair_text(text: str) -> tuple[str, int]:
    r"""Replace what no store or socket can carry; return the text and how many were replaced.

    Half of a surrogate pair (a cut emoji) becomes U+FFFD; whole pairs written as two halves are
    joined. NUL becomes U+FFFD too, since PostgreSQL text cannot hold it.

    >>> repair_text("good morning \ud83d")
    ('good morning \ufffd', 1)
    """
    try:
        text.encode("utf-8")
        joined = text
    except UnicodeEncodeError:
        joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    replaced = joined.count("\ufffd") - text.count("\ufffd") + joined.count("\0")
    return joined.replace("\0", "\ufffd"), replaced


def repair(message: Message) -> tuple[Message, int]:
    """Apply :func:`repair_text` to every text in a message; return it and how many characters."""
    blocks, in_blocks = repair_json([dict(b) for b in message.blocks])
    kwargs, in_kwargs = repair_json(dict(message.kwargs))
    replaced = in_blocks + in_kwargs
    if not replaced:
        return message, 0
    return Message(message.role, tuple(blocks), kwargs), replaced


def repair_json(value: Json) -> tuple[Json, int]:
    """Apply :func:`repair_text` to every text in a JSON value."""
    if isinstance(value, str):
        return repair_text(value)
    if isinstance(value, Mapping):
        total, out = 0, {}
        for key, item in value.items():
            new_key, in_key = repair_text(key) if isinstance(key, str) else (key, 0)
            out[new_key], in_item = repair_json(item)
            total += in_key + in_item
        return out, total
    if isinstance(value, (list, tuple)):
        pairs = [repair_json(item) for item in value]
        return [item for item, _ in pairs], sum(n for _, n in pairs)
    return value, 0


def _arguments(value: Json) -> str:
    # subtle: with escapes, since that is how LlamaIndex writes them into a request
    return value if isinstance(value, str) else json.dumps(value)


def _call_from_block(block: Mapping[str, Json]) -> ToolCall:
    return ToolCall(
        id=str(block.get("tool_call_id") or ""),
        name=str(block.get("tool_name") or ""),
        arguments=_arguments(block.get("tool_kwargs") or {}),
    )


def _call_from_kwargs(call: Mapping[str, Json]) -> ToolCall:
    function = call.get("function")
    inner: Mapping[str, Json] = function if isinstance(function, Mapping) else call
    return ToolCall(
        id=str(call.get("id") or ""),
        name=str(inner.get("name") or ""),
        arguments=_arguments(inner.get("arguments") or "{}"),
    )
