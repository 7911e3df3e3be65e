"""What differs between two turns: buffer, memories, summary, state, settings and budget.

Everything is read from what the two turns left behind; the order of the two is the reader's
choice, so "entered" means in the second and not in the first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher

from memory_core.contents import Contents
from memory_core.prompt import Source
from memory_core.state import AgentState, Change, diff
from memory_core.summary import NO_SUMMARY, Summary
from memory_core.trace import TurnTrace

SAME, REMOVED, ADDED = "same", "removed", "added"
_WORDS = re.compile(r"\w+\s*|[^\w\s]\s*|\s+")
_MAX_WORDS = 3_000  # beyond, line by line: comparing words costs their product at worst


@dataclass(frozen=True)
class TurnView:
    """A turn as it can be compared: its trace, and state and summary as they were with it."""

    trace: TurnTrace
    state: AgentState
    summary: Summary = NO_SUMMARY


@dataclass(frozen=True)
class Piece:
    """A stretch of text that is the ``same`` in both, ``removed`` from the first or ``added``."""

    kind: str
    text: str


@dataclass(frozen=True)
class Moved:
    """Ids that entered, left and stayed, each in the order of its prompt."""

    entered: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    stayed: tuple[str, ...] = ()


@dataclass(frozen=True)
class TurnDiff:
    """All that differs between turns ``before`` and ``after``.

    ``tokens`` has the tokens of each source in both prompts, for every source that is in one.
    """

    before: int
    after: int
    messages: Moved = field(default_factory=Moved)
    memories: Moved = field(default_factory=Moved)
    facts: Moved = field(default_factory=Moved)
    summary: tuple[Piece, ...] = ()
    state: tuple[Change, ...] = ()
    settings: tuple[Change, ...] = ()
    tokens: tuple[tuple[Source, int, int], ...] = ()


def compare_turns(before: TurnView, after: TurnView) -> TurnDiff:
    """Return what differs between two turns of a session."""
    first, second = before.trace.assembly, after.trace.assembly
    had, has = Contents.of(first), Contents.of(second)
    old = first.tokens_by_source() if first is not None else {}
    new = second.tokens_by_source() if second is not None else {}
    return TurnDiff(
        before=before.trace.number,
        after=after.trace.number,
        messages=moved(had.messages, has.messages),
        memories=moved(had.memories, has.memories),
        facts=moved(had.facts, has.facts),
        summary=text_diff(before.summary.text, after.summary.text),
        state=diff(before.state, after.state),
        settings=_settings(before.trace, after.trace),
        tokens=tuple((s, old.get(s, 0), new.get(s, 0)) for s in Source if s in old or s in new),
    )


def moved(before: Sequence[str], after: Sequence[str]) -> Moved:
    """Return which ids entered, left and stayed."""
    had, has = frozenset(before), frozenset(after)
    return Moved(
        tuple(i for i in after if i not in had),
        tuple(i for i in before if i not in has),
        tuple(i for i in after if i in had),
    )


def text_diff(before: str, after: str) -> tuple[Piece, ...]:
    """Return the pieces that lead from one text to the other, word by word.

    The ``same`` and ``removed`` pieces make up the first text, ``same`` and ``added`` the second.

    >>> [(p.kind, p.text) for p in text_diff("lives in Porto", "lives in Faro")]
    [('same', 'lives in '), ('removed', 'Porto'), ('added', 'Faro')]
    """
    old, new = _WORDS.findall(before), _WORDS.findall(after)
    if len(old) + len(new) > _MAX_WORDS:
        old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    pieces: list[Piece] = []
    matcher = SequenceMatcher(None, old, new)  # subtle: popular words are no anchors, or it crawls
    for action, a, b, c, d in matcher.get_opcodes():
        if action == "equal":
            pieces += _piece(SAME, old[a:b])
            continue
        pieces += _piece(REMOVED, old[a:b])
        pieces += _piece(ADDED, new[c:d])
    return tuple(pieces)


def _piece(kind: str, words: Sequence[str]) -> Iterable[Piece]:
    return (Piece(kind, "".join(words)),) if words else ()


def _settings(before: TurnTrace, after: TurnTrace) -> tuple[Change, ...]:
    old, new = before.settings, after.settings
    names = [*old, *(name for name in new if name not in old)]
    return tuple(
        Change(name, old.get(name), new.get(name))
        for name in names
        if old.get(name) != new.get(name)
    )
