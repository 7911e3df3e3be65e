"""A strategy goes on after a restart, a superseded turn or a failed commit as if nothing was."""

from __future__ import annotations

import os
import shutil
import sqlite3

import pytest
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.tools import FunctionTool

from memory_core import strategies as s
from memory_core.agent import Finished
from memory_core.errors import StoreUnavailable
from memory_core.native.opening import folder_of, forget_session, forget_strategies
from memory_core.opening import create_session
from memory_core.settings import MemorySettings
from memory_core.stores.opening import open_store
from memory_core.stores.protocols import SessionKey
from memory_core.stores.vectors.chroma import open_chroma
from memory_core.testing import HashEmbedder
from tests.core.native.rig import PAIRINGS, STRATEGIES, Rig, last_failure, setup_of

KEY = SessionKey("u", "s")
SAID = [
    "I am Dana, the oven costs 412 euros and the repair takes 3 days.",
    "Flour is delivered on Tuesday at 7, nuts never, says the man from pier 4.",
    "My ferry leaves at 18.30 from pier 4, the next one at 19.45 from pier 5.",
]


def look(q: str) -> str:
    """Look something up."""
    return f"{q} is 12"


TOOLS = [FunctionTool.from_defaults(fn=look)]


def opened(setup, folder, **about):
    """Return a rig whose record and state are kept in a folder."""
    store = open_store(None, folder=folder / "store")
    create_session(store, KEY, settings=MemorySettings())
    return Rig(setup, folder=folder, store=store, **about)


# Every strategy, and every agent around the two that keep most; ALL_PAIRINGS=1 runs all.
SOME = [
    (strategy, agent)
    for strategy, agent in PAIRINGS
    if os.environ.get("ALL_PAIRINGS")
    or strategy in (s.MEMORY_BLOCKS, s.SUMMARY_MEMORY)
    or agent == s.default_setup(strategy).agent
]


@pytest.mark.parametrize(("strategy", "agent"), SOME)
def test_a_restart_changes_nothing(strategy, agent, tmp_path):
    """In every agent, the prompt after a restart is the prompt without one, vectors lost or not."""
    setup = setup_of(strategy, agent)
    rig = opened(setup, tmp_path / "one")
    rig.llm.wants = "look" if agent == s.FUNCTION_AGENT else ""
    for text in SAID[:2]:
        assert isinstance(rig.say(text, tools=TOOLS)[-1], Finished)
    rig.session.store.close()
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    again = opened(setup, tmp_path / "two")
    again.llm.wants = rig.llm.wants
    rig.session.store = None
    rig.say(SAID[2], tools=TOOLS)
    assert isinstance(again.say(SAID[2], tools=TOOLS)[-1], Finished)
    assert again.replies() == rig.replies()
    assert again.session.last_turn == 3
    assert [m.message for m in again.session.messages] == [m.message for m in rig.session.messages]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_superseded_turn_leaves_no_trace_in_the_strategy(strategy, tmp_path):
    """Saying the last message anew gives the prompt as if the first try had never been."""
    rig = opened(setup_of(strategy), tmp_path / "one")
    other = opened(setup_of(strategy), tmp_path / "two")
    for text in SAID[:2]:
        rig.say(text)
        other.say(text)
    rig.say("This was said by mistake: the oven costs 999 euros, the ferry 888.")
    runs = list(rig.say_anew(SAID[2], supersedes=3))
    other.say(SAID[2])
    assert isinstance(runs[-1], Finished)
    assert rig.replies() == other.replies()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_turn_that_could_not_be_stored_leaves_no_trace(strategy, tmp_path, monkeypatch):
    """When the commit fails and the turn is dropped, the strategy goes back with the record."""
    rig = opened(setup_of(strategy), tmp_path / "one")
    other = opened(setup_of(strategy), tmp_path / "two")
    for text in SAID[:2]:
        rig.say(text)
        other.say(text)

    def refuse(*_):
        raise StoreUnavailable("the store is away")

    with monkeypatch.context() as patch:
        patch.setattr(type(rig.session.store), "commit", refuse)
        assert last_failure(rig.say("Nobody will know: 999.")).trace is None
    rig.say(SAID[2])
    other.say(SAID[2])
    assert rig.replies() == other.replies()
    assert [m.message for m in rig.session.messages] == [m.message for m in other.session.messages]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_messages_taken_in_beside_the_strategy_reach_it(strategy, tmp_path):
    """Turns that were added to the record alone (an import) are given to the real object."""
    rig = opened(setup_of(strategy), tmp_path)
    rig.say(SAID[0])
    rig.session.append(rig.session.messages[0].message)
    rig.session.append(rig.session.messages[1].message)
    rig.session.close_turn()
    rig.say(SAID[1])
    given = [stored.id for stored in rig.memory.adapter.given.messages]
    assert given == [stored.id for stored in rig.session.messages]


