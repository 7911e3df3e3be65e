"""The real objects of each strategy, made from its knobs and put under observation.

One function a family. A :class:`Bench` holds what they are made from; a bench for previews has no
place to write: tables are in memory, vector records are only read, blocks take nothing in, and
the model is a stand-in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.llms.types import TextBlock
from llama_index.core.llms import LLM
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
from llama_index.core.memory.memory import BaseMemoryBlock, InsertMethod
from llama_index.core.postprocessor import LongContextReorder, SimilarityPostprocessor
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.utils import get_tokenizer
from llama_index.core.vector_stores.types import BasePydanticVectorStore

from memory_core import strategies as s
from memory_core.native import knobs as k
from memory_core.native.adapter import Adapter, Tokenizer
from memory_core.native.blocks import BlockJournal, WatchedBlock
from memory_core.native.buffer import BufferAdapter
from memory_core.native.chat_store import QueueJournal, WatchedChatStore, in_memory, open_file
from memory_core.native.controls import (
    FullHistory,
    FullHistoryAdapter,
    StatelessAdapter,
    StatelessMemory,
)
from memory_core.native.patterned import HybridAdapter, SummarisingAdapter
from memory_core.native.patterns import HybridMemory, SummarisingBuffer, SummaryMemory
from memory_core.native.queue import MemoryAdapter
from memory_core.native.records import FrozenRecords, Records
from memory_core.native.standins import NoModel, PreviewModel
from memory_core.native.summary_buffer import SummaryBufferAdapter
from memory_core.native.vector_memory import (
    ComposableAdapter,
    VectorMemoryAdapter,
    watched_index,
)
from memory_core.native.vectors import Journal, WatchedVectorStore
from memory_core.session import Session


@dataclass(frozen=True)
class Collection:
    """A vector collection for a memory block: LlamaIndex's store over it, and its metric."""

    store: BasePydanticVectorStore
    metric: str


@dataclass(frozen=True)
class Bench:
    """What a strategy is made from. ``collection`` opens that of a block by its name."""

    session: Session
    embedding: BaseEmbedding
    collection: Callable[[str], Collection]
    table: Path | None = None
    preview: bool = False

    @property
    def llm(self) -> LLM:
        """The model until a watched one is set."""
        return PreviewModel() if self.preview else NoModel()

    def tokenizer(self, choice: str = k.MODEL_TOKENIZER) -> Tokenizer:
        """Return LlamaIndex's default tokenizer or the chat model's own."""
        if choice == k.LLAMA_INDEX_TOKENIZER:
            tokenizer: Tokenizer = get_tokenizer()
            return tokenizer
        return self.session.counter.encode


def build(strategy: str, knobs: k.Knobs, bench: Bench) -> Adapter:
    """Return the adapter around a fresh real object of a strategy."""
    make: Callable[[Any, Bench], Adapter] = _BUILDERS[strategy]
    return make(knobs, bench)


def _stateless(_: k.StatelessKnobs, bench: Bench) -> Adapter:
    return StatelessAdapter(StatelessMemory(), session=bench.session, tokenizer=bench.tokenizer())


def _full_history(_: k.FullHistoryKnobs, bench: Bench) -> Adapter:
    return FullHistoryAdapter(FullHistory(), session=bench.session, tokenizer=bench.tokenizer())


def _buffer(knobs: k.BufferKnobs, bench: Bench) -> Adapter:
    tokenizer = bench.tokenizer(knobs.tokenizer)
    memory = _chat_memory_buffer(knobs, bench)
    return BufferAdapter(memory, session=bench.session, tokenizer=tokenizer, preview=bench.preview)


def _chat_memory_buffer(
    knobs: k.BufferKnobs | k.ComposableKnobs | k.HybridKnobs, bench: Bench
) -> ChatMemoryBuffer:
    return ChatMemoryBuffer.from_defaults(
        token_limit=knobs.token_limit, tokenizer_fn=bench.tokenizer(knobs.tokenizer)
    )


def _summary_buffer(knobs: k.SummaryBufferKnobs, bench: Bench) -> Adapter:
    tokenizer = bench.tokenizer(knobs.tokenizer)
    memory = ChatSummaryMemoryBuffer.from_defaults(
        llm=bench.llm,
        token_limit=knobs.token_limit,
        tokenizer_fn=tokenizer,
        count_initial_tokens=knobs.count_initial_tokens,
    )
    return SummaryBufferAdapter(memory, session=bench.session, tokenizer=tokenizer)


