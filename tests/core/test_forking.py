"""Forks: the same memory contents as of a turn, then two sessions that go their own ways."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory_core.config import EngineConfig
from memory_core.engine import open_engine
from memory_core.errors import NotFound
from memory_core.forking import fork_session, forked_from, visible
from memory_core.lab.past import PastMemories
from memory_core.lab.replay import Replay
from memory_core.models.catalogue import ModelChoice
from memory_core.settings import MemorySettings
from memory_core.stores.protocols import SessionKey
from memory_core.testing import HashEmbedder
from tests.core.lab.test_replay import Live, played


class Forked(Live):
    """A fork of a live session, opened on the same engine."""

    def __init__(self, live: Live, turn: int) -> None:
        self.engine, self.settings = live.engine, live.settings
        info = fork_session(self.engine.store, live.key, turn, title="a fork")
        self.key = info.key
        self.engine.longterm.catch_up(self.key.user)
        self.open()

    def open(self) -> None:
        """Open the session as the store holds it, apart from what it was forked from."""
        super().open()
        self.memory.session.sees = visible(self.engine.store.sessions("local"), self.key.session)


def memories_of(live: Live) -> PastMemories:
    """Return the long-term memory that a session sees, with its past."""
    store = live.engine.store
    sees = visible(store.sessions("local"), live.key.session)
    return PastMemories(store.records("local"), embed=HashEmbedder().embed, sees=sees)


def prompts(live: Live) -> list[tuple]:
    """Return every prompt of a session, planned again."""
    replay = Replay.read(live.engine.store, live.key, memories=memories_of(live))
    return [turn.assembly.messages for turn in replay]


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(played, st.data())
def test_a_fork_has_the_prompts_of_the_original(tmp_path_factory, script, data):
    """Replayed with unchanged settings, a fork gives the original's prompts, byte for byte."""
    live = Live(tmp_path_factory.mktemp("fork"))
    for turn in script:
        live.say(**turn)
    at = data.draw(st.integers(1, len(script)))
    sent = [turn.trace.assembly.messages for turn in live.replay()]
    fork = Forked(live, at)
    assert prompts(fork) == sent[:at]
    live.engine.close()


@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(played.filter(lambda script: len(script) > 2), st.data())
def test_a_fork_chatted_on_alike_goes_on_alike(tmp_path_factory, script, data):
    """The same turns said in a fork as in the original give the same prompts as they did."""
    live = Live(tmp_path_factory.mktemp("fork"))
    at = data.draw(st.integers(1, len(script) - 1))
    script = [{k: v for k, v in t.items() if k != "supersede"} for t in script]
    for turn in script[:at]:
        live.say(**turn)
    before = live.settings
    for turn in script[at:]:
        live.say(**turn)
    sent = [turn.trace.assembly.messages for turn in live.replay()]
    fork = Forked(live, at)
    fork.settings = before
    fork.open()
    for number, turn in enumerate(script[at:], start=at):
        fork.say(**turn)
        assert fork.memory.session.last_trace.assembly.messages == sent[number]
    live.engine.close()


@pytest.fixture
def live(tmp_path):
    """Give a session of three turns about three things."""
    live = Live(tmp_path)
    for text in ("The oven is red.", "The bakery is in Porto.", "The cake is for Ana."):
        live.say(text, "Noted.")
    yield live
    live.engine.close()


def test_the_origin_is_noted_and_the_original_untouched(live):
    """The fork's entry names session and turn; the original has the turns it had."""
    before = live.engine.store.records("local")
    fork = Forked(live, 2)
    info = live.engine.store.session(fork.key)
    assert forked_from(info) == (live.key.session, 2)
    assert info.turns == 2
    assert live.engine.store.session(live.key).turns == 3
    assert [r for r in live.engine.store.records("local") if r.session == "s1"] == list(before)


