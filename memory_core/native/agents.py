"""The agents and chat engines a strategy can run in, each told as the same stream of events.

LlamaIndex's own classes run here. What they add to the memory's messages (a system prompt, tool
descriptions, documents) is known to them only, so each puts a :class:`_Marking` recorder in front
of the memory's, which tells those pieces apart in the prompt that is really sent.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from typing import Any, cast

from llama_index.core.agent.react.formatter import get_react_tool_descriptions
from llama_index.core.agent.workflow import FunctionAgent, ReActAgent
from llama_index.core.chat_engine import (
    CondensePlusContextChatEngine,
    ContextChatEngine,
    SimpleChatEngine,
)
from llama_index.core.chat_engine.types import BaseChatEngine
from llama_index.core.memory.types import BaseMemory
from llama_index.core.schema import MetadataMode
from llama_index.core.tools import FunctionTool

from memory_core.agent import Delta, Event, Runner, drive
from memory_core.messages import Json, Message
from memory_core.native.documents import WatchedRetriever
from memory_core.native.parts import Mark, find, parts_of
from memory_core.prompt import Assembly, Part, Recall, Source
from memory_core.recording import Recorder, RecordingLLM
from memory_core.strategies import (
    CONDENSE_ENGINE,
    CONTEXT_ENGINE,
    FUNCTION_AGENT,
    LAYERED,
    REACT_AGENT,
    SIMPLE_ENGINE,
)
from memory_core.tokens import TokenCounter
from memory_core.trace import CONDENSE, REPLY, ModelCall
from memory_core.turn_memory import TurnMemory

_FIRST_LINES = "You are an assistant."  # keeps ReActAgent from dropping LayeredMemory's own


def runner_of(agent: str, documents: Callable[[], WatchedRetriever] | None = None) -> Runner:
    """Return what answers in an agent of the catalogue.

    ``documents`` opens the search of the engines that have one.
    """
    if agent in (CONTEXT_ENGINE, CONDENSE_ENGINE):
        if documents is None:
            raise ValueError(f"{agent} needs documents to search")
        return _with_documents(agent, documents)
    return {FUNCTION_AGENT: _function_agent, REACT_AGENT: _react, SIMPLE_ENGINE: _simple}[agent]


def _function_agent(
    memory: TurnMemory,
    llm: RecordingLLM,
    tools: Sequence[FunctionTool],
    text: str,
    streaming: bool,
) -> AsyncIterator[Event]:
    """Run ``FunctionAgent``; without tools, or a model that calls them, the simple engine."""
    if not tools or not llm.metadata.is_function_calling_model:
        return _simple(memory, llm, tools, text, streaming)
    agent = FunctionAgent(
        tools=list(tools), llm=llm, system_prompt=_prompt(memory), streaming=streaming
    )
    return drive(agent, memory, text)


def _react(
    memory: TurnMemory,
    llm: RecordingLLM,
    tools: Sequence[FunctionTool],
    text: str,
    streaming: bool,
) -> AsyncIterator[Event]:
    memory.offer(())  # tools stand in the system message as text
    prompt = _prompt(memory) or _FIRST_LINES
    marks = [
        Mark("\n".join(get_react_tool_descriptions(tools)), Source.TOOLS),
        Mark(prompt.strip(), Source.SYSTEM),
    ]
    watched = llm.recorded_by(
        _Marking(llm.kept_by, memory, lambda: marks, rest="ReActAgent's instructions")
    )
    agent = ReActAgent(tools=list(tools), llm=watched, system_prompt=prompt, streaming=streaming)
    return drive(agent, memory, text)


def _simple(
    memory: TurnMemory,
    llm: RecordingLLM,
    _tools: Sequence[FunctionTool],
    text: str,
    streaming: bool,
) -> AsyncIterator[Event]:
    memory.offer(())
    engine = SimpleChatEngine.from_defaults(
        llm=llm, memory=cast("BaseMemory", memory), system_prompt=_prompt(memory) or None
    )
    return _chat(engine, text, streaming=streaming)


def _with_documents(agent: str, documents: Callable[[], WatchedRetriever]) -> Runner:
    def run(
        memory: TurnMemory,
        llm: RecordingLLM,
        _tools: Sequence[FunctionTool],
        text: str,
        streaming: bool,
    ) -> AsyncIterator[Event]:
        memory.offer(())
        retriever, prompt = documents(), _prompt(memory)

        turn = memory.session.turn

        def marks() -> list[Mark]:
            if turn is not None:  # each search embedded its question
                turn.embedded, retriever.searches = turn.embedded + retriever.searches, 0
            return [*_marks_of(retriever), Mark(prompt.strip(), Source.SYSTEM)]

        marking = _Marking(
            llm.kept_by,
            memory,
            marks,
            rest="the engine's own words",
            recall=lambda: retriever.recall(memory.session.counter),
        )
        watched = llm.recorded_by(marking, completions=CONDENSE)
        common: dict[str, Any] = {
            "retriever": retriever,
            "llm": watched,
            "memory": memory,
            "system_prompt": prompt or None,
        }
        engine: BaseChatEngine = (
            ContextChatEngine.from_defaults(**common)
            if agent == CONTEXT_ENGINE
            else CondensePlusContextChatEngine.from_defaults(**common)
        )
        return _chat(engine, text, streaming=streaming)

    return run


async def _chat(engine: BaseChatEngine, text: str, *, streaming: bool) -> AsyncIterator[Event]:
    """Run a chat engine and yield its answer as it comes."""
    if not streaming:
        whole = await engine.achat(text)
        yield Delta(str(whole))
        return
    response = await engine.astream_chat(text)
    writing = response.awrite_response_to_history_task
    response.awrite_response_to_history_task = None  # or leaving early would wait for the answer
    try:
        async for delta in response.async_response_gen():
            if delta:
                yield Delta(delta)
        if writing is not None:
            await writing
    finally:
        if writing is not None and not writing.done():  # left early: nothing is written later
            writing.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await writing


def _prompt(memory: TurnMemory) -> str:
    """Return the system prompt that the agent puts in front; our own memory holds it itself."""
    session = memory.session
    return "" if session.strategy == LAYERED else session.settings.system_prompt


def _marks_of(retriever: WatchedRetriever) -> list[Mark]:
    """Return how the documents found stand in the engine's system message."""
    return [
        Mark(
            item.node.get_content(MetadataMode.LLM).strip(),
            Source.DOCUMENTS,
            (item.node.node_id,),
            item.score,
            note=str(item.node.metadata.get("file_name", "")),
        )
        for item in retriever.found
    ]


