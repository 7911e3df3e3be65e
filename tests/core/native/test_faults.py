"""Known faults of the classes are contained, and never cost the record a message.

Cases are those of ``../shared/cases``; what cannot be contained gets a note (test_doctor).
"""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.memory import VectorMemoryBlock
from llama_index.vector_stores.chroma import ChromaVectorStore

from memory_core import strategies as s
from memory_core.agent import Finished
from memory_core.errors import InvalidInput, ModelRateLimited, StrategyFailed
from memory_core.loop import submit
from memory_core.models.embeddings import LlamaIndexEmbedding
from memory_core.native import knobs as k
from memory_core.native.blocks import BlockJournal, WatchedBlock
from memory_core.native.one_loop import wait
from memory_core.prompt import Gate, Source
from memory_core.settings import MemorySettings
from memory_core.stores.vectors.base import CollectionSpec
from memory_core.stores.vectors.chroma import open_chroma
from tests.core.native.rig import STRATEGIES, EchoLLM, NotingEmbedder, Rig, last_failure, setup_of


def chats(messages) -> list[ChatMessage]:
    """Return the messages of a case as LlamaIndex's class."""
    return [ChatMessage(role=m["role"], content=m["content"]) for m in messages]


def fact_setup(**knobs) -> s.Setup:
    """Return ``Memory`` with one fact block."""
    return setup_of(s.MEMORY_BLOCKS, blocks=(k.FactBlock(priority=0),), **knobs)


def seen_by(llm: EchoLLM) -> Counter[str]:
    """Return how often a model was shown each message in a prompt for facts that worked."""
    prompts = [p for p in llm.prompts if "<existing_facts>" in p[-1].text]
    return Counter(m.text.split()[0] for p in prompts for m in p[:-1] if m.text)


def test_a_failing_block_loses_nothing_and_sees_everything_once(case, tmp_path):
    """The real error is told, the batch waits and is given again: nothing lost, nothing twice."""
    data = case("C07")
    rig = Rig(fact_setup(**data["settings"]), folder=tmp_path)
    rig.llm.fails_on = "<existing_facts>"
    messages = chats(data["input"]["messages"])
    for message in messages[:6]:
        rig.memory.put(message)
    (block,) = rig.memory.adapter.watched
    assert sum(len(batch.messages) for batch in block.waiting) >= 2
    assert any("rate limit" in note for note in rig.session.turn.degradations)
    failed = seen_by(rig.llm)
    rig.memory.get()
    assert any("wait for the block facts" in note for note in rig.memory.known.notes)
    rig.memory.close_turn()
    rig.llm.fails_on, rig.llm.prompts[:] = "", []
    for message in messages[6:]:
        rig.memory.put(message)
    for _ in range(4):
        rig.memory.put(ChatMessage(role="user", content="last " + "word " * 20))
        rig.memory.put(ChatMessage(role="assistant", content="last " + "word " * 20))
    rig.memory.close_turn()
    assert not block.waiting
    archived = rig.memory.adapter._archived
    flushed = [m.message.text.split()[0] for m in rig.memory.adapter.given.messages[:archived]]
    assert failed
    assert seen_by(rig.llm) == Counter(flushed)
    waited = [w for w in rig.session.last_trace.memories if w.action == "remembered"]
    assert waited or rig.memory.adapter.watched[0].inner.facts is not None


def test_what_waits_for_a_block_waits_across_a_restart(tmp_path):
    """A batch that a block failed to take is given to it by the next process."""
    setup = fact_setup(token_limit=60, token_flush_size=20, chat_history_token_ratio=0.5)
    rig = Rig(setup, folder=tmp_path)
    rig.llm.fails_on = "<existing_facts>"
    for number in range(3):
        rig.say(f"m{number} " + "word " * 20)
    waiting = [m.content for b in rig.memory.adapter.watched[0].waiting for m in b.messages]
    assert waiting
    again = Rig(setup, folder=tmp_path)
    again.session.messages, again.session.last_turn = rig.session.messages, rig.session.last_turn
    again.say("And now?")
    assert not again.memory.adapter.watched[0].waiting
    assert set(seen_by(again.llm)) >= {text.split()[0] for text in waiting}


