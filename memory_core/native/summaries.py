"""Summaries that a strategy writes by itself, told to the session turn by turn.

A class may summarise more than once in a turn: for the prompt that is sent, and again when the
agent asks once more with its answer. A turn has the summary that its prompt was sent with; what
is written after that belongs to the next turn, for whose prompt it is the first time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace

from memory_core.messages import Json
from memory_core.session import Session
from memory_core.summary import Summary
from memory_core.trace import REPLY


class SummaryNotes:
    """Keeps which summary is the running turn's and which one waits for the next."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._waiting: Summary | None = None

    def note(self, text: str, *, folded: Sequence[str], covers: int) -> None:
        """Take in a summary that was written just now, of these messages and what was before."""
        session, turn = self._session, self._session.turn
        summary = Summary(
            version=session.summary.version + 1,
            text=text,
            tokens=session.counter.text(text),
            covers=covers,
            folded=tuple(folded),
            turn=turn.number if turn is not None else session.last_turn,
        )
        sent = turn is not None and any(call.purpose == REPLY for call in turn.calls)
        unsent = self._waiting if sent else turn.summary if turn is not None else None
        if unsent is not None:  # nothing was sent with it: this one is in its place
            both = (*unsent.folded, *summary.folded)
            summary = replace(summary, version=unsent.version, folded=both)
        session.summary = summary
        if sent:
            self._waiting = summary
        elif turn is not None:
            turn.summary = summary

    def begin(self) -> None:
        """Give the turn that begins what was written after the last one's prompt."""
        turn = self._session.turn
        if turn is not None and self._waiting is not None:
            turn.summary = replace(self._waiting, turn=turn.number)
            self._session.summary, self._waiting = turn.summary, None

    def dump(self) -> Mapping[str, Json]:
        """Return what waits, to keep it through a restart."""
        return {} if self._waiting is None else {"waiting": asdict(self._waiting)}

    def restore(self, data: Mapping[str, Json]) -> None:
        """Take back what waited."""
        kept = data.get("waiting")
        self._waiting = None
        if kept:
            tuples = {name: tuple(v) for name, v in kept.items() if isinstance(v, (list, tuple))}
            self._session.summary = self._waiting = Summary(**{**kept, **tuples})
