"""The running summary: its text, what it covers, which key facts it kept, how it changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memory_core.messages import StoredMessage
from memory_core.state import KeyFact
from memory_core.summary import Summary
from ui.view_models.text import DiffLine, plural, text_diff

KEPT, LOST, UNCHECKED = "kept", "lost", "not checked"


@dataclass(frozen=True)
class FactRow:
    """A key fact; ``standing`` says whether the summary's text still holds it."""

    id: str
    text: str
    turn: int
    source: str
    standing: str

    @property
    def mark(self) -> str:
        """A tick, a cross or a dash."""
        return {KEPT: "✓", LOST: "✗"}.get(self.standing, "·")


@dataclass(frozen=True)
class SummaryView:
    """One version of the summary beside the version before it."""

    version: int
    text: str
    tokens: int
    covers: str
    facts: tuple[FactRow, ...]
    versions: tuple[int, ...]
    diff: tuple[DiffLine, ...]
    notes: tuple[str, ...]

    @property
    def label(self) -> str:
        """A few characters for the panel's tab."""
        return f"Summary v{self.version}" if self.version else "Summary"

    @property
    def lost(self) -> int:
        """How many key facts the summary's text lost."""
        return sum(1 for fact in self.facts if fact.standing == LOST)


def summary_view(
    summary: Summary,
    *,
    facts: Sequence[KeyFact],
    messages: Sequence[StoredMessage],
    earlier: Sequence[Summary] = (),
    notes: Sequence[str] = (),
) -> SummaryView:
    """Return what there is to see of a summary.

    ``messages`` is the active history, oldest first, of which the summary covers the oldest;
    ``earlier`` are its former versions. The difference is to the newest of them.
    """
    kept, lost = frozenset(summary.kept), frozenset(summary.lost)
    former = [s for s in earlier if s.version < summary.version]
    before = max(former, key=lambda s: s.version).text if former else ""
    return SummaryView(
        version=summary.version,
        text=summary.text,
        tokens=summary.tokens,
        covers=_covers(summary, messages),
        facts=tuple(
            FactRow(
                f.id,
                f.text,
                f.turn,
                f.source,
                KEPT if f.id in kept else LOST if f.id in lost else UNCHECKED,
            )
            for f in facts
        ),
        versions=tuple(sorted({s.version for s in (*former, summary) if s.version})),
        diff=text_diff(before, summary.text) if before else (),
        notes=tuple(note for note in notes if "summar" in note.lower()),
    )


def _covers(summary: Summary, messages: Sequence[StoredMessage]) -> str:
    if not summary.covers or not messages:
        return "covers nothing yet"
    last = messages[min(summary.covers, len(messages)) - 1].turn
    turns = f"turns 1 to {last}" if last > 1 else "turn 1"
    return f"covers the oldest {plural(summary.covers, 'message')}, {turns}"
