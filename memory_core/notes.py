"""What the ledger notes beside the matrix: a turn's figures, what came from what, searches.

All of it is kept by id and written once, when it happens, so that a life story reads only what
concerns its own thing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from memory_core.buffer import WindowPlan
from memory_core.contents import searched
from memory_core.fate import FACT
from memory_core.messages import Json
from memory_core.prompt import Assembly, Gate, Source
from memory_core.state import Change, KeyFact
from memory_core.summary import Summary
from memory_core.trace import MemoryWrite


@dataclass(frozen=True, slots=True)
class Column:
    """What one turn says about everything at once.

    ``group`` are the ids of the newest messages that did not fit. ``summary`` is the version
    that held when the prompt was made and ``sent`` whether it stood in it; ``made`` is the
    version that the turn made itself. ``rows`` are the messages that the turn stored, ``tokens``
    those of its prompt by source, of ``limit`` allowed (0: not known).
    """

    turn: int
    prompted: bool
    window: WindowPlan | None
    group: frozenset[str]
    summary: Summary
    sent: bool
    query: str
    rows: range
    changes: tuple[Change, ...]
    written: tuple[MemoryWrite, ...]
    made: Summary | None
    tokens: Mapping[Source, int]
    limit: int


class Found(NamedTuple):
    """One search that a memory turned up in, with the score that ranked it.

    ``gate`` is what stopped it, ``None`` when it was used.
    """

    column: int
    rank: int
    score: float
    gate: Gate | None
    reason: str


class Noted(NamedTuple):
    """Something that was done to a thing in a column: the word for it, before and after."""

    column: int
    action: str
    before: Json = None
    after: Json = None


@dataclass
class Notes:
    """Relations and events of a session, by id.

    ``told`` are the key facts ever added, ``made_from`` the messages of each memory. The reverse
    ways are ``facts_of`` and ``memories_of`` a message; ``folded_in`` names the summaries that
    took a message in.
    """

    told: dict[str, KeyFact] = field(default_factory=dict)
    made_from: dict[str, tuple[str, ...]] = field(default_factory=dict)
    facts_of: dict[str, list[str]] = field(default_factory=dict)
    memories_of: dict[str, list[str]] = field(default_factory=dict)
    folded_in: dict[str, list[str]] = field(default_factory=dict)
    summaries: dict[str, Summary] = field(default_factory=dict)
    found: dict[str, list[Found]] = field(default_factory=dict)
    _events: dict[tuple[str, str], list[Noted]] = field(default_factory=dict)

    def note(self, kind: str, item: str, event: Noted) -> None:
        """Keep an event of one thing."""
        self._events.setdefault((kind, item), []).append(event)

    def events(self, kind: str, item: str) -> list[Noted]:
        """Return the events of one thing, oldest first."""
        return self._events.get((kind, item), [])

    def learn(self, facts: Iterable[KeyFact]) -> None:
        """Keep which message told each of these key facts."""
        for fact in facts:
            if fact.id not in self.told:
                self.facts_of.setdefault(fact.message_id, []).append(fact.id)
            self.told[fact.id] = fact

    def relate(self, memory: str, messages: Iterable[str]) -> None:
        """Keep that a memory was (also) made from these messages."""
        known = self.made_from.get(memory, ())
        new = [m for m in dict.fromkeys(messages) if m not in known]
        self.made_from[memory] = (*known, *new)
        for message in new:
            self.memories_of.setdefault(message, []).append(memory)

    def search(self, assembly: Assembly | None, column: int) -> None:
        """Keep every memory that a turn's search turned up, and what became of it."""
        for hit, out in searched(assembly):
            gate, reason = (out.gate, out.reason) if out is not None else (None, "")
            found = Found(column, hit.rank, hit.score, gate, reason)
            self.found.setdefault(hit.id, []).append(found)

    def summarised(self, item: str, summary: Summary, column: int) -> None:
        """Keep a new summary, what it folded, and for which key facts the verdict changed."""
        self.summaries[item] = summary
        for message in summary.folded:
            self.folded_in.setdefault(message, []).append(item)
        for action, facts in (("kept", summary.kept), ("lost", summary.lost)):
            for fact in facts:
                verdicts = [e for e in self.events(FACT, fact) if e.action in ("kept", "lost")]
                if not verdicts or verdicts[-1].action != action:
                    self.note(FACT, fact, Noted(column, action, None, summary.version))
