"""What differs between two turns, and the budget over all of them, as rows to draw."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from memory_core.messages import Json, StoredMessage
from memory_core.notes import Column
from memory_core.prompt import Assembly, Source
from memory_core.state import Change
from memory_core.turn_diff import Moved, Piece, TurnDiff, TurnView, compare_turns
from ui.palette import swatch
from ui.view_models.buffer import SPEAKERS, shown_text
from ui.view_models.text import excerpt

POINTS = 240  # turns drawn in the area chart, however many there are
_QUOTED = 90  # characters of a moved thing


@dataclass(frozen=True)
class BudgetRow:
    """One source's tokens in both turns."""

    source: Source
    before: int
    after: int

    @property
    def label(self) -> str:
        """The letter and the name of the source."""
        look = swatch(self.source)
        return f"{look.letter} {look.label}"


@dataclass(frozen=True)
class DiffView:
    """All that differs between two turns, as lines of a diff (``+`` entered, ``-`` left).

    ``moved`` are messages, memories and key facts; ``summary`` the pieces of its text;
    ``state`` and ``settings`` one line a value.
    """

    before: int
    after: int
    moved: tuple[str, ...]
    summary: tuple[Piece, ...]
    state: tuple[str, ...]
    settings: tuple[str, ...]
    budget: tuple[BudgetRow, ...]
    entered: int
    left: int

    @property
    def headline(self) -> str:
        """The difference in a few characters."""
        tokens = sum(row.after - row.before for row in self.budget)
        return f"+{self.entered} in  -{self.left} out  {tokens:+,} tokens"

    @property
    def rewritten(self) -> bool:
        """Whether the summary's text differs."""
        return any(piece.kind != "same" for piece in self.summary)


@dataclass(frozen=True)
class Area:
    """Tokens of every turn's prompt by source; a sample of the turns where they are many."""

    turns: tuple[int, ...]
    tokens: Mapping[Source, tuple[int, ...]]
    limits: tuple[int, ...]
    skipped: int

    @property
    def alt(self) -> str:
        """The chart in words."""
        if not self.turns:
            return "No turn has sent a prompt yet."
        totals = [sum(column) for column in zip(*self.tokens.values(), strict=True)]
        end = self.limits[-1]
        limit = f"the limit at the end is {end:,} tokens" if end else "no limit to the whole"
        return (
            f"Tokens of the prompt by source, turns {self.turns[0]:,} to {self.turns[-1]:,}: "
            f"from {min(totals):,} to {max(totals):,}; {limit}."
        )


def diff_view(before: TurnView, after: TurnView, stored: Mapping[str, StoredMessage]) -> DiffView:
    """Return what differs between two turns; ``stored`` are the session's messages by id."""
    found = compare_turns(before, after)
    old, new = before.trace.assembly, after.trace.assembly
    facts = {f.id: f.text for view in (before, after) for f in view.state.key_facts}
    moved = (found.messages, found.memories, found.facts)
    return DiffView(
        before=found.before,
        after=found.after,
        moved=(
            *_messages(found.messages, stored),
            *_memories(found.memories, old, new),
            *_lines(found.facts, lambda item: f"key fact: {facts.get(item, item)}"),
        ),
        summary=found.summary,
        state=tuple(_changes(found.state)),
        settings=tuple(_changes(found.settings)),
        budget=_budget(found),
        entered=sum(len(m.entered) for m in moved),
        left=sum(len(m.left) for m in moved),
    )


def area(columns: Sequence[Column]) -> Area:
    """Return the budget of all turns that sent a prompt, at most :data:`POINTS` of them."""
    sent = [column for column in columns if column.prompted]
    step = max(1, -(-len(sent) // POINTS))
    shown = sent[::step]
    if sent and shown[-1] is not sent[-1]:
        shown.append(sent[-1])
    return Area(
        turns=tuple(column.turn for column in shown),
        tokens={
            source: tuple(column.tokens.get(source, 0) for column in shown)
            for source in Source
            if any(source in column.tokens for column in shown)
        },
        limits=tuple(column.limit for column in shown),
        skipped=len(sent) - len(shown),
    )


def _messages(moved: Moved, stored: Mapping[str, StoredMessage]) -> Iterable[str]:
    def told(item: str) -> str:
        message = stored.get(item)
        if message is None:
            return item
        who = SPEAKERS.get(message.message.role, message.message.role)
        return f"turn {message.turn} {who}: {shown_text(message.message)}"

    return _lines(moved, told)


def _memories(moved: Moved, *prompts: Assembly | None) -> Iterable[str]:
    texts = {
        hit.id: hit.text
        for prompt in prompts
        if prompt is not None and prompt.recall is not None
        for hit in prompt.recall.hits
    }
    return _lines(moved, lambda item: f"memory: {texts.get(item, item)}")


def _lines(moved: Moved, told: Callable[[str], str]) -> Iterable[str]:
    for mark, items in (("+", moved.entered), ("-", moved.left)):
        for item in items:
            yield f"{mark} {excerpt(' '.join(told(item).split()), _QUOTED)}"


def _changes(changes: Iterable[Change]) -> Iterable[str]:
    for change in changes:
        if change.before is not None:
            yield f"- {change.path}: {_json(change.before)}"
        if change.after is not None:
            yield f"+ {change.path}: {_json(change.after)}"


def _json(value: Json) -> str:
    return excerpt(json.dumps(value, ensure_ascii=False, default=str), 400)


def _budget(found: TurnDiff) -> tuple[BudgetRow, ...]:
    return tuple(BudgetRow(source, old, new) for source, old, new in found.tokens)
