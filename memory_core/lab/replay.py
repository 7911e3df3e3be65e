"""Prompt replay: every prompt of a recorded session again, without a model call.

:class:`Replay` reads a session once and lays out, for any turn, what its prompt was planned from:
the messages that were active then, the state and summary that held, and long-term memory as it
was (:mod:`memory_core.lab.past`). The planner is the one the live memory uses, so a turn planned
under its own settings gives its own prompt, and under other settings what the prompt would have
been. Summaries are those that were written; what was forgotten since does not come back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property

from memory_core.assemble import Layers, Rank, assemble, memory_tokens
from memory_core.buffer import History
from memory_core.errors import InvalidInput, NotFound
from memory_core.lab.past import PastMemories
from memory_core.messages import Message, StoredMessage, repair
from memory_core.prompt import Assembly, Source
from memory_core.ranking import Candidates, rank_hits
from memory_core.settings import MemorySettings, settings_from_json
from memory_core.state import AgentState
from memory_core.stores.protocols import SessionKey, Store, StoredTurn
from memory_core.summary import NO_SUMMARY, Summary
from memory_core.tokens import TokenCounter
from memory_core.trace import TurnTrace, trace_from_json

LAYERED = "layered"  # the strategy whose planner this is


@dataclass(frozen=True)
class ReplayedTurn:
    """One turn as it can be planned again. ``settings`` are those it ran under."""

    trace: TurnTrace
    settings: MemorySettings
    layers: Layers
    counter: TokenCounter
    candidates: Candidates | None = None

    def plan(self, settings: MemorySettings) -> Assembly:
        """Return the prompt this turn would have had under these settings."""
        return assemble(replace(self.layers, rank=self._rank(settings)), settings, self.counter)

    @cached_property
    def assembly(self) -> Assembly:
        """The prompt under the turn's own settings, as the memory gave it."""
        return self.plan(self.settings)

    @property
    def as_recorded(self) -> bool:
        """Whether the recorded prompt holds just these messages (an agent may add its own)."""
        recorded = self.trace.assembly
        if recorded is None:
            return False
        wanted, sent = self.assembly.messages, recorded.messages
        starts = range(len(sent) - len(wanted) + 1)
        return any(sent[at : at + len(wanted)] == wanted for at in starts)

    def _rank(self, settings: MemorySettings) -> Rank | None:
        found = self.candidates
        if found is None or not settings.recall:
            return None
        return lambda in_buffer, budget: rank_hits(
            found,
            settings=settings,
            session=self.trace.session,
            in_buffer=in_buffer,
            budget=budget,
            count=lambda hit: memory_tokens(hit, self.counter),
            now=self.trace.started,
        )


