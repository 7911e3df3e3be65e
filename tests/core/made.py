"""Conversations made without a model: every prompt is planned by the real planner.

:class:`Talk` plays turns through :func:`~memory_core.assemble.assemble`, real windows, summary
rounds and state changes, and returns the traces an engine would. Similarities are given by hand
or drawn from a text's digest, so that a test can set the scene it needs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import numpy as np

from memory_core.assemble import Layers, assemble, memory_tokens
from memory_core.buffer import History
from memory_core.fusion import LENT, Features
from memory_core.messages import Message, StoredMessage
from memory_core.prompt import Assembly
from memory_core.ranking import Candidates, rank_hits
from memory_core.settings import DENSE, MemorySettings
from memory_core.shelf import Snapshot
from memory_core.state import AgentState, KeyFact, add_fact, diff, drop_facts, set_preference
from memory_core.stores.protocols import MemoryRecord
from memory_core.summary import NO_SUMMARY, Summary, check_facts, plan_summary
from memory_core.tokens import TokenCounter
from memory_core.trace import REPLY, MemoryWrite, ModelCall, TurnTrace

COUNTER = TokenCounter()
START = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)


@dataclass
class Record:
    """A long-term memory of the test: what it was made from and whether it still holds."""

    id: str
    text: str
    turn: int
    session: str
    message_ids: tuple[str, ...]
    alive: bool = True


@dataclass(frozen=True, repr=False)
class Moment:
    """One turn as it was planned: its trace and a preview of it under other settings."""

    trace: TurnTrace
    settings: MemorySettings
    layers: Layers
    plan: Callable[[MemorySettings], Assembly]


@dataclass
class Talk:
    """A conversation under settings that may change from turn to turn."""

    settings: MemorySettings = field(default_factory=MemorySettings)
    similar: Mapping[str, float] = field(default_factory=dict)
    messages: list[StoredMessage] = field(default_factory=list)
    state: AgentState = field(default_factory=lambda: AgentState(user="u", session="s"))
    summary: Summary = NO_SUMMARY
    records: list[Record] = field(default_factory=list)
    moments: list[Moment] = field(default_factory=list)
    texts: dict[str, Message] = field(default_factory=dict)
    _before: tuple[int, AgentState, Summary] = (0, AgentState(user="u", session="s"), NO_SUMMARY)
    _position: int = 0
    _window: frozenset[str] = frozenset()

    @property
    def traces(self) -> list[TurnTrace]:
        """The traces so far."""
        return [moment.trace for moment in self.moments]

    def say(
        self,
        text: str,
        answer: str = "Noted.",
        *,
        tool: str = "",
        fact: str = "",
        drop_fact: bool = False,
        prefer: str = "",
        forget: bool = False,
        supersede: bool = False,
        fail: bool = False,
        remember: bool = True,
        **knobs: object,
    ) -> Moment:
        """Play one turn and return it."""
        self.settings = self.settings.with_(**knobs)
        number = len(self.moments) + 1
        supersede = supersede and number > 1
        if supersede:
            self._go_back(number - 1)
        self._before = (len(self.messages), self.state, self.summary)
        before, first, appended = self.state, len(self.messages), []
        appended.append(self._store(Message.of("user", text), number))
        made, assembly, moment = None, None, None
        if not fail:
            made = self._summary_round(number, first)
            plan = self._planner(text, first)
            assembly = plan(self.settings)
            moment = plan, self._layers(self.settings, text, first)
            if tool:
                call = {
                    "block_type": "tool_call",
                    "tool_call_id": f"c{number}",
                    "tool_name": tool,
                    "tool_kwargs": {"n": number},
                }
                appended.append(self._store(Message("assistant", (call,)), number))
                result = Message.of("tool", f"{tool} says {number}", tool_call_id=f"c{number}")
                appended.append(self._store(result, number))
            appended.append(self._store(Message.of("assistant", answer), number))
            if fact:
                told = KeyFact(f"f{number}", fact, number, appended[0].id)
                self.state = add_fact(self.state, told)
            if drop_fact and before.key_facts:
                self.state = drop_facts(self.state, frozenset({before.key_facts[0].id}))
            if prefer:
                self.state = set_preference(self.state, prefer, f"value {number}")
        writes = self._remember(number, text, appended, forget=forget, keep=remember and not fail)
        window = frozenset(i for i in assembly.message_ids if i) if assembly else self._window
        reply = Message.of("assistant", answer)
        trace = TurnTrace(
            number=number,
            session="s",
            started=START + timedelta(minutes=number),
            ended=START + timedelta(minutes=number, seconds=3),
            strategy="layered",
            settings=self.settings.to_json(),
            query=text,
            calls=(ModelCall(REPLY, "made", assembly, reply),) if assembly else (),
            appended=tuple(m.id for m in appended),
            evicted=tuple(sorted(self._window - window)),
            summary=made,
            memories=writes,
            state_version=self.state.version,
            changes=diff(before, self.state),
            facts=tuple(f for f in self.state.key_facts if f not in before.key_facts),
            error="broken" if fail else "",
            supersedes=number - 1 if supersede else 0,
        )
        self._window = window
        plan, layers = moment or (None, None)
        self.moments.append(Moment(trace, self.settings, layers, plan))
        return self.moments[-1]

    def _store(self, message: Message, turn: int) -> StoredMessage:
        stored = StoredMessage(
            id=f"m{self._position}",
            position=self._position,
            turn=turn,
            created=START,
            message=message,
            tokens=COUNTER.message(message),
            counter=COUNTER.id,
        )
        self._position += 1
        self.texts[stored.id] = message
        self.messages.append(stored)
        return stored

    def _go_back(self, number: int) -> None:
        kept, self.state, self.summary = self._before
        del self.messages[kept:]
        for record in self.records:
            if record.turn == number and record.session == "s":
                record.alive = False

    def _layers(self, settings: MemorySettings, query: str, first: int) -> Layers:
        history = History(COUNTER.text)
        for stored in self.messages:
            history.append(stored.message, stored.tokens or 0)
        alive = [r for r in self.records if r.alive]
        return Layers(
            messages=tuple(self.messages),
            history=history,
            state=self.state,
            summary=self.summary,
            rank=self.ranking(alive, query)(settings) if settings.recall else None,
            open_turn=first,
        )

    def _planner(self, query: str, first: int) -> Callable[[MemorySettings], Assembly]:
        layers = self._layers(self.settings.with_(recall=True), query, first)
        ranking = self.ranking([r for r in self.records if r.alive], query)

        def plan(settings: MemorySettings) -> Assembly:
            rank = ranking(settings) if settings.recall else None
            return assemble(replace(layers, rank=rank), settings, COUNTER)

        return plan

    def ranking(self, records: list[Record], query: str):
        """Return settings -> the ranking of these memories, through every gate in order."""
        similar = np.array([self.similarity(record.text, query) for record in records])
        features = Features(
            similarity=similar,
            words=np.zeros(len(records)),
            place=np.arange(len(records)),
            beside=np.full((len(records), len(LENT)), -1),
            lends=np.zeros(len(records), dtype=bool),
            created=np.zeros(len(records)),
        )
        stored = tuple(
            MemoryRecord(r.id, "u", r.session, r.turn, "turn", r.text, r.message_ids, START)
            for r in records
        )
        found = Candidates(query, Snapshot(stored, features, 1 - similar, np.zeros((0, 0), "f4")))

        def ranking(settings: MemorySettings):
            return lambda in_buffer, budget: rank_hits(
                found,
                settings=settings.with_(recall_method=DENSE),
                session="s",
                in_buffer=in_buffer,
                budget=budget,
                count=lambda hit: memory_tokens(hit, COUNTER),
                now=START,
            )

        return ranking

    def similarity(self, text: str, query: str) -> float:
        """Return the similarity given by hand, else one drawn from both texts."""
        if text in self.similar:
            return self.similar[text]
        digest = hashlib.sha256(f"{text}|{query}".encode()).digest()
        return int.from_bytes(digest[:2], "big") / 65535

    def _summary_round(self, number: int, first: int) -> Summary | None:
        if not self.settings.summarise:
            return None
        window = self._planner(self.messages[-1].message.text, first)(self.settings).window
        round_ = plan_summary(
            self._layers(self.settings, "", first).history,
            covered=self.summary.covers,
            window_start=window.start,
            every=self.settings.summary_every,
            open_turn=first,
        )
        if not round_.due:
            return None
        folded = self.messages[round_.first : round_.last]
        text = " ".join(" ".join(m.message.text.split()[:4]) for m in folded[-6:])
        facts = [(f.id, f.text) for f in self.state.key_facts]
        kept, lost = check_facts(text, facts)
        self.summary = Summary(
            version=self.summary.version + 1,
            text=text,
            tokens=COUNTER.text(text),
            covers=round_.last,
            folded=tuple(m.id for m in folded),
            kept=tuple(kept),
            lost=tuple(lost),
            turn=number,
        )
        return self.summary

    def _remember(
        self, number: int, text: str, appended: list[StoredMessage], *, forget: bool, keep: bool
    ) -> tuple[MemoryWrite, ...]:
        writes = []
        alive = [r for r in self.records if r.alive]
        if forget and alive:
            alive[0].alive = False
            writes.append(MemoryWrite("forgotten", alive[0].id, alive[0].text, reason="asked to"))
        if keep:
            ids = (appended[0].id, appended[-1].id)
            self.records.append(Record(f"r{number}", text, number, "s", ids))
            writes.append(MemoryWrite("remembered", f"r{number}", text, message_ids=ids))
        return tuple(writes)
