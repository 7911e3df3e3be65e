"""Life stories: what happened to one thing, in plain words, with the arithmetic of each step.

A story is told from the ledger alone and costs what happened to its thing. The text of a message
is not in the ledger; where it is given, the story can also say which of its names and numbers a
summary kept and which it lost.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

from memory_core.fate import FACT, MEMORY, MESSAGE, STATE, SUMMARY, Fate
from memory_core.ledger import Ledger
from memory_core.messages import StoredMessage
from memory_core.native.rules import QUEUE_RULE, SUMMARY_RULE
from memory_core.notes import Column, Found, Noted
from memory_core.prompt import Gate
from memory_core.summary import Summary, normalise
from memory_core.trace import FLUSHED, WAITING

MAX_LINES = 60
_MOVED, _SEARCHED, _SENT, _WRITTEN = 1, 2, 3, 4  # when within a turn; said comes first
_QUOTED = 60  # characters of a text that are shown
_DETAILS = 4  # names and numbers that are told at most
_DETAIL = re.compile(r"(?<![.!?:]\s)(?<!^)\b[^\W\d_]\w*[^\W\d_]\b|\b\d+(?:[.,:/-]\d+)*\b")


@dataclass(frozen=True)
class Line:
    """One step: the turns it stands for (``first`` to ``last``) and a sentence about it.

    ``order`` is when within a turn it happens: said, left or folded, searched, sent, written.
    """

    first: int
    last: int
    text: str
    order: int

    @property
    def words(self) -> str:
        """The step with its turns in front: ``Turn 7: left the buffer.``."""
        turns = (
            f"Turn {self.first}" if self.first == self.last else f"Turns {self.first}-{self.last}"
        )
        return f"{turns}: {self.text}"


@dataclass(frozen=True)
class Story:
    """The life of one thing. ``prompts`` are the turns whose prompt held something of it.

    ``now`` is where it lives in the newest turn; ``left_out`` is how many lines were too many.
    """

    kind: str
    id: str
    lines: tuple[Line, ...]
    prompts: tuple[tuple[int, int], ...] = ()
    now: Fate = Fate.NOT_YET
    left_out: int = 0

    @property
    def text(self) -> str:
        """The whole story as sentences, a line each."""
        return "\n".join(line.words for line in self.lines)


def tell(ledger: Ledger, kind: str, item: str, message: StoredMessage | None = None) -> Story:
    """Return the life story of a thing; one that was never seen has no lines.

    ``message`` is the stored message, when the story is a message's and its text is at hand.
    """
    track = ledger.tracks[kind]
    row = track.row(item)
    if row is None:
        return Story(kind, item, ())
    told = _Teller(ledger, kind, item, row)
    lines = {
        MESSAGE: lambda: told.message(message),
        FACT: told.fact,
        SUMMARY: told.summary,
        MEMORY: told.memory,
        STATE: told.state,
    }[kind]()
    ordered = sorted(lines, key=lambda line: (line.first, line.order))
    now = ledger.fate(kind, item, ledger.columns[-1].turn) if ledger.columns else Fate.NOT_YET
    runs = ledger.prompts(kind, item)
    return Story(
        kind=kind,
        id=item,
        lines=tuple(ordered[:MAX_LINES]),
        prompts=tuple((ledger.columns[a].turn, ledger.columns[b].turn) for a, b in runs),
        now=now,
        left_out=max(0, len(ordered) - MAX_LINES),
    )


def details(text: str) -> list[str]:
    """Return the names and numbers in a text that a summary should keep, in order.

    >>> details("Hi, I'm Dana, I run a bakery in Porto with 4 people.")
    ['Dana', 'Porto', '4']
    """
    words = _DETAIL.findall(text)
    return list(dict.fromkeys(word for word in words if word[0].isupper() or word[0].isdigit()))


class _Teller:
    """Tells one thing's life; knows how to turn columns into turns and figures into words."""

    def __init__(self, ledger: Ledger, kind: str, item: str, row: int) -> None:
        self._ledger = ledger
        self._notes = ledger.notes
        self._kind = kind
        self._item = item
        self._row = row
        self._columns = ledger.columns
        self._layers = ledger.tracks[kind].layers

    def message(self, stored: StoredMessage | None) -> Iterable[Line]:
        said = "said"
        if stored is not None:
            tokens = f", {stored.tokens:,} tokens" if stored.tokens is not None else ""
            said = (
                f"{_SAID.get(stored.message.role, 'said')}{tokens}: {_quote(stored.message.text)}"
            )
        born = self._ledger.tracks[MESSAGE].born[self._row]
        if born >= 0:
            yield self._line(born, f"{said}.", order=0)
        yield from self._runs(Fate.PROMPT, "in the prompt, word for word")
        for _, last in self._runs_of(Fate.PROMPT):
            yield from self._left(last + 1)
        yield from self._runs(Fate.KEY_FACT, "in a key fact that was sent")
        for event in self._notes.events(MESSAGE, self._item):
            early = event.action in (FLUSHED, WAITING)  # a queue is flushed before its prompt
            yield self._line(event.column, _taken(event), order=_MOVED if early else _WRITTEN)
        for item in self._notes.folded_in.get(self._item, ()):
            yield self._folded(self._notes.summaries[item], stored)
        for fact in self._notes.facts_of.get(self._item, ()):
            yield from self._fact_drawn(fact)
        for memory in self._notes.memories_of.get(self._item, ()):
            yield from self._kept(memory)
            yield from self._searches(memory)

    def fact(self) -> Iterable[Line]:
        told = self._notes.told.get(self._item)
        for event in self._notes.events(FACT, self._item):
            if event.action in ("kept", "lost"):
                verb = (
                    "still holds it" if event.action == "kept" else "lost it; it stays a key fact"
                )
                yield self._line(event.column, f"summary {event.after} {verb}.")
            elif event.after is None:
                yield self._line(event.column, _dropped(event))
            elif event.before is not None:
                change = f"changed from {_quote(event.before)} to {_quote(event.after)}."
                yield self._line(event.column, change)
            else:
                origin = f", told in turn {told.turn}" if told is not None and told.turn else ""
                text = event.after or (told.text if told is not None else "")
                noted = f"noted as a key fact{origin}: {_quote(text)}."
                yield self._line(event.column, noted, order=_MOVED)
        yield from self._runs(Fate.KEY_FACT, "sent among the key facts")
        yield from self._runs(Fate.SUMMARY, "sent in the summary, word for word")

    def summary(self) -> Iterable[Line]:
        summary = self._notes.summaries[self._item]
        born = self._ledger.tracks[SUMMARY].born[self._row]
        lost = [self._fact_text(fact) for fact in summary.lost]
        also = f" It lost {_list(lost)}; the key facts keep that." if lost else ""
        yield self._line(
            born,
            f"folds {_count(len(summary.folded), 'message')}, covers the oldest "
            f"{summary.covers:,}, {summary.tokens:,} tokens.{also}",
            order=_MOVED,
        )
        yield from self._runs(Fate.SUMMARY, "sent")
        for first, _ in self._runs_of(Fate.SUPERSEDED):
            if first < len(self._columns):
                newer = self._columns[first].summary.version
                by = f"replaced by summary {newer}" if newer > summary.version else "taken back"
                yield self._line(first, f"{by}.", order=_MOVED)

    def memory(self) -> Iterable[Line]:
        yield from self._kept(self._item)
        yield from self._searches(self._item)
        for first, _ in self._runs_of(Fate.SUPERSEDED):
            yield self._line(min(first, len(self._columns) - 1), "superseded.")

    def state(self) -> Iterable[Line]:
        for event in self._notes.events(STATE, self._item):
            if event.after is None:
                yield self._line(event.column, _dropped(event))
            elif event.before is None:
                yield self._line(event.column, f"set to {_quote(event.after)}.")
            else:
                change = f"changed from {_quote(event.before)} to {_quote(event.after)}."
                yield self._line(event.column, change)
        yield from self._runs(Fate.PROMPT, "sent with the state")

    def _left(self, at: int) -> Iterable[Line]:
        """Say why a message that was in the prompt before this column is in it no more."""
        superseded = self._layers[Fate.SUPERSEDED]
        while at < len(self._columns) and not superseded.holds(self._row, at):
            if self._columns[at].prompted:  # a turn without a prompt says nothing about it
                if not self._layers[Fate.PROMPT].holds(self._row, at):
                    yield self._line(at, self._why_left(self._columns[at]), order=_MOVED)
                return
            at += 1
        if at < len(self._columns):
            yield self._line(at, "superseded: the turn was answered again.", order=_MOVED)

    def _why_left(self, column: Column) -> str:
        plan = column.window
        if plan is None:
            return "left the buffer; not explained by the class."
        room = plan.limit - plan.initial
        if plan.rule == QUEUE_RULE:
            return (
                f"archived: the queue was over its {plan.limit:,} tokens, {plan.next_needed:,} "
                f"left it at once, {plan.tokens:,} stay."
            )
        if plan.rule == SUMMARY_RULE:
            return f"not in full any more: what is newer has {plan.tokens:,} of {room:,} tokens."
        if room < 0:
            return (
                f"left the buffer: what stands in front of it alone needs {plan.initial:,} of "
                f"{plan.limit:,} tokens."
            )
        window = f"left the buffer: window {plan.tokens:,} of {room:,} tokens"
        if self._item in column.group:
            return f"{window}, needed {plan.next_needed:,}."
        return f"{window}; a newer turn that needed {plan.next_needed:,} did not fit either."

    def _folded(self, summary: Summary, stored: StoredMessage | None) -> Line:
        others = len(summary.folded) - 1
        text = f"folded into summary {summary.version}"
        text += f" with {_count(others, 'other')}" if others else ""
        wanted = [self._fact_text(fact) for fact in self._notes.facts_of.get(self._item, ())]
        wanted += details(stored.message.text) if stored is not None else []
        kept = [word for word in wanted if _holds(summary.text, word)]
        lost = [word for word in wanted if word not in kept]
        parts = [
            f"{verb} {_list(words)}" for verb, words in (("kept", kept), ("lost", lost)) if words
        ]
        text += f", which {' and '.join(parts)}" if parts else ""
        at = self._ledger.tracks[SUMMARY].row(f"summary-{summary.version}@{summary.turn}")
        if at is None:
            at = self._ledger.tracks[SUMMARY].row(f"summary-{summary.version}")
        return self._line(self._ledger.tracks[SUMMARY].born[at or 0], f"{text}.", order=_MOVED)

    def _fact_drawn(self, fact: str) -> Iterable[Line]:
        events = [e for e in self._notes.events(FACT, fact) if e.action not in ("kept", "lost")]
        if events:
            quoted = _quote(self._fact_text(fact))
            yield self._line(events[0].column, f"the key fact {quoted} was drawn from it.")
        for event in events[1:]:
            if event.after is None:
                yield self._line(event.column, f"its key fact was {_dropped(event)}")

    def _kept(self, memory: str) -> Iterable[Line]:
        """Tell what was written about a memory."""
        events = self._notes.events(MEMORY, memory)
        whose = "" if self._kind == MEMORY else "its memory was "
        if not events and self._kind == MEMORY:
            born = self._ledger.tracks[MEMORY].born[self._row]
            yield self._line(born, "first turned up, remembered outside of these turns.")
        for event in events:
            reason = f": {event.after}" if event.after else ""
            if event.action == "remembered":
                kind = " as a fact" if event.before == "fact" else ""
                yield self._line(event.column, f"kept in long-term memory{kind}{reason}.")
            elif event.action == "duplicate":
                yield self._line(event.column, f"said again, stored once{reason}.")
            elif event.action == "replaced":
                yield self._line(event.column, f"{whose}replaced by {_quote(event.after)}.")
            else:
                yield self._line(event.column, f"{whose}{event.action}{reason}.")

    def _searches(self, memory: str) -> Iterable[Line]:
        """Tell the searches a memory turned up in, runs of equal outcome as one line."""
        found = [f for f in self._notes.found.get(memory, ()) if f.gate is not Gate.IN_BUFFER]
        for (gate, _), run in groupby(
            enumerate(found), key=lambda pair: (pair[1].gate, pair[1].column - pair[0])
        ):
            same = [pair[1] for pair in run]
            best = max(same, key=lambda f: f.score)
            told = _outcome(gate, best, len(same))
            yield self._line(same[0].column, told, last=same[-1].column, order=_SEARCHED)

    def _runs(self, fate: Fate, words: str) -> Iterable[Line]:
        for first, last in self._runs_of(fate):
            yield self._line(first, f"{words}.", last=last, order=_SENT)

    def _runs_of(self, fate: Fate) -> Iterable[tuple[int, int]]:
        return self._layers[fate].runs(self._row, len(self._columns))

    def _fact_text(self, fact: str) -> str:
        told = self._notes.told.get(fact)
        return told.text if told is not None else fact

    def _line(
        self, column: int, text: str, *, last: int | None = None, order: int = _WRITTEN
    ) -> Line:
        return Line(self._turn(column), self._turn(column if last is None else last), text, order)

    def _turn(self, column: int) -> int:
        return self._columns[min(column, len(self._columns) - 1)].turn


