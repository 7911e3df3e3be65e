"""Which turns a memory brings back for a question, on public conversations with their evidence.

Compared, one record per turn ("Speaker: text"), everything with the same embedding model:

* ``ChatMemoryBuffer``: the newest turns
* ``Memory`` with a ``VectorMemoryBlock`` at its defaults: asked with the last messages and the
  question, as ``Memory`` asks it. For recall@k the block is fed turn by turn and returns k
  records; the prompt columns are what a whole ``Memory`` of that token limit returns
* dense: cosine similarity to the question
* BM25: ``bm25s``, English stems
* ours: ``LongTermMemory`` as it is by default

*Evidence recall@k* is the share of a question's evidence turns among the k first, averaged over
questions; *any* and *all* count questions. *In the prompt at n tokens*: the share of evidence in a
prompt part of n tokens, which retrieval fills with hits in their order.

The weights are chosen on every other conversation, by the mean of its recall@3, 5 and 10 (one of
them alone follows noise), and the table is that of the rest::

    python -m benchmarks recall [FILE]
"""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import bm25s
import numpy as np
import Stemmer
from llama_index.core.llms import ChatMessage
from llama_index.core.memory import ChatMemoryBuffer, Memory, VectorMemoryBlock
from llama_index.vector_stores.chroma import ChromaVectorStore

from benchmarks.report import report, seconds
from memory_core.longterm import Candidates, LongTermMemory, rank_hits
from memory_core.models.catalogue import EmbeddingChoice
from memory_core.models.embeddings import Embedder, LlamaIndexEmbedding, build_embedder
from memory_core.prompt import Hit
from memory_core.records import ACTIVE, TURN, record_id
from memory_core.settings import MemorySettings
from memory_core.stores.protocols import MemoryRecord
from memory_core.stores.vectors.base import VectorDatabase
from memory_core.stores.vectors.chroma import open_chroma
from memory_core.tokens import TokenCounter

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "locomo_dev.json"
KS = (3, 5, 10)
LIMITS = (500, 1_000, 2_000, 4_000)
DENSE_WEIGHTS, NEIGHBOUR_WEIGHTS = (0.5, 1.0, 1.5), (0.0, 0.3, 0.6, 0.9)
MANY = 10_000
NOW = datetime(2026, 1, 1, tzinfo=UTC)
EVERYTHING = {"threshold": -1.0, "top_k": 1_000, "near_misses": 0}

Ranking = list[int]  # turns, best first
Prompted = dict[int, set[int]]  # by token limit, the turns in the prompt


@dataclass(frozen=True)
class Question:
    """A question and the turns, counted from 0, that answer it."""

    text: str
    evidence: frozenset[int]


@dataclass(frozen=True)
class Conversation:
    """All turns as "Speaker: text", the session of each, and the questions that have evidence."""

    turns: list[str]
    sessions: list[str]
    roles: list[str]
    questions: list[Question]


def read(path: Path) -> list[Conversation]:
    """Return the conversations of a LoCoMo file."""
    return [_conversation(item) for item in json.loads(path.read_text(encoding="utf-8"))]


def _conversation(item: dict[str, Any]) -> Conversation:
    talk = item["conversation"]
    names = sorted(
        (
            key
            for key, value in talk.items()
            if key.startswith("session_") and value.__class__ is list
        ),
        key=lambda key: int(key.removeprefix("session_")),
    )
    said = [(name, turn) for name in names for turn in talk[name]]
    number = {turn["dia_id"]: i for i, (_, turn) in enumerate(said)}
    found = [
        Question(
            q["question"], frozenset(number[e] for e in q.get("evidence") or () if e in number)
        )
        for q in item["qa"]
    ]
    return Conversation(
        turns=[f"{turn['speaker']}: {turn['text']}" for _, turn in said],
        sessions=[name for name, _ in said],
        roles=["user" if t["speaker"] == talk["speaker_a"] else "assistant" for _, t in said],
        questions=[question for question in found if question.evidence],
    )


class Records:
    """The record store of one user, in memory."""

    def __init__(self, records: Sequence[MemoryRecord]) -> None:
        self.kept = {record.id: record for record in records}

    def records(self, user: str, *, pending: bool = False) -> list[MemoryRecord]:
        """Return all records, or those not indexed yet."""
        return [r for r in self.kept.values() if r.user == user and not (pending and r.indexed)]

    def put_records(self, records: Sequence[MemoryRecord]) -> None:
        """Add or replace records."""
        self.kept.update({record.id: record for record in records})

    def mark_indexed(
        self, user: str, ids: Sequence[str], *, status: str | None = None
    ) -> list[str]:
        """Note which records the index knows."""
        mine = [i for i in ids if self.kept[i].user == user]
        known = [i for i in mine if status in (None, self.kept[i].status)]
        self.kept.update({i: replace(self.kept[i], indexed=True) for i in known})
        return known


