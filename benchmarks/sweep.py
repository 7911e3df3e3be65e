"""A sweep of 20 by 10 cells against ``ChatMemoryBuffer`` and Chroma, on a LoCoMo conversation.

*Naive* asks both for every cell and question: measured on a random sample and extrapolated.
*Semi-naive* asks ``ChatMemoryBuffer`` once a limit and Chroma once a question and k, which is run
whole; its cells and the naive sample must equal ours. All are timed with the texts embedded; ours
includes reading the vectors, counting all tokens and ranking.
"""

from __future__ import annotations

import random
import statistics
import tempfile
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import chromadb
import numpy as np
from llama_index.core.llms import ChatMessage
from llama_index.core.memory import ChatMemoryBuffer

from benchmarks.report import report, seconds
from memory_core.interchange import conversations
from memory_core.lab.axes import Axis, Point
from memory_core.lab.cells import BUFFER, NOWHERE, RETRIEVED, Cell, Evidence
from memory_core.lab.embedded import EmbeddingCache
from memory_core.lab.inputs import SweepInput, from_conversation
from memory_core.lab.sweep import LAYERED, TUTORIAL, Sweep, prepare_sweep
from memory_core.llama import to_chat
from memory_core.models.catalogue import EmbeddingChoice
from memory_core.models.embeddings import Embedder, build_embedder
from memory_core.settings import MemorySettings
from memory_core.tokens import TokenCounter

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "locomo_dev.json"
CONVERSATION = 2  # 663 messages, 193 questions
LIMITS, TOP_K = Axis.parse("token_limit", "500:4000:20"), Axis.parse("top_k", "1:10")
SAMPLE = 12
ENCODING = "cl100k_base"


@dataclass
class Real:
    """The same conversation in the real ``ChatMemoryBuffer`` and in a real Chroma collection."""

    conversation: SweepInput
    counter: TokenCounter
    queries: np.ndarray
    collection: Any
    chats: list[ChatMessage]
    evidence: Evidence

    @classmethod
    def of(cls, conversation: SweepInput, embedder: Embedder) -> Real:
        """Fill both; every question is asked at the end, so there is one state of each."""
        collection = chromadb.EphemeralClient().create_collection(
            "sweep",
            configuration={
                "hnsw": {
                    "space": "cosine",
                    "ef_search": 1_000,
                    "ef_construction": 400,
                    "max_neighbors": 32,
                }
            },
            embedding_function=None,
        )
        texts = [message.text for message in conversation.messages]
        ids = [str(index) for index in range(len(texts))]
        collection.add(ids=ids, embeddings=embedder.embed(texts), documents=texts)
        return cls(
            conversation,
            TokenCounter(ENCODING),
            embedder.embed([question.text for question in conversation.questions]),
            collection,
            [to_chat(message) for message in conversation.messages],
            Evidence.of(conversation.questions),
        )

    def buffer(self, limit: int) -> list[ChatMessage]:
        """Return the messages that the real buffer keeps."""
        buffer = ChatMemoryBuffer.from_defaults(
            chat_history=list(self.chats), token_limit=limit, tokenizer_fn=self.counter.encode
        )
        return buffer.get()

    def nearest(self, number: int, top_k: int) -> list[int]:
        """Return the messages that Chroma finds for one question."""
        found = self.collection.query(query_embeddings=[self.queries[number]], n_results=top_k)
        return [int(index) for index in found["ids"][0]]

    def agrees(
        self, cell: Cell, number: int, kept: Sequence[ChatMessage], hits: Sequence[int]
    ) -> bool:
        """Return whether a cell has the evidence and the tokens of one question as found here."""
        question, start = self.conversation.questions[number], len(self.chats) - len(kept)
        where = [
            BUFFER if index >= start else RETRIEVED if index in hits else NOWHERE
            for index in question.evidence
        ]
        buffer = " ".join(str(chat.content) for chat in kept)
        texts = [buffer, question.text]
        texts += [self.conversation.messages[index].text for index in hits]
        mine = cell.where[self.evidence.owner == number].tolist()
        return mine == where and cell.tokens[number] == sum(map(self.counter.text, texts))