def test_a_torn_last_line_of_the_log_is_passed_over(tmp_path):
    """A crash in the middle of writing the state costs nothing that was committed."""
    setup = setup_of(s.SUMMARY_MEMORY)
    rig = opened(setup, tmp_path)
    for text in SAID:
        rig.say(text)
    rig.session.store.close()
    path = folder_of(tmp_path, KEY) / f"{s.SUMMARY_MEMORY}.jsonl"
    with path.open("ab") as file:
        file.write(b'{"v": 1, "turn": 4, "ba')
    again = opened(setup, tmp_path)
    assert again.memory.preview(again.session.settings, "Who?") == rig.memory.preview(
        rig.session.settings, "Who?"
    )
    again.say("And?")
    assert path.read_bytes().count(b"\n") == 6


def test_another_strategy_starts_from_the_record(tmp_path):
    """Changing the strategy of a session gives the new one the whole chat."""
    rig = opened(setup_of(s.BUFFER), tmp_path)
    for text in SAID[:2]:
        rig.say(text)
    rig.session.store.close()
    again = opened(setup_of(s.FULL_HISTORY), tmp_path)
    again.say(SAID[2])
    assert [m.text for m in again.replies()[-1] if m.role == "user"] == SAID


def test_forgetting_a_session_or_user_erases_what_strategies_keep(tmp_path):
    """Neither a file nor a collection of it is left; other sessions keep theirs."""
    vectors = open_chroma()
    setup = setup_of(s.MEMORY_BLOCKS)
    for name in ("s", "t"):
        rig = Rig(setup, folder=tmp_path, vectors=vectors, name=name)
        for text in SAID:
            rig.say(text)
    forget_session(tmp_path, KEY, vectors)
    assert not folder_of(tmp_path, KEY).exists()
    assert ["session t, block earlier" in c.title for c in vectors.collections("u")] == [True]
    assert folder_of(tmp_path, SessionKey("u", "t")).exists()
    forget_strategies(tmp_path, "u")
    assert not [path for path in (tmp_path / "native").rglob("*") if path.is_file()]


def test_what_another_program_did_to_the_files_is_put_right(tmp_path):
    """Rows and records that are not what the strategy left are made so before the next turn."""
    vectors = open_chroma()
    rig = opened(setup_of(s.MEMORY_BLOCKS), tmp_path / "one", vectors=vectors)
    other = opened(setup_of(s.MEMORY_BLOCKS), tmp_path / "two")
    for text in SAID:
        rig.say(text)
        other.say(text)
    (found,) = vectors.collections("u")
    held = vectors.opened(found.name)
    vectors.opened(found.name).delete(held.ids())
    table = folder_of(tmp_path / "one", KEY) / f"{s.MEMORY_BLOCKS}.db"
    with sqlite3.connect(table) as database:
        database.execute("delete from llama_index_memory where id > 2")
    rig.say("When does the ferry leave?")
    other.say("When does the ferry leave?")
    assert rig.replies() == other.replies()


def test_another_embedding_model_embeds_the_records_anew(tmp_path):
    """Vectors of one model are never searched with those of another."""
    rig = opened(setup_of(s.VECTOR_MEMORY), tmp_path)
    for text in SAID:
        rig.say(text)
    rig.session.store.close()
    again = opened(setup_of(s.VECTOR_MEMORY), tmp_path, embedder=HashEmbedder(24))
    events = again.say("When does the ferry leave?")
    assert isinstance(events[-1], Finished)
    assert len(again.session.last_trace.assembly.recall.hits) == 3


def test_messages_put_without_an_agent_close_their_turns(tmp_path):
    """Used like any LlamaIndex memory, each answered question is committed as a turn."""
    rig = opened(setup_of(s.BUFFER), tmp_path)
    for text in SAID:
        rig.memory.put(ChatMessage(role="user", content=text))
        rig.memory.get()
        rig.memory.put(ChatMessage(role="assistant", content="Noted."))
    assert rig.session.last_turn == 2
    rig.memory.close_turn()
    assert rig.session.last_turn == 3
    assert [call.model for call in rig.session.last_trace.calls] == ["not observed"]