def remembered(
    conversation: Conversation, embedder: Embedder, vectors: VectorDatabase | None = None
) -> tuple[LongTermMemory, dict[str, list[int]]]:
    """Return a long-term memory of a conversation, and the turns each record stands for."""
    records: dict[str, MemoryRecord] = {}
    turns: dict[str, list[int]] = {}
    for number, (text, session) in enumerate(
        zip(conversation.turns, conversation.sessions, strict=True)
    ):
        key = record_id("reader", session, text)
        turns.setdefault(key, []).append(number)
        records.setdefault(
            key,
            MemoryRecord(
                id=key,
                user="reader",
                session=session,
                turn=number,
                kind=TURN,
                text=text,
                message_ids=(str(number),),
                created=NOW - timedelta(days=1),
                status=ACTIVE,
            ),
        )
    memory = LongTermMemory(
        vectors=vectors or open_chroma(),
        embedder=embedder,
        store=Records(list(records.values())),
        clock=lambda: NOW,
    )
    memory.catch_up("reader")
    return memory, turns


class Ours:
    """Our searches of one conversation, made once and ranked under any settings."""

    def __init__(self, conversation: Conversation, embedder: Embedder) -> None:
        self.conversation = conversation
        self.memory, self.turns = remembered(conversation, embedder)
        self.found = [self.memory.search(q.text, user="reader") for q in conversation.questions]

    def rank(
        self,
        found: Candidates,
        settings: MemorySettings,
        *,
        budget: int | None = None,
        count: Callable[[Hit], int] = lambda _hit: 0,
    ) -> Ranking:
        """Return the turns of the hits of one search."""
        recall = rank_hits(
            found,
            settings=settings,
            session="",
            in_buffer=frozenset(),
            budget=budget,
            count=count,
            now=NOW,
        )
        return [turn for hit in recall.hits for turn in self.turns[hit.id]]

    def rankings(self, settings: MemorySettings) -> list[Ranking]:
        """Return the turns found for each question."""
        return [self.rank(found, settings) for found in self.found]


def share(rankings: Sequence[Ranking], questions: Sequence[Question], k: int) -> list[float]:
    """Return each question's share of evidence among the first k."""
    pairs = zip(rankings, questions, strict=True)
    return [len(q.evidence.intersection(found[:k])) / len(q.evidence) for found, q in pairs]


def found_at(searched: Sequence[Ours], settings: MemorySettings) -> dict[int, float]:
    """Return the evidence recall at each k over some conversations."""
    rankings = [(o.rankings(settings), o.conversation.questions) for o in searched]
    return {
        k: float(np.mean(np.concatenate([share(r, questions, k) for r, questions in rankings])))
        for k in KS
    }


def choose(training: Sequence[Ours]) -> MemorySettings:
    """Return the settings whose weights find most evidence."""
    base = MemorySettings(top_k=max(KS), near_misses=0)
    grid = itertools.product(DENSE_WEIGHTS, NEIGHBOUR_WEIGHTS)
    options = [base.with_(weight_dense=d, weight_neighbours=n) for d, n in grid]
    return max(options, key=lambda s: sum(found_at(training, s).values()))


def newest(conversation: Conversation) -> list[Ranking]:
    """Return what a rolling window holds: the newest turns, for every question."""
    order = list(range(len(conversation.turns)))[::-1]
    return [order[: max(KS)] for _ in conversation.questions]


def by_dense(conversation: Conversation, embedder: Embedder) -> list[Ranking]:
    """Rank turns by cosine similarity to the question."""
    turns = embedder.embed(conversation.turns)
    asked = embedder.embed([q.text for q in conversation.questions])
    return [np.argsort(-row, kind="stable").tolist() for row in asked @ turns.T]


def by_bm25(conversation: Conversation) -> list[Ranking]:
    """Rank turns by ``bm25s``."""
    stemmer = Stemmer.Stemmer("english")

    def stems(texts: Sequence[str]) -> Any:
        return bm25s.tokenize(
            list(texts), stopwords=None, stemmer=stemmer, return_ids=False, show_progress=False
        )

    index = bm25s.BM25(method="lucene")
    index.index(stems(conversation.turns), show_progress=False)
    asked = stems([q.text for q in conversation.questions])
    return [np.argsort(-index.get_scores(q), kind="stable").tolist() for q in asked]


