"""The tutorials' memory: the same as the real ChatMemoryBuffer and a real Chroma, cell by cell."""

from __future__ import annotations

import uuid

import chromadb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core.memory import ChatMemoryBuffer

from memory_core.lab.cells import BUFFER, NOWHERE, RETRIEVED
from memory_core.lab.inputs import SweepInput
from memory_core.lab.sweep import TUTORIAL
from memory_core.lab.table import SweepResult
from memory_core.lab.tutorial import is_remembered
from memory_core.llama import to_chat
from tests.core.lab.talks import EMBEDDER, counter, long_talk, sweep_of, talks


def kept_by_llama_index(conversation: SweepInput, position: int, limit: int) -> list[str]:
    """Return the texts that a real ChatMemoryBuffer keeps of the first messages."""
    chats = [to_chat(message) for message in conversation.messages[:position]]
    buffer = ChatMemoryBuffer.from_defaults(
        chat_history=chats, token_limit=limit, tokenizer_fn=counter().encode
    )
    return [str(chat.content) for chat in buffer.get()]


def nearest_in_chroma(conversation: SweepInput, number: int, top_k: int) -> list[int]:
    """Return the messages that a real Chroma collection finds for a question, nearest first."""
    question = conversation.questions[number]
    kept = [
        index
        for index, message in enumerate(conversation.messages[: question.position])
        if is_remembered(message)
    ]
    collection = chromadb.EphemeralClient().create_collection(
        f"t-{uuid.uuid4().hex}",
        configuration={"hnsw": {"space": "cosine", "ef_search": 400, "ef_construction": 400}},
        embedding_function=None,
    )
    collection.add(
        ids=[str(index) for index in kept],
        embeddings=EMBEDDER.embed([conversation.messages[index].text for index in kept]),
    )
    found = collection.query(
        query_embeddings=EMBEDDER.embed([question.text]), n_results=min(top_k, len(kept))
    )
    return [int(index) for index in found["ids"][0]]


@pytest.fixture(scope="module")
def result() -> SweepResult:
    """Return a swept conversation whose texts are all different."""
    return sweep_of(long_talk(), ("token_limit", "20,60,150,1000"), strategy=TUTORIAL).run()


def test_cells_are_those_of_the_real_parts(result: SweepResult) -> None:
    """Each cell says what ChatMemoryBuffer keeps and Chroma finds, and counts their tokens."""
    conversation = long_talk()
    for number, question in enumerate(conversation.questions):
        ranking = nearest_in_chroma(conversation, number, 3)
        for cell in result.cells:
            limit, top_k = result.x.values[cell.x], result.y.values[cell.y]
            kept = kept_by_llama_index(conversation, question.position, int(limit))
            hits = ranking[: int(top_k)]
            start = question.position - len(kept)
            expected = [
                BUFFER if index >= start else RETRIEVED if index in hits else NOWHERE
                for index in question.evidence
            ]
            mine = result.evidence.owner == number
            assert cell.where[mine].tolist() == expected
            texts = [conversation.messages[index].text for index in hits]
            tokens = sum(map(counter().text, [" ".join(kept), *texts, question.text]))
            assert cell.tokens[number] == tokens


@given(conversation=talks(roles=("user", "assistant", "tool", "system")), limit=st.integers(1, 90))
@settings(max_examples=60, deadline=None)
def test_any_window_is_the_real_one(conversation: SweepInput, limit: int) -> None:
    """Without retrieval the tokens and the evidence are those of a real ChatMemoryBuffer."""
    sweep = sweep_of(conversation, ("token_limit", str(limit)), ("top_k", "0"), strategy=TUTORIAL)
    (cell,) = sweep.cells()
    for number, question in enumerate(conversation.questions):
        kept = kept_by_llama_index(conversation, question.position, limit)
        asked = counter().text(question.text)
        assert cell.tokens[number] - asked == counter().text(" ".join(kept))
        mine = sweep.prepared.evidence.owner == number
        start = question.position - len(kept)
        assert cell.held[mine].tolist() == [index >= start for index in question.evidence]


@given(conversation=talks())
@settings(max_examples=60, deadline=None)
def test_more_never_loses_evidence(conversation: SweepInput) -> None:
    """A larger limit never loses evidence from the buffer, nor a larger top_k from the prompt."""
    limits = ("token_limit", "1:60:12")
    result = sweep_of(conversation, limits, ("top_k", "0:6"), strategy=TUTORIAL).run()
    held = {(cell.x, cell.y): cell.held for cell in result.cells}
    buffers = {cell.x: cell.where == BUFFER for cell in result.cells if cell.y == 0}
    for (x, y), now in held.items():
        if x:
            assert not (buffers[x - 1] & ~buffers[x]).any()
            assert not (held[x - 1, y] & ~now).any()
        if y:
            assert not (held[x, y - 1] & ~now).any()


def test_equal_texts_rank_as_they_were_said() -> None:
    """Of the same text said twice the first is found first, whatever the arithmetic rounds to."""
    conversation = long_talk(4)
    twice = SweepInput(
        "Twice", (*conversation.messages, *conversation.messages), conversation.questions[:1]
    )
    moved = tuple(
        type(question)(question.text, len(twice.messages), (0, len(conversation.messages)))
        for question in twice.questions
    )
    sweep = sweep_of(
        SweepInput("Twice", twice.messages, moved),
        ("token_limit", "1"),
        ("top_k", "1,2"),
        strategy=TUTORIAL,
    )
    first, second = sweep.cells()
    assert first.held.tolist() == [True, False]
    assert second.held.tolist() == [True, True]


def test_what_it_costs(result: SweepResult) -> None:
    """Every message and every question is embedded; without hits nothing is; one call a turn."""
    none, some = result.cell(0, 0), result.cell(0, 2)
    assert (none.embeddings, none.model_calls) == (0, 1)
    assert (some.embeddings, some.model_calls) == (3, 1)
    assert np.all(some.tokens > none.tokens)
