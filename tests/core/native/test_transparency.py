"""Observing changes nothing: plain LlamaIndex objects and observed ones do exactly the same.

Both are given the same conversation with clock and ids counted anew. Returned messages, stored
bytes, vector records, model prompts and embedded texts must be equal.
"""

from __future__ import annotations

import json
import time
import uuid
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest
from llama_index.core.base.llms.types import ChatMessage, MessageRole, TextBlock
from llama_index.core.memory import (
    ChatMemoryBuffer,
    ChatSummaryMemoryBuffer,
    FactExtractionMemoryBlock,
    Memory,
    SimpleComposableMemory,
    StaticMemoryBlock,
    VectorMemory,
    VectorMemoryBlock,
)
from llama_index.core.utils import get_tokenizer
from llama_index.vector_stores.chroma import ChromaVectorStore

from memory_core import strategies as s
from memory_core.llama import from_chat
from memory_core.loop import submit
from memory_core.models.embeddings import LlamaIndexEmbedding
from memory_core.native.controls import FullHistory, StatelessMemory
from memory_core.native.opening import folder_of
from memory_core.native.patterns import HybridMemory, SummarisingBuffer, SummaryMemory
from memory_core.native.vector_memory import watched_index
from memory_core.stores.protocols import SessionKey
from memory_core.stores.vectors.base import CollectionSpec
from memory_core.stores.vectors.chroma import open_chroma
from tests.core.native.rig import STRATEGIES, EchoLLM, NotingEmbedder, Rig, setup_of

SAID = [
    "I am Dana, the oven costs 412 euros.",
    "Flour is delivered on Tuesday at 7, nuts never.",
    "The repair of the oven takes 3 days, says the man from Porto, and 2 more if it rains.",
    "What does the oven cost?",
    "My ferry leaves at 18.30 from pier 4.",
    "When is flour delivered?",
]


class Plain:
    """The same strategy made by hand, as a LlamaIndex user would, without any of ours."""

    def __init__(self, strategy: str, folder: Path) -> None:
        self.llm, self.embedder = EchoLLM(), NotingEmbedder()
        self.embedding = LlamaIndexEmbedding(self.embedder)
        self.folder = folder
        self.knobs = setup_of(strategy).knobs
        self.collection = None
        self.empty = b""
        self.memory = getattr(self, f"_{strategy}")()
        if isinstance(self.memory, Memory):
            submit(self.memory.sql_store._initialize()).result()
            self.empty = (folder / "plain.db").read_bytes()

    def _stateless(self):
        return StatelessMemory()

    def _full_history(self):
        return FullHistory()

    def _chat_memory_buffer(self):
        return ChatMemoryBuffer.from_defaults(token_limit=self.knobs.token_limit)

    def _chat_summary_memory_buffer(self):
        return ChatSummaryMemoryBuffer.from_defaults(
            llm=self.llm, token_limit=self.knobs.token_limit
        )

    def _memory(self):
        return self._of_blocks([])

    def _memory_blocks(self):
        static, fact, vector = self.knobs.blocks
        spec = CollectionSpec(title="plain", model="m", dimension=16, user="u")
        self.collection = open_chroma().open(spec).collection
        return self._of_blocks(
            [
                StaticMemoryBlock(
                    name=static.name,
                    priority=static.priority,
                    static_content=[TextBlock(text=static.content)],
                ),
                FactExtractionMemoryBlock(
                    name=fact.name,
                    priority=fact.priority,
                    llm=self.llm,
                    max_facts=fact.max_facts,
                ),
                VectorMemoryBlock(
                    name=vector.name,
                    priority=vector.priority,
                    vector_store=ChromaVectorStore(chroma_collection=self.collection),
                    embed_model=self.embedding,
                    similarity_top_k=vector.top_k,
                    retrieval_context_window=vector.context_window,
                ),
            ]
        )

    def _of_blocks(self, blocks):
        self.folder.mkdir(parents=True)
        return Memory.from_defaults(
            session_id="s",
            token_limit=self.knobs.token_limit,
            token_flush_size=self.knobs.token_flush_size,
            chat_history_token_ratio=self.knobs.chat_history_token_ratio,
            memory_blocks=blocks,
            async_database_uri=f"sqlite+aiosqlite:///{self.folder / 'plain.db'}",
        )

    def _vector_memory(self):
        return VectorMemory.from_defaults(
            embed_model=self.embedding, retriever_kwargs={"similarity_top_k": self.knobs.top_k}
        )

    def _simple_composable_memory(self):
        vector = VectorMemory.from_defaults(
            embed_model=self.embedding, retriever_kwargs={"similarity_top_k": self.knobs.top_k}
        )
        return SimpleComposableMemory.from_defaults(
            primary_memory=ChatMemoryBuffer.from_defaults(token_limit=self.knobs.token_limit),
            secondary_memory_sources=[vector],
        )

    def _summarising_buffer(self):
        return SummarisingBuffer.from_defaults(llm=self.llm, every=self.knobs.every)

    def _summary_memory(self):
        return SummaryMemory.from_defaults(llm=self.llm, in_full=self.knobs.in_full)

    def _hybrid(self):
        return HybridMemory(
            buffer=ChatMemoryBuffer.from_defaults(
                token_limit=self.knobs.token_limit, tokenizer_fn=get_tokenizer()
            ),
            index=watched_index(self.embedding)[0],
            top_k=self.knobs.top_k,
            cutoff=self.knobs.cutoff,
        )