class LlamaIndexMemory:
    """LlamaIndex's ``Memory`` with a vector block, both at their defaults."""

    def __init__(self, conversation: Conversation, embedder: Embedder) -> None:
        self.conversation = conversation
        self.model = LlamaIndexEmbedding(embedder)
        self.messages = [
            ChatMessage(role=role, content=text)
            for role, text in zip(conversation.roles, conversation.turns, strict=True)
        ]

    def block(self, **changes: Any) -> VectorMemoryBlock:
        """Return an empty block on a Chroma collection of its own."""
        client = open_chroma().place.client
        store = ChromaVectorStore(
            chroma_collection=client.create_collection("block", embedding_function=None)
        )
        return VectorMemoryBlock(vector_store=store, embed_model=self.model, **changes)

    async def rankings(self) -> list[Ranking]:
        """Return what the block finds when it is fed turn by turn."""
        block = self.block(similarity_top_k=max(KS))
        number: dict[str, int] = {}
        for i, message in enumerate(self.messages):
            await block.aput([message.model_copy(deep=True)])
            number.setdefault(
                f"<message role='{message.role.value}'>{message.content}</message>", i
            )
        out = []
        for question in self.conversation.questions:
            asked = [*self.messages, ChatMessage(role="user", content=question.text)]
            text = await block.aget(asked)
            out.append([number[part] for part in text.split("\n\n") if part in number])
        return out

    async def prompts(self, limit: int) -> list[set[int]]:
        """Return the turns in the prompt of a whole memory of this token limit."""
        memory = Memory.from_defaults(
            session_id="s", token_limit=limit, memory_blocks=[self.block()]
        )
        await memory.aput_messages([m.model_copy(deep=True) for m in self.messages])
        out = []
        for question in self.conversation.questions:
            messages = await memory.aget(input=question.text)
            text = "\n".join(str(message.content) for message in messages)
            out.append({i for i in question.evidence if self.conversation.turns[i] in text})
        return out


def filled(
    conversation: Conversation, ranking: Ranking, limit: int, counter: TokenCounter
) -> set[int]:
    """Return the turns that fit into ``limit`` tokens, taken in their order."""
    taken: set[int] = set()
    for turn in ranking:
        need = counter.text(conversation.turns[turn] + "\n")
        if need <= limit:
            limit -= need
            taken.add(turn)
        if limit < 10:
            break
    return taken


def in_buffer(conversation: Conversation, limit: int) -> set[int]:
    """Return the turns that a real ``ChatMemoryBuffer`` of this limit returns."""
    messages = [
        ChatMessage(role=role, content=text)
        for role, text in zip(conversation.roles, conversation.turns, strict=True)
    ][-400:]
    buffer = ChatMemoryBuffer.from_defaults(chat_history=messages, token_limit=limit)
    kept = {str(message.content) for message in buffer.get()}
    first = len(conversation.turns) - 400
    return {i for i, text in enumerate(conversation.turns) if i >= first and text in kept}


@dataclass
class Table:
    """Results by method: per question and k the share, per question and limit the share."""

    at_k: dict[str, dict[int, list[float]]]
    in_prompt: dict[str, dict[int, list[float]]]

    def add(self, method: str, rankings: Sequence[Ranking], questions: Sequence[Question]) -> None:
        """Add the rankings of one conversation."""
        for k in KS:
            self.at_k.setdefault(method, {}).setdefault(k, []).extend(share(rankings, questions, k))

    def add_prompts(
        self, method: str, limit: int, turns: Sequence[set[int]], questions: Sequence[Question]
    ) -> None:
        """Add the turns in the prompts of one conversation."""
        shares = [
            len(q.evidence & held) / len(q.evidence)
            for held, q in zip(turns, questions, strict=True)
        ]
        self.in_prompt.setdefault(method, {}).setdefault(limit, []).extend(shares)

    def columns(self, method: str) -> dict[str, float]:
        """Return all figures of a method."""
        out: dict[str, float] = {}
        for k, values in self.at_k[method].items():
            shares = np.array(values)
            out[f"recall@{k}"] = float(shares.mean())
            out[f"any@{k}"] = float((shares > 0).mean())
            out[f"all@{k}"] = float((shares == 1).mean())
        for limit, values in self.in_prompt[method].items():
            out[f"prompt@{limit}"] = float(np.mean(values))
        return {name: round(value, 4) for name, value in out.items()}