def test_a_fork_calls_its_memories_by_their_own_names(live):
    """In the copied traces what the session remembered bears the ids of the fork's memories."""
    live.say("Which oven is red?", "That one.")
    fork = Forked(live, 4)
    own = {r.id for r in live.engine.store.records("local") if r.session == fork.key.session}
    trace = Replay.read(live.engine.store, fork.key).trace(4)
    recall = trace.assembly.recall
    found = [*recall.hits, *(hit for hit, _ in recall.near)]
    assert found
    assert {hit.id for hit in found} <= own
    assert {hit.session for hit in found} == {fork.key.session}
    assert {write.id for write in trace.memories if write.id} <= own


def test_both_go_their_own_ways(live):
    """What is said in one after the fork is not recalled in the other."""
    fork = Forked(live, 1)
    fork.say("The tower is tall.", "Yes.")
    for session, own, others in (
        (live, "The cake is for Ana.", "The tower is tall."),
        (fork, "The tower is tall.", "The cake is for Ana."),
    ):
        sees = visible(live.engine.store.sessions("local"), session.key.session)
        seen = [r.text for r in live.engine.store.records("local") if sees(r)]
        assert any(own in text for text in seen)
        assert not any(others in text for text in seen)
        assert sum("The oven is red." in text for text in seen) == 1


def test_other_sessions_are_seen_by_both_and_see_no_fork(live):
    """A third session's memories reach fork and original; it sees the original's, once."""
    fork = Forked(live, 3)
    third = Live.__new__(Live)
    third.engine, third.settings = live.engine, live.settings
    third.key = SessionKey("local", "third")
    sessions = live.engine.store.sessions("local")
    records = live.engine.store.records("local")
    seen = [r for r in records if visible(sessions, "third")(r)]
    assert {r.session for r in seen} == {"s1"}
    assert visible(sessions, fork.key.session)(seen[0]) is False


def test_a_fork_of_a_fork_is_apart_from_both(live):
    """Forks can be forked; each sees its own copies only."""
    second = Forked(Forked(live, 3), 2)
    sessions, records = live.engine.store.sessions("local"), live.engine.store.records("local")
    sees = visible(sessions, second.key.session)
    assert {r.session for r in records if sees(r)} == {second.key.session}
    assert len([r for r in records if sees(r)]) == 2


def test_without_forks_everything_is_seen(live):
    """A user without forks pays nothing: there is no filter."""
    assert visible(live.engine.store.sessions("local"), "s1") is None


def test_a_turn_that_is_not_there_leaves_nothing_behind(live):
    """Forking from an unknown turn or session is refused and adds no session."""
    with pytest.raises(NotFound):
        fork_session(live.engine.store, live.key, 9, title="x")
    with pytest.raises(NotFound):
        fork_session(live.engine.store, SessionKey("local", "none"), 1, title="x")
    assert len(live.engine.store.sessions("local")) == 1


def test_an_open_chat_does_not_see_a_fork_made_meanwhile(tmp_path):
    """What is said in a fork is not recalled in the original that stayed open, nor otherwise."""
    engine = open_engine(EngineConfig(folder=tmp_path))
    knobs = MemorySettings(token_limit=300, threshold=-1, top_k=9, summarise=False, tools=False)
    original = engine.chat(
        engine.create("local", "one", settings={}).key, settings=knobs, model=ModelChoice()
    )
    original.play("The oven is red.", "Noted. " * 30)
    fork = engine.chat(engine.fork(original.key, 1, "two").key, settings=knobs, model=ModelChoice())
    fork.play("The tower is tall.", "Noted. " * 30)
    original.play("The cake is for Ana.", "Noted. " * 30)
    for chat, other in ((original, "tower"), (fork, "cake")):
        trace = chat.play("The tower or the cake?", "Well.")
        recall = trace.assembly.recall
        texts = [hit.text for hit in (*recall.hits, *(hit for hit, _ in recall.near))]
        assert texts
        assert not any(other in text for text in texts if "or the" not in text)
    engine.close()