def main() -> None:
    """Run all three, check that they agree and print the ratios."""
    warnings.simplefilter("ignore")
    if not DATA.exists():
        raise SystemExit(f"{DATA} is not here")
    with DATA.open("rb") as file:
        conversation = from_conversation(list(conversations(file))[CONVERSATION])
    embedder = build_embedder(EmbeddingChoice())
    with tempfile.TemporaryDirectory() as name:
        cache = EmbeddingCache(Path(name) / "embeddings.sqlite")

        def swept(strategy: str) -> Sweep:
            return prepare_sweep(
                conversation,
                LIMITS,
                TOP_K,
                base=Point(MemorySettings(), strategy, embedder.name),
                counter=TokenCounter(ENCODING),
                embedders=[embedder],
                cache=cache,
            )

        ours = list(swept(TUTORIAL).cells())
        spent = seconds(lambda: list(swept(TUTORIAL).cells()), repeat=5)
        swept(LAYERED)
        layered = seconds(lambda: list(swept(LAYERED).cells()), repeat=1)
    real = Real.of(conversation, embedder)
    naive, sample_equal = _naive(real, ours)
    semi_naive, different = _semi_naive(real, ours)
    cells, asked = len(ours), len(conversation.questions)
    whole = naive * cells * asked
    print(f"{len(conversation.messages)} messages, {asked} questions, {cells} cells")
    print(f"naive: {naive:.2f} s a cell and question, {whole / 3600:,.1f} h for the grid")
    print(f"semi-naive: {semi_naive:.1f} s, ours: {spent:.3f} s, layered memory: {layered:.1f} s")
    print(f"sample equal: {sample_equal}, cells that differ: {different} of {cells}")
    if not sample_equal or different:
        raise SystemExit("the cells differ")
    report(
        "sweep",
        {
            "speedup": whole / spent,
            "speedup_semi_naive": semi_naive / spent,
            "seconds": spent,
        },
        {
            "messages": len(conversation.messages),
            "questions": asked,
            "cells": cells,
            "naive_seconds_extrapolated": round(whole),
            "semi_naive_seconds": round(semi_naive, 2),
            "layered_seconds": round(layered, 2),
            "sample": SAMPLE,
            "equal": True,
        },
    )


def _naive(real: Real, ours: Sequence[Cell]) -> tuple[float, bool]:
    """Return the mean seconds of one cell and question, and whether all agree with ours."""
    dice, times, equal = random.Random(6), [], True
    at = {(cell.x, cell.y): cell for cell in ours}
    for _ in range(SAMPLE):
        x, y = dice.randrange(len(LIMITS.values)), dice.randrange(len(TOP_K.values))
        number = dice.randrange(len(real.conversation.questions))
        began = time.perf_counter()
        kept = real.buffer(int(LIMITS.values[x]))
        hits = real.nearest(number, int(TOP_K.values[y]))
        times.append(time.perf_counter() - began)
        equal &= real.agrees(at[x, y], number, kept, hits)
    return statistics.mean(times), equal


def _semi_naive(real: Real, ours: Sequence[Cell]) -> tuple[float, int]:
    """Return the seconds of the whole grid, and how many of our cells differ from it."""
    began = time.perf_counter()
    buffers = [real.buffer(int(limit)) for limit in LIMITS.values]
    numbers = range(len(real.conversation.questions))
    hits = [[real.nearest(n, int(top_k)) for n in numbers] for top_k in TOP_K.values]
    spent = time.perf_counter() - began
    different = 0
    for cell in ours:
        kept, found = buffers[cell.x], hits[cell.y]
        different += not all(real.agrees(cell, n, kept, found[n]) for n in numbers)
    return spent, different
