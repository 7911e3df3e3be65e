"""A copied session is the original, turn by turn, under another id."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from memory_core.config import EngineConfig
from memory_core.copying import copy_session
from memory_core.engine import Engine, open_engine
from memory_core.errors import NotFound, StoreUnavailable
from memory_core.models.catalogue import ModelChoice
from memory_core.settings import MemorySettings
from memory_core.state import set_preference
from memory_core.stores.protocols import SessionKey

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def engine(tmp_path: Path):
    """Open an engine in a folder of its own."""
    opened = open_engine(EngineConfig(folder=tmp_path))
    yield opened
    opened.close()


def chat_of(engine: Engine, key: SessionKey):
    """Open a session."""
    return engine.chat(key, settings=MemorySettings(token_limit=700), model=ModelChoice())


@pytest.fixture
def original(engine):
    """Return a chat with plain turns, a superseded one, summaries and edits of the state."""
    chat = chat_of(engine, engine.create("local", "first", settings={"top_k": 3}).key)
    chat.edit_state(set_preference(chat.state, "tone", "short"), expect=0)
    for number in range(14):
        chat.play(f"I'm Dana, fact {number} is that oven {number} is hot.", f"Noted {number}.")
    list(chat.regenerate())
    chat.edit_state(set_preference(chat.state, "tone", "long"), expect=chat.state.version)
    list(chat.stream("Set the workflow step to tasting, please."))
    return chat


def test_copy_holds_everything_the_original_does(engine, original):
    """Messages, turns, states and summaries are equal; only the session's id differs."""
    copy = copy_session(engine.store, original.key, title="second", clock=lambda: NOON)
    source, store = original.key, engine.store
    assert (copy.title, copy.origin, copy.created) == ("second", source.session, NOON)
    assert copy.settings == {"top_k": 3}
    for superseded in (False, True):
        ours = store.messages(copy.key, superseded=superseded)
        theirs = store.messages(source, superseded=superseded)
        assert [(m.id, m.position, m.turn, m.message) for m in ours] == [
            (m.id, m.position, m.turn, m.message) for m in theirs
        ]
    ours, theirs = store.turns(copy.key), store.turns(source)
    assert [(t.number, t.superseded_by, t.summary) for t in ours] == [
        (t.number, t.superseded_by, t.summary) for t in theirs
    ]
    assert [(s.turn, s.state.version, s.state.preferences) for s in store.states(copy.key)] == [
        (s.turn, s.state.version, s.state.preferences) for s in store.states(source)
    ]
    assert store.head(copy.key).summary == store.head(source).summary
    assert copy.messages == store.session(source).messages


def test_copy_and_original_go_separate_ways(engine, original):
    """A turn in the copy is not in the original, and the copy's traces name the original."""
    copy = copy_session(engine.store, original.key, title="second")
    before = len(engine.store.messages(original.key))
    chat = chat_of(engine, copy.key)
    assert chat.trace(1).origin == f"{original.key.session}/1"
    assert chat.trace(1).session == copy.key.session
    chat.play("Only here.", "Yes.")
    assert len(engine.store.messages(original.key)) == before
    assert chat.trace(chat.turns).origin == ""


def test_copy_up_to_a_turn_stops_there(engine, original):
    """A copy of the first five turns ends with the fifth."""
    copy = copy_session(engine.store, original.key, title="early", last=5)
    assert engine.store.head(copy.key).turn == 5
    assert len(engine.store.messages(copy.key)) == 10


def test_nobody_copies_a_session_of_somebody_else(engine, original):
    """A session of another user is not found."""
    with pytest.raises(NotFound):
        copy_session(engine.store, SessionKey("mallory", original.key.session), title="mine")


def test_copy_that_fails_leaves_nothing_behind(engine, original, monkeypatch):
    """When the store goes away half-way, no half session stays in the catalogue."""
    commit, committed = engine.store.commit, []

    def flaky(key, record):
        if len(committed) == 3:
            raise StoreUnavailable("down")
        committed.append(record)
        commit(key, record)

    monkeypatch.setattr(engine.store, "commit", flaky)
    with pytest.raises(StoreUnavailable):
        copy_session(engine.store, original.key, title="half")
    assert [info.title for info in engine.store.sessions("local")] == ["first"]