def test_a_failing_fact_block_keeps_its_facts_as_they_were(tmp_path):
    """When condensing fails after facts were added, the attempt is undone before it is retried."""
    block = k.FactBlock(priority=0, max_facts=1)
    setup = setup_of(
        s.MEMORY_BLOCKS, blocks=(block,), token_limit=60, token_flush_size=20,
        chat_history_token_ratio=0.5,
    )  # fmt: skip
    rig = Rig(setup)
    rig.llm.fails_on = "condensed facts in this exact format"
    for number in range(3):
        rig.say(f"m{number}: {number}1 and {number}2 " + "word " * 20)
    watched = rig.memory.adapter.watched[0]
    assert watched.inner.facts == []
    assert watched.waiting


def test_one_block_shared_by_two_sessions_searches_each_its_own(case):
    """The session filter is built anew for each search and leaves the block's settings alone."""
    data = case("C08")["input"]
    embedding = LlamaIndexEmbedding(NotingEmbedder())
    spec = CollectionSpec(title="shared", model="m", dimension=16, user="u")
    store = ChromaVectorStore(chroma_collection=open_chroma().open(spec).collection)
    block = VectorMemoryBlock(vector_store=store, embed_model=embedding)
    watched = WatchedBlock(block, journal=BlockJournal())
    for session in ("A", "B"):
        messages = [ChatMessage(role="user", content=text) for text in data[f"session_{session}"]]
        wait(watched.aput(messages, from_short_term_memory=True, session_id=session))
    answers = {}
    for session, question in (("A", "what is my locker code"), ("B", "what is my favourite fruit")):
        asked = [ChatMessage(role="user", content=question)]
        answers[session] = wait(watched.aget(asked, session_id=session))
        assert block.query_kwargs == {}
    assert "mango" in answers["B"]
    assert "4417" not in answers["B"]
    assert "4417" in answers["A"]


def test_the_search_text_is_shown_whichever_way_the_question_comes(case):
    """Text is searched; a message object is ignored by the class, which the panel tells."""
    question = case("C10")["input"]["question"]
    setup = setup_of(s.MEMORY_BLOCKS, blocks=(k.VectorBlock(priority=0),))
    rig = Rig(setup)
    rig.memory.get(question)
    assert rig.memory.known.recall.query == question
    rig.memory.get(ChatMessage(role="user", content=question))
    assert rig.memory.known.recall is None


def test_reading_a_summary_buffer_that_fails_changes_nothing(case):
    """After a failed summary all messages are there; the next one summarises only the older."""
    data = case("C12")
    rig = Rig(setup_of(s.SUMMARY_BUFFER, **data["settings"]))
    source = chats(data["input"]["messages"])
    rig.memory.put_messages(source)
    rig.llm.failing = 1
    with pytest.raises(ModelRateLimited, match="rate limit"):
        rig.memory.get()
    assert len(rig.memory.inner.get_all()) == 8 == len(source)
    returned = rig.memory.get()
    assert [m.content for m in returned[1:]] == [m.content for m in source[6:]]
    folded = rig.session.summary.folded
    texts = [m.message.text for m in rig.session.messages if m.id in folded]
    assert texts == [m.content for m in source[:6]]
    assert len(rig.memory.get_all()) == 8


def test_without_a_model_older_messages_are_left_out_not_deleted(case):
    """What the class drops by reading stays in the record and is shown as left out."""
    data = case("C12")
    rig = Rig(setup_of(s.SUMMARY_BUFFER, **data["settings"]))
    rig.memory.watch(None)
    rig.memory.put_messages(chats(data["input"]["messages"]))
    assert len(rig.memory.get()) == 2
    assert len(rig.memory.get_all()) == 8
    assert {out.gate for out in rig.memory.known.omissions} <= {Gate.TOKEN_LIMIT, Gate.RULE}
    assert len(rig.memory.known.omissions) == 6