_SAID = {
    "user": "said by the user",
    "assistant": "answered",
    "tool": "a tool's result",
    "system": "a system message",
}


def _holds(text: str, words: str) -> bool:
    pattern = rf"(?<!\w){re.escape(normalise(words))}(?!\w)"
    return re.search(pattern, normalise(text)) is not None


def _outcome(gate: Gate | None, best: Found, times: int) -> str:
    at = f" at rank {best.rank:,}" if best.rank else ""  # some gates stop before any is ranked
    place = "best long-term hit" if best.rank == 1 else f"long-term hit{at}"
    score = f"{best.score:z.2f}" if times == 1 else f"up to {best.score:z.2f}"
    if gate is None:
        return f"{place}, {score}, used."
    reason = f" ({best.reason})" if best.reason and best.reason != gate else ""
    return f"{place}, {score}, not used: {gate}{reason}."


def _taken(event: Noted) -> str:
    """Say what became of a message on its way to long-term memory or into a memory block."""
    if event.action == FLUSHED:
        return f"flushed into the block {event.before}: {event.after}."
    if event.action == WAITING:
        return f"waits for the block {event.before}, which failed: {event.after}."
    return f"not kept in long-term memory: {event.after}."


def _dropped(event: Noted) -> str:
    return "taken back: its turn was superseded." if event.action == "undone" else "dropped."


def _quote(value: object) -> str:
    text = " ".join(str(value).split())
    return f"'{text[: _QUOTED - 1]}…'" if len(text) > _QUOTED else f"'{text}'"


def _list(words: list[str]) -> str:
    more = f" and {len(words) - _DETAILS} more" if len(words) > _DETAILS else ""
    return ", ".join(_quote(word) for word in words[:_DETAILS]) + more


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
