"""A conversation as turns that can be said again: a question, and the answer that was given."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

from memory_core.lab.comparison import Conversation

NO_ANSWER = "…"  # stands for an answer that is not known


@dataclass(frozen=True)
class Said:
    """One turn: its number, its question at index ``first``, its answer at index ``answered``.

    Without an answer in the conversation ``answered`` is ``None``.
    """

    turn: int
    first: int
    question: str
    answer: str
    answered: int | None


def script_of(conversation: Conversation) -> tuple[list[Said], tuple[str, ...]]:
    """Return the turns that can be said again, and sentences about what cannot."""
    out, left = [], 0
    numbered = enumerate(zip(conversation.turns, conversation.messages, strict=True))
    for turn, group in groupby(numbered, key=lambda item: item[1][0]):
        messages = [(at, message) for at, (_, message) in group]
        first = next(((at, m) for at, m in messages if m.role == "user"), None)
        if first is None:
            left += len(messages)
            continue
        answers = [
            (at, m)
            for at, m in messages
            if m.role == "assistant" and m.text.strip() and at > first[0]
        ]
        answered = answers[-1][0] if answers else None
        left += len(messages) - 1 - (answered is not None)
        answer = answers[-1][1].text if answers else NO_ANSWER
        out.append(Said(turn, first[0], first[1].text, answer, answered))
    if not left:
        return out, ()
    told = (
        f"{left:,} messages that are no question and no last answer of a turn (tools, steps, "
        "greetings) are not played; planned columns have them."
    )
    return out, (told,)
