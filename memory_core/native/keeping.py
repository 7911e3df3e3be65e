"""Real object and record kept together: after a restart, a step back, a failure, an import.

:class:`Keeping` knows after which turn the real object's state was logged last. When a turn
begins it compares what the object was given with the record, and what it keeps in a database
with what it left there; where they differ, the object gets its state of the last turn both know,
and then what is new. A state is logged just before its turn is committed, so a logged state of a
turn that is not in the record is simply never read.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from memory_core.errors import MemoryInspectorError
from memory_core.llama import to_chat
from memory_core.messages import StoredMessage
from memory_core.native.adapter import Adapter, State
from memory_core.native.log import StateLog
from memory_core.session import OpenTurn, Session

log = logging.getLogger("memory_core.native")

_NOTHING = -1  # the turn before any: no state was logged


class Keeping:
    """Keeps one real object in step with the record of its session.

    ``skipped`` are ids in the record that the object was never given. ``broken`` is set when the
    object failed in the middle of a write: it is then made again from its last state.
    """

    def __init__(self, session: Session, adapter: Adapter, log: StateLog) -> None:
        self.skipped: set[str] = set()
        self.broken = False
        self._session, self._adapter, self._log = session, adapter, log
        self._at: int | None = None
        self._draft = State()

    async def catch_up(self, turn: OpenTurn | None) -> None:
        """Bring the object up to the record, as it is before ``turn``."""
        first = turn.first if turn is not None else len(self._session.messages)
        record = self._session.messages[:first]
        if self._at is None:
            await self._open(record)
        wanted = [stored for stored in record if stored.id not in self.skipped]
        given = _ids(self._adapter.given.messages)
        apart = self.broken or given != _ids(wanted)[: len(given)]
        if apart or not await self._adapter.intact():
            await self._go_back(wanted, turn)
        await self._give(wanted[len(self._adapter.given.messages) :])

    def keep(self, turn: OpenTurn) -> None:
        """Log the state that the object has at the end of ``turn``.

        A turn that is closed again is logged whole again. An object that failed is not trusted.
        """
        if self.broken:
            return
        self._gather()
        problem = self._write(turn.number, self._at or 0, self._draft)
        if problem:
            turn.degrade(f"{problem} After a restart it is made again from the record.")

    def committed(self, turn: OpenTurn) -> None:
        """Note that the record has the turn too."""
        if not self.broken:
            self._at, self._draft = turn.number, State()

    def state(self) -> State:
        """Return the whole state as it is now: what was logged, and what is new since."""
        kept = self._log.state(self._at) if self._at is not None else None
        new = self._gather()
        records = {r["id"]: r for r in (kept.added if kept is not None else ())}
        for gone in self._draft.removed:
            records.pop(gone, None)
        records |= {r["id"]: r for r in self._draft.added}
        return State(new.data, tuple(records.values()))

    def _gather(self) -> State:
        """Take what is new from the object into the draft of this turn's state."""
        new = self._adapter.dump()
        gone = set(new.removed)
        self._draft = State(
            new.data,
            (*(r for r in self._draft.added if r["id"] not in gone), *new.added),
            (*self._draft.removed, *new.removed),
        )
        return new

    async def _open(self, record: Sequence[StoredMessage]) -> None:
        """Give a fresh object the newest state that belongs to the record, or the history."""
        at = self._newest(record)
        if at is None:
            await self._adapter.seed(list(record))
            self._at = record[-1].turn if record else 0
            self._write(self._at, _NOTHING, self._adapter.dump())
        else:
            self._at = at
            await self._restore(at, record)

    async def _go_back(self, wanted: Sequence[StoredMessage], turn: OpenTurn | None) -> None:
        """Give the object the state from which this turn begins."""
        at = self._log.base(turn.supersedes) if turn is not None and turn.supersedes else None
        if at is None:
            at = self._newest(wanted)
        self.broken, self._draft = False, State()
        if at is None:
            await self._adapter.seed([])
        else:
            await self._restore(at, wanted)
        self._at = at or 0

    async def _restore(self, at: int, record: Sequence[StoredMessage]) -> None:
        """Give the object the state that was logged after turn ``at``."""
        state = self._log.state(at) or State()
        self.skipped |= set(state.data.get("skipped", ()))
        known = [m for m in record if m.turn <= at and m.id not in self.skipped]
        await self._adapter.restore(replace(state, data=state.data.get("own", {})), known)

    async def _give(self, stored: Sequence[StoredMessage]) -> None:
        """Give the object messages of the record that it has not seen."""
        if stored:
            chats = [to_chat(message.message) for message in stored]
            await self._adapter.memory.aput_messages(chats)
            self._adapter.put(stored)

    def _newest(self, record: Sequence[StoredMessage]) -> int | None:
        """Return the newest turn of the record whose state was logged."""
        turns = sorted({stored.turn for stored in record} | {0}, reverse=True)
        return next((n for n in turns if self._log.base(n) is not None), None)

    def _write(self, turn: int, base: int, state: State) -> str:
        """Write a state to the log; return what went wrong, if anything did."""
        data = {"own": dict(state.data), "skipped": sorted(self.skipped)}
        try:
            self._log.write(turn, base, replace(state, data=data))
        except MemoryInspectorError as exc:
            log.warning("%s", exc)
            return str(exc)
        return ""


def _ids(messages: Sequence[StoredMessage]) -> list[str]:
    return [message.id for message in messages]
