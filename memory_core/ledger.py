"""The fate ledger: all turns of a session folded into what lived where, and when it moved.

:class:`Ledger` reads traces in order, once each, and can be extended by the next one. Extending
costs the size of that turn's prompt and of what changed; nothing is done per message of the
history. :meth:`Ledger.view` expands only the cells asked for.

Columns count from 0, one a trace; ``ledger.columns[c].turn`` is the turn's number. A column
speaks of the *last* prompt of its turn: what the turn wrote afterwards (its answer, its
memories) counts from the next column on.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from memory_core.contents import Contents, searched, summary_id
from memory_core.fate import FACT, IN_PROMPT, MEMORY, MESSAGE, STATE, SUMMARY, Fate, Track
from memory_core.messages import Json
from memory_core.notes import Column, Noted, Notes
from memory_core.prompt import Assembly
from memory_core.spans import Spans
from memory_core.state import Change, KeyFact
from memory_core.summary import NO_SUMMARY, Summary
from memory_core.trace import BLOCK_FACT, FLUSHED, WAITING, MemoryWrite, TurnTrace

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FACT_PATH = "key_facts."  # the state path of a key fact is this and its id


class Ledger:
    """What happened to every message, fact, summary, memory and state key of a session.

    ``seeded`` are the ids of messages that were there before the first turn, oldest first.
    ``tracks`` hold the rows of each kind, ``notes`` what life stories are told from.
    """

    def __init__(self, seeded: Iterable[str] = ()) -> None:
        self.columns: list[Column] = []
        kept, dead = (Fate.LONG_TERM, Fate.UNSENT), Fate.SUPERSEDED
        self.tracks = {
            MESSAGE: Track(*kept, dead, Fate.SUMMARY, Fate.KEY_FACT, Fate.RETRIEVED, Fate.PROMPT),
            FACT: Track(Fate.UNSENT, dead, Fate.SUMMARY, Fate.KEY_FACT),
            SUMMARY: Track(Fate.UNSENT, dead, Fate.SUMMARY),
            MEMORY: Track(Fate.LONG_TERM, dead, Fate.RETRIEVED),
            STATE: Track(Fate.UNSENT, dead, Fate.PROMPT),
        }
        self.notes = Notes()
        self._active: list[int] = []
        self._chain: list[tuple[str, int]] = []  # versions that led here, messages they cover
        self._sent = Spans()
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
        return self.notes.summaries[self._chain[-1][0]] if self._chain else NO_SUMMARY

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
        self.notes.learn(trace.facts)
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
        known = {*held.facts, *held.retold, *held.refused}
        early = [c for c in trace.changes if c.path.removeprefix(FACT_PATH) in known]
        for change in early:
            self._change(change, "changed", at, at)
        flushed = [w for w in trace.memories if w.kind == BLOCK_FACT]
        sooner = [w for w in flushed if w.id in known]  # a queue is flushed before its prompt
        for write in sooner:
            self._block_fact(write, trace.number, at, at)
        self._search(trace.assembly, at)
        self._mark(held, at)
        assembly = trace.assembly
        allotment = assembly.allotment if assembly is not None else None
        self.columns.append(
            Column(
                turn=trace.number,
                prompted=assembly is not None,
                window=assembly.window if assembly is not None else None,
                group=held.group,
                summary=self.summary,
                sent=held.holds(self.summary),
                query=trace.query,
                rows=rows,
                changes=trace.changes,
                written=trace.memories,
                made=trace.summary,
                tokens=assembly.tokens_by_source() if assembly is not None else {},
                limit=allotment.limit if allotment is not None else 0,
            )
        )
        if trace.summary is not None and late:
            self._adopt(trace.summary, at + 1)
        for change in trace.changes:
            if change not in early:
                self._change(change, "changed", at, at + 1)
        for write in trace.memories:
            if write.kind != BLOCK_FACT:
                self._write(write, trace.appended, at)
            elif write not in sooner:
                self._block_fact(write, trace.number, at, at + 1)

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
        covered = np.zeros(out.shape, dtype=np.uint8)
        if kind == MESSAGE:  # here the layer says what a summary covers, wherever that stood
            track.paint(covered, rows, columns, (Fate.SUMMARY,))
        out[covered > 0] = Fate.UNSENT
        silent = np.asarray([not column.prompted for column in about])[None, :]
        out[silent & (out != Fate.NOT_YET) & (out != Fate.SAID)] = Fate.NO_PROMPT
        track.paint(out, rows, columns, (Fate.SUPERSEDED,))
        sent = np.asarray([column.sent for column in about])[None, :]
        out[(covered > 0) & sent & (out != Fate.SUPERSEDED)] = Fate.SUMMARY
        stood = [f for f in track.layers if f in IN_PROMPT and (f, kind) != (Fate.SUMMARY, MESSAGE)]
        track.paint(out, rows, columns, stood)
        return out

    def fate(self, kind: str, item: str, turn: int) -> Fate:
        """Return where a thing lived in a turn; one never seen is not there yet."""
        row, column = self.tracks[kind].row(item), self.column_of(turn)
        if row is None:
            return Fate.NOT_YET
        cell = self.view(kind, range(row, row + 1), range(column, column + 1))
        return Fate(int(cell[0, 0]))

    def prompts(self, kind: str, item: str) -> list[tuple[int, int]]:
        """Return the first and last column of each run in which a prompt held something of it."""
        track, end = self.tracks[kind], len(self.columns)
        row = track.row(item)
        if row is None:
            return []
        covers = kind == MESSAGE
        layers = {f: s for f, s in track.layers.items() if f in IN_PROMPT}
        covered = list(layers.pop(Fate.SUMMARY).runs(row, end)) if covers else []
        runs = [run for spans in layers.values() for run in spans.runs(row, end)]
        for first, last in self._sent.runs(0, end) if covered else ():
            runs += [(max(a, first), min(b, last)) for a, b in covered if a <= last and first <= b]
        merged: list[tuple[int, int]] = []
        for first, last in sorted(runs):
            if merged and first <= merged[-1][1] + 1:
                merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
            else:
                merged.append((first, last))
        return merged

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
        for item in (*held.facts, *held.retold):
            if self.tracks[FACT].row(item) is None:
                self._change(Change(FACT_PATH + item, None, ""), "seen", at, at)
        told = self.notes.told
        again = [m for item in held.memories for m in self.notes.made_from.get(item, ())]
        summary = [self._chain[-1][0]] if self._chain and held.holds(self.summary) else []
        for kind, fate, items in (
            (MESSAGE, Fate.PROMPT, held.messages),
            (MESSAGE, Fate.RETRIEVED, (*held.carried, *again)),
            (MESSAGE, Fate.KEY_FACT, [told[f].message_id for f in held.facts if f in told]),
            (MEMORY, Fate.RETRIEVED, held.memories),
            (FACT, Fate.KEY_FACT, held.facts),
            (FACT, Fate.SUMMARY, held.retold),
            (SUMMARY, Fate.SUMMARY, summary),
            (STATE, Fate.PROMPT, self._state if held.state else ()),
        ):
            track = self.tracks[kind]
            rows = (track.row(item) for item in items)
            track.layers[fate].mark((row for row in rows if row is not None), at)
        self._sent.mark({0} if summary else (), at)

    def _search(self, assembly: Assembly | None, at: int) -> None:
        """Add rows for memories that this turn's search turned up for the first time."""
        track = self.tracks[MEMORY]
        for hit, _ in searched(assembly):
            if track.row(hit.id) is None:
                track.layers[Fate.LONG_TERM].start(track.add(hit.id, at, hit.text), at)
                self._keep(Fate.LONG_TERM, hit.id, hit.message_ids, at)
        self.notes.search(assembly, at)

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
        self._cover(covers, since)
        self.notes.summarised(item, summary, since)
        self._chain.append((item, covers))

    def _cover(self, covers: int, since: int) -> None:
        """Let the oldest ``covers`` active messages be what the summary stands for."""
        covered, layer = self._chain[-1][1] if self._chain else 0, self.tracks[MESSAGE].layers
        for row in self._active[covered:covers]:
            layer[Fate.SUMMARY].start(row, since)
        for row in self._active[covers:covered]:
            layer[Fate.SUMMARY].stop(row, since)

    def _change(self, change: Change, action: str, at: int, since: int) -> None:
        """Apply one change of the state from the column ``since`` on."""
        is_fact = change.path.startswith(FACT_PATH)
        kind, item = (FACT, change.path[len(FACT_PATH) :]) if is_fact else (STATE, change.path)
        track, there = self.tracks[kind], change.after is not None
        row = track.add(item, at, str(change.after) if there else "")
        (track.layers[Fate.UNSENT].start if there else track.layers[Fate.UNSENT].stop)(row, since)
        self.notes.note(kind, item, Noted(at, action, change.before, change.after))
        if not is_fact and there:
            self._state[item] = change.after
        elif not is_fact:
            self._state.pop(item, None)
        elif item in self.notes.told:
            told_by = (self.notes.told[item].message_id,)
            self._keep(Fate.UNSENT, item, told_by, since, there=there)

    def _write(self, write: MemoryWrite, appended: Sequence[str], at: int) -> None:
        """Take in what the turn did to long-term memory; it counts from the next column on."""
        messages = write.message_ids or (appended if write.kind == "turn" else ())
        if write.action in ("remembered", "duplicate", "corrected"):
            track = self.tracks[MEMORY]
            track.layers[Fate.LONG_TERM].start(track.add(write.id, at, write.text), at + 1)
            corrected = self.notes.made_from.get(write.replaces, ())
            self._keep(Fate.LONG_TERM, write.id, (*messages, *corrected), at + 1)
        if write.replaces and write.replaces != write.id:
            self._drop(write.replaces, at + 1, superseded=True)
            self.notes.note(MEMORY, write.replaces, Noted(at, "replaced", None, write.text))
        if write.action == "forgotten":
            self._drop(write.id, at + 1, superseded=False)
        if write.action in ("skipped", FLUSHED, WAITING):
            for message in messages:
                self.notes.note(MESSAGE, message, Noted(at, write.action, write.id, write.reason))
        else:
            self.notes.note(MEMORY, write.id, Noted(at, write.action, write.kind, write.reason))

    def _block_fact(self, write: MemoryWrite, turn: int, at: int, since: int) -> None:
        """Take in a fact that a memory block of LlamaIndex's noted, or let go of."""
        there = write.action == "remembered"
        if there:  # of a batch the class does not tell which message it read the fact out of
            told = write.message_ids[0] if len(write.message_ids) == 1 else ""
            self.notes.learn([KeyFact(write.id, write.text, turn, told, source=write.reason)])
        before, after = (None, write.text) if there else (write.text, None)
        self._change(Change(FACT_PATH + write.id, before, after), "changed", at, since)

    def _drop(self, memory: str, since: int, *, superseded: bool) -> None:
        track = self.tracks[MEMORY]
        row = track.add(memory, since)
        track.layers[Fate.LONG_TERM].stop(row, since)
        if superseded:
            track.layers[Fate.SUPERSEDED].start(row, since)
        made_from = self.notes.made_from.get(memory, ())
        self._keep(Fate.LONG_TERM, memory, made_from, since, there=False)

    def _keep(
        self, fate: Fate, holder: str, messages: Sequence[str], since: int, *, there: bool = True
    ) -> None:
        """Note that a memory or fact holds these messages, or that it no longer does."""
        if fate is Fate.LONG_TERM and there:
            self.notes.relate(holder, messages)
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
            if write.kind == BLOCK_FACT:
                there = write.action == "forgotten"
                before, after = (None, write.text) if there else (write.text, None)
                self._change(Change(FACT_PATH + write.id, before, after), "undone", at, at)
            elif write.action == "remembered":
                self._drop(write.id, at, superseded=True)
        if column.made is not None and self.summary is column.made:
            self._cover(self._chain[-2][1] if len(self._chain) > 1 else 0, at)
            item, _ = self._chain.pop()
            track = self.tracks[SUMMARY]
            track.layers[Fate.SUPERSEDED].start(track.add(item, at), at)
            if self._chain:
                back = track.add(self._chain[-1][0], at)
                track.layers[Fate.SUPERSEDED].stop(back, at)


def _within(wanted: range, length: int) -> range:
    start = min(max(0, wanted.start), length)
    return range(start, max(start, min(wanted.stop, length)))
