"""One session as it stands in memory: a cached view of the store that a turn is added to.

:class:`Session` holds the active messages with their running token sums, the state, the summary
and the long-term search. :class:`OpenTurn` gathers what the running turn does; nothing of it is
in the store until :meth:`Session.close_turn` commits all of it at once. Where no store is given
the session lives in memory only.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from memory_core.buffer import History
from memory_core.longterm import LongTermMemory
from memory_core.messages import Json, Message, StoredMessage, repair
from memory_core.records import Sees
from memory_core.settings import MemorySettings
from memory_core.state import AgentState, KeyFact, diff
from memory_core.stores.protocols import MemoryRecord, SessionKey, Store, TurnRecord
from memory_core.summary import NO_SUMMARY, Summary
from memory_core.tokens import TokenCounter
from memory_core.trace import (
    Ask,
    MemoryWrite,
    ModelCall,
    ToolStep,
    TurnTrace,
    trace_from_json,
    trace_to_json,
)

LAYERED = "layered"  # our own memory, as strategies are named


def utc_now() -> datetime:
    """Return the time, aware, in UTC."""
    return datetime.now(UTC)


@dataclass
class OpenTurn:
    """What the running turn has done so far. ``began`` is on the monotonic clock, in seconds."""

    number: int
    started: datetime
    began: float
    first: int
    query: str = ""
    messages: list[StoredMessage] = field(default_factory=list)
    calls: list[ModelCall] = field(default_factory=list)
    steps: list[ToolStep] = field(default_factory=list)
    summary: Summary | None = None
    records: list[MemoryRecord] = field(default_factory=list)
    memories: list[MemoryWrite] = field(default_factory=list)
    asked: int = 0
    asks: list[Ask] = field(default_factory=list)
    embedded: int = 0
    encoded_before: int = 0
    milliseconds: dict[str, float] = field(default_factory=dict)
    degradations: list[str] = field(default_factory=list)
    supersedes: int = 0
    unsummarised: bool = False  # going back took a summary with it; the store must know
    round_done: bool = False

    def elapsed(self) -> float:
        """Return the milliseconds since the turn began."""
        return (time.perf_counter() - self.began) * 1000

    def spend(self, name: str, milliseconds: float) -> None:
        """Add to a named timing."""
        self.milliseconds[name] = self.milliseconds.get(name, 0.0) + milliseconds

    def degrade(self, sentence: str) -> None:
        """Note, once, what did not work as it should."""
        if sentence not in self.degradations:
            self.degradations.append(sentence)


@dataclass(frozen=True)
class _Mark:
    """Where the session stood before a turn, to go back to when the turn is superseded."""

    messages: int
    state: AgentState
    summary: Summary
    window_start: int
    traced: AgentState


class Session:
    """The running view of one session. Not shared between visitors; safe between threads."""

    def __init__(
        self,
        *,
        key: SessionKey,
        counter: TokenCounter,
        settings: MemorySettings,
        store: Store | None = None,
        longterm: LongTermMemory | None = None,
        clock: Callable[[], datetime] = utc_now,
        strategy: str = LAYERED,
        knobs: Mapping[str, Json] | None = None,
    ) -> None:
        self.key = key
        self.counter = counter
        self.settings = settings
        self.store = store
        self.longterm = longterm
        self.clock = clock
        self.strategy = strategy
        self.knobs: Mapping[str, Json] = knobs or {}
        self.sees: Sees | None = None  # None: all of the user's memories
        self.look: Callable[[], Sees | None] | None = None  # what it sees now, asked every turn
        self.lock = threading.RLock()
        self.turn: OpenTurn | None = None
        self.last_turn = 0
        self.last_trace: TurnTrace | None = None
        self.messages: list[StoredMessage] = []
        self._texts: dict[str, Message] = {}  # of all messages ever read or said, by id
        self.history = History(counter.text)
        self.state = AgentState(user=key.user, session=key.session)
        self.summary: Summary = NO_SUMMARY
        self.window_start = 0
        self._next_position = 0
        self._saved_state = self._traced_state = self.state
        self._marks: dict[int, _Mark] = {}

    @classmethod
    def open(cls, *, store: Store, key: SessionKey, **collaborators: object) -> Session:
        """Return a session as the store holds it."""
        session = cls(key=key, store=store, **collaborators)  # type: ignore[arg-type]
        head = store.head(key)
        session.last_turn = head.turn
        session.state = session._saved_state = head.state
        session.summary = head.summary
        for stored in store.messages(key):
            session._take(stored)
        session._next_position = head.messages
        session._recall_last_turn()
        return session

    def find(self, ids: Iterable[str]) -> dict[str, Message]:
        """Return the messages of these ids, superseded ones from the store."""
        wanted = set(ids)
        if not wanted <= self._texts.keys() and self.store is not None:
            everything = self.store.messages(self.key, superseded=True)
            self._texts |= {stored.id: stored.message for stored in everything}
        return {item: self._texts[item] for item in wanted if item in self._texts}

    def recount(self, counter: TokenCounter) -> None:
        """Count all messages under another counter (another encoding or picture price)."""
        with self.lock:
            if counter.id == self.counter.id:
                return
            self.counter = counter
            self._rebuild(self.messages)

    def open_turn(self, *, supersedes: int = 0) -> OpenTurn:
        """Start the next turn; the messages that follow belong to it."""
        with self.lock:
            summary = self.summary
            if supersedes:
                self._go_back(supersedes)
            if self.look is not None:
                self.sees = self.look()
            self.turn = OpenTurn(
                number=self.last_turn + 1,
                started=self.clock(),
                began=time.perf_counter(),
                first=len(self.messages),
                supersedes=supersedes,
                unsummarised=self.summary != summary,
                encoded_before=self.counter.encoded,
            )
            self._marks[self.turn.number] = _Mark(
                len(self.messages), self.state, self.summary, self.window_start, self._traced_state
            )
            return self.turn

    def append(self, message: Message) -> StoredMessage:
        """Add a message to the running turn, starting one if none runs."""
        with self.lock:
            turn = self.turn or self.open_turn()
            message, replaced = repair(message)
            if replaced:
                turn.degrade(
                    f"{replaced} characters that cannot be stored were replaced by U+FFFD."
                )
            stored = StoredMessage(
                id=uuid.uuid4().hex,
                position=self._next_position,
                turn=turn.number,
                created=self.clock(),
                message=message,
                tokens=self.counter.message(message),
                counter=self.counter.id,
            )
            self._next_position += 1
            self._take(stored)
            turn.messages.append(stored)
            if message.role == "user":
                turn.query = message.text
            return stored

    def change_state(self, change: Callable[[AgentState], AgentState]) -> AgentState:
        """Apply a change to the state; it is saved with the turn."""
        with self.lock:
            base = self._saved_state.version
            changed = change(self.state)
            if changed is not self.state:
                self.state = replace(changed, version=base + 1, updated=self.clock())
            return self.state

    def close_turn(
        self,
        *,
        error: str = "",
        window_start: int | None = None,
        evicted: Sequence[str] | None = None,
    ) -> TurnTrace:
        """Commit the running turn in one transaction and return its trace.

        ``evicted`` are the ids that left the prompt, where it is no window that says so.

        Raises what the store raises; the turn then stays open and can be closed again.
        """
        with self.lock:
            turn = self.turn
            if turn is None:
                raise ValueError("no turn is open")
            if not error:
                self._plan_memories(turn)
            start = self.window_start if window_start is None else window_start
            before = self._marks[turn.number]
            left = self.messages[before.window_start : max(start, before.window_start)]
            trace = TurnTrace(
                number=turn.number,
                session=self.key.session,
                started=turn.started,
                ended=self.clock(),
                strategy=self.strategy,
                settings=self.settings.to_json() | dict(self.knobs),
                query=turn.query,
                calls=tuple(turn.calls),
                steps=tuple(turn.steps),
                appended=tuple(m.id for m in turn.messages),
                evicted=tuple(m.id for m in left) if evicted is None else tuple(evicted),
                summary=turn.summary,
                memories=tuple(turn.memories),
                state_version=self.state.version,
                changes=diff(before.traced, self.state),
                facts=tuple(f for f in self.state.key_facts if f not in before.traced.key_facts),
                asked=turn.asked,
                asks=tuple(turn.asks),
                embedded=turn.embedded,
                encoded=self.counter.encoded - turn.encoded_before,
                milliseconds=dict(turn.milliseconds, total=turn.elapsed()),
                degradations=tuple(turn.degradations),
                error=error,
                supersedes=turn.supersedes,
            )
            if self.store is not None:
                self.store.commit(self.key, self._record(turn, trace))
            self._saved_state = self._traced_state = self.state
            self.window_start = start
            self.last_turn = turn.number
            self.last_trace = trace
            self.turn = None
            return trace

    def drop_turn(self) -> None:
        """Forget the running turn as if it had never begun (nothing of it was stored)."""
        with self.lock:
            if self.turn is not None:
                self._restore(self._marks.pop(self.turn.number))
                self._next_position -= len(self.turn.messages)
                self.turn = None

    def saved(self, state: AgentState) -> None:
        """Take over a state that was saved outside a turn (by hand)."""
        with self.lock:
            self.state = self._saved_state = state

    def _recall_last_turn(self) -> None:
        if self.store is None or not self.last_turn:
            return
        rows = self.store.turns(self.key, first=self.last_turn, last=self.last_turn)
        self.last_trace = trace_from_json(rows[0].trace, self.find)
        version = self.last_trace.state_version
        if version == self.state.version:
            self._traced_state = self.state
        elif version:  # edited by hand since
            self._traced_state = self.store.state(self.key, version)
        assembly = self.last_trace.assembly
        if assembly is not None and assembly.window is not None:
            self.window_start = min(assembly.window.start, len(self.messages))

    def _plan_memories(self, turn: OpenTurn) -> None:
        ours = self.strategy == LAYERED  # another strategy remembers in its own way
        if self.longterm is None or not ours or not self.settings.remember_turns:
            return
        records, writes = self.longterm.plan_turn(
            user=self.key.user,
            session=self.key.session,
            turn=turn.number,
            messages=turn.messages,
            now=turn.started,
            supersedes=turn.supersedes,
            planned=turn.records,
        )
        turn.records += records
        turn.memories += writes
        for fact in self._facts_found(turn):
            records, writes = self.longterm.plan_fact(
                fact.text,
                user=self.key.user,
                session=self.key.session,
                turn=fact.turn,
                now=turn.started,
                message_ids=(fact.message_id,) if fact.message_id else (),
                planned=turn.records,
            )
            turn.records += records
            turn.memories += writes

    def _facts_found(self, turn: OpenTurn) -> list[KeyFact]:
        """Return the key facts that this turn's summary round found."""
        known = {fact.id for fact in self._marks[turn.number].state.key_facts}
        return [
            fact
            for fact in self.state.key_facts
            if fact.id not in known and fact.source == "extracted"
        ]

    def _record(self, turn: OpenTurn, trace: TurnTrace) -> TurnRecord:
        return TurnRecord(
            number=turn.number,
            trace=trace_to_json(trace),
            messages=tuple(turn.messages),
            state=self.state if self.state.version != self._saved_state.version else None,
            state_base=self._saved_state.version,
            summary=self.summary if turn.unsummarised else turn.summary,
            records=tuple(turn.records),
            supersedes=turn.supersedes,
        )

    def _take(self, stored: StoredMessage) -> None:
        tokens = stored.tokens
        if tokens is None or stored.counter != self.counter.id:
            tokens = self.counter.message(stored.message)
            stored = replace(stored, tokens=tokens, counter=self.counter.id)
        self.messages.append(stored)
        self._texts[stored.id] = stored.message
        self.history.append(stored.message, tokens)

    def _rebuild(self, messages: Sequence[StoredMessage]) -> None:
        self.messages, self.history = [], History(self.counter.text)
        for stored in messages:
            self._take(stored)

    def _go_back(self, number: int) -> None:
        """Return to where the session stood before turn ``number``, the last one."""
        if number != self.last_turn:
            raise ValueError("only the last turn can be superseded")
        mark = self._marks.get(number) or self._mark_from_store(number)
        self._restore(mark)

    def _restore(self, mark: _Mark) -> None:
        self._rebuild(self.messages[: mark.messages])
        self.summary = mark.summary
        self.window_start = mark.window_start
        self._traced_state = mark.traced
        saved = self._saved_state
        same = replace(mark.state, version=saved.version, updated=saved.updated) == saved
        # subtle: compare what they hold; a state gone back to has no version of its own yet
        self.state = saved if same else replace(mark.state, version=saved.version + 1)

    def _mark_from_store(self, number: int) -> _Mark:
        count = sum(1 for m in self.messages if m.turn < number)
        start = min(self.window_start, count)
        if self.store is None:
            return _Mark(count, self.state, self.summary, start, self._traced_state)
        past = find_past(self.store, self.key, number - 1)
        return _Mark(count, past.state, past.summary, start, past.state)


@dataclass(frozen=True)
class Past:
    """State and summary as they were after a turn."""

    state: AgentState
    summary: Summary


def find_past(store: Store, key: SessionKey, turn: int) -> Past:
    """Read the state and summary that held after ``turn``; turn 0 is the empty beginning.

    A summary made in a turn that had been superseded by then does not count.
    """

    def read(number: int) -> TurnTrace | None:
        rows = store.turns(key, first=number, last=number)
        return trace_from_json(rows[0].trace, _placeholders) if rows else None

    trace = read(turn) if turn else None
    if trace is None:
        return Past(AgentState(user=key.user, session=key.session), NO_SUMMARY)
    state = (
        store.state(key, trace.state_version)
        if trace.state_version
        else AgentState(user=key.user, session=key.session)
    )
    number, summary = turn, trace.summary
    while summary is None and number > 1:
        number -= 1
        rows = store.turns(key, first=number, last=number)
        if rows and not 0 < rows[0].superseded_by <= turn:
            summary = trace_from_json(rows[0].trace, _placeholders).summary
    return Past(state, summary or NO_SUMMARY)


def _placeholders(ids: Iterable[str]) -> Mapping[str, Message]:
    return {i: Message("") for i in ids}
