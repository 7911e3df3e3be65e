"""One chat turn: recall, prompt, reply and tools, remember, trace.

:func:`run_turn` runs LlamaIndex's ``FunctionAgent`` (or, for a model without function calling or
with tools switched off, one plain chat call) over a :class:`LayeredMemory` and tells what
happens as a stream of events. Whatever goes wrong, the turn is closed with the user's message
and the error in it, so that nothing that was said is lost.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.agent.workflow.base_agent import BaseWorkflowAgent
from llama_index.core.agent.workflow.workflow_events import (
    AgentOutput,
    AgentStream,
    ToolCall,
    ToolCallResult,
)
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.tools import FunctionTool

from memory_core.errors import MemoryInspectorError, ModelRefused
from memory_core.llama import as_json
from memory_core.recording import RecordingLLM
from memory_core.session import OpenTurn
from memory_core.trace import ToolStep, TurnTrace
from memory_core.turn_memory import TurnMemory

log = logging.getLogger("memory_core.agent")

MAX_ITERATIONS = 12


@dataclass(frozen=True)
class Delta:
    """Some more text of the answer."""

    text: str


@dataclass(frozen=True)
class ToolStarted:
    """A tool is being run."""

    name: str
    arguments: str


@dataclass(frozen=True)
class ToolFinished:
    """A tool has answered."""

    step: ToolStep


@dataclass(frozen=True)
class Finished:
    """The turn is over and stored."""

    trace: TurnTrace


@dataclass(frozen=True)
class Failed:
    """The turn ended with an error; ``trace`` keeps the user's message (``None``: not stored)."""

    error: MemoryInspectorError
    trace: TurnTrace | None


Event = Delta | ToolStarted | ToolFinished | Finished | Failed
Runner = Callable[
    [TurnMemory, RecordingLLM, Sequence[FunctionTool], str, bool], AsyncIterator[Event]
]
"""Answers one message: memory, model, tools, text, and whether the answer is streamed."""


async def run_turn(
    memory: TurnMemory,
    llm: RecordingLLM,
    tools: Sequence[FunctionTool],
    text: str,
    *,
    supersedes: int = 0,
    streaming: bool = True,
    runner: Runner | None = None,
) -> AsyncIterator[Event]:
    """Run one turn and yield its events; the last is :class:`Finished` or :class:`Failed`.

    ``supersedes`` is the number of the last turn when this one replaces it. Without
    ``streaming`` the model is asked for whole answers. Another ``runner`` answers with another
    agent or chat engine (:mod:`memory_core.native.agents`).
    """
    session = memory.session
    number = session.last_turn
    offered = list(tools) if session.settings.tools else []
    memory.offer(llm.tool_specs(offered if _calls_functions(llm) else []))
    memory.watch(llm)
    session.open_turn(supersedes=supersedes)
    try:
        run = runner or (_with_agent if offered and _calls_functions(llm) else _plain)
        async for event in run(memory, llm, offered, text, streaming):
            yield event
        if session.turn is not None:  # some memories leave it open for what the agent asks last
            if not _answered(session.turn):
                raise ModelRefused("The agent stopped without an answer.")  # noqa: TRY301
            memory.close_turn()
    except (Exception, asyncio.CancelledError) as exc:
        trace, stopped = session.last_trace, isinstance(exc, asyncio.CancelledError)
        if stopped and session.turn is None and trace is not None and trace.number > number:
            yield Finished(trace)  # the stop came when all was said
        else:
            error = _as_shown(exc)
            yield Failed(error, _keep(memory, str(error), text))
        if stopped:
            raise
        return
    trace = session.last_trace
    if trace is not None and trace.number > number:
        yield Finished(trace)


