"""The memory an agent is given: a real LlamaIndex memory inside, our own record beside it.

Every call goes to the same call of the real object with the same arguments, and what it returns
is handed on as it is. Around each call we note what happened: messages go into the session's
record first, so that nothing the class does can lose them; what it returned is explained by its
:class:`~memory_core.native.adapter.Adapter`; its own state is written to the strategy's log just
before the turn is committed.

When a turn begins, record and real object are brought together
(:mod:`memory_core.native.keeping`).

Calls run one after the other: LlamaIndex's memories are not safe in parallel.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.memory.types import BaseMemory

from memory_core.errors import MemoryInspectorError, PromptTooLarge, StrategyFailed
from memory_core.explain import explain_aside, explain_sent
from memory_core.llama import from_chat, to_chat
from memory_core.messages import Json, Message, StoredMessage, repair
from memory_core.native.adapter import Adapter, Asked, State
from memory_core.native.keeping import Keeping
from memory_core.native.knobs import Knobs
from memory_core.native.log import StateLog
from memory_core.native.one_loop import OneLoopMemory, wait
from memory_core.prompt import Assembly, Part, Source
from memory_core.recording import RecordingLLM
from memory_core.session import OpenTurn, Session
from memory_core.settings import MemorySettings
from memory_core.strategies import CONDENSE_ENGINE, CONTEXT_ENGINE
from memory_core.trace import REPLY, Ask, ModelCall, TurnTrace
from memory_core.turn_memory import TurnRecorder

log = logging.getLogger("memory_core.native")

Preview = Callable[
    [State | None, Sequence[StoredMessage], MemorySettings, str, Knobs | None],
    Coroutine[Any, Any, Assembly],
]


class ObservedMemory(OneLoopMemory):
    """A LlamaIndex memory that is watched. Not shared between visitors."""

    _session: Session = PrivateAttr()
    _adapter: Adapter = PrivateAttr()
    _keeping: Keeping = PrivateAttr()
    _preview: Preview | None = PrivateAttr()
    _embedded: Callable[[], int] = PrivateAttr()
    _tools: tuple[Json, ...] = PrivateAttr(default=())
    _known: Assembly | None = PrivateAttr(default=None)
    _turn: OpenTurn | None = PrivateAttr(default=None)
    _lock: asyncio.Lock = PrivateAttr(default_factory=asyncio.Lock)

    def __init__(
        self,
        session: Session,
        adapter: Adapter,
        *,
        states: StateLog | None = None,
        preview: Preview | None = None,
        embedded: Callable[[], int] = lambda: 0,
    ) -> None:
        super().__init__()
        self._session, self._adapter = session, adapter
        self._keeping = Keeping(session, adapter, states or StateLog())
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

    @property
    def tool_tokens(self) -> int:
        """The tokens of the tool definitions that are sent beside the prompt."""
        return self._session.counter.tools(self._tools) if self._tools else 0

    def offer(self, tools: Sequence[Json]) -> None:
        """Say which tool definitions are sent beside the prompt."""
        self._tools = tuple(tools)

    def get_all(self) -> list[ChatMessage]:
        """Return every message of the record, whatever the real object still has."""
        return [to_chat(stored.message) for stored in self._session.messages]

    def note(self, message: ChatMessage) -> None:
        """Keep a message in the record that the real object was never given.

        A chat engine gives its memory the question with the answer only; when there is none, the
        question must not be lost.
        """
        self._keeping.skipped.add(self._session.append(from_chat(message)).id)

    def play(self, question: str, answer: str) -> TurnTrace:
        """Take in a turn whose answer is known, asked for the prompt as the agent would."""
        setup = self._session.knobs.get("setup") or {}
        searches = setup.get("agent") in (CONTEXT_ENGINE, CONDENSE_ENGINE)
        if searches:
            if self._session.turn is None:
                self._session.open_turn()
            self.get(question)
        self.put(ChatMessage(role=MessageRole.USER, content=question))
        if not searches:
            self.get()
        self.put(ChatMessage(role=MessageRole.ASSISTANT, content=answer))
        return self.close_turn()

    def close_turn(self, *, error: str = "") -> TurnTrace:
        """Write the strategy's state, commit the running turn and return its trace."""
        session, turn = self._session, self._session.turn
        if turn is None:
            raise ValueError("no turn is open")
        observed = any(call.purpose == REPLY for call in turn.calls)
        if self._known is not None and not observed and turn.messages:
            last = turn.messages[-1].message
            turn.calls.append(ModelCall(REPLY, "not observed", self._known, reply=last))
        self._keeping.keep(turn)
        trace = session.close_turn(error=error, evicted=self._evicted(turn))
        self._keeping.committed(turn)
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
        assembly = wait(self._previewed(self._preview, settings, query, knobs))
        if not self._tools:
            return assembly
        tools = Part(Source.TOOLS, self._session.counter.tools(self._tools))
        return replace(assembly, parts=(*assembly.parts, tools))

    def plan(
        self, given: Sequence[StoredMessage], query: str, *, knobs: Knobs | None = None
    ) -> Assembly:
        """Return the prompt that a fresh object gives after these messages, without a model call.

        It is given them as a history, so it has none of the state that this one has.
        """
        if self._preview is None:
            raise ValueError("this memory was made without a way to copy it")
        return wait(self._preview(None, list(given), self._session.settings, query, knobs))

    def sent(self, purpose: str, sent: Sequence[Message], tools: Sequence[Json]) -> Assembly:
        """Return the Assembly of the messages of one model call."""
        counter = self._session.counter
        if purpose != REPLY:
            return explain_aside(sent, counter)
        tool_tokens = counter.tools(tools)
        return explain_sent(sent, known=self._known, tool_tokens=tool_tokens, counter=counter)

    def state(self) -> State:
        """Return the strategy's whole state as it is now, every vector record included."""
        return wait(self._state())

    async def _put(self, messages: Sequence[ChatMessage], *, batch: bool) -> None:
        async with self._lock:
            await self._begin(opens=True, anew=messages[0].role == MessageRole.USER)
            stored, given = [], []
            for chat in messages:
                plain = from_chat(chat)
                stored.append(self._session.append(plain))
                kept = stored[-1].message  # half an emoji is replaced: no store or wire takes it
                given.append(chat if kept == plain else to_chat(kept))
            began, before = time.perf_counter(), self._embedded()
            try:
                if batch:
                    await self.inner.aput_messages(given)
                else:
                    await self.inner.aput(given[0])
            except Exception as exc:
                self._keeping.broken = True
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

    async def _set(self, messages: Sequence[ChatMessage] | None) -> None:
        async with self._lock:
            await self._begin(opens=bool(messages))
            before, held = self._keeping.state(), list(self._adapter.given.messages)
            plain = [repair(from_chat(chat))[0] for chat in messages or ()]
            try:
                await (self.inner.areset() if messages is None else self.inner.aset(list(messages)))
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
        self._keeping.skipped = {m.id for m in self._session.messages if m.id not in mine}
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
            await self._keeping.catch_up(None)
        elif turn is not self._turn:
            self._known = None
            await self._keeping.catch_up(turn)
            self._turn = turn
            await self._adapter.begin()

    async def _state(self) -> State:
        async with self._lock:
            await self._begin(opens=False)
            return self._keeping.state()

    async def _previewed(
        self, preview: Preview, settings: MemorySettings, query: str, knobs: Knobs | None
    ) -> Assembly:
        async with self._lock:
            await self._begin(opens=False)
            given = list(self._adapter.given.messages)
            return await preview(self._keeping.state(), given, settings, query, knobs)

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


def _verbatim(assembly: Assembly) -> dict[str, None]:
    return dict.fromkeys(
        i for part in assembly.parts if part.source is Source.BUFFER for i in part.ids
    )


def _answered(turn: OpenTurn) -> bool:
    """Return whether the running turn has its answer: what follows belongs to the next."""
    last = turn.messages[-1].message if turn.messages else None
    return last is not None and last.role == "assistant" and not last.tool_calls


def _text_of(query: str | ChatMessage | None) -> str:
    return from_chat(query).text if isinstance(query, ChatMessage) else query or ""
