"""LayeredMemory: buffer, summary, long-term memory and state as one LlamaIndex memory.

It plugs into ``FunctionAgent`` and the chat engines unchanged. A turn opens with the user's
message and closes, committed whole, with the assistant's answer; in between the memory may be
asked for the prompt any number of times: the query is embedded once, a summary round runs at
most once, and the same contents give the same prompt. Planning is :mod:`memory_core.assemble`;
here are the few effects around it: search, the summariser's two model calls, the commit.
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.llms import LLM
from llama_index.core.memory.types import BaseMemory

from memory_core.assemble import Layers, Rank, assemble, memory_tokens
from memory_core.buffer import History
from memory_core.errors import MemoryInspectorError, ModelError, PromptTooLarge
from memory_core.explain import explain_aside, explain_sent
from memory_core.folding import extract_facts, fold
from memory_core.llama import from_chat, to_chat
from memory_core.longterm import Candidates, rank_hits
from memory_core.loop import whole
from memory_core.messages import Json, Message, StoredMessage, repair
from memory_core.models.failures import explain
from memory_core.opening import create_session, open_session
from memory_core.prompt import Assembly
from memory_core.recording import RecordingLLM
from memory_core.session import OpenTurn, Session
from memory_core.settings import MemorySettings
from memory_core.stores.protocols import SessionKey
from memory_core.summary import plan_summary
from memory_core.tokens import TokenCounter
from memory_core.trace import REPLY, ModelCall, TurnTrace
from memory_core.turn_memory import TurnRecorder

log = logging.getLogger("memory_core.memory")


class LayeredMemory(BaseMemory):
    """A LlamaIndex memory of four layers under one token budget, every prompt explained."""

    _session: Session = PrivateAttr()
    _llm: RecordingLLM | None = PrivateAttr(default=None)
    _tools: tuple[Json, ...] = PrivateAttr(default=())
    _tool_tokens: int = PrivateAttr(default=0)
    _given: Assembly | None = PrivateAttr(default=None)
    _given_for: tuple[object, ...] = PrivateAttr(default=())
    _candidates: dict[str, Candidates] = PrivateAttr(default_factory=dict)

    def __init__(self, session: Session, *, llm: RecordingLLM | None = None) -> None:
        super().__init__()
        self._session = session
        self._llm = llm

    @classmethod
    def class_name(cls) -> str:
        """Return the name LlamaIndex serialises the class under."""
        return "LayeredMemory"

    @classmethod
    def from_defaults(
        cls,
        *,
        settings: MemorySettings | None = None,
        llm: LLM | None = None,
        folder: str | Path | None = None,
        user: str = "local",
        session: str = "default",
        **_: Any,
    ) -> LayeredMemory:
        """Return a memory for your own agent.

        With ``folder`` the session is kept there (SQLite and Chroma) and opened again by the
        same ``user`` and ``session``; without, it lives in this object only and has no long-term
        layer. ``llm`` writes the summaries; without one, messages that left wait unsummarised.
        """
        settings = settings or MemorySettings()
        counter = TokenCounter(image_tokens=settings.image_tokens)
        key = SessionKey(user, session)
        if folder is None:
            opened = Session(key=key, counter=counter, settings=settings)
        else:
            opened = open_session(Path(folder), key, counter=counter, settings=settings)
        memory = cls(opened)
        if llm is not None:
            memory._llm = RecordingLLM(llm, recorder=memory.recorder(), translate=explain)
        return memory

    @property
    def session(self) -> Session:
        """The session behind."""
        return self._session

    @property
    def tokenizer_fn(self) -> Callable[[str], list[int]]:
        """How chat engines count the prefix that they put before the memory's messages."""
        return self._session.counter.encode

    def recorder(self) -> TurnRecorder:
        """Return who keeps the model calls of this memory's turns."""
        return TurnRecorder(self)

    def watch(self, llm: RecordingLLM | None) -> None:
        """Use this model, watched by :meth:`recorder`, for summaries and facts."""
        self._llm = llm

    def offer(self, tools: Sequence[Json]) -> None:
        """Say which tool definitions are sent beside the prompt, so that they are budgeted."""
        if tuple(tools) != self._tools:
            self._tools = tuple(tools)
            self._tool_tokens = self._session.counter.tools(tools)

    def put(self, message: ChatMessage) -> None:
        """Add a message; an assistant's answer without tool calls closes the turn."""
        self.put_messages([message])

    def put_messages(self, messages: list[ChatMessage]) -> None:
        """Add messages; the turn closes after the last if that is an answer."""
        if not messages:
            return
        plain = [from_chat(message) for message in messages]
        for message in plain:
            self._session.append(message)
        if plain[-1].role == "assistant" and not plain[-1].tool_calls:
            self.close_turn()

    def note(self, message: ChatMessage) -> None:
        """Keep the question of a turn that failed before the agent gave it to the memory."""
        self.put(message)

    def get(
        self,
        input: str | ChatMessage | None = None,  # noqa: A002 - LlamaIndex's name
        initial_token_count: int = 0,
        **_: Any,
    ) -> list[ChatMessage]:
        """Return the prompt: one system message with the layers, then the window.

        ``input`` is the question to search for, as text or message; without it the newest
        user message of the running turn is. Raises :class:`PromptTooLarge` when the question
        itself has no room.
        """
        turn = self._session.turn
        query = _text_of(input) or (turn.query if turn is not None else "")
        assembly = self._assemble_live(turn, query, initial_token_count)
        return [to_chat(message) for message in assembly.messages]

    def get_all(self) -> list[ChatMessage]:
        """Return every active message of the session, whatever the prompt holds."""
        return [to_chat(stored.message) for stored in self._session.messages]

    def set(self, messages: list[ChatMessage]) -> None:
        """Make these the history: the rest is appended if the session is a beginning of them.

        Otherwise a new session starts with them; the old one stays in the store.
        """
        plain = [from_chat(message) for message in messages]
        have = [stored.message for stored in self._session.messages]
        if plain[: len(have)] != have:
            self.reset()
            have = []
        for message in plain[len(have) :]:
            self._session.append(message)
        if self._session.turn is not None and plain and plain[-1].role != "user":
            self.close_turn()

    async def aput(self, message: ChatMessage) -> None:
        """Add a message; one that is being added is not cut off half-way."""
        await whole(asyncio.to_thread(self.put, message))

    async def aput_messages(self, messages: list[ChatMessage]) -> None:
        """Add messages; what is being added is not cut off half-way."""
        await whole(asyncio.to_thread(self.put_messages, messages))

    async def aget(
        self,
        input: str | ChatMessage | None = None,  # noqa: A002 - LlamaIndex's name
        **kwargs: Any,
    ) -> list[ChatMessage]:
        """Return the prompt; a summary round in it is not cut off half-way."""
        return await whole(asyncio.to_thread(self.get, input, **kwargs))

    def reset(self) -> None:
        """Start a new session of the same user; the old one stays in the store."""
        old = self._session
        key = SessionKey(old.key.user, uuid.uuid4().hex)
        if old.store is not None:
            create_session(old.store, key, settings=old.settings, origin=old.key.session)
        self._session = Session(
            key=key,
            counter=old.counter,
            settings=old.settings,
            store=old.store,
            longterm=old.longterm,
            clock=old.clock,
            strategy=old.strategy,
        )
        self._given = None

    def close_turn(self, *, error: str = "") -> TurnTrace:
        """Commit the running turn and return its trace; then the vectors are caught up."""
        session = self._session
        given, turn = self._given, session.turn
        observed = turn is not None and any(call.purpose == REPLY for call in turn.calls)
        if turn is not None and given is not None and not observed and not error:
            reply = turn.messages[-1].message if turn.messages else None
            turn.calls.append(ModelCall(REPLY, "not observed", given, reply=reply))
        start = given.window.start if given is not None and given.window is not None else None
        trace = session.close_turn(error=error, window_start=start)
        self._given = None
        _log_turn(trace)
        self._catch_up()
        return trace

    def preview(self, settings: MemorySettings, query: str = "") -> Assembly:
        """Return what the next prompt would be under these settings, without a model call.

        Without a query the last one is searched for again (its embedding is cached).
        """
        if not query and self._session.last_trace is not None:
            query = self._session.last_trace.query
        return self._plan(settings, self._rank(None, settings, query), in_front=0)

    def if_asked(self, question: str) -> tuple[Callable[[MemorySettings], Assembly], History]:
        """Return the planner of the prompt that would go out with this question, and its history.

        Unlike :meth:`preview` the question stands in it as the newest message and takes its room.
        A summary round that asking would set off is not foreseen.
        """
        session = self._session
        asked = StoredMessage(
            id=uuid.uuid4().hex,
            position=len(session.messages),
            turn=session.last_turn + 1,
            created=session.clock(),
            message=repair(Message.of("user", question))[0],
        )
        history = session.history.copy()
        history.append(asked.message, session.counter.message(asked.message))
        messages = [*session.messages, asked]

        def plan(settings: MemorySettings) -> Assembly:
            layers = Layers(
                messages=messages,
                history=history,
                state=session.state,
                summary=session.summary,
                rank=self._rank(None, settings, question),
                tool_tokens=self._tool_tokens if settings.tools else 0,
                open_turn=len(messages) - 1,
            )
            return assemble(layers, settings, session.counter)

        return plan, history

    def forget_searches(self) -> None:
        """Search anew the next time, after the embedding model changed."""
        self._candidates = {}
        self._given = None

    def sent(self, purpose: str, sent: Sequence[Message], tools: Sequence[Json]) -> Assembly:
        """Return the Assembly of the messages of one model call."""
        counter = self._session.counter
        tool_tokens = counter.tools(tools)
        if purpose == REPLY:
            return explain_sent(sent, known=self._given, tool_tokens=tool_tokens, counter=counter)
        return explain_aside(sent, counter)

    def _assemble_live(self, turn: OpenTurn | None, query: str, in_front: int) -> Assembly:
        session = self._session
        if turn is None:
            return self._plan(session.settings, self._rank(None, session.settings, query), in_front)
        turn.asked += 1
        version = (query, in_front, len(session.messages), session.state, self._tool_tokens)
        if self._given is not None and version == self._given_for:
            return self._given
        rank = self._rank(turn, session.settings, query)
        began = time.perf_counter()
        assembly = self._plan(session.settings, rank, in_front)
        if not turn.round_done:
            turn.round_done = True
            if self._summary_round(turn, assembly):
                assembly = self._plan(session.settings, rank, in_front)
        turn.spend("prompt", (time.perf_counter() - began) * 1000)
        self._given = assembly
        self._given_for = (*version[:3], session.state, self._tool_tokens)
        _refuse_if_too_large(assembly, session.settings)
        return assembly

    def _plan(self, settings: MemorySettings, rank: Rank | None, in_front: int) -> Assembly:
        session = self._session
        layers = Layers(
            messages=session.messages,
            history=session.history,
            state=session.state,
            summary=session.summary,
            rank=rank,
            tool_tokens=self._tool_tokens if settings.tools else 0,
            in_front=in_front,
            open_turn=session.turn.first if session.turn is not None else None,
        )
        return assemble(layers, settings, session.counter)

    def _rank(self, turn: OpenTurn | None, settings: MemorySettings, query: str) -> Rank | None:
        """Return the ranking of memories for a query; its search runs once per turn and query."""
        session = self._session
        if session.longterm is None or not settings.recall or not query.strip():
            return None
        candidates = self._candidates.get(query)
        if candidates is None or (turn is not None and not turn.embedded):
            began = time.perf_counter()
            try:
                candidates = session.longterm.search(
                    query, user=session.key.user, sees=session.sees
                )
            except MemoryInspectorError as exc:
                log.warning("recall skipped: %s", exc)
                candidates = Candidates.skipped(query, str(exc))
                if turn is not None:
                    turn.degrade(f"Recall was skipped: {exc}")
            if turn is not None and candidates.found is not None and candidates.note:
                turn.degrade(f"Recall did not see everything. {candidates.note}")
            if turn is not None and turn.supersedes and candidates.found is not None:
                # subtle: what the replaced turn said is forgotten only when this one is stored
                left = candidates.found.without(session.key.session, turn.supersedes)
                candidates = replace(candidates, found=left)
            self._candidates = {query: candidates}
            if turn is not None:
                turn.embedded += 1
                turn.spend("recall", (time.perf_counter() - began) * 1000)
        found = candidates

        def rank(in_buffer: frozenset[str], budget: int) -> Any:
            return rank_hits(
                found,
                settings=settings,
                session=session.key.session,
                in_buffer=in_buffer,
                budget=budget,
                count=lambda hit: memory_tokens(hit, session.counter),
                now=turn.started if turn is not None else session.clock(),
            )

        return rank

    def _summary_round(self, turn: OpenTurn, assembly: Assembly) -> bool:
        """Fold what left the window if a round is due; return whether the layers changed."""
        session, settings = self._session, self._session.settings
        if not settings.summarise or assembly.window is None:
            return False
        plan = plan_summary(
            session.history,
            covered=session.summary.covers,
            window_start=assembly.window.start,
            every=settings.summary_every,
            open_turn=turn.first,
        )
        if not plan.due:
            return False
        if self._llm is None:
            turn.degrade(f"{plan.waiting} messages wait for a summary: no model is set.")
            return False
        folded = session.messages[plan.first : plan.last]
        began = time.perf_counter()
        try:
            extract_facts(session, turn, folded, self._ask)
            fold(session, turn, folded, self._ask, covers=plan.last)
        except ModelError as exc:
            turn.degrade(f"The summary round failed and is tried again next turn: {exc}")
        turn.spend("summary", (time.perf_counter() - began) * 1000)
        return True

    def _ask(self, purpose: str, prompt: Sequence[Message]) -> str:
        if self._llm is None:
            return ""
        response = self._llm.for_purpose(purpose).chat([to_chat(m) for m in prompt])
        return from_chat(response.message).text

    def _catch_up(self) -> None:
        session = self._session
        if session.longterm is None:
            return
        try:
            session.longterm.catch_up(session.key.user)
        except MemoryInspectorError as exc:
            log.warning("memories wait to be indexed: %s", exc)