class _Marking:
    """A recorder that tells apart what an agent put into the messages it added itself."""

    def __init__(
        self,
        inner: Recorder,
        memory: TurnMemory,
        marks: Callable[[], Sequence[Mark]],
        *,
        rest: str,
        recall: Callable[[], Recall | None] = lambda: None,
    ) -> None:
        self._inner = inner
        self._memory = memory
        self._marks = marks
        self._rest = rest
        self._recall = recall

    def explain(self, purpose: str, sent: Sequence[Message], tools: Sequence[Json]) -> Assembly:
        """Return the memory's Assembly with the agent's own messages taken apart."""
        assembly = self._inner.explain(purpose, sent, tools)
        if purpose != REPLY:
            return assembly
        counter = self._memory.session.counter
        parts = _marked(assembly, self._marks(), self._rest, counter)
        return replace(assembly, parts=tuple(parts), documents=self._recall())

    def count(self, message: Message) -> int:
        """Return our own token count of a reply."""
        return self._inner.count(message)

    def elapsed(self) -> float:
        """Return the milliseconds since the turn began."""
        return self._inner.elapsed()

    def add(self, call: ModelCall) -> None:
        """Keep a finished or failed call."""
        self._inner.add(call)


def _marked(
    assembly: Assembly, marks: Sequence[Mark], rest: str, counter: TokenCounter
) -> list[Part]:
    """Return the parts with the agent's system message split where marks stand in it."""
    parts: list[Part] = []
    for part in assembly.parts:
        index = part.message
        message = assembly.messages[index] if index is not None else None
        whole = message is not None and (part.start, part.end) == (0, len(message.text))
        if index is None or message is None or not whole or part.source is not Source.SYSTEM:
            parts.append(part)
            continue
        found = find(message.text, marks)
        other = Mark("", Source.FORMAT, note=rest)
        parts += parts_of(message, index, other, counter, found) if found else [part]
    return parts
