"""Prompt replay: the prompts of a recorded session again, byte for byte, without a model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from llama_index.core.llms import ChatMessage

from memory_core.contents import Contents
from memory_core.engine import Engine
from memory_core.errors import InvalidInput, NotFound
from memory_core.fate import MESSAGE, Fate
from memory_core.gates import Item, place_of
from memory_core.lab.past import PastMemories
from memory_core.lab.replay import Replay
from memory_core.ledger import Ledger
from memory_core.memory import LayeredMemory
from memory_core.models.failures import explain
from memory_core.models.offline.llm import OfflineLLM
from memory_core.recording import RecordingLLM
from memory_core.session import Session
from memory_core.settings import MemorySettings
from memory_core.state import KeyFact, add_fact, set_preference
from memory_core.stores.vectors.simple import SimpleDatabase
from memory_core.testing import HashEmbedder
from memory_core.tokens import TokenCounter
from memory_core.trace import trace_to_json
from memory_core.whynot import why_not
from tests.core.made_sessions import new_session, sqlite

TEXTS = [
    "I can't eat nuts",
    "my bakery in Porto opens at 6:30",
    "tell me about the oven and the river " * 6,
    "what did I say about nuts?",
    "the tram is late again, ça va 🙂",
]

played = st.lists(
    st.fixed_dictionaries(
        {"text": st.sampled_from(TEXTS), "answer": st.sampled_from(["Noted.", "Well. " * 40])},
        optional={
            "fact": st.sampled_from(TEXTS),
            "prefer": st.sampled_from(["tone", "size"]),
            "tool": st.booleans(),
            "supersede": st.booleans(),
            "by_hand": st.booleans(),
            "reopen": st.booleans(),
            "token_limit": st.integers(150, 700),
            "top_k": st.integers(0, 4),
            "recall": st.booleans(),
            "summary_every": st.integers(1, 4),
            "window_rule": st.sampled_from(["exact", "llama_index"]),
        },
    ),
    min_size=1,
    max_size=10,
)
KNOBS = ("token_limit", "top_k", "recall", "summary_every", "window_rule")


class Live:
    """A real session over SQLite and a vector index, played without a chat model's answers."""

    def __init__(self, folder: Path, name: str = "s1") -> None:
        self.engine = Engine(
            store=sqlite(folder),
            vectors=SimpleDatabase(folder / f"vectors-{name}"),
            embedder=HashEmbedder(),
        )
        self.key = new_session(self.engine.store, name)
        self.settings = MemorySettings(system_prompt="Be kind.", token_limit=300, summary_every=2)
        self.open()

    def open(self) -> None:
        """Open the session as the store holds it."""
        session = Session.open(
            store=self.engine.store,
            key=self.key,
            counter=TokenCounter(),
            settings=self.settings,
            longterm=self.engine.longterm,
        )
        self.memory = LayeredMemory(session)
        recorder = self.memory.recorder()
        self.memory.watch(RecordingLLM(OfflineLLM(), recorder=recorder, translate=explain))

    def say(self, text: str, answer: str, **how) -> None:
        """Play one turn, with what a person or a tool may do around it."""
        if how.get("reopen"):
            self.open()
        session = self.memory.session
        if how.get("by_hand"):
            edited = set_preference(session.state, "by hand", text[:20])
            if edited is not session.state:
                session.store.save_state(self.key, edited)
                session.saved(edited)
        session.settings = self.settings = session.settings.with_(
            **{name: how[name] for name in KNOBS if name in how}
        )
        supersedes = session.last_turn if how.get("supersede") else 0
        session.open_turn(supersedes=supersedes)
        self.memory.put(ChatMessage(role="user", content=text))
        self.memory.get(input=text)
        number = session.turn.number
        if fact := how.get("fact"):
            session.change_state(lambda s: add_fact(s, KeyFact(f"f{number}", fact, number)))
        if how.get("tool"):
            call = {"id": f"c{number}", "function": {"name": "get_weather", "arguments": "{}"}}
            asked = ChatMessage(
                role="assistant", content="", additional_kwargs={"tool_calls": [call]}
            )
            result = ChatMessage(
                role="tool", content="sunny", additional_kwargs={"tool_call_id": f"c{number}"}
            )
            self.memory.put_messages([asked, result])
        if prefer := how.get("prefer"):
            session.change_state(lambda s: set_preference(s, prefer, f"value {number}"))
        self.memory.get(input=text)
        self.memory.put(ChatMessage(role="assistant", content=answer))

    def replay(self) -> Replay:
        """Read the session with the user's long-term memory."""
        store = self.engine.store
        memories = PastMemories(store.records(self.key.user), embed=HashEmbedder().embed)
        return Replay.read(store, self.key, memories=memories)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(played)
