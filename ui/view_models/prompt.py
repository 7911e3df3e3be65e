"""The exact prompt: every message in order, every span with its source and its tokens."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from memory_core.messages import Message
from memory_core.prompt import Assembly, Part, Source

SHOWN = 60  # messages drawn at once: the front of the prompt and its newest
CLIPPED = 4_000  # characters of one span drawn at once


@dataclass(frozen=True)
class Span:
    """A run of a message's text with one origin. ``hidden`` characters of it are not drawn."""

    source: Source
    text: str
    tokens: int
    note: str = ""
    hidden: int = 0


@dataclass(frozen=True)
class PromptMessage:
    """One message of the prompt; its spans' tokens sum to ``tokens``."""

    index: int
    role: str
    tokens: int
    spans: tuple[Span, ...]
    calls: tuple[str, ...] = ()


@dataclass(frozen=True)
class PromptView:
    """A prompt as it is sent.

    ``beside`` are parts that stand in no message (tool definitions, the priming of the reply).
    ``skipped`` messages in the middle are not drawn; the tokens are of the whole prompt.
    """

    messages: tuple[PromptMessage, ...]
    beside: tuple[Span, ...]
    tokens: int
    skipped: int
    counter: str

    @property
    def label(self) -> str:
        """A few characters for the panel's tab."""
        return f"Prompt {self.tokens:,}"


def prompt_view(assembly: Assembly, *, shown: int = SHOWN) -> PromptView:
    """Return the messages of a prompt with every span attributed."""
    by_message: dict[int, list[Part]] = {}
    beside = []
    for part in assembly.parts:
        if part.message is None:
            beside.append(Span(part.source, "", part.tokens, part.note))
        else:
            by_message.setdefault(part.message, []).append(part)
    count = len(assembly.messages)
    indexes = list(range(count))
    if count > shown:
        front = shown // 10 or 1
        indexes = [*range(front), *range(count - shown + front, count)]
    return PromptView(
        messages=tuple(_message(i, assembly.messages[i], by_message.get(i, ())) for i in indexes),
        beside=tuple(beside),
        tokens=assembly.tokens,
        skipped=count - len(indexes),
        counter=assembly.counter,
    )


def prompt_json(assembly: Assembly) -> str:
    """Return the messages of a prompt as JSON text."""
    return json.dumps(
        [message.to_json() for message in assembly.messages], ensure_ascii=False, indent=2
    )


def _message(index: int, message: Message, parts: Sequence[Part]) -> PromptMessage:
    text, spans, at = message.text, [], 0
    for part in sorted(parts, key=lambda p: (p.start, p.end)):
        if part.start > at:
            spans.append(_span(Source.UNKNOWN, text[at : part.start], 0, ""))
        spans.append(_span(part.source, text[part.start : part.end], part.tokens, _note(part)))
        at = max(at, part.end)
    if at < len(text):
        spans.append(_span(Source.UNKNOWN, text[at:], 0, ""))
    return PromptMessage(
        index=index,
        role=message.role,
        tokens=sum(part.tokens for part in parts),
        spans=tuple(spans),
        calls=tuple(f"{call.name}({call.arguments})" for call in message.tool_calls),
    )


def _span(source: Source, text: str, tokens: int, note: str) -> Span:
    return Span(source, text[:CLIPPED], tokens, note, max(0, len(text) - CLIPPED))


def _note(part: Part) -> str:
    notes = []
    if part.turn is not None:
        notes.append(f"turn {part.turn}")
    if part.score is not None:
        notes.append(f"score {part.score:.2f}")
    if part.note:
        notes.append(part.note)
    return " · ".join(notes)
