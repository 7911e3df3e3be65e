"""The memory an agent is given: a real LlamaIndex memory inside, our own record beside it.

Every call goes to the same call of the real object with the same arguments, and what it returns
is handed on as it is. Around each call we note what happened: messages go into the session's
record first, so that nothing the class does can lose them; what it returned is explained by its
:class:`~memory_core.native.adapter.Adapter`; its own state is written to the strategy's log just
before the turn is committed.

When a turn begins, record and real object are compared. Where they differ (a restart, a turn that
was superseded or could not be stored, messages taken in from a file) the real object gets its
state of the last turn both know, and then what is new.

All calls run on the process's one background loop, one after the other: LlamaIndex's memories are
not safe in parallel, and some of what they use belongs to the loop it was first used in.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.memory.types import BaseMemory

from memory_core.errors import MemoryInspectorError, PromptTooLarge, StrategyFailed
from memory_core.explain import explain_aside, explain_sent
from memory_core.llama import from_chat, to_chat
from memory_core.loop import background_loop, submit
from memory_core.messages import Json, Message, StoredMessage, repair
from memory_core.native.adapter import Adapter, Asked, State
from memory_core.native.knobs import Knobs
from memory_core.native.log import StateLog
from memory_core.prompt import Assembly, Source
from memory_core.recording import RecordingLLM
from memory_core.session import OpenTurn, Session
from memory_core.settings import MemorySettings
from memory_core.trace import REPLY, Ask, ModelCall, TurnTrace
from memory_core.turn_memory import TurnRecorder

log = logging.getLogger("memory_core.native")

T = TypeVar("T")
Preview = Callable[
    [State, Sequence[StoredMessage], MemorySettings, str, Knobs | None],
    Coroutine[Any, Any, Assembly],
]


class ObservedMemory(BaseMemory):
    """A LlamaIndex memory that is watched. Not shared between visitors."""

    _session: Session = PrivateAttr()
    _adapter: Adapter = PrivateAttr()
    _log: StateLog = PrivateAttr()
    _preview: Preview | None = PrivateAttr()
    _embedded: Callable[[], int] = PrivateAttr()
    _tools: tuple[Json, ...] = PrivateAttr(default=())
    _known: Assembly | None = PrivateAttr(default=None)
    _turn: int = PrivateAttr(default=0)
    _at: int | None = PrivateAttr(default=None)
    _draft: State = PrivateAttr(default_factory=State)
    _skipped: set[str] = PrivateAttr(default_factory=set)
    _broken: bool = PrivateAttr(default=False)
    _lock: asyncio.Lock = PrivateAttr(default_factory=asyncio.Lock)

    def __init__(
        self,
        session: Session,
        adapter: Adapter,
        *,
        log: StateLog | None = None,
        preview: Preview | None = None,
        embedded: Callable[[], int] = lambda: 0,
    ) -> None:
        super().__init__()
        self._session, self._adapter = session, adapter
        self._log = log or StateLog()
        self._preview, self._embedded = preview, embedded

    @classmethod
    def class_name(cls) -> str:
        """Return the name LlamaIndex serialises the class under."""
        return "ObservedMemory"

    @classmethod
    def from_defaults(cls, **_: Any) -> ObservedMemory:
        """Refuse: there must be a memory to observe, see :mod:`memory_core.native.opening`."""
        raise ValueError("an ObservedMemory is made by memory_core.native.opening")

    @property
    def session(self) -> Session:
        """Our own record of the session."""
        return self._session

    @property
    def adapter(self) -> Adapter:
        """What explains the real object."""
        return self._adapter

    @property
    def inner(self) -> BaseMemory:
        """The real object."""
        return self._adapter.memory

    @property
    def known(self) -> Assembly | None:
        """The Assembly of what the real object returned last."""
        return self._known

    @property
    def tokenizer_fn(self) -> Any:
        """How chat engines count what they put in front: as the real object does, if it does."""
        return self.inner.tokenizer_fn  # type: ignore[attr-defined]

    def recorder(self) -> TurnRecorder:
        """Return who keeps the model calls of this memory's turns."""
        return TurnRecorder(self)

    def watch(self, llm: RecordingLLM | None) -> None:
        """Use this model, watched by :meth:`recorder`, for what the real object itself asks."""
        self._adapter.use(llm)

    def offer(self, tools: Sequence[Json]) -> None:
        """Say which tool definitions are sent beside the prompt."""
        self._tools = tuple(tools)

    async def aput(self, message: ChatMessage) -> None:
        """Add a message to the record, then to the real object."""
        await self._run(self._put([message], batch=False))

    async def aput_messages(self, messages: list[ChatMessage]) -> None:
        """Add messages to the record, then to the real object; none is nothing to add."""
        if messages:
            await self._run(self._put(messages, batch=True))

    async def aget(
        self,
        input: str | ChatMessage | None = None,  # noqa: A002 - LlamaIndex's name
        **kwargs: Any,
    ) -> list[ChatMessage]:
        """Return what the real object returns, and explain it."""
        return await self._run(self._get(input, kwargs))

    async def aget_all(self) -> list[ChatMessage]:
        """Return every message of the record, whatever the real object still has."""
        return self.get_all()

    async def aset(self, messages: list[ChatMessage]) -> None:
        """Replace the real object's history, or change nothing.

        The record is append-only: what was there stays there, and what is new is added.
        """
        await self._run(self._set(messages))

    async def areset(self) -> None:
        """Empty the real object; the record stays."""
        await self._run(self._set([]))

    def put(self, message: ChatMessage) -> None:
        """Add a message to the record, then to the real object."""
        self._wait(self._put([message], batch=False))

    def put_messages(self, messages: list[ChatMessage]) -> None:
        """Add messages to the record, then to the real object; none is nothing to add."""
        if messages:
            self._wait(self._put(messages, batch=True))

    def get(self, input: str | ChatMessage | None = None, **kwargs: Any) -> list[ChatMessage]:  # noqa: A002
        """Return what the real object returns, and explain it."""
        return self._wait(self._get(input, kwargs))

    def get_all(self) -> list[ChatMessage]:
        """Return every message of the record, whatever the real object still has."""
        return [to_chat(stored.message) for stored in self._session.messages]

    def set(self, messages: list[ChatMessage]) -> None:
        """Replace the real object's history, or change nothing."""
        self._wait(self._set(messages))

    def reset(self) -> None:
        """Empty the real object; the record stays."""
        self._wait(self._set([]))

    def note(self, message: ChatMessage) -> None:
        """Keep a message in the record that the real object was never given.

        A chat engine gives its memory the question with the answer only; when there is none, the
        question must not be lost.
        """
        self._skipped.add(self._session.append(from_chat(message)).id)

    def close_turn(self, *, error: str = "") -> TurnTrace:
        """Write the strategy's state, commit the running turn and return its trace."""
        session, turn = self._session, self._session.turn
        if turn is None:
            raise ValueError("no turn is open")
        if self._known is not None and not turn.calls and turn.messages:
            last = turn.messages[-1].message
            turn.calls.append(ModelCall(REPLY, "not observed", self._known, reply=last))
        self._keep_state(turn)
        trace = session.close_turn(error=error, evicted=self._evicted(turn))
        if not self._broken:
            self._at = turn.number
            self._draft = State()
        log.info(
            "turn %d of session %s under %s: %d messages stored, %d requests for the prompt",
            trace.number,
            session.key.session,
            self._adapter.title,
            len(trace.appended),
            trace.asked,
        )
        return trace

    def preview(
        self, settings: MemorySettings, query: str = "", *, knobs: Knobs | None = None
    ) -> Assembly:
        """Return what the next prompt would be, run on a copy, without a model call.

        With ``knobs`` it is the prompt under those.
        """
        if self._preview is None:
            raise ValueError("this memory was made without a way to copy it")
        return self._wait(self._previewed(self._preview, settings, query, knobs))

    def sent(self, purpose: str, sent: Sequence[Message], tools: Sequence[Json]) -> Assembly:
        """Return the Assembly of the messages of one model call."""
        counter = self._session.counter
        if purpose != REPLY:
            return explain_aside(sent, counter)
        tool_tokens = counter.tools(tools)
        return explain_sent(sent, known=self._known, tool_tokens=tool_tokens, counter=counter)

    async def state(self) -> State:
        """Return the whole state as it is now, every vector record included."""
        return await self._run(self._state())

    async def _put(self, messages: Sequence[ChatMessage], *, batch: bool) -> None:
        async with self._lock:
            await self._begin(opens=True, anew=messages[0].role == MessageRole.USER)
            stored, given = [], []
            for chat in messages:
                plain, replaced = repair(from_chat(chat))
                stored.append(self._session.append(plain))
                given.append(to_chat(plain) if replaced else chat)
            began, before = time.perf_counter(), self._embedded()
            try:
                if batch:
                    await self.inner.aput_messages(given)
                else:
                    await self.inner.aput(given[0])
            except Exception as exc:
                self._broken = True
                raise self._shown(exc, "take a message") from exc
            self._adapter.put(stored)
            self._spent(began, before)

    async def _get(
        self, query: str | ChatMessage | None, kwargs: dict[str, Any]
    ) -> list[ChatMessage]:
        async with self._lock:
            await self._begin(opens=False)
            began, before = time.perf_counter(), self._embedded()
            turn = self._session.turn
            calls = len(turn.calls) if turn is not None else 0
            in_front = int(kwargs.get("initial_token_count") or 0)
            ask = Ask(query=_text_of(query), in_front=in_front)
            try:
                returned = await self._adapter.ask(query, **kwargs)
            except Exception as exc:
                error = self._shown(exc, "give the prompt", in_front=in_front)
                self._asked(replace(ask, error=str(error)), began, before, calls)
                raise error from exc
            plain = tuple(from_chat(chat) for chat in returned)
            self._known = self._adapter.explain(Asked(ask.query, in_front, plain))
            ask = replace(ask, messages=len(plain), tokens=self._known.tokens)
            self._asked(ask, began, before, calls)
            return returned

    async def _set(self, messages: Sequence[ChatMessage]) -> None:
        async with self._lock:
            await self._begin(opens=bool(messages))
            before, held = await self._state(), list(self._adapter.given.messages)
            plain = [repair(from_chat(chat))[0] for chat in messages]
            try:
                await self.inner.aset(list(messages))
            except Exception as exc:
                await self._adapter.restore(before, held)
                raise self._shown(exc, "replace its history") from exc
            self._adapter.replaced(self._recorded(plain))

    def _recorded(self, plain: Sequence[Message]) -> list[StoredMessage]:
        """Return the record's messages for these, in order; what it has not is appended.

        What stands in the record beside them is none of the real object's any more.
        """
        record = list(self._session.messages)
        stored: list[StoredMessage] = []
        at = 0
        for message in plain:
            known = next((i for i in range(at, len(record)) if record[i].message == message), None)
            if known is None:
                at = len(record)
                stored.append(self._session.append(message))
            else:
                stored.append(record[known])
                at = known + 1
        mine = {message.id for message in stored}
        self._skipped = {m.id for m in self._session.messages if m.id not in mine}
        return stored

    async def _begin(self, *, opens: bool, anew: bool = False) -> None:
        """Bring the real object up to the record when a turn begins.

        ``anew``: a user message comes, so a turn that has its answer is over.
        """
        session = self._session
        if anew and session.turn is not None and _answered(session.turn):
            self.close_turn()
        if opens and session.turn is None:
            session.open_turn()
        turn = session.turn
        if turn is None:
            await self._catch_up(None)
        elif self._at is None or turn.number != self._turn:
            self._known = None
            await self._catch_up(turn)
            self._turn = turn.number
            await self._adapter.begin()

    async def _catch_up(self, turn: OpenTurn | None) -> None:
        first = turn.first if turn is not None else len(self._session.messages)
        record = self._session.messages[:first]
        if self._at is None:
            await self._open(record)
        wanted = [stored for stored in record if stored.id not in self._skipped]
        given = self._adapter.given.messages
        if not self._broken and _ids(given) == _ids(wanted):
            return
        if self._broken or _ids(given) != _ids(wanted)[: len(given)]:
            await self._go_back(wanted, turn)
        await self._give(wanted[len(self._adapter.given.messages) :])

    async def _open(self, record: Sequence[StoredMessage]) -> None:
        """Give a fresh object the newest state that belongs to the record, or the history."""
        at = self._newest(record)
        if at is None:
            await self._adapter.seed(list(record))
            self._at = record[-1].turn if record else 0
            self._write(self._at, -1, self._adapter.dump())
        else:
            self._at = at
            await self._restore(at, record)

    async def _go_back(self, wanted: Sequence[StoredMessage], turn: OpenTurn | None) -> None:
        """Give the object the state from which this turn begins."""
        at = self._log.base(turn.supersedes) if turn is not None and turn.supersedes else None
        if at is None:
            at = self._newest(wanted)
        self._broken, self._draft = False, State()
        if at is None:
            await self._adapter.seed([])
        else:
            await self._restore(at, wanted)
        self._at = at or 0

    async def _restore(self, at: int, record: Sequence[StoredMessage]) -> None:
        """Give the object the state that was logged after turn ``at``."""
        state = self._log.state(at) or State()
        self._skipped |= set(state.data.get("skipped", ()))
        known = [m for m in record if m.turn <= at and m.id not in self._skipped]
        await self._adapter.restore(replace(state, data=state.data.get("own", {})), known)

    def _newest(self, record: Sequence[StoredMessage]) -> int | None:
        """Return the newest turn of the record whose state was logged."""
        turns = sorted({stored.turn for stored in record} | {0}, reverse=True)
        return next((n for n in turns if self._log.base(n) is not None), None)

    async def _give(self, stored: Sequence[StoredMessage]) -> None:
        """Give the object messages of the record that it has not seen."""
        if stored:
            await self.inner.aput_messages([to_chat(message.message) for message in stored])
            self._adapter.put(stored)

    def _keep_state(self, turn: OpenTurn) -> None:
        """Write the state to the log; a turn that is closed again is written whole again.

        After a failed write the object is not trusted: it will be made again from the last state.
        """
        if self._broken:
            return
        new = self._adapter.dump()
        self._draft = State(
            new.data,
            (*(r for r in self._draft.added if r["id"] not in new.removed), *new.added),
            (*self._draft.removed, *new.removed),
        )
        problem = self._write(turn.number, self._at or 0, self._draft)
        if problem:
            turn.degrade(f"{problem} After a restart it is made again from the record.")

    def _write(self, turn: int, base: int, state: State) -> str:
        """Write a state to the log; return what went wrong, if anything did."""
        data = {"own": dict(state.data), "skipped": sorted(self._skipped)}
        try:
            self._log.write(turn, base, replace(state, data=data))
        except MemoryInspectorError as exc:
            log.warning("%s", exc)
            return str(exc)
        return ""

    async def _state(self) -> State:
        """Return the whole state as it is now: what was logged, and what is new since."""
        kept = self._log.state(self._at) if self._at is not None else None
        new = self._adapter.dump()
        self._draft = State(
            new.data, (*self._draft.added, *new.added), (*self._draft.removed, *new.removed)
        )
        records = {r["id"]: r for r in (kept.added if kept is not None else ())}
        records |= {r["id"]: r for r in self._draft.added}
        for gone in new.removed:
            records.pop(gone, None)
        return State(new.data, tuple(records.values()))

    async def _previewed(
        self, preview: Preview, settings: MemorySettings, query: str, knobs: Knobs | None
    ) -> Assembly:
        async with self._lock:
            await self._begin(opens=False)
            given = list(self._adapter.given.messages)
            return await preview(await self._state(), given, settings, query, knobs)

    def _evicted(self, turn: OpenTurn) -> list[str]:
        """Return the ids that the last turn's prompt held word for word and this one's does not."""
        last = self._session.last_trace
        before = last.assembly if last is not None else None
        calls = [call for call in turn.calls if call.purpose == REPLY]
        now = calls[-1].assembly if calls else None
        if before is None or now is None:
            return []
        kept = _verbatim(now)
        active = {stored.id for stored in self._session.messages}
        return [i for i in _verbatim(before) if i not in kept and i in active]

    def _asked(self, ask: Ask, began: float, before: int, calls: int) -> None:
        turn = self._session.turn
        if turn is None:
            return
        turn.asked += 1
        turn.asks.append(
            replace(
                ask,
                calls=len(turn.calls) - calls,
                embedded=self._embedded() - before,
                milliseconds=(time.perf_counter() - began) * 1000,
            )
        )
        self._spent(began, before)

    def _spent(self, began: float, before: int) -> None:
        turn = self._session.turn
        if turn is not None:
            turn.embedded += self._embedded() - before
            turn.spend("prompt", (time.perf_counter() - began) * 1000)

    def _shown(self, exc: Exception, what: str, *, in_front: int = 0) -> MemoryInspectorError:
        """Return the error of the family for what the real object raised."""
        cause: BaseException | None = exc
        while cause is not None:
            if isinstance(cause, MemoryInspectorError):
                return cause
            cause = cause.__cause__ or cause.__context__
        limit = getattr(self.inner, "token_limit", None)
        if in_front and isinstance(exc, ValueError) and limit is not None and in_front > limit:
            return PromptTooLarge(
                f"There is no room for history: what stands in front needs {in_front:,} tokens, "
                f"the limit of {self._adapter.title} is {limit:,}."
            )
        return StrategyFailed(
            f"{self._adapter.title} could not {what}: {type(exc).__name__}: {exc}"
        )

    async def _run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run on the background loop, wherever this is called from."""
        if asyncio.get_running_loop() is background_loop():
            return await work
        return await asyncio.wrap_future(submit(work))

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Run on the background loop and wait; from that loop itself the async calls are used."""
        try:
            here = asyncio.get_running_loop()
        except RuntimeError:
            here = None
        if here is background_loop():
            work.close()
            raise ValueError("on the background loop an ObservedMemory is used by its async calls")
        return submit(work).result()


def _verbatim(assembly: Assembly) -> dict[str, None]:
    return dict.fromkeys(
        i for part in assembly.parts if part.source is Source.BUFFER for i in part.ids
    )


def _answered(turn: OpenTurn) -> bool:
    """Return whether the running turn has its answer: what follows belongs to the next."""
    last = turn.messages[-1].message if turn.messages else None
    return last is not None and last.role == "assistant" and not last.tool_calls


def _ids(messages: Sequence[StoredMessage]) -> list[str]:
    return [message.id for message in messages]


def _text_of(query: str | ChatMessage | None) -> str:
    return from_chat(query).text if isinstance(query, ChatMessage) else query or ""