@pytest.fixture
def counted(monkeypatch):
    """Return a function that makes LlamaIndex's clock and ids start anew."""

    def start() -> None:
        ticks, ids = count(10**18), count(1)
        clock = SimpleNamespace(time_ns=lambda: next(ticks), time=time.time)
        made = SimpleNamespace(uuid4=lambda: uuid.UUID(int=next(ids)), UUID=uuid.UUID)
        monkeypatch.setattr("llama_index.core.storage.chat_store.sql.time", clock)
        for place in ("schema", "memory.vector_memory"):
            monkeypatch.setattr(f"llama_index.core.{place}.uuid", made)

    return start


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_observing_changes_nothing(strategy, tmp_path, counted):
    """Same messages returned, same bytes stored, same calls to model and embedder."""
    plain = Plain(strategy, tmp_path / "plain")
    counted()
    expected = submit(_talk(plain.memory, plain.llm)).result()
    vectors = open_chroma()
    kept = tmp_path / "kept"
    if plain.empty:  # tables are alike only when made once: indexes come in any order
        table = folder_of(kept, SessionKey("u", "s")) / f"{strategy}.db"
        table.parent.mkdir(parents=True)
        table.write_bytes(plain.empty)
    rig = Rig(setup_of(strategy), folder=kept, vectors=vectors)
    rig.memory.state()
    counted()
    observed = submit(_talk(rig.memory, rig.recording)).result()
    rig.memory.close_turn()
    assert observed == expected
    assert rig.llm.prompts == plain.llm.prompts
    assert rig.embedder.texts == plain.embedder.texts
    assert _stored(rig.memory.inner) == _stored(plain.memory)
    if isinstance(plain.memory, Memory):
        assert table.read_bytes() == (tmp_path / "plain" / "plain.db").read_bytes()
    if plain.collection is not None:
        (found,) = vectors.collections()
        ours = vectors.opened(found.name).collection
        assert _records(ours) == _records(plain.collection)
        assert _records(ours)["ids"]


async def _talk(memory, llm):
    """Play the conversation as an agent does: ask twice a turn, once with the question."""
    returned = []
    for text in SAID:
        await memory.aput(ChatMessage(role=MessageRole.USER, content=text))
        prompt = await memory.aget()
        returned.append([from_chat(m) for m in prompt])
        prompt = await memory.aget(input=text)
        returned.append([from_chat(m) for m in prompt])
        answer = await llm.achat([ChatMessage(role="system", content="x"), *prompt])
        await memory.aput_messages([answer.message])
        returned.append([from_chat(m) for m in await memory.aget()])
    return returned


def _stored(memory) -> object:  # noqa: PLR0911
    """Return everything a memory holds outside of a database, as JSON text."""
    if isinstance(memory, (ChatMemoryBuffer, ChatSummaryMemoryBuffer, FullHistory)):
        return memory.chat_store.model_dump_json()
    if isinstance(memory, SimpleComposableMemory):
        return [_stored(memory.primary_memory), *map(_stored, memory.secondary_memory_sources)]
    if isinstance(memory, VectorMemory):
        store = memory.vector_index.vector_store
        data = getattr(store, "inner", store).data
        return json.dumps(
            [data.to_dict(), memory.vector_index.docstore.to_dict()], sort_keys=True, default=str
        )
    if isinstance(memory, HybridMemory):
        return [_stored(memory.buffer), memory.index.vector_store.inner.data.to_dict()]
    if isinstance(memory, (SummarisingBuffer, SummaryMemory)):
        return memory.state()
    if isinstance(memory, Memory):
        blocks = [getattr(block, "inner", block) for block in memory.memory_blocks]
        return [list(b.facts) for b in blocks if isinstance(b, FactExtractionMemoryBlock)]
    return [from_chat(message) for message in memory.get_all()]


def _records(collection) -> dict[str, object]:
    got = collection.get(include=["embeddings", "documents", "metadatas"])
    return {**got, "embeddings": [list(map(float, v)) for v in got["embeddings"]]}


def test_every_strategy_is_compared():
    """No strategy of the catalogue is left out of the comparison."""
    assert {s.LAYERED, *STRATEGIES} == {item.id for item in s.STRATEGIES}
    assert all(hasattr(Plain, f"_{strategy}") for strategy in STRATEGIES)
