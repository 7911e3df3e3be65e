"""What the Doctor says about a turn, as rows to draw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memory_core.doctor import CHECKS, examine
from memory_core.trace import TurnTrace

LOOKED_BACK = 12  # turns before, for what only shows over time


@dataclass(frozen=True)
class DoctorNote:
    """One fault: what it is, what happened with the numbers, what avoids it."""

    id: str
    title: str
    text: str
    advice: str


@dataclass(frozen=True)
class DoctorView:
    """All notes on a turn, and how many checks were made."""

    turn: int
    checks: int
    notes: tuple[DoctorNote, ...]


def doctor_view(trace: TurnTrace, before: Sequence[TurnTrace]) -> DoctorView:
    """Return the notes on a turn, given the turns before it, oldest first."""
    titles = {check.id: check.title for check in CHECKS}
    notes = tuple(
        DoctorNote(f.check, _headline(titles[f.check]), f.text, f.advice)
        for f in examine(trace, before)
    )
    return DoctorView(trace.number, len(CHECKS), notes)


def _headline(title: str) -> str:
    return title[:1].upper() + title[1:]