def test_replacing_a_history_is_all_or_nothing(case, tmp_path):
    """A message that cannot be written leaves the old ones where they were; none is nothing."""
    before = chats(case("C15")["input"]["before"])
    rig = Rig(setup_of(s.MEMORY, token_limit=900), folder=tmp_path)
    rig.memory.put_messages(before)
    bad = ChatMessage(role="user", content="x", additional_kwargs={"handle": object()})
    with pytest.raises(InvalidInput, match="Message 1 cannot be written"):
        rig.memory.set([ChatMessage(role="user", content="new"), bad])
    assert [m.content for m in rig.memory.get()] == ["precious 1", "precious 2"]
    rig.memory.put_messages([])
    rig.memory.set([ChatMessage(role="user", content="new")])
    assert [m.content for m in rig.memory.get()] == ["new"]
    assert [m.content for m in rig.memory.get_all()] == ["precious 1", "precious 2", "new"]


@pytest.mark.parametrize("strategy", [s.MEMORY, s.BUFFER, s.FULL_HISTORY])
def test_messages_written_at_the_same_time_are_all_kept(case, strategy, tmp_path):
    """Fifty writes at once, from tasks and threads, on a fresh store: each is there once."""
    texts = case("C05")["input"]["parallel_messages"]
    rig = Rig(setup_of(strategy, **({"token_limit": 9000} if strategy != s.FULL_HISTORY else {})),
              folder=tmp_path)  # fmt: skip

    async def write() -> None:
        half = len(texts) // 2
        tasks = [rig.memory.aput(ChatMessage(role="user", content=t)) for t in texts[:half]]
        threads = [
            asyncio.to_thread(rig.memory.put, ChatMessage(role="user", content=t))
            for t in texts[half:]
        ]
        await asyncio.gather(*tasks, *threads)

    asyncio.run(write())
    assert Counter(m.message.text for m in rig.session.messages) == Counter(texts)
    assert Counter(m.content for m in rig.memory.get()) == Counter(texts)


def test_two_sessions_do_not_see_each_other(tmp_path):
    """Sessions of one Chroma and one folder keep tables and collections of their own."""
    vectors = open_chroma()
    setup = setup_of(s.MEMORY_BLOCKS, blocks=(k.VectorBlock(priority=0),))
    rigs = [Rig(setup, folder=tmp_path, vectors=vectors, name=name) for name in "AB"]
    for number in range(6):
        for name, rig in zip("AB", rigs, strict=True):
            rig.say(f"{name}{number} secret of {name} " + "word " * 20)
    for name, other, rig in (("A", "B", rigs[0]), ("B", "A", rigs[1])):
        rig.say("secret?")
        text = "\n".join(m.text for m in rig.replies()[-1])
        assert f"secret of {name}" in text
        assert f"secret of {other}" not in text
        assert rig.session.last_trace.assembly.recall.scope == f"session_id == {name}"


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_failing_model_loses_no_message(strategy):
    """The turn is kept with its error and the question; the next turn goes on from there."""
    rig = Rig(setup_of(strategy))
    rig.say("I am Dana and the oven costs 412 euros.")
    rig.llm.failing = 99
    failed = last_failure(rig.say("Flour comes on Tuesday."))
    assert isinstance(failed.error, ModelRateLimited)
    assert failed.trace.error
    rig.llm.failing = 0
    assert isinstance(rig.say("And now?")[-1], Finished)
    said = [m.message.text for m in rig.session.messages if m.message.role == "user"]
    assert said == [
        "I am Dana and the oven costs 412 euros.",
        "Flour comes on Tuesday.",
        "And now?",
    ]


