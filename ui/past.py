"""The turns that were, read from the store once each: they never change."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from memory_core.messages import Message
from memory_core.summary import Summary
from memory_core.trace import TurnTrace, trace_from_json
from ui.charts import TURNS_SHOWN
from ui.view_models.budget import TurnBar, turn_bars
from ui.view_models.doctor import LOOKED_BACK, DoctorView, doctor_view

if TYPE_CHECKING:
    from memory_core.chat import Chat

_KEPT = ("remembered", "duplicate")  # after these a turn stands in long-term memory


@dataclass
class Past:
    """A reading cache of one chat's turns. Superseded turns are known and left out."""

    chat: Chat
    _traces: dict[int, TurnTrace] = field(default_factory=dict)
    _read: set[int] = field(default_factory=set)
    _examined: dict[int, DoctorView] = field(default_factory=dict)

    def turns(self, first: int, last: int) -> list[TurnTrace]:
        """Return the active turns of a range, oldest first, reading what is missing."""
        first, last = max(1, first), min(last, self.chat.turns)
        missing = [n for n in range(first, last + 1) if n not in self._read]
        if missing:
            self._take(missing[0], missing[-1])
        replaced = {t.supersedes for t in self._traces.values() if t.supersedes}
        numbers = (n for n in range(first, last + 1) if n in self._traces and n not in replaced)
        return [self._traces[n] for n in numbers]

    def newest(self) -> list[TurnTrace]:
        """Return the newest active turns."""
        return self.turns(self.chat.turns - TURNS_SHOWN + 1, self.chat.turns)

    def bars(self) -> tuple[TurnBar, ...]:
        """Return the budget bars of the newest turns."""
        return turn_bars(self.newest())

    def summaries(self) -> list[Summary]:
        """Return the versions of the summary that the newest turns wrote, oldest first."""
        return [t.summary for t in self.newest() if t.summary is not None]

    def remembered(self, numbers: Iterable[int]) -> frozenset[int]:
        """Return which of these turns stand in long-term memory."""
        wanted = set(numbers)
        if not wanted:
            return frozenset()
        return frozenset(
            trace.number
            for trace in self.turns(min(wanted), max(wanted))
            if any(write.action in _KEPT for write in trace.memories)
        )

    def doctor(self, trace: TurnTrace) -> DoctorView:
        """Return what the Doctor says of a turn, looked at once."""
        if trace.number not in self._examined:
            before = self.turns(trace.number - LOOKED_BACK, trace.number - 1)
            self._examined[trace.number] = doctor_view(trace, before)
        return self._examined[trace.number]

    def _take(self, first: int, last: int) -> None:
        session = self.chat.session
        if session.store is None:
            return
        active = {m.id: m.message for m in self.chat.messages}

        def find(ids: Iterable[str]) -> dict[str, Message]:
            wanted = list(ids)
            known = {i: active[i] for i in wanted if i in active}
            return known if len(known) == len(wanted) else session.find(wanted)

        for row in session.store.turns(self.chat.key, first=first, last=last):
            self._read.add(row.number)
            if not row.superseded_by:
                self._traces[row.number] = trace_from_json(row.trace, find)