def _log_turn(trace: TurnTrace) -> None:
    """Log what a turn stored, recalled and dropped; texts only at debug level."""
    log.info(
        "turn %d of session %s: %d messages stored, %d left the buffer, %d memories written",
        trace.number,
        trace.session,
        len(trace.appended),
        len(trace.evicted),
        len(trace.memories),
    )
    recall = trace.assembly.recall if trace.assembly is not None else None
    if recall is None:
        return
    log.info(
        "turn %d recalled %s; dropped %s",
        trace.number,
        ", ".join(f"{hit.id} ({hit.score:.2f})" for hit in recall.hits) or "nothing",
        ", ".join(f"{hit.id} ({hit.score:.2f}, {out.gate})" for hit, out in recall.near)
        or "nothing",
    )
    log.debug("turn %d searched for: %s", trace.number, recall.query)
    for hit in recall.hits:
        log.debug("turn %d recalled %s: %s", trace.number, hit.id, hit.text)


def _text_of(value: str | ChatMessage | None) -> str:
    if isinstance(value, ChatMessage):
        return from_chat(value).text
    return value or ""


def _refuse_if_too_large(assembly: Assembly, settings: MemorySettings) -> None:
    plan = assembly.window
    if plan is not None and plan.total and plan.start == plan.total and plan.over_limit:
        raise PromptTooLarge(
            f"There is no room for your message: system prompt and tools need "
            f"{plan.initial:,} tokens, the limit is {plan.limit:,}."
        )
    if assembly.tokens > settings.context_window:
        raise PromptTooLarge(
            f"The prompt needs {assembly.tokens:,} tokens, the model's context window holds "
            f"{settings.context_window:,}.",
            next_step="Your message is kept. Shorten it, lower the token limit or raise the "
            "context window.",
        )