def test_a_class_that_raises_is_told_in_one_sentence(monkeypatch):
    """An error of the class itself becomes one of ours, and the object is made again."""
    rig = Rig(setup_of(s.BUFFER))
    rig.say("Hi")

    async def broken(*_, **__):
        raise RuntimeError("no such thing")

    real = rig.memory.inner.aget
    object.__setattr__(rig.memory.inner, "aget", broken)
    failed = last_failure(rig.say("Again"))
    assert isinstance(failed.error, StrategyFailed)
    assert "ChatMemoryBuffer could not give the prompt" in str(failed.error)
    assert failed.trace.asks[-1].error == str(failed.error)
    object.__setattr__(rig.memory.inner, "aget", real)
    assert isinstance(rig.say("Third")[-1], Finished)
    assert len(rig.memory.inner.get_all()) == len(rig.session.messages)


def test_what_a_class_does_against_its_rule_is_not_explained_away():
    """Where what was returned is not what the rule gives, no reason is claimed."""
    rig = Rig(setup_of(s.BUFFER, token_limit=900))
    rig.say("The oven costs 412 euros.")
    rig.say("Flour comes on Tuesday.")

    async def odd(*_, **__):
        return [rig.memory.inner.get_all()[0], ChatMessage(role="user", content="From nowhere.")]

    object.__setattr__(rig.memory.inner, "aget", odd)
    rig.memory.get()
    known = rig.memory.known
    assert [part.source for part in known.parts] == [Source.BUFFER, Source.UNKNOWN]
    assert {out.gate for out in known.omissions} == {Gate.NOT_EXPLAINED}
    assert len(known.omissions) == 3


def test_half_an_emoji_reaches_neither_store_nor_model():
    """A lone surrogate is replaced before the class sees it; shown, returned and sent agree."""
    rig = Rig(setup_of(s.FULL_HISTORY))
    rig.say("good morning \ud83d")
    assert rig.replies()[-1][-1].text == "good morning \ufffd"
    assert any("1 character" in note for note in rig.session.last_trace.degradations)


def test_a_limit_under_the_prefix_is_explained_in_a_preview(case):
    """No exception: fixed part, limit and no room; moving the limit back restores the view."""
    data = case("C03")
    rig = Rig(setup_of(s.BUFFER, s.SIMPLE_ENGINE, token_limit=900))
    rig.memory.put_messages(chats(data["input"]["messages"]))
    settings = MemorySettings(system_prompt=data["input"]["system_prompt"])
    low = rig.memory.preview(settings, knobs=k.BufferKnobs(token_limit=200))
    assert "Fixed part larger than the limit" in " ".join(low.notes)
    assert "451" in " ".join(low.notes)
    assert [m.role for m in low.messages] == ["system"]
    back = rig.memory.preview(settings)
    assert [m.role for m in back.messages] == ["system", "user", "assistant", "user"]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_preview_asks_no_model_and_changes_nothing(strategy, tmp_path):
    """The next prompt is run on a copy: no model call, no write, and it is what is then sent."""
    rig = Rig(setup_of(strategy), folder=tmp_path)
    for text in (
        "I am Dana, the oven costs 412 euros.",
        "Flour comes on Tuesday at 7, nuts never.",
    ):
        rig.say(text)
    before, prompts = rig.memory.state(), len(rig.llm.prompts)
    question = "What does the oven cost?"
    preview = rig.memory.preview(rig.session.settings, question)
    assert rig.memory.state() == before
    assert len(rig.llm.prompts) == prompts
    assert sum(part.tokens for part in preview.parts) == preview.tokens
    rig.say(question)
    sent = rig.session.last_trace.assembly
    if rig.setup.agent == s.FUNCTION_AGENT and sent.tokens_by_source().get(Source.SUMMARY) is None:
        assert [m for m in preview.messages if m.role != "system"] == [
            m for m in sent.messages if m.role != "system"
        ]


def test_the_loop_is_free_while_a_memory_waits():
    """Calls from plain threads wait on the background loop; on it they are refused, not stuck."""
    rig = Rig(setup_of(s.BUFFER))

    async def inside() -> None:
        rig.memory.put(ChatMessage(role="user", content="x"))

    with pytest.raises(ValueError, match="by its async calls"):
        submit(inside()).result()
