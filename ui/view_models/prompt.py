"""The exact prompt: every message in order, every span with its source and its tokens."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from memory_core.messages import Message
from memory_core.prompt import Assembly, Part, Source

SHOWN = 50  # messages drawn at once: the front of the prompt and its newest
ROOM = 5_000  # characters drawn at once; beyond it spans are clipped short
LONG, SHORT = 2_000, 60  # characters of a span: while there is room, and after


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
    def partial(self) -> bool:
        """Whether something of the prompt is not drawn."""
        return bool(self.skipped) or any(s.hidden for m in self.messages for s in m.spans)


def prompt_view(
    assembly: Assembly, *, whole: bool = False, shown: int = SHOWN, room: int = ROOM
) -> PromptView:
    """Return the messages of a prompt with every span attributed.

    Long prompts are drawn in part, the front and the newest first, unless ``whole`` is asked for.
    """
    by_message: dict[int, list[Part]] = {}
    beside = []
    for part in assembly.parts:
        if part.message is None:
            beside.append(Span(part.source, "", part.tokens, part.note))
        else:
            by_message.setdefault(part.message, []).append(part)
    count = len(assembly.messages)
    front, back = 1, count
    if count > shown and not whole:
        front, back = shown // 10, shown - shown // 10
    newest = range(count - 1, max(count - back, front) - 1, -1)
    drawn = {}
    for i in (*range(min(front, count)), *newest):
        limit = None if whole else min(LONG, max(room, SHORT))
        drawn[i] = _message(i, assembly.messages[i], by_message.get(i, ()), limit)
        room -= sum(len(span.text) for span in drawn[i].spans)
    return PromptView(
        messages=tuple(drawn[i] for i in sorted(drawn)),
        beside=tuple(beside),
        tokens=assembly.tokens,
        skipped=count - len(drawn),
        counter=assembly.counter,
    )


def prompt_json(assembly: Assembly) -> str:
    """Return the messages of a prompt as JSON text."""
    return json.dumps(
        [message.to_json() for message in assembly.messages], ensure_ascii=False, indent=2
    )


def _message(
    index: int, message: Message, parts: Sequence[Part], limit: int | None
) -> PromptMessage:
    text, spans, at = message.text, [], 0

    def span(source: Source, start: int, end: int, tokens: int = 0, note: str = "") -> Span:
        drawn = text[start:end][:limit]
        return Span(source, drawn, tokens, note, end - start - len(drawn))

    for part in sorted(parts, key=lambda p: (p.start, p.end)):
        if part.start > at:
            spans.append(span(Source.UNKNOWN, at, part.start))
        spans.append(span(part.source, part.start, part.end, part.tokens, _note(part)))
        at = max(at, part.end)
    if at < len(text):
        spans.append(span(Source.UNKNOWN, at, len(text)))
    return PromptMessage(
        index=index,
        role=message.role,
        tokens=sum(part.tokens for part in parts),
        spans=tuple(spans),
        calls=tuple(f"{call.name}({call.arguments})" for call in message.tool_calls),
    )


def _note(part: Part) -> str:
    notes = []
    if part.turn is not None:
        notes.append(f"turn {part.turn}")
    if part.score is not None:
        notes.append(f"score {part.score:.2f}")
    if part.note:
        notes.append(part.note)
    return " · ".join(notes)