def compare(held_out: Sequence[Ours], embedder: Embedder, settings: MemorySettings) -> Table:
    """Measure every method on the conversations that no weight was chosen on."""
    table = Table({}, {})
    counter = TokenCounter()
    for ours in held_out:
        talk, questions = ours.conversation, ours.conversation.questions
        theirs = LlamaIndexMemory(talk, embedder)
        ranked = {
            "ChatMemoryBuffer": newest(talk),
            "Memory + vector block": asyncio.run(theirs.rankings()),
            "dense": by_dense(talk, embedder),
            "BM25": by_bm25(talk),
            "ours": ours.rankings(settings.with_(top_k=max(KS))),
        }
        for method, rankings in ranked.items():
            table.add(method, rankings, questions)
        everything = settings.with_(**EVERYTHING)
        for limit in LIMITS:
            window = in_buffer(talk, limit)
            prompts = {
                "ChatMemoryBuffer": [window] * len(questions),
                "Memory + vector block": asyncio.run(theirs.prompts(limit)),
                "dense": [filled(talk, r, limit, counter) for r in ranked["dense"]],
                "BM25": [filled(talk, r, limit, counter) for r in ranked["BM25"]],
                "ours": [
                    set(
                        ours.rank(
                            found,
                            everything,
                            budget=limit,
                            count=lambda hit: counter.text(hit.text + "\n"),
                        )
                    )
                    for found in ours.found
                ],
            }
            for method, turns in prompts.items():
                table.add_prompts(method, limit, turns, questions)
    return table


def queries_per_second(
    conversations: Sequence[Conversation], embedder: Embedder
) -> dict[str, float]:
    """Return how many questions a second are answered over 10,000 memories, embedding included."""
    texts = [text for talk in conversations for text in talk.turns]
    many = [f"{texts[i % len(texts)]} ({i})" for i in range(MANY)]
    big = Conversation(many, [f"s{i // 50}" for i in range(MANY)], ["user"] * MANY, [])
    vectors = open_chroma()
    memory, _ = remembered(big, embedder, vectors)
    (collection,) = vectors.collections()
    index = vectors.opened(collection.name)
    asked = itertools.cycle(q.text for talk in conversations for q in talk.questions)
    settings = MemorySettings()
    rate: dict[str, float] = {}
    actions: dict[str, Callable[[], object]] = {
        "ours": lambda: memory.recall(next(asked), user="reader", session="", settings=settings),
        "ours_ranking_only": lambda: rank_hits(
            found,
            settings=settings,
            session="",
            in_buffer=frozenset(),
            budget=None,
            count=lambda _hit: 0,
            now=NOW,
        ),
        "chroma_query": lambda: index.query(memory.embed_query(next(asked)), 5),
    }
    found = memory.search("When did they last meet?", user="reader")
    for name, action in actions.items():
        rate[name] = round(1 / seconds(action, repeat=5, number=20), 1)
    return rate


def main() -> None:
    """Print a table and the closing line."""
    logging.disable(logging.INFO)
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else DATA
    if not path.exists():
        sys.exit(f"{path} is not here; name a LoCoMo file.")
    began = time.perf_counter()
    embedder = build_embedder(EmbeddingChoice())
    conversations = read(path)
    searched = [Ours(talk, embedder) for talk in conversations]
    training, held_out = searched[::2], searched[1::2] or searched
    settings = choose(training)
    table = compare(held_out, embedder, settings)
    columns = {method: table.columns(method) for method in table.at_k}
    names = list(columns["ours"])
    print(f"{'':24s}" + "".join(f"{name:>12s}" for name in names))
    for method, values in columns.items():
        print(f"{method:24s}" + "".join(f"{values[name]:12.3f}" for name in names))
    first = all(columns["ours"][n] >= max(v[n] for v in columns.values()) for n in names)
    ours, block = columns["ours"]["recall@5"], columns["Memory + vector block"]["recall@5"]
    weights = {
        k: getattr(settings, k) for k in ("weight_dense", "weight_bm25", "weight_neighbours")
    }
    report(
        "recall",
        {"recall_at_5": ours, "over_memory_default_at_5": ours / max(block, 1e-9)},
        {
            "columns": columns,
            "first_in_every_column": first,
            "weights": weights,
            "weights_are_the_defaults": weights
            == {k: getattr(MemorySettings(), k) for k in weights},
            "recall_at_5_where_chosen": round(found_at(training, settings)[5], 4),
            "questions": sum(len(o.conversation.questions) for o in held_out),
            "embedding": embedder.name,
            "queries_per_second_at_10k": queries_per_second(conversations, embedder),
            "seconds": round(time.perf_counter() - began, 1),
        },
    )
