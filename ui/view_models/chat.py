"""The chat as bubbles: a window of messages, tool steps folded into one line each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from memory_core.messages import StoredMessage

WINDOW = 50  # messages drawn at once, however long the chat is
ROOM = 7_000  # bytes of text drawn at once: fewer messages where they are long
LEAST = 3  # messages drawn however long they are
LONG = 1_000  # characters of one message drawn before it is opened

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
    room: int = ROOM,
    opened: frozenset[str] = frozenset(),
) -> ChatView:
    """Return the messages that end before position ``end`` of the list (default: all of it).

    At most ``size`` messages, and no more than fit in ``room`` bytes of text. A tool call and its
    result are one bubble. ``opened`` are ids of messages to show whole.
    """
    total = len(messages)
    last = total if end is None else min(max(end, 1), total)
    first = _first(messages, last, size, room)
    results = {
        m.message.tool_call_id: m.message.text
        for m in messages[first:last]
        if m.message.role == "tool"
    }
    shown: list[Bubble] = []
    answered: set[str | None] = set()
    for stored in messages[first:last]:
        shown += _bubbles(stored, results, answered)
    bubbles = tuple(b if b.id in opened else _clipped(b) for b in shown)
    return ChatView(bubbles, earlier=first, later=total - last)


def _first(messages: Sequence[StoredMessage], last: int, size: int, room: int) -> int:
    """Return where a window begins that ends at ``last``: as early as room and size allow."""
    first = last
    while first > 0 and last - first < size:
        room -= len(messages[first - 1].message.text[:LONG].encode("utf-8", "replace"))
        if room < 0 and last - first >= LEAST:
            break
        first -= 1
    return first


def _clipped(bubble: Bubble) -> Bubble:
    hidden = max(0, len(bubble.text) - LONG)
    return replace(bubble, text=bubble.text[:LONG], hidden=hidden) if hidden else bubble


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
