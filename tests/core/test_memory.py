"""LayeredMemory: a LlamaIndex memory whose turns are whole, cheap and explained."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.llms import ChatMessage
from sqlalchemy import event

from memory_core.engine import Engine
from memory_core.errors import ModelRateLimited, PromptTooLarge
from memory_core.memory import LayeredMemory
from memory_core.models.failures import explain
from memory_core.models.offline.llm import OfflineLLM
from memory_core.prompt import Source
from memory_core.recording import RecordingLLM
from memory_core.session import Session
from memory_core.settings import MemorySettings
from memory_core.stores.vectors.chroma import open_chroma
from memory_core.testing import HashEmbedder, ScriptedLLM
from memory_core.tokens import TokenCounter
from tests.core.made_sessions import new_session, sqlite

TEXT = "The ferry to the island leaves at noon and the tram number {} is late again. "


def user(text: str) -> ChatMessage:
    """Return a user message."""
    return ChatMessage(role="user", content=text)


def answer(text: str) -> ChatMessage:
    """Return an assistant's answer."""
    return ChatMessage(role="assistant", content=text)


@pytest.fixture
def engine(tmp_path: Path):
    """Give an engine over SQLite and Chroma in a folder, with the hash embedder."""
    made = Engine(
        store=sqlite(tmp_path), vectors=open_chroma(path=tmp_path / "v"), embedder=HashEmbedder()
    )
    yield made
    made.close()


def memory_of(engine: Engine, knobs: MemorySettings, *, llm=None, name: str = "s1"):
    """Return a memory on a session of the engine, with its long-term layer."""
    key = new_session(engine.store, name)
    session = Session.open(
        store=engine.store,
        key=key,
        counter=TokenCounter(),
        settings=knobs,
        longterm=engine.longterm,
    )
    memory = LayeredMemory(session)
    if llm is not None:
        memory.watch(RecordingLLM(llm, recorder=memory.recorder(), translate=explain))
    return memory


async def test_works_unchanged_in_a_function_agent() -> None:
    """A plain FunctionAgent runs on it, and the trace tells what was given."""
    memory = LayeredMemory.from_defaults(llm=OfflineLLM())
    agent = FunctionAgent(llm=OfflineLLM(), tools=[], system_prompt="Be brief.")
    await agent.run(user_msg="My locker code is 4417 blue.", memory=memory)
    reply = await agent.run(user_msg="What is my locker code?", memory=memory)
    assert "4417" in str(reply)
    trace = memory.session.last_trace
    assert trace.number == 2
    assert trace.asked >= 1
    assert trace.assembly.messages[-1].text == "What is my locker code?"


def test_works_unchanged_in_a_simple_chat_engine() -> None:
    """A SimpleChatEngine runs on it; its own prefix is counted in front."""
    memory = LayeredMemory.from_defaults(llm=OfflineLLM())
    chat = SimpleChatEngine.from_defaults(
        llm=OfflineLLM(), memory=memory, system_prompt="Answer shortly."
    )
    chat.chat("My locker code is 4417 blue.")
    assert "4417" in str(chat.chat("What is my locker code?"))
    assert memory.session.last_turn == 2


def test_a_folder_is_opened_again(tmp_path: Path) -> None:
    """With a folder, another process's memory of the same session goes on where it was."""
    first = LayeredMemory.from_defaults(folder=tmp_path, session="a")
    first.put(user("My favourite colour is green."))
    first.put(answer("Noted."))
    again = LayeredMemory.from_defaults(folder=tmp_path, session="a")
    assert again.get_all() == first.get_all()
    assert again.session.last_turn == 1


def test_one_embedding_a_turn(engine: Engine) -> None:
    """However often the prompt is asked for, the query of a turn is embedded once."""
    memory = memory_of(engine, MemorySettings())
    memory.put(user("the tram is late"))
    memory.get()
    memory.put(answer("yes"))
    before = engine.embedder.embedded
    memory.put(user("what about the tram"))
    for question in (None, "what about the tram", user("what about the tram")):
        memory.get(question)
    assert engine.embedder.embedded == before + 1
    memory.put(answer("late"))
    assert memory.session.last_trace.embedded == 1
    assert memory.session.last_trace.asked == 3


def test_one_transaction_a_turn(engine: Engine) -> None:
    """Messages, trace, state, summary and records of a turn are one commit."""
    memory = memory_of(engine, MemorySettings(recall=False))
    commits: list[int] = []
    event.listen(engine.store.engine, "commit", lambda _: commits.append(1))
    memory._session.longterm = None
    for turn in range(5):
        memory.put(user(TEXT.format(turn)))
        memory.get()
        memory.put(answer(TEXT.format(turn)))
    assert len(commits) == 5


@pytest.mark.parametrize("length", [10, 200])
def test_tokens_encoded_a_turn(engine: Engine, length: int) -> None:
    """A turn encodes at most twice its new text, however long the history is."""
    memory = memory_of(engine, MemorySettings(summarise=False))
    for turn in range(length):
        memory.put(user(TEXT.format(turn) * 3))
        memory.get()
        memory.put(answer(TEXT.format(turn + 1000) * 3))
    fresh = TokenCounter()
    new = fresh.text(TEXT.format(length - 1) * 3) + fresh.text(TEXT.format(length + 999) * 3)
    assert memory.session.last_trace.encoded <= 2 * new


