"""A session read back: every message ever said, any turn's scene, the ledger folded bit by bit.

One :class:`Chronicle` is kept per visitor and open session. A scene costs one trace; the ledger
costs all of them, so it is folded in slices while the page is looked at, and only once: the next
turn is added to it, nothing is read again.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from memory_core import reading
from memory_core.ledger import Ledger
from memory_core.messages import Message, StoredMessage
from memory_core.state import AgentState
from memory_core.summary import NO_SUMMARY, Summary
from memory_core.trace import TurnTrace, trace_from_json
from memory_core.turn_diff import TurnView
from ui.charts import TURNS_SHOWN
from ui.past import Past
from ui.scene import Scene, settings_of

if TYPE_CHECKING:
    from memory_core.chat import Chat
    from ui.state import PageState

SLICE = 0.4  # seconds of folding per look of the page
_BLOCK = 50  # turns read at once
_TRACES_KEPT = 64


@dataclass
class PastAsOf(Past):
    """The turns that were when turn ``end`` was the newest."""

    end: int = 0

    def newest(self) -> list[TurnTrace]:
        """Return the newest active turns up to ``end``."""
        return self.turns(self.end - TURNS_SHOWN + 1, self.end)


@dataclass
class Chronicle:
    """What can be read of one session's past; ``folded`` turns of it are in the ledger."""

    chat: Chat
    ledger: Ledger
    folded: int = 0
    past: PastAsOf = field(init=False)
    _said: tuple[int, tuple[StoredMessage, ...]] | None = None
    _replaced: dict[int, int] = field(default_factory=dict)
    _traces: dict[int, TurnTrace] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.past = PastAsOf(self.chat)

    @property
    def turns(self) -> int:
        """How many turns there are, superseded ones included."""
        return self.chat.turns

    @property
    def complete(self) -> bool:
        """Whether the ledger knows every turn."""
        return self.folded >= self.turns

    def fold(self, seconds: float = SLICE) -> None:
        """Take turns into the ledger until the time is used up, at least a block of them."""
        until = time.monotonic() + seconds
        while not self.complete:
            last = min(self.folded + _BLOCK, self.turns)
            for trace in self._read(self.folded + 1, last):
                self.ledger.extend(trace)
            self.folded = last
            if time.monotonic() >= until:
                return

    def trace(self, turn: int) -> TurnTrace:
        """Return the trace of a turn; raise :class:`NotFound` when there is none."""
        if turn not in self._traces:
            if len(self._traces) >= _TRACES_KEPT:
                self._traces.clear()
            self._traces[turn] = self.chat.trace(turn)
        return self._traces[turn]

    def said(self) -> tuple[StoredMessage, ...]:
        """Return every message of the session, superseded ones included, oldest first."""
        if self._said is None or self._said[0] != self.turns:
            store = self.chat.session.store
            found = self.chat.messages if store is None else self._everything()
            self._said = (self.turns, tuple(found))
            self.__dict__.pop("message", None)
        return self._said[1]

    @cached_property
    def message(self) -> Mapping[str, StoredMessage]:
        """Every message of the session by id."""
        return {m.id: m for m in self.said()}

    def messages_at(self, turn: int) -> tuple[StoredMessage, ...]:
        """Return the messages that were active after this turn, oldest first."""
        said, gone = self.said(), self._replaced
        return tuple(m for m in said if m.turn <= turn and not 0 < gone.get(m.turn, 0) <= turn)

    def scene_at(self, turn: int, page: PageState) -> Scene | None:
        """Return what the panels show of a turn, ``None`` where it sent no prompt."""
        trace = self.trace(turn)
        if trace.assembly is None:
            return None
        view = self.view_at(turn)
        self.past.end = turn
        return Scene(
            sent=True,
            turn=turn,
            assembly=trace.assembly,
            settings=settings_of(trace, page.settings),
            messages=self.messages_at(turn),
            state=view.state,
            summary=view.summary,
            trace=trace,
            what_if=None,
            blocks=reading.blocks(trace),
        )

    def view_at(self, turn: int) -> TurnView:
        """Return a turn with the state and the summary that held after it."""
        trace = self.trace(turn)
        return TurnView(trace, self._state(trace), self._summary(turn))

    def _everything(self) -> list[StoredMessage]:
        """Read all messages, and for superseded ones the turn that replaced theirs."""
        store, key = self.chat.session.store, self.chat.key
        if store is None:
            return []
        said = store.messages(key, superseded=True)
        active = {m.id for m in self.chat.messages}
        for turn in {m.turn for m in said if m.id not in active} - self._replaced.keys():
            rows = store.turns(key, first=turn, last=turn)
            self._replaced[turn] = rows[0].superseded_by if rows else 0
        return said

    def _read(self, first: int, last: int) -> Iterable[TurnTrace]:
        store = self.chat.session.store
        if store is None:
            return
        self.said()

        def find(ids: Iterable[str]) -> dict[str, Message]:
            return {i: self.message[i].message for i in ids}

        for row in store.turns(self.chat.key, first=first, last=last):
            yield trace_from_json(row.trace, find)

    def _state(self, trace: TurnTrace) -> AgentState:
        session = self.chat.session
        if trace.state_version == session.state.version:
            return session.state
        if session.store is None or not trace.state_version:
            return AgentState(user=session.key.user, session=session.key.session)
        return session.store.state(self.chat.key, trace.state_version)

    def _summary(self, turn: int) -> Summary:
        """Return the summary that held after a turn."""
        if turn <= self.folded:
            column = self.ledger.columns[self.ledger.column_of(turn)]
            return column.made or column.summary
        store = self.chat.session.store
        if store is None:
            return NO_SUMMARY
        for last in range(turn, 0, -_BLOCK):
            rows = store.turns(self.chat.key, first=max(1, last - _BLOCK + 1), last=last)
            for row in reversed(rows):
                if row.summary is not None and not 0 < row.superseded_by <= turn:
                    return row.summary
        return NO_SUMMARY


def chronicle_of(page: PageState) -> Chronicle | None:
    """Return the chronicle of the open session, made anew when another one is open."""
    chat = page.chat
    if chat is None:
        return None
    kept = page.chronicle
    if kept is None or kept.chat is not chat:
        seeded = [m.id for m in chat.messages if not m.turn]
        kept = page.chronicle = Chronicle(chat, Ledger(seeded))
    return kept
