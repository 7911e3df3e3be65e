"""Strategies of a sweep that ask a chat model: each cell plays the whole conversation for real.

What they hold depends on what the model writes, so they cannot be planned; they are
:func:`~memory_core.lab.played.played`, one call after the other, and best spread over processes or
a cluster. A maker travels there: it holds the choice of the model and, unless that is found in
the environment where it runs, its key.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from memory_core.errors import InvalidInput, MemoryInspectorError
from memory_core.lab.axes import Point
from memory_core.lab.played import Player, played
from memory_core.lab.strategy import Strategy
from memory_core.lab.sweep import STRATEGIES
from memory_core.loop import submit
from memory_core.messages import Json, Message
from memory_core.models.catalogue import MINILM, WORDLLAMA, EmbeddingChoice, ModelChoice, find_key
from memory_core.prompt import Assembly
from memory_core.tokens import TokenCounter, encoding_for
from memory_core.trace import ModelCall

if TYPE_CHECKING:
    from memory_core.models.embeddings import Embedder
    from memory_core.recording import RecordingLLM

MOST_FACTS = 50
_CLOSING = 30.0  # seconds to let go of a store

OURS, SUMMARY_BUFFER, FACTS = "layered_played", "chat_summary_memory_buffer", "memory_facts"

ASKING: Mapping[str, tuple[str, str]] = {
    OURS: (
        "Layered memory, with the model's summaries",
        "This program's memory run for real: the model writes its summaries and key facts.",
    ),
    SUMMARY_BUFFER: (
        "ChatSummaryMemoryBuffer",
        "LlamaIndex's summary buffer: the newest messages, all before in the model's summary.",
    ),
    FACTS: (
        "Memory with fact extraction",
        "LlamaIndex's Memory: a queue, and a block of facts that the model extracts.",
    ),
}
"""Who asks a model, by name: a title and what it does."""


def strategies(model: ModelChoice, key: str | None = None) -> dict[str, Strategy]:
    """Return every strategy of a sweep; those that ask, ask this model."""
    asking = {
        name: played(title, about, Maker(name, model, key))
        for name, (title, about) in ASKING.items()
    }
    return {**STRATEGIES, **asking}


@dataclass(frozen=True)
class Maker:
    """Makes the memory of a strategy for a point of the grid, here or in another process."""

    name: str
    model: ModelChoice
    key: str | None = field(default=None, repr=False)

    def __call__(self, point: Point) -> Player:
        """Return a new memory; raise what keeps its model from being used."""
        counter = TokenCounter(
            encoding_for(self.model.model), image_tokens=point.settings.image_tokens
        )
        tally = _Tally()
        makers: Mapping[str, Callable[[Point, RecordingLLM, TokenCounter], Player]] = {
            OURS: _ours,
            SUMMARY_BUFFER: _summary_buffer,
            FACTS: _facts,
        }
        made = makers[self.name](point, self._llm(tally), counter)
        return Player(made.memory, tally.asked, made.embeddings, made.close)

    def _llm(self, tally: _Tally) -> RecordingLLM:
        from memory_core.models.build import build_llm
        from memory_core.models.failures import explain
        from memory_core.recording import RecordingLLM

        def translate(exc: Exception) -> MemoryInspectorError:
            tally.error = error = explain(exc, self.model, keys=[self.key])
            error.next_step = "Check the model, then run the sweep again."
            return error

        key = self.key or find_key(self.model.kind, os.environ, {})
        return RecordingLLM(build_llm(self.model, key=key), recorder=tally, translate=translate)


def flush_size(limit: int) -> int:
    """Return how many tokens leave the queue of ``Memory`` at once under a token limit."""
    return max(1, limit // 8)


class _Tally:
    """Counts the calls of a watched model and keeps nothing of them but the last error."""

    def __init__(self) -> None:
        self.calls = 0
        self.error: MemoryInspectorError | None = None

    def asked(self) -> int:
        """Return the calls so far; raise what a memory passed over, for it measures nothing."""
        if self.error is not None:
            raise self.error
        return self.calls

    def explain(self, purpose: str, sent: Sequence[Message], tools: Sequence[Json]) -> Assembly:
        """Return an empty prompt: what is sent is not looked at."""
        del purpose, sent, tools
        return Assembly((), (), ())

    def count(self, message: Message) -> int:
        """Count nothing."""
        del message
        return 0

    def elapsed(self) -> float:
        """Measure nothing."""
        return 0.0

    def add(self, call: ModelCall) -> None:
        """Count a call."""
        del call
        self.calls += 1


def _summary_buffer(point: Point, llm: RecordingLLM, counter: TokenCounter) -> Player:
    from llama_index.core.memory import ChatSummaryMemoryBuffer

    return Player(
        ChatSummaryMemoryBuffer.from_defaults(
            llm=llm, token_limit=point.settings.token_limit, tokenizer_fn=counter.encode
        )
    )


def _facts(point: Point, llm: RecordingLLM, counter: TokenCounter) -> Player:
    from llama_index.core.memory import FactExtractionMemoryBlock, Memory

    from memory_core.native.chat_store import QueueJournal, WatchedChatStore, in_memory

    limit = point.settings.token_limit
    block = FactExtractionMemoryBlock(name="facts", llm=llm, max_facts=MOST_FACTS)
    store = WatchedChatStore(in_memory(), journal=QueueJournal())
    memory = Memory.from_defaults(
        token_limit=limit,
        token_flush_size=flush_size(limit),
        tokenizer_fn=counter.encode,
        memory_blocks=[block],
        chat_store=store,
    )
    return Player(memory, close=lambda: submit(store.close()).result(_CLOSING))


def _ours(point: Point, llm: RecordingLLM, counter: TokenCounter) -> Player:
    from memory_core.longterm import LongTermMemory
    from memory_core.memory import LayeredMemory
    from memory_core.session import Session, utc_now
    from memory_core.stores.protocols import SessionInfo, SessionKey
    from memory_core.stores.sql import SqlStore
    from memory_core.stores.vectors.simple import SimpleDatabase

    embedder, key, now = _embedder(point.embedding), SessionKey("sweep", "sweep"), utc_now()
    held = tempfile.TemporaryDirectory(prefix="memory-sweep-")
    folder = Path(held.name)
    store = SqlStore.open(f"sqlite:///{folder / 'memory.db'}")
    store.create(SessionInfo(key, "sweep", now, now, settings=point.settings.to_json()))
    longterm = LongTermMemory(
        vectors=SimpleDatabase(folder / "vectors"), embedder=embedder, store=store, clock=utc_now
    )
    memory = LayeredMemory(
        Session.open(
            store=store, key=key, counter=counter, settings=point.settings, longterm=longterm
        )
    )
    memory.watch(llm)
    before = embedder.embedded

    def close() -> None:
        store.close()
        held.cleanup()

    return Player(memory, embeddings=lambda: embedder.embedded - before, close=close)


@cache
def _embedder(name: str) -> Embedder:
    """Return a built-in embedding model by the name under which its vectors are kept."""
    from memory_core.models.embeddings import build_embedder, needs_download

    for kind in (WORDLLAMA, MINILM):
        choice = EmbeddingChoice(kind)
        if kind == MINILM and needs_download(choice):
            continue
        made = build_embedder(choice)
        if made.name == name:
            return made
    raise InvalidInput(
        f"The layered memory is played with a built-in embedding model, not {name!r:.60}.",
        next_step=f"Choose {WORDLLAMA} or {MINILM}, or plan it instead of playing it.",
    )
