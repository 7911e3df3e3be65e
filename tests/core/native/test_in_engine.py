"""A strategy opened by the engine: played in, previewed, sealed, switched and erased."""

from __future__ import annotations

from dataclasses import replace

import pytest

from memory_core import strategies as s
from memory_core.agent import Finished
from memory_core.chat import Chat
from memory_core.config import EngineConfig
from memory_core.engine import Engine, open_engine
from memory_core.models.catalogue import ModelChoice
from memory_core.native.observed import ObservedMemory
from memory_core.native.opening import folder_of
from memory_core.prompt import Source
from memory_core.settings import MemorySettings
from memory_core.stores.encryption import new_key
from memory_core.testing import HashEmbedder


@pytest.fixture
def engine(tmp_path):
    """Return an engine in a folder, with an embedder that needs no model."""
    opened = open_engine(EngineConfig(folder=tmp_path))
    yield Engine(
        store=opened.store,
        vectors=opened.vectors,
        embedder=HashEmbedder(16),
        opened=opened.opened,
        config=opened.config,
    )
    opened.close()


def chat_as(engine: Engine, setup: s.Setup, info=None) -> Chat:
    """Open a session under a strategy."""
    info = info or engine.create("u", "chat", settings={})
    chat = engine.chat(info.key, settings=MemorySettings(), model=ModelChoice())
    chat.run_as(setup)
    return chat


@pytest.mark.parametrize("agent", [s.FUNCTION_AGENT, s.CONTEXT_ENGINE])
def test_a_turn_whose_answer_is_known_is_taken_in_as_one(engine, agent):
    """A sample is played into any strategy turn by turn, each committed and explained."""
    chat = chat_as(engine, s.default_setup(s.MEMORY_BLOCKS, agent))
    for number in range(3):
        trace = chat.play(f"My code number {number} is {number}417.", "Noted.")
        assert trace.number == number + 1
        assert trace.assembly is not None
    assert [m.message.text for m in chat.messages][::2] == [
        f"My code number {number} is {number}417." for number in range(3)
    ]


def test_a_strategy_remembers_in_its_own_way_only(engine):
    """Turns under another strategy make no long-term memories of ours."""
    chat = chat_as(engine, s.default_setup(s.BUFFER))
    trace = list(chat.stream("My locker code is 4417 blue."))[-1].trace
    assert not trace.memories
    assert not engine.store.records("u")
    chat.run_as(s.Setup())
    trace = list(chat.stream("My ferry leaves from pier 4 at noon."))[-1].trace
    assert trace.memories


@pytest.mark.parametrize("agent", [agent.id for agent in s.AGENTS])
def test_a_preview_holds_tool_definitions_only_where_they_are_sent(engine, agent):
    """The next prompt has the tools that the agent sends beside it, and no others."""
    chat = chat_as(engine, s.default_setup(s.BUFFER, agent))
    sent = list(chat.stream("My locker code is 4417 blue."))[-1].trace.assembly

    def beside(assembly):
        parts = (p for p in assembly.parts if p.source is Source.TOOLS and p.message is None)
        return sum(part.tokens for part in parts)

    wanted = beside(sent)
    assert (wanted > 0) == (agent == s.FUNCTION_AGENT)
    assert beside(chat.preview()) == wanted
    again = chat_as(engine, chat.setup, engine.store.session(chat.key))
    assert beside(again.preview()) == wanted


def test_switching_strategies_keeps_the_chat(engine):
    """What was said stays, whichever strategies take turns with it."""
    chat = chat_as(engine, s.default_setup(s.SUMMARY_MEMORY))
    for strategy in (s.SUMMARY_MEMORY, s.VECTOR_MEMORY, s.LAYERED, s.MEMORY_BLOCKS):
        chat.run_as(s.default_setup(strategy))
        assert isinstance(list(chat.stream(f"I now use {strategy}."))[-1], Finished)
    last = chat.trace(chat.turns)
    assert last.strategy == s.MEMORY_BLOCKS
    said = [m.text for m in last.assembly.messages if m.role == "user"]
    assert sum("I now use" in text for text in said) == 4


def test_erasing_a_session_or_a_user_erases_what_strategies_keep(engine, tmp_path):
    """Neither files nor collections of it are left."""
    chat = chat_as(engine, s.default_setup(s.MEMORY_BLOCKS))
    list(chat.stream("My locker code is 4417 blue."))
    assert folder_of(tmp_path, chat.key).exists()
    assert engine.vectors.collections("u")
    engine.store.update(replace(engine.store.session(chat.key), deleted=True))
    engine.purge(chat.key)
    assert not folder_of(tmp_path, chat.key).exists()
    assert not [c for c in engine.vectors.collections("u") if chat.key.session in c.title]
    other = chat_as(engine, s.default_setup(s.MEMORY_BLOCKS))
    list(other.stream("My locker code is 4417 blue."))
    engine.forget_user("u")
    assert not [path for path in (tmp_path / "native").rglob("*") if path.is_file()]
    assert not engine.vectors.collections("u")


def test_beside_a_sealed_store_nothing_is_written_in_plain_text(tmp_path):
    """With an encrypted store no strategy leaves a readable word on disk, and it still works."""
    config = EngineConfig(folder=tmp_path, encryption_key=new_key())
    engine = open_engine(config)
    info = engine.create("u", "chat", settings={})
    for _ in range(2):
        chat = chat_as(engine, s.default_setup(s.MEMORY_BLOCKS), info)
        assert isinstance(chat.memory, ObservedMemory)
        list(chat.stream("My locker code is fourfourseventeen."))
    engine.close()
    assert chat.turns == 2
    found = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert found
    assert not [path for path in found if b"fourfourseventeen" in path.read_bytes()]