async def drive(agent: BaseWorkflowAgent, memory: TurnMemory, text: str) -> AsyncIterator[Event]:
    """Run one of LlamaIndex's workflow agents over a memory and yield what happens."""
    handler = agent.run(user_msg=text, memory=memory, max_iterations=MAX_ITERATIONS)
    turn = memory.session.turn
    began: dict[str, float] = {}
    try:
        async for event in handler.stream_events():
            if isinstance(event, AgentStream):
                if event.delta:
                    yield Delta(event.delta)
            elif isinstance(event, ToolCallResult):
                step = _step(event, began, turn.began if turn is not None else time.perf_counter())
                if turn is not None:
                    turn.steps.append(step)
                yield ToolFinished(step)
            elif isinstance(event, ToolCall):
                began[event.tool_id] = time.perf_counter()
                yield ToolStarted(event.tool_name, _arguments(event.tool_kwargs))
            elif isinstance(event, AgentOutput):
                log.debug("the agent ended a step with %d tool calls", len(event.tool_calls))
        await handler
    finally:
        if not handler.is_done():  # left early: it must not write into a later turn
            await handler.cancel_run()


def _with_agent(
    memory: TurnMemory,
    llm: RecordingLLM,
    tools: Sequence[FunctionTool],
    text: str,
    streaming: bool,
) -> AsyncIterator[Event]:
    return drive(FunctionAgent(tools=list(tools), llm=llm, streaming=streaming), memory, text)


async def _plain(
    memory: TurnMemory,
    llm: RecordingLLM,
    _tools: Sequence[FunctionTool],
    text: str,
    streaming: bool,
) -> AsyncIterator[Event]:
    await memory.aput(ChatMessage(role="user", content=text))
    prompt = await memory.aget(input=text)
    if not streaming:
        response = await llm.achat(prompt)
        yield Delta(response.message.content or "")
        await memory.aput(response.message)
        return
    last = None
    async for chunk in await llm.astream_chat(prompt):
        last = chunk
        if chunk.delta:
            yield Delta(chunk.delta)
    if last is None:
        raise ModelRefused("The model ended its answer before it began.")
    await memory.aput(last.message)


def _step(event: ToolCallResult, began: dict[str, float], turn_began: float) -> ToolStep:
    now = time.perf_counter()
    start = began.get(event.tool_id, now)
    return ToolStep(
        id=event.tool_id,
        name=event.tool_name,
        arguments=_arguments(event.tool_kwargs),
        result=event.tool_output.content or "",
        failed=event.tool_output.is_error,
        at=(start - turn_began) * 1000,
        milliseconds=(now - start) * 1000,
    )


def _arguments(kwargs: object) -> str:
    return json.dumps(as_json(kwargs), ensure_ascii=False)


def _answered(turn: OpenTurn) -> bool:
    last = turn.messages[-1].message if turn.messages else None
    return last is not None and last.role == "assistant" and not last.tool_calls


def _calls_functions(llm: RecordingLLM) -> bool:
    return bool(llm.metadata.is_function_calling_model)


def _as_shown(exc: BaseException) -> MemoryInspectorError:
    """Return the error of the family behind an exception, however deep an agent wrapped it."""
    cause: BaseException | None = exc
    while cause is not None:
        if isinstance(cause, MemoryInspectorError):
            return cause
        cause = cause.__cause__ or cause.__context__
    if isinstance(exc, asyncio.CancelledError):
        return MemoryInspectorError(
            "The answer was stopped.", next_step="Your message is kept; press Retry for an answer."
        )
    log.error("a turn failed", exc_info=exc)
    return ModelRefused(f"The agent failed: {type(exc).__name__}: {exc}")


def _keep(memory: TurnMemory, error: str, text: str) -> TurnTrace | None:
    """Close a failed turn with what there is, at least the user's message."""
    session = memory.session
    turn = session.turn
    if turn is None:
        return session.last_trace
    try:
        if not turn.messages:
            memory.note(ChatMessage(role="user", content=text))
        return memory.close_turn(error=error)
    except MemoryInspectorError:
        log.exception("a failed turn could not be stored")
        session.drop_turn()
        return None