def test_a_restart_changes_no_prompt(engine: Engine) -> None:
    """Opened again, the session gives the same prompt as if it had gone on."""
    memory = memory_of(engine, MemorySettings(token_limit=400), llm=OfflineLLM())
    for turn in range(8):
        memory.put(user(TEXT.format(turn)))
        memory.get()
        memory.put(answer(f"Tram {turn} noted."))
    session = Session.open(
        store=engine.store,
        key=memory.session.key,
        counter=TokenCounter(),
        settings=memory.session.settings,
        longterm=engine.longterm,
    )
    again = LayeredMemory(session)
    question = "Which tram was late?"
    old, new = (m.preview(session.settings, question) for m in (memory, again))
    assert new.messages == old.messages
    assert new.parts == old.parts
    assert new.recall.near == old.recall.near
    assert again.session.last_trace == memory.session.last_trace


def test_a_failed_summary_loses_nothing(engine: Engine) -> None:
    """A summariser that fails changes nothing; the next turn folds the same messages."""
    llm = ScriptedLLM(ModelRateLimited("rate limit"), "- Tram 1 is late", "The trams are late.")
    knobs = MemorySettings(token_limit=120, summary_every=2, recall=False)
    memory = memory_of(engine, knobs, llm=llm)
    for turn in range(4):
        memory.put(user(TEXT.format(turn) * 2))
        memory.get()
        memory.put(answer("ok"))
        if turn == 2:
            failed = memory.session.last_trace
    assert any("rate limit" in note for note in failed.degradations)
    assert failed.summary is None
    summary = memory.session.summary
    assert summary.text == "The trams are late."
    assert len(memory.get_all()) == 8
    covered = {m.id for m in memory.session.messages[: summary.covers]}
    assert set(summary.folded) == covered


def test_c06_a_system_message_stays(case, engine: Engine) -> None:
    """C06: a system rule in the history is pinned and counts for the budget."""
    data = case("C06")
    memory = memory_of(engine, MemorySettings(token_limit=300, system_prompt="", recall=False))
    for raw in data["input"]["messages"]:
        memory.put(ChatMessage(role=raw["role"], content=raw["content"]))
    memory.put(user("next"))
    prompt = memory.get()
    assert prompt[0].role.value == data["expected"]["check"]["first_role_in_prompt"]
    assert prompt[0].content == data["input"]["messages"][0]["content"]
    assembly = memory._given
    assert assembly.window.start > 0
    assert sum(p.tokens for p in assembly.parts) == assembly.tokens


def test_c10_the_question_may_be_text_or_message(case, engine: Engine) -> None:
    """C10: text and message give the same search text and hits, also on an empty history."""
    question = case("C10")["input"]["question"]
    memory = memory_of(engine, MemorySettings())
    memory.put(user(question))
    as_text = memory.get(question) and memory._given
    as_message = memory.get(user(question)) and memory._given
    assert as_text.recall.query == as_message.recall.query == question
    assert as_text.recall.hits == as_message.recall.hits


def test_no_room_for_the_question_is_an_error_that_says_so(engine: Engine) -> None:
    """A limit below the fixed part refuses the turn with both numbers; raising it heals."""
    memory = memory_of(engine, MemorySettings(token_limit=10))
    memory.put(user("hello there"))
    with pytest.raises(PromptTooLarge, match="limit is 10"):
        memory.get()
    memory.session.settings = MemorySettings(token_limit=1000)
    memory._given = None
    assert memory.get()[-1].content == "hello there"


def test_half_an_emoji_is_stored_and_told(engine: Engine) -> None:
    """A lone surrogate becomes U+FFFD, the turn is stored and the trace says so."""
    memory = memory_of(engine, MemorySettings())
    memory.put(user("good morning \ud83d"))
    memory.get()
    memory.put(answer("hi"))
    assert memory.session.messages[0].message.text == "good morning \ufffd"
    assert any("1 character" in note for note in memory.session.last_trace.degradations)


def test_set_appends_or_starts_anew(engine: Engine) -> None:
    """A longer history is appended; another one starts a new session and keeps the old."""
    memory = memory_of(engine, MemorySettings())
    first = [user("a"), answer("b")]
    memory.set(first)
    memory.set([*first, user("c"), answer("d")])
    assert [m.content for m in memory.get_all()] == ["a", "b", "c", "d"]
    old = memory.session.key
    memory.set([user("x"), answer("y")])
    assert [m.content for m in memory.get_all()] == ["x", "y"]
    assert memory.session.key != old
    assert len(engine.store.messages(old)) == 4


def test_what_was_said_comes_back_from_long_term_memory(engine: Engine) -> None:
    """A fact that left the buffer is found again, and stands in the prompt as retrieved."""
    memory = memory_of(engine, MemorySettings(token_limit=260, summarise=False))
    memory.put(user("My locker code is 4417 blue."))
    memory.get()
    memory.put(answer("Noted."))
    for turn in range(6):
        memory.put(user(TEXT.format(turn) * 2))
        memory.get()
        memory.put(answer("Noted."))
    memory.put(user("What is my locker code?"))
    memory.get()
    parts = memory._given.tokens_by_source()
    assert parts[Source.RETRIEVED] > 0
    assert "4417" in memory._given.messages[0].text


@settings(max_examples=25, deadline=None)
@given(st.lists(st.text(max_size=40), min_size=1, max_size=8), st.integers(80, 400))
def test_assemblies_are_what_get_returned(texts: list[str], limit: int) -> None:
    """The messages of the trace's prompt are the messages that get returned."""
    memory = LayeredMemory.from_defaults(settings=MemorySettings(token_limit=limit))
    for text in texts:
        memory.put(user(text))
        try:
            given_ = memory.get()
        except PromptTooLarge:
            return
        memory.put(answer("ok " + text))
        sent = memory.session.last_trace.assembly.messages
        assert [m.text for m in sent] == [m.content or "" for m in given_]
