"""Small pieces of text that several panels share: excerpts, counts, differences."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

EXCERPT = 140  # characters of a text in a table cell
_TOO_LONG_TO_DIFF = 20_000  # characters; difflib is quadratic


def excerpt(text: str, length: int = EXCERPT) -> str:
    """Return a text as it is, or its first ``length`` characters and how many are not shown.

    >>> excerpt("abcdef", 4)
    'abcd… (+2 characters)'
    """
    if len(text) <= length:
        return text
    return f"{text[:length]}… (+{len(text) - length:,} characters)"


def plural(count: int, noun: str) -> str:
    """Return a count with its noun.

    >>> plural(1, "message"), plural(1200, "message")
    ('1 message', '1,200 messages')
    """
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


@dataclass(frozen=True)
class DiffLine:
    """One line of a text difference: ``mark`` is ``+`` (new), ``-`` (gone) or a space (kept)."""

    mark: str
    text: str


def text_diff(before: str, after: str) -> tuple[DiffLine, ...]:
    """Return the difference between two texts, sentence by sentence.

    Texts beyond 20,000 characters are shown as wholly replaced: comparing them would stall.
    """
    old, new = _sentences(before), _sentences(after)
    if len(before) + len(after) > _TOO_LONG_TO_DIFF:
        return (*(DiffLine("-", s) for s in old), *(DiffLine("+", s) for s in new))
    lines = []
    matcher = difflib.SequenceMatcher(a=old, b=new, autojunk=False)
    for tag, a1, a2, b1, b2 in matcher.get_opcodes():
        if tag == "equal":
            lines += [DiffLine(" ", s) for s in old[a1:a2]]
        else:
            lines += [DiffLine("-", s) for s in old[a1:a2]]
            lines += [DiffLine("+", s) for s in new[b1:b2]]
    return tuple(lines)


def _sentences(text: str) -> list[str]:
    """Split at line ends and after full stops, keeping every character but the white space."""
    out: list[str] = []
    for line in text.splitlines():
        start = 0
        for i, character in enumerate(line):
            ends = character in ".!?" and i + 1 < len(line) and line[i + 1] == " "
            if ends:
                out.append(line[start : i + 1].strip())
                start = i + 1
        out.append(line[start:].strip())
    return [s for s in out if s]
