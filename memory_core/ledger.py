"""The fate ledger: all turns of a session folded into what lived where, and when it moved.

:class:`Ledger` reads traces in order, once each, and can be extended by the next one. Extending
costs the size of that turn's prompt and of what changed; nothing is done per message of the
history. A summary covers the oldest active messages, so one number a column (the first row not
covered) stands for all of them. :meth:`Ledger.view` expands only the cells asked for.

Columns count from 0, one a trace; ``ledger.columns[c].turn`` is the turn's number. A column
speaks of the *last* prompt of its turn: what the turn wrote afterwards (its answer, its
memories) counts from the next column on.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from memory_core.buffer import WindowPlan
from memory_core.contents import Contents, searched, summary_id
from memory_core.fate import FACT, IN_PROMPT, MEMORY, MESSAGE, STATE, SUMMARY, Fate, Track
from memory_core.messages import Json
from memory_core.prompt import Assembly, Gate
from memory_core.state import Change, KeyFact
from memory_core.summary import NO_SUMMARY, Summary
from memory_core.trace import MemoryWrite, TurnTrace

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FACT_PATH = "key_facts."  # the state path of a key fact is this and its id


@dataclass(frozen=True, slots=True)
class Column:
    """What one turn says about everything at once.

    ``group`` are the ids of the newest messages that did not fit. ``summary`` is the version
    that held when the prompt was made and ``sent`` whether it stood in it; rows below ``edge``
    were covered by it. ``rows`` are the messages that the turn stored.
    """

    turn: int
    prompted: bool
    window: WindowPlan | None
    group: frozenset[str]
    summary: Summary
    edge: int
    sent: bool
    query: str
    rows: range
    changes: tuple[Change, ...]
    written: tuple[MemoryWrite, ...]
    made: Summary | None


class Found(NamedTuple):
    """One search that a memory turned up in; ``gate`` is ``None`` when it was used."""

    column: int
    rank: int
    similarity: float
    gate: Gate | None
    reason: str


class Noted(NamedTuple):
    """Something that was done to a thing in a column: the word for it, before and after."""

    column: int
    action: str
    before: Json = None
    after: Json = None


class Ledger:
    """What happened to every message, fact, summary, memory and state key of a session.

    ``seeded`` are the ids of messages that were there before the first turn, oldest first.
    """

    def __init__(self, seeded: Iterable[str] = ()) -> None:
        self.columns: list[Column] = []
        kept, dead = (Fate.LONG_TERM, Fate.UNSENT), Fate.SUPERSEDED
        self.tracks = {
            MESSAGE: Track(*kept, dead, Fate.KEY_FACT, Fate.RETRIEVED, Fate.PROMPT),
            FACT: Track(Fate.UNSENT, dead, Fate.KEY_FACT),
            SUMMARY: Track(Fate.UNSENT, dead, Fate.SUMMARY),
            MEMORY: Track(Fate.LONG_TERM, dead, Fate.RETRIEVED),
            STATE: Track(Fate.UNSENT, dead, Fate.PROMPT),
        }
        self.found: dict[str, list[Found]] = {}
        self.noted: dict[tuple[str, str], list[Noted]] = {}
        self.told: dict[str, KeyFact] = {}
        self.made_from: dict[str, tuple[str, ...]] = {}
        self.summaries: dict[str, Summary] = {}
        self._active: list[int] = []
        self._chain: list[tuple[str, int]] = []  # (id, edge) of the versions that led here
        self._state: dict[str, Json] = {}
        self._holders: dict[tuple[Fate, str], set[str]] = {}
        for item in seeded:
            self._active.append(self.tracks[MESSAGE].add(item, -1))

    @classmethod
    def fold(cls, traces: Iterable[TurnTrace], *, seeded: Iterable[str] = ()) -> Ledger:
        """Return the ledger of these traces, oldest first."""
        ledger = cls(seeded)
        for trace in traces:
            ledger.extend(trace)
        return ledger

    @property
    def turns(self) -> list[int]:
        """The numbers of the turns taken in, one a column."""
        return [column.turn for column in self.columns]

    @property
    def summary(self) -> Summary:
        """The newest summary that holds."""
        return self.summaries[self._chain[-1][0]] if self._chain else NO_SUMMARY

    def column_of(self, turn: int) -> int:
        """Return the column of a turn; raise :class:`KeyError` when no trace of it was read."""
        at = bisect_left(self.columns, turn, key=lambda column: column.turn)
        if at == len(self.columns) or self.columns[at].turn != turn:
            raise KeyError(turn)
        return at

    def extend(self, trace: TurnTrace) -> None:
        """Take in the next turn."""
        if self.columns and trace.number <= self.columns[-1].turn:
            raise ValueError(f"turn {trace.number} comes after turn {self.columns[-1].turn}")
        self.told |= {fact.id: fact for fact in trace.facts}
        at = len(self.columns)
        if trace.supersedes:
            self._undo(trace.supersedes, at)
        held = Contents.of(trace.assembly)
        rows = self._add_messages(held.messages, trace.appended, at)
        # A summary round and its key facts come before the prompt, unless the prompt shows that
        # they came after it.
        late = self.summary.version > 0 and held.holds(self.summary)
        if trace.summary is not None and not late:
            self._adopt(trace.summary, at)
        known = {*held.facts, *held.refused}
        early = [c for c in trace.changes if c.path.removeprefix(FACT_PATH) in known]
        for change in early:
            self._change(change, "changed", at, at)
        self._search(trace.assembly, at)
        self._mark(held, at)
        self.columns.append(
            Column(
                turn=trace.number,
                prompted=trace.assembly is not None,
                window=trace.assembly.window if trace.assembly is not None else None,
                group=held.group,
                summary=self.summary,
                edge=self._chain[-1][1] if self._chain else 0,
                sent=held.holds(self.summary),
                query=trace.query,
                rows=rows,
                changes=trace.changes,
                written=trace.memories,
                made=trace.summary,
            )
        )
        if trace.summary is not None and late:
            self._adopt(trace.summary, at + 1)
        for change in trace.changes:
            if change not in early:
                self._change(change, "changed", at, at + 1)
        for write in trace.memories:
            self._write(write, trace.appended, at)

    def view(self, kind: str, rows: range, columns: range) -> NDArray[np.uint8]:
        """Return the codes of these cells, an array of shape (rows, columns).

        Both ranges have step 1; what lies outside of the ledger is left out.
        """
        import numpy as np

        track = self.tracks[kind]
        rows, columns = _within(rows, len(track)), _within(columns, len(self.columns))
        out = track.blank(rows, columns)
        if not out.size:
            return out
        about = self.columns[columns.start : columns.stop]
        track.paint(out, rows, columns, (Fate.LONG_TERM, Fate.UNSENT))
        covered = np.zeros(out.shape, dtype=bool)
        if kind == MESSAGE:
            edges = np.asarray([column.edge for column in about])
            covered = np.arange(rows.start, rows.stop)[:, None] < edges[None, :]
            out[covered] = Fate.UNSENT
        silent = np.asarray([not column.prompted for column in about])[None, :]
        out[silent & (out != Fate.NOT_YET) & (out != Fate.SAID)] = Fate.NO_PROMPT
        track.paint(out, rows, columns, (Fate.SUPERSEDED,))
        sent = np.asarray([column.sent for column in about])[None, :]
        out[covered & sent & (out != Fate.SUPERSEDED)] = Fate.SUMMARY
        track.paint(out, rows, columns, [f for f in track.layers if f in IN_PROMPT])
        return out

    def fate(self, kind: str, item: str, turn: int) -> Fate:
        """Return where a thing lived in a turn; one never seen is not there yet."""
        row, column = self.tracks[kind].row(item), self.column_of(turn)
        if row is None:
            return Fate.NOT_YET
        cell = self.view(kind, range(row, row + 1), range(column, column + 1))
        return Fate(int(cell[0, 0]))

    def _add_messages(self, shown: Sequence[str], appended: Sequence[str], at: int) -> range:
        """Add rows for messages shown for the first time; return those the turn stored."""
        track, own = self.tracks[MESSAGE], frozenset(appended)
        for item in shown:
            if item not in own and track.row(item) is None:
                self._active.append(track.add(item, at))
        first = len(track)
        for item in appended:
            self._active.append(track.add(item, at))
        return range(first, len(track))

    def _mark(self, held: Contents, at: int) -> None:
        """Write which rows stood in this column's prompt."""
        for item in held.facts:
            if self.tracks[FACT].row(item) is None:
                self._change(Change(FACT_PATH + item, None, ""), "seen", at, at)
        told = [self.told[item].message_id for item in held.facts if item in self.told]
        again = [m for item in held.memories for m in self.made_from.get(item, ())]
        summary = [self._chain[-1][0]] if self._chain and held.holds(self.summary) else []
        for kind, fate, items in (
            (MESSAGE, Fate.PROMPT, held.messages),
            (MESSAGE, Fate.RETRIEVED, (*held.carried, *again)),
            (MESSAGE, Fate.KEY_FACT, told),
            (MEMORY, Fate.RETRIEVED, held.memories),
            (FACT, Fate.KEY_FACT, held.facts),
            (SUMMARY, Fate.SUMMARY, summary),
            (STATE, Fate.PROMPT, self._state if held.state else ()),
        ):
            track = self.tracks[kind]
            rows = (track.row(item) for item in items)
            track.layers[fate].mark((row for row in rows if row is not None), at)

    def _search(self, assembly: Assembly | None, at: int) -> None:
        """Note every memory that this turn's search turned up, and what became of it."""
        track = self.tracks[MEMORY]
        for hit, out in searched(assembly):
            if track.row(hit.id) is None:
                track.layers[Fate.LONG_TERM].start(track.add(hit.id, at, hit.text), at)
                self._keep(Fate.LONG_TERM, hit.id, hit.message_ids, at)
            gate, reason = (out.gate, out.reason) if out is not None else (None, "")
            found = Found(at, hit.rank, hit.similarity, gate, reason)
            self.found.setdefault(hit.id, []).append(found)

    def _adopt(self, summary: Summary, since: int) -> None:
        track, item = self.tracks[SUMMARY], summary_id(summary.version)
        if track.row(item) is not None:  # an earlier one of this version was superseded
            item = f"{item}@{summary.turn}"
        row = track.add(item, since, summary.text)
        track.layers[Fate.UNSENT].start(row, since)
        if self._chain:
            old = track.add(self._chain[-1][0], since)
            track.layers[Fate.SUPERSEDED].start(old, since)
        covers = min(summary.covers, len(self._active))
        self.summaries[item] = summary
        self._chain.append((item, self._active[covers - 1] + 1 if covers else 0))

    def _change(self, change: Change, action: str, at: int, since: int) -> None:
        """Apply one change of the state from the column ``since`` on."""
        is_fact = change.path.startswith(FACT_PATH)
        kind, item = (FACT, change.path[len(FACT_PATH) :]) if is_fact else (STATE, change.path)
        track, there = self.tracks[kind], change.after is not None
        row = track.add(item, at, str(change.after) if there else "")
        (track.layers[Fate.UNSENT].start if there else track.layers[Fate.UNSENT].stop)(row, since)
        self.noted.setdefault((kind, item), []).append(
            Noted(at, action, change.before, change.after)
        )
        if not is_fact and there:
            self._state[item] = change.after
        elif not is_fact:
            self._state.pop(item, None)
        elif item in self.told:
            self._keep(Fate.UNSENT, item, (self.told[item].message_id,), since, there=there)

    def _write(self, write: MemoryWrite, appended: Sequence[str], at: int) -> None:
        """Take in what the turn did to long-term memory; it counts from the next column on."""
        if write.action in ("remembered", "duplicate"):
            track = self.tracks[MEMORY]
            track.layers[Fate.LONG_TERM].start(track.add(write.id, at, write.text), at + 1)
            self._keep(Fate.LONG_TERM, write.id, write.message_ids or appended, at + 1)
        elif write.action in ("forgotten", "corrected"):
            self._drop(write.id, at + 1, superseded=write.action == "corrected")
        if write.id:
            self.noted.setdefault((MEMORY, write.id), []).append(
                Noted(at, write.action, None, write.reason)
            )

    def _drop(self, memory: str, since: int, *, superseded: bool) -> None:
        track = self.tracks[MEMORY]
        row = track.add(memory, since)
        track.layers[Fate.LONG_TERM].stop(row, since)
        if superseded:
            track.layers[Fate.SUPERSEDED].start(row, since)
        self._keep(Fate.LONG_TERM, memory, self.made_from.get(memory, ()), since, there=False)

    def _keep(
        self, fate: Fate, holder: str, messages: Sequence[str], since: int, *, there: bool = True
    ) -> None:
        """Note that a memory or fact holds these messages, or that it no longer does."""
        if fate is Fate.LONG_TERM and there:
            known = self.made_from.get(holder, ())
            self.made_from[holder] = (*known, *(m for m in messages if m not in known))
        track = self.tracks[MESSAGE]
        for message in messages:
            holders = self._holders.setdefault((fate, message), set())
            (holders.add if there else holders.discard)(holder)
            row = track.row(message)
            if row is not None:
                layer = track.layers[fate]
                (layer.start if holders else layer.stop)(row, since)

    def _undo(self, turn: int, at: int) -> None:
        """Take back what a superseded turn stored, wrote and changed, from this column on."""
        column = self.columns[self.column_of(turn)]
        for row in column.rows:
            self.tracks[MESSAGE].layers[Fate.SUPERSEDED].start(row, at)
        while self._active and self._active[-1] in column.rows:
            self._active.pop()
        for change in reversed(column.changes):
            self._change(Change(change.path, change.after, change.before), "undone", at, at)
        for write in column.written:
            if write.action == "remembered":
                self._drop(write.id, at, superseded=True)
        if column.made is not None and self.summary is column.made:
            item, _ = self._chain.pop()
            track = self.tracks[SUMMARY]
            track.layers[Fate.SUPERSEDED].start(track.add(item, at), at)
            if self._chain:
                back = track.add(self._chain[-1][0], at)
                track.layers[Fate.SUPERSEDED].stop(back, at)


def _within(wanted: range, length: int) -> range:
    start = min(max(0, wanted.start), length)
    return range(start, max(start, min(wanted.stop, length)))
