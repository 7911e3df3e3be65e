"""A session under a strategy with everything around it watched: model, embedder, real object.

:class:`Rig` opens a strategy over fakes that note every call, so that a test can compare what the
real object returned, what stands in the panel and what went over the wire.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    MessageRole,
    ToolCallBlock,
)
from llama_index.core.tools import FunctionTool
from pydantic import Field, PrivateAttr

from memory_core import strategies as s
from memory_core.agent import Event, Failed, Runner, run_turn
from memory_core.errors import ModelRateLimited
from memory_core.llama import from_chat
from memory_core.loop import iterate
from memory_core.messages import Message
from memory_core.models.embeddings import LlamaIndexEmbedding
from memory_core.models.failures import explain
from memory_core.models.pieces import PiecewiseLLM, in_pieces
from memory_core.native.agents import runner_of
from memory_core.native.documents import open_documents
from memory_core.native.observed import ObservedMemory
from memory_core.native.opening import open_observed
from memory_core.recording import RecordingLLM
from memory_core.session import Session
from memory_core.settings import MemorySettings
from memory_core.stores.protocols import SessionKey, Store
from memory_core.strategies import Setup
from memory_core.testing import HashEmbedder
from memory_core.tokens import TokenCounter
from memory_core.trace import REPLY, TurnTrace

PROMPT = "You are a careful guide."
STRATEGIES = [item.id for item in s.STRATEGIES if item.id != s.LAYERED]
PAIRINGS = [
    (strategy.id, agent.id)
    for strategy in s.STRATEGIES
    for agent in s.AGENTS
    if strategy.id != s.LAYERED and s.pairing(strategy.id, agent.id).works
]


class EchoLLM(PiecewiseLLM):
    """Answers every prompt from its own words, the same way each time, and keeps the prompts.

    Asked for facts it lists the numbers in what was said, asked for a summary it gives the first
    words of each line. ``failing`` is how many of the next calls fail, ``fails_on`` what a prompt
    ends with that always fails; ``wants`` is a tool that it asks for once in a turn (``again``:
    without end), ``facts`` the next replies to a prompt for facts.
    """

    model_name: str = "echo"
    context_window: int = 100_000
    failing: int = 0
    fails_on: str = ""
    wants: str = ""
    again: bool = False
    facts: list[str] = Field(default_factory=list)
    _prompts: list[tuple[Message, ...]] = PrivateAttr(default_factory=list)

    @property
    def prompts(self) -> list[tuple[Message, ...]]:
        """The prompts so far, oldest first."""
        return self._prompts

    def _pieces(
        self, messages: Sequence[ChatMessage], kwargs: Mapping[str, Any]
    ) -> Iterator[ChatResponse]:
        self._prompts.append(tuple(from_chat(message) for message in messages))
        last = str(messages[-1].content or "") if messages else ""
        if self.failing or (self.fails_on and self.fails_on in last):
            self.failing = max(0, self.failing - 1)
            raise ModelRateLimited("rate limit")
        asks = bool(messages) and (self.again or messages[-1].role != MessageRole.TOOL)
        if self.wants and kwargs.get("tools") and asks:
            call = ToolCallBlock(tool_call_id="c1", tool_name=self.wants, tool_kwargs={"q": "x"})
            yield from in_pieces("", [call])
        elif "<existing_facts>" in last:
            said = " ".join(str(m.content) for m in messages[:-1])
            facts = [f"<fact>number {n}</fact>" for n in re.findall(r"\d+", said)[:3]]
            told = self.facts.pop(0) if self.facts else f"<facts>{''.join(facts)}</facts>"
            yield from in_pieces(told)
        elif str(messages[0].content).startswith(("The following is", "Task: summarise")):
            lines = [" ".join(line.split()[:4]) for line in last.splitlines() if line.strip()]
            yield from in_pieces("Summary. " + " ".join(lines)[:200])
        else:
            yield from in_pieces(f"Noted {len(last)} characters.")


class NotingEmbedder(HashEmbedder):
    """An embedder that keeps the texts it was given."""

    def __init__(self) -> None:
        super().__init__(16)
        self.texts: list[str] = []

    def embed(self, texts: Sequence[str]) -> Any:
        self.texts += texts
        return super().embed(texts)


def setup_of(strategy: str, agent: str = "", **knobs: Any) -> Setup:
    """Return a strategy with knobs so small that everything it does happens early."""
    setup = s.default_setup(strategy, agent)
    small: dict[str, Any] = {
        s.BUFFER: {"token_limit": 60},
        s.SUMMARY_BUFFER: {"token_limit": 60},
        s.MEMORY: {"token_limit": 90, "token_flush_size": 20},
        s.MEMORY_BLOCKS: {
            "token_limit": 160,
            "token_flush_size": 20,
            "chat_history_token_ratio": 0.4,
        },
        s.COMPOSABLE: {"token_limit": 60},
        s.HYBRID: {"token_limit": 60, "cutoff": 0.1},
        s.SUMMARISING_BUFFER: {"every": 5},
        s.SUMMARY_MEMORY: {"in_full": 4},
    }.get(strategy, {})
    return replace(setup, knobs=replace(setup.knobs, **(small | knobs)))


class Rig:
    """One session under one strategy, with fakes that note every call."""

    def __init__(
        self,
        setup: Setup,
        *,
        folder: Path | None = None,
        store: Store | None = None,
        vectors: Any = None,
        name: str = "s",
        llm: Any = None,
        embedder: Any = None,
    ) -> None:
        self.setup = setup
        self.llm = llm or EchoLLM()
        self.embedder = embedder or NotingEmbedder()
        common: dict[str, Any] = {
            "key": SessionKey("u", name),
            "counter": TokenCounter(),
            "settings": MemorySettings(system_prompt=PROMPT, tools=False),
        }
        self.session = (
            Session.open(store=store, **common) if store is not None else Session(**common)
        )
        self.memory: ObservedMemory = open_observed(
            self.session, setup, embedder=self.embedder, vectors=vectors, folder=folder
        )
        self.recording = RecordingLLM(self.llm, recorder=self.memory.recorder(), translate=explain)
        self.memory.watch(self.recording)
        self.returned: list[tuple[Message, ...]] = []
        self._spy()

    def _spy(self) -> None:
        """Keep what the real object itself returns, apart from the adapter."""
        inner, real = self.memory.inner, self.memory.inner.aget

        async def aget(*args: Any, **kwargs: Any) -> list[ChatMessage]:
            found = await real(*args, **kwargs)
            self.returned.append(tuple(from_chat(message) for message in found))
            return found

        object.__setattr__(inner, "aget", aget)

    def say(self, text: str, *, tools: Sequence[FunctionTool] = ()) -> list[Event]:
        """Run a turn in the setup's agent and return its events."""
        runner = self._runner()
        self.session.settings = self.session.settings.with_(tools=bool(tools))
        return list(iterate(run_turn(self.memory, self.recording, tools, text, runner=runner)))

    def say_anew(self, text: str, *, supersedes: int) -> list[Event]:
        """Run a turn that replaces the last one."""
        runner = self._runner()
        run = run_turn(self.memory, self.recording, [], text, supersedes=supersedes, runner=runner)
        return list(iterate(run))

    def ask(self, query: str | None = None) -> TurnTrace:
        """Ask the memory for the prompt, send it, put the answer in, and close the turn."""
        prompt = self.memory.get(query) if query is not None else self.memory.get()
        first = ChatMessage(role=MessageRole.SYSTEM, content=PROMPT)
        self.memory.put(self.recording.chat([first, *prompt]).message)
        return self.memory.close_turn()

    def _runner(self) -> Runner:
        embedding = LlamaIndexEmbedding(self.embedder)
        return runner_of(self.setup.agent, lambda: open_documents(embedding))

    def replies(self) -> list[tuple[Message, ...]]:
        """Return the prompts of the last turn's replies, as the model was given them."""
        trace = self.session.last_trace
        assert trace is not None
        sent = [call.assembly.messages for call in trace.calls if call.purpose == REPLY]
        assert all(prompt in self.llm.prompts for prompt in sent)
        return sent


def last_failure(events: Sequence[Event]) -> Failed | None:
    """Return how a turn failed, ``None`` when it did not."""
    return events[-1] if events and isinstance(events[-1], Failed) else None