class Replay:
    """A recorded session whose turns can be planned again, fastest in their order.

    ``memories`` is the user's long-term memory with its past; without it nothing is recalled.
    """

    def __init__(
        self,
        *,
        turns: Sequence[StoredTurn],
        messages: Sequence[StoredMessage],
        states: Mapping[int, AgentState],
        memories: PastMemories | None = None,
    ) -> None:
        self._rows = {turn.number: turn for turn in turns}
        self._texts = {stored.id: stored.message for stored in messages}
        self._said: dict[int, list[StoredMessage]] = {}
        for stored in messages:
            self._said.setdefault(stored.turn, []).append(stored)
        self._replaced = {turn.number: turn.superseded_by for turn in turns if turn.superseded_by}
        self._counters: dict[str, TokenCounter] = {}
        self._states = states
        self._memories = memories
        self._past: _Past | None = None

    @classmethod
    def read(cls, store: Store, key: SessionKey, *, memories: PastMemories | None = None) -> Replay:
        """Read a session; raise :class:`NotFound` when the user has no such one."""
        return cls(
            turns=store.turns(key),
            messages=store.messages(key, superseded=True),
            states={stored.state.version: stored.state for stored in store.states(key)},
            memories=memories,
        )

    @property
    def turns(self) -> list[int]:
        """The numbers of the recorded turns, superseded ones included."""
        return list(self._rows)

    def __iter__(self) -> Iterator[ReplayedTurn]:
        for number in self._rows:
            yield self.at(number)

    def at(self, number: int) -> ReplayedTurn:
        """Return one turn ready to be planned again.

        Raises :class:`NotFound` for a turn that was not recorded, :class:`InvalidInput` for one
        of a strategy that plans its prompts itself.
        """
        trace = self.trace(number)
        if trace.strategy != LAYERED:
            raise InvalidInput(
                f"Turn {number} was planned by the strategy {trace.strategy!r:.60}, which cannot "
                "be asked again.",
                next_step="Replay a session of the layered memory.",
            )
        settings = settings_from_json(trace.settings)
        counter = self._counter(trace)
        past = self._before(number, counter)
        window = trace.assembly.window if trace.assembly is not None else None
        said = self._said.get(number, [])
        own = said[: max(0, window.total - len(past.messages))] if window is not None else said[:1]
        messages = (*past.messages, *own)
        history = past.history.copy()
        for stored in own:
            history.append(stored.message, _tokens(stored, counter))
        layers = Layers(
            messages=messages,
            history=history,
            state=self._state(trace),
            summary=self.summary_at(number),
            open_turn=len(past.messages),
        )
        turn = ReplayedTurn(trace, settings, layers, counter)
        around = _around(turn)
        return replace(
            turn,
            layers=replace(layers, tool_tokens=around[0], in_front=around[1]),
            candidates=self._candidates(trace, {m.id for m in past.messages}),
        )

    def next(self, text: str, *, now: datetime) -> ReplayedTurn:
        """Return the turn in which this would be asked after all others, ready to be planned.

        No summary round runs before it. Raises what :meth:`at` raises for the newest turn,
        :class:`NotFound` when there is none.
        """
        last = self.at(max(self._rows, default=0))
        number = last.trace.number + 1
        trace = replace(
            last.trace,
            number=number,
            started=now,
            ended=now,
            query=text,
            calls=(),
            steps=(),
            appended=(),
            memories=(),
            facts=(),
            changes=(),
            summary=None,
            supersedes=0,
            error="",
        )
        past = self._before(number, last.counter)
        message = repair(Message.of("user", text))[0]
        own = StoredMessage("", len(past.messages), number, now, message)
        own = replace(own, tokens=last.counter.message(message), counter=last.counter.id)
        history = past.history.copy()
        history.append(own.message, own.tokens or 0)
        layers = replace(
            last.layers,
            messages=(*past.messages, own),
            history=history,
            state=self._states[max(self._states)] if self._states else last.layers.state,
            summary=self.summary_at(number),
            open_turn=len(past.messages),
        )
        found = None
        if self._memories is not None and text.strip():
            found = self._memories.search(trace, {stored.id for stored in past.messages})
        return replace(last, trace=trace, layers=layers, candidates=found)

    def trace(self, number: int) -> TurnTrace:
        """Return the trace of a turn; raise :class:`NotFound` when there is none."""
        row = self._rows.get(number)
        if row is None:
            raise NotFound(f"This session has no turn {number}.")
        return trace_from_json(row.trace, lambda ids: {i: self._texts[i] for i in ids})

    def summary_at(self, number: int) -> Summary:
        """Return the summary that held in a turn's prompt."""
        for turn in range(number, 0, -1):
            row = self._rows.get(turn)
            if row is not None and row.summary is not None and _active(row, number):
                return row.summary
        return NO_SUMMARY

    def _before(self, number: int, counter: TokenCounter) -> _Past:
        """Return the messages that were active when a turn began."""
        past = self._past
        if past is None or past.counter is not counter or self._is_ahead(past, number):
            past = _Past(counter, 0, [], History(counter.text))
        for turn in range(past.turn, number):
            row = self._rows.get(turn)
            if row is not None and not _active(row, number):
                continue
            for stored in self._said.get(turn, ()):
                past.messages.append(stored)
                past.history.append(stored.message, _tokens(stored, past.counter))
        self._past = replace(past, turn=number)
        return self._past

    def _is_ahead(self, past: _Past, number: int) -> bool:
        """Return whether it holds messages that did not count when ``number`` ran."""
        replaced = self._replaced.items()
        return past.turn > number or any(n < past.turn < by <= number for n, by in replaced)

    def _counter(self, trace: TurnTrace) -> TokenCounter:
        """Return the counter that a turn was counted with."""
        name = trace.assembly.counter if trace.assembly is not None else ""
        if name not in self._counters:
            encoding, _, images = name.rpartition("/")
            known = TokenCounter(encoding, image_tokens=int(images)) if encoding else None
            self._counters[name] = known or TokenCounter()
        return self._counters[name]

    def _state(self, trace: TurnTrace) -> AgentState:
        # subtle: tools and facts change the state before the last prompt of a turn
        empty = AgentState(user="", session=trace.session)
        return self._states[trace.state_version] if trace.state_version else empty

    def _candidates(self, trace: TurnTrace, known: set[str]) -> Candidates | None:
        recorded = trace.assembly.recall if trace.assembly is not None else None
        searched = recorded is not None or not trace.settings.get("recall")
        if self._memories is None or not searched or not trace.query.strip():
            return None
        replaced = self.trace(trace.supersedes) if trace.supersedes in self._rows else None
        return self._memories.search(trace, known, replaced)


@dataclass(frozen=True)
class _Past:
    """The messages active when ``turn`` began, and their sums under one counter."""

    counter: TokenCounter
    turn: int
    messages: list[StoredMessage]
    history: History


def _active(row: StoredTurn, number: int) -> bool:
    """Return whether a turn had not been superseded when turn ``number`` ran."""
    return not 0 < row.superseded_by <= number


def _around(turn: ReplayedTurn) -> tuple[int, int]:
    """Return the tokens of tool definitions and of the caller's prefix in the recorded prompt."""
    recorded = turn.trace.assembly
    if recorded is None or recorded.allotment is None:
        return 0, 0
    bare = turn.plan(turn.settings).allotment
    tools = recorded.tokens_by_source().get(Source.TOOLS, 0)
    return tools, max(0, recorded.allotment.fixed - tools - (bare.fixed if bare else 0))


def _tokens(stored: StoredMessage, counter: TokenCounter) -> int:
    if stored.tokens is not None and stored.counter == counter.id:
        return stored.tokens
    return counter.message(stored.message)
