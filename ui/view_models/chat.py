"""The chat as bubbles: a window of messages, tool steps folded into one line each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memory_core.messages import StoredMessage

WINDOW = 50  # messages drawn at once, however long the chat is
LONG = 1_200  # characters of one message drawn before it is opened
ROOM = 14_000  # characters drawn at once; beyond it older messages are clipped shorter
SHORT = 240  # characters of a message once the room is used up

TEXT, TOOL = "text", "tool"


@dataclass(frozen=True)
class Bubble:
    """One thing to draw. ``hidden`` characters of its text are left out until it is opened."""

    id: str
    turn: int
    role: str
    kind: str
    text: str
    hidden: int = 0


@dataclass(frozen=True)
class ChatView:
    """A window of the chat, oldest first, and how many messages stand before and after it."""

    bubbles: tuple[Bubble, ...]
    earlier: int
    later: int


def chat_view(
    messages: Sequence[StoredMessage],
    *,
    end: int | None = None,
    size: int = WINDOW,
    opened: frozenset[str] = frozenset(),
) -> ChatView:
    """Return the ``size`` messages that end before position ``end`` of the list (default: all).

    A tool call and its result are one bubble. ``opened`` are ids of messages to show whole.
    """
    total = len(messages)
    last = total if end is None else min(max(end, 1), total)
    first = max(0, last - size)
    results = {
        m.message.tool_call_id: m.message.text
        for m in messages[first:last]
        if m.message.role == "tool"
    }
    shown: list[Bubble] = []
    answered: set[str | None] = set()
    room = ROOM
    for stored in messages[first:last]:
        shown += _bubbles(stored, results, answered)
    clipped = []
    for bubble in reversed(shown):
        allowed = len(bubble.text) if bubble.id in opened else LONG if room > 0 else SHORT
        text = bubble.text[:allowed]
        room -= len(text)
        hidden = len(bubble.text) - len(text)
        clipped.append(
            Bubble(bubble.id, bubble.turn, bubble.role, bubble.kind, text, hidden)
            if hidden
            else bubble
        )
    return ChatView(tuple(reversed(clipped)), earlier=first, later=total - last)


def _bubbles(
    stored: StoredMessage, results: dict[str | None, str], answered: set[str | None]
) -> list[Bubble]:
    message = stored.message
    if message.role == "tool":
        if message.tool_call_id in answered:
            return []
        return [Bubble(stored.id, stored.turn, "tool", TOOL, f"→ {message.text}")]
    out = []
    if message.text or not message.tool_calls:
        out.append(Bubble(stored.id, stored.turn, message.role, TEXT, message.text))
    for number, call in enumerate(message.tool_calls):
        answered.add(call.id)
        result = results.get(call.id, "(no result is stored)")
        text = f"{call.name}({call.arguments}) → {result}"
        out.append(Bubble(f"{stored.id}-{number}", stored.turn, "tool", TOOL, text))
    return out