def _memory(knobs: k.MemoryKnobs, bench: Bench) -> Adapter:
    tokenizer = bench.tokenizer(knobs.tokenizer)
    queue, journal = QueueJournal(), BlockJournal()
    table = bench.table
    store = WatchedChatStore(open_file(table) if table is not None else in_memory(), journal=queue)
    records: dict[str, Records] = {}
    blocks = [
        WatchedBlock(_block(block, bench, records), journal=journal, frozen=bench.preview)
        for block in knobs.blocks
    ]
    memory = Memory.from_defaults(
        session_id=bench.session.key.session,
        token_limit=knobs.token_limit,
        tokenizer_fn=tokenizer,
        chat_history_token_ratio=knobs.chat_history_token_ratio,
        token_flush_size=knobs.token_flush_size,
        insert_method=InsertMethod(knobs.insert_method),
        memory_blocks=list(blocks),
        chat_store=store,
    )
    return MemoryAdapter(
        memory,
        session=bench.session,
        tokenizer=tokenizer,
        store=store,
        queue=queue,
        blocks=journal,
        records=records,
    )


def _block(block: k.Block, bench: Bench, records: dict[str, Records]) -> BaseMemoryBlock[Any]:
    if isinstance(block, k.StaticBlock):
        return StaticMemoryBlock(
            name=block.name, priority=block.priority, static_content=[TextBlock(text=block.content)]
        )
    if isinstance(block, k.FactBlock):
        return FactExtractionMemoryBlock(
            name=block.name, priority=block.priority, max_facts=block.max_facts, llm=bench.llm
        )
    collection, journal = bench.collection(block.name), Journal()
    store = WatchedVectorStore(collection.store, journal=journal, metric=collection.metric)
    kept = FrozenRecords if bench.preview else Records
    records[block.name] = kept(block.name, store, journal=journal, embedding=bench.embedding)
    return VectorMemoryBlock(
        name=block.name,
        priority=block.priority,
        vector_store=store,
        embed_model=bench.embedding,
        similarity_top_k=block.top_k,
        retrieval_context_window=block.context_window,
        node_postprocessors=_postprocessors(block),
    )


def _postprocessors(block: k.VectorBlock) -> list[BaseNodePostprocessor]:
    if block.postprocessor == k.CUTOFF:
        return [SimilarityPostprocessor(similarity_cutoff=block.cutoff)]
    return [LongContextReorder()] if block.postprocessor == k.REORDER else []


def _vector_memory(knobs: k.VectorMemoryKnobs, bench: Bench) -> Adapter:
    index, records = watched_index(bench.embedding)
    memory = VectorMemory(
        vector_index=index,
        retriever_kwargs={"similarity_top_k": knobs.top_k},
        batch_by_user_message=knobs.batch_by_user_message,
    )
    return VectorMemoryAdapter(
        memory,
        session=bench.session,
        tokenizer=bench.tokenizer(),
        records=records,
        embedding=bench.embedding,
    )


def _composable(knobs: k.ComposableKnobs, bench: Bench) -> Adapter:
    buffer = _chat_memory_buffer(knobs, bench)
    index, records = watched_index(bench.embedding)
    vector = VectorMemory(vector_index=index, retriever_kwargs={"similarity_top_k": knobs.top_k})
    memory = SimpleComposableMemory.from_defaults(
        primary_memory=buffer, secondary_memory_sources=[vector]
    )
    return ComposableAdapter(
        memory,
        session=bench.session,
        tokenizer=bench.tokenizer(knobs.tokenizer),
        buffer=buffer,
        vector=vector,
        records=records,
        embedding=bench.embedding,
    )


def _summarising_buffer(knobs: k.SummarisingBufferKnobs, bench: Bench) -> Adapter:
    memory = SummarisingBuffer.from_defaults(
        llm=bench.llm,
        counter=bench.session.counter,
        every=knobs.every,
        summary_tokens=knobs.summary_tokens,
    )
    return SummarisingAdapter(memory, session=bench.session, tokenizer=bench.tokenizer())


def _summary_memory(knobs: k.SummaryMemoryKnobs, bench: Bench) -> Adapter:
    memory = SummaryMemory.from_defaults(
        llm=bench.llm,
        counter=bench.session.counter,
        in_full=knobs.in_full,
        summary_tokens=knobs.summary_tokens,
    )
    return SummarisingAdapter(memory, session=bench.session, tokenizer=bench.tokenizer())


def _hybrid(knobs: k.HybridKnobs, bench: Bench) -> Adapter:
    index, records = watched_index(bench.embedding)
    memory = HybridMemory(
        buffer=_chat_memory_buffer(knobs, bench),
        index=index,
        top_k=knobs.top_k,
        cutoff=knobs.cutoff,
    )
    return HybridAdapter(
        memory,
        session=bench.session,
        tokenizer=bench.tokenizer(knobs.tokenizer),
        records=records,
        embedding=bench.embedding,
    )


_BUILDERS: Mapping[str, Callable[..., Adapter]] = {
    s.STATELESS: _stateless,
    s.FULL_HISTORY: _full_history,
    s.BUFFER: _buffer,
    s.SUMMARY_BUFFER: _summary_buffer,
    s.MEMORY: _memory,
    s.MEMORY_BLOCKS: _memory,
    s.VECTOR_MEMORY: _vector_memory,
    s.COMPOSABLE: _composable,
    s.SUMMARISING_BUFFER: _summarising_buffer,
    s.SUMMARY_MEMORY: _summary_memory,
    s.HYBRID: _hybrid,
}