def test_a_prompt_replay_equals_the_live_prompts(tmp_path_factory, script):
    """Every turn planned again under its own settings gives the messages that were sent."""
    live = Live(tmp_path_factory.mktemp("live"))
    for turn in script:
        live.say(**turn)
    replay = live.replay()
    assert replay.turns == list(range(1, len(script) + 1))
    for turn in replay:
        recorded = turn.trace.assembly
        assert turn.assembly.messages == recorded.messages
        assert turn.assembly.message_ids == recorded.message_ids
        assert turn.assembly.tokens == recorded.tokens
        assert turn.assembly.window == recorded.window
        assert turn.as_recorded
    live.engine.close()


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(played, st.data())
def test_ledger_and_why_not_hold_on_the_real_engine(tmp_path_factory, script, data):
    """On real traces too the ledger tells the prompt, and every offered change works."""
    live = Live(tmp_path_factory.mktemp("live"))
    for turn in script:
        live.say(**turn)
    replay = live.replay()
    ledger = Ledger.fold(turn.trace for turn in replay)
    for turn in replay:
        held = Contents.of(turn.trace.assembly)
        for item in ledger.tracks[MESSAGE].ids:
            fate = ledger.fate(MESSAGE, item, turn.trace.number)
            assert (fate is Fate.PROMPT) == (item in held.messages)
            if fate is Fate.RETRIEVED:
                assert item in held.carried
    turn = replay.at(data.draw(st.sampled_from(replay.turns)))
    index = data.draw(st.integers(0, len(turn.layers.messages) - 1))
    item = Item(MESSAGE, turn.layers.messages[index].id, index)
    answer = why_not(item, settings=turn.settings, plan=turn.plan, history=turn.layers.history)
    assert answer.place == place_of(item, turn.assembly)
    for change in answer.changes:
        assert place_of(item, turn.plan(change.apply(turn.settings)))
        less = turn.settings.with_(**{change.setting: change.less})
        assert not place_of(item, turn.plan(less))
    live.engine.close()


@pytest.fixture
def live(tmp_path: Path) -> Live:
    """Give a session of four turns, the third of which was answered again."""
    live = Live(tmp_path)
    for text in TEXTS[:3]:
        live.say(text, "Noted.")
    live.say(TEXTS[3], "Well. " * 40, supersede=True)
    yield live
    live.engine.close()


def test_turns_can_be_asked_for_in_any_order(live):
    """Going back gives the same prompts as going forward."""
    replay = live.replay()
    forward = {turn.trace.number: turn.assembly.messages for turn in replay}
    backward = {number: replay.at(number).assembly.messages for number in reversed(replay.turns)}
    assert forward == backward


def test_other_settings_give_the_prompt_that_would_have_been(live):
    """A larger limit lets everything in; the recorded turn stays as it was."""
    turn = live.replay().at(4)
    wide = turn.plan(turn.settings.with_(token_limit=3_000, recall=False))
    assert wide.window.start == 0
    assert turn.as_recorded
    assert len(wide.messages) >= len(turn.assembly.messages)


def test_without_memories_nothing_is_recalled(live):
    """A replay without the user's long-term memory plans the other layers alone."""
    replay = Replay.read(live.engine.store, live.key)
    assert all(turn.assembly.recall is None for turn in replay)


def test_unknown_turns_and_strategies_are_refused(live):
    """A turn that is not there is not found; a strategy that plans itself cannot be asked."""
    replay = live.replay()
    with pytest.raises(NotFound):
        replay.at(9)
    row = live.engine.store.turns(live.key)[0]
    trace = replace(replay.trace(1), strategy="chat_memory_buffer")
    other = Replay(
        turns=[replace(row, trace=trace_to_json(trace))],
        messages=live.engine.store.messages(live.key, superseded=True),
        states={},
    )
    with pytest.raises(InvalidInput, match="cannot be asked again"):
        other.at(1)


def test_a_state_gone_back_to_is_stored_and_a_summary_too(tmp_path):
    """After a replaced turn the store holds the state and summary that went on, also reopened."""
    live = Live(tmp_path)
    live.say("hello there", "Hi.", prefer="tone")
    live.say("second", "Yes.", by_hand=True, fact="I can't eat nuts")
    live.say("second again", "Yes.", supersede=True)
    live.say("second once more", "Yes.", supersede=True)
    held = live.memory.session
    live.open()
    opened = live.memory.session
    assert opened.state.key_facts == held.state.key_facts == ()
    assert opened.summary == held.summary
    live.say("third", "No.", prefer="size")
    changed = [change.path for change in live.memory.session.last_trace.changes]
    assert changed == ["preferences.size"]
    live.engine.close()
