"""From a message to parts that sum to its tokens, with named pieces of its text told apart.

A :class:`Mark` is a piece of text that is known to come from somewhere (a memory block, a
retrieved memory, a document); :func:`find` looks marks up in a message in order, and
:func:`parts_of` gives every token of the message to a mark or to the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memory_core.messages import Message
from memory_core.prompt import Part, Source
from memory_core.tokens import TokenCounter


@dataclass(frozen=True)
class Mark:
    """A text that may stand in a message, and where it came from."""

    text: str
    source: Source
    ids: tuple[str, ...] = ()
    score: float | None = None
    turn: int | None = None
    note: str = ""


@dataclass(frozen=True)
class Found:
    """A mark at its place: characters ``start`` to ``end``, exclusive."""

    mark: Mark
    start: int
    end: int


def find(text: str, marks: Sequence[Mark]) -> list[Found]:
    """Return the marks that stand in a text, in order, none over another.

    A mark that is not found after the one before it is looked for from the beginning, where
    nothing is marked yet; one that is not there at all is left out.
    """
    found: list[Found] = []
    cursor = 0
    for mark in marks:
        if not mark.text:
            continue
        start = _free(text, mark.text, cursor, found)
        if start < 0:
            start = _free(text, mark.text, 0, found)
        if start >= 0:
            cursor = start + len(mark.text)
            found.append(Found(mark, start, cursor))
    return sorted(found, key=lambda f: f.start)


def parts_of(
    message: Message,
    index: int,
    rest: Mark,
    counter: TokenCounter,
    found: Sequence[Found] = (),
) -> list[Part]:
    """Return the parts of a message: what was found in its text, and the rest.

    They sum to ``counter.message(message)``; what is no text (overhead, tool calls, pictures)
    goes to the first.
    """
    text = message.text
    pieces: list[tuple[Mark, int, int]] = []
    at = 0
    for item in found:
        if item.start > at:
            pieces.append((rest, at, item.start))
        pieces.append((item.mark, item.start, item.end))
        at = item.end
    if at < len(text) or not pieces:
        pieces.append((rest, at, len(text)))
    tokens = counter.spans(text, [end for _, _, end in pieces]) if text else [0]
    tokens[0] += counter.message(message) - counter.text(text)
    return [
        Part(
            source=mark.source,
            tokens=n,
            message=index,
            start=start,
            end=end,
            ids=mark.ids,
            turn=mark.turn,
            score=mark.score,
            note=mark.note,
        )
        for (mark, start, end), n in zip(pieces, tokens, strict=True)
    ]


def _free(text: str, wanted: str, start: int, taken: Sequence[Found]) -> int:
    """Return where ``wanted`` stands from ``start`` on outside of what is taken, -1: nowhere."""
    at = text.find(wanted, start)
    while at >= 0:
        over = [f.end for f in taken if f.start < at + len(wanted) and at < f.end]
        if not over:
            return at
        at = text.find(wanted, max(over))
    return -1
