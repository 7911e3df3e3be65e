"""Configurations side by side: equal ones never part, what is said is what the prompts held."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory_core.engine import Engine
from memory_core.errors import InvalidInput, NotFound
from memory_core.lab import side_by_side
from memory_core.lab.comparison import (
    ANSWERS,
    IN,
    PLANNED,
    PLAYED,
    PROMPTS,
    TURNS,
    Column,
    Configuration,
    Conversation,
    Kept,
    differing,
    turns_of,
)
from memory_core.lab.comparison_folder import from_json, to_json
from memory_core.lab.holding import digest
from memory_core.lab.inputs import from_sample
from memory_core.lab.past import PastMemories
from memory_core.lab.replay import Replay
from memory_core.lab.side_by_side import compare
from memory_core.messages import Message
from memory_core.models.catalogue import OPENAI, ModelChoice
from memory_core.questions import RecallQuestion
from memory_core.samples import load_sample
from memory_core.settings import MemorySettings
from memory_core.stores.protocols import SessionKey
from memory_core.stores.vectors.simple import SimpleDatabase
from memory_core.strategies import (
    BUFFER,
    FULL_HISTORY,
    LAYERED,
    MEMORY_BLOCKS,
    STATELESS,
    STRATEGIES,
    SUMMARY_BUFFER,
    default_setup,
)
from memory_core.testing import HashEmbedder, ScriptedLLM
from tests.core.lab.test_replay import Live, played
from tests.core.made_sessions import sqlite

TIGHT = MemorySettings(system_prompt="Be kind.", token_limit=300, summary_every=2, tools=False)
SLOW = settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))

talks = st.lists(
    st.sampled_from(
        [
            "I can't eat nuts",
            "my bakery in Porto opens at 6:30",
            "the tram is late again, ça va 🙂",
            "tell me about the oven and the river " * 6,
        ]
    ),
    min_size=1,
    max_size=8,
)


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    """Return the engine of the user's own sessions."""
    return Engine(
        store=sqlite(tmp_path),
        vectors=SimpleDatabase(tmp_path / "vectors"),
        embedder=HashEmbedder(),
    )


def spoken(texts: list[str]) -> Conversation:
    """Return a conversation of these user messages, each with a question about it."""
    messages = tuple(
        message
        for number, text in enumerate(texts)
        for message in (
            Message.of("user", f"{text} ({number})"),
            Message.of("assistant", f"Noted {number}. " * 8),
        )
    )
    questions = tuple(
        RecallQuestion(f"What was {n}?", f"({n})", (2 * n,)) for n in range(min(4, len(texts)))
    )
    return Conversation("a talk", messages, turns_of(messages), questions)


def bakery() -> Conversation:
    """Return the sample with its questions."""
    told = from_sample(load_sample("bakery"))
    questions = tuple(
        RecallQuestion(q.text, q.expected, q.evidence, q.category) for q in told.questions
    )
    return Conversation(told.title, told.messages, turns_of(told.messages), questions)


def of_session(live: Live, questions: tuple[RecallQuestion, ...] = ()) -> Conversation:
    """Return a recorded session as a conversation."""
    said = live.engine.store.messages(live.key)
    return Conversation(
        "a session",
        tuple(stored.message for stored in said),
        tuple(stored.turn for stored in said),
        questions,
        key=live.key,
    )


def configured(name: str, strategy: str = LAYERED, **knobs: object) -> Configuration:
    """Return a configuration of a strategy as it comes."""
    return Configuration(name, default_setup(strategy), TIGHT.with_(**knobs))


@SLOW
@given(talks, st.sampled_from([LAYERED, BUFFER, SUMMARY_BUFFER, MEMORY_BLOCKS]))
def test_equal_configurations_never_part(tmp_path_factory, texts, strategy):
    """Two columns of the same configuration hold the same in every turn and every question."""
    folder = tmp_path_factory.mktemp("equal")
    engine = Engine(
        store=sqlite(folder), vectors=SimpleDatabase(folder / "v"), embedder=HashEmbedder()
    )
    pair = [configured("one", strategy), configured("two", strategy)]
    found = compare(spoken(texts), pair, mode=PROMPTS, engine=engine)
    assert found.first is None
    one, two = found.columns
    assert [kept.digest for kept in one.turns] == [kept.digest for kept in two.turns]
    assert one.asked == two.asked
    assert not any(kept.error for kept in one.turns)


kept_columns = st.lists(
    st.lists(st.tuples(st.integers(0, 2), st.sampled_from(["", "a"])), max_size=6),
    min_size=2,
    max_size=5,
)


@given(kept_columns)
def test_the_first_difference_is_the_first_of_all(made):
    """Turn by turn, against every pair: the columns part where any two of them first do."""
    columns = [
        Column(
            Configuration(str(number)),
            PLAYED,
            tuple(
                Kept(turn, runs=((0, n),) if n else (), texts=(("summary", text),) if text else ())
                for turn, (n, text) in enumerate(turns, start=1)
            ),
        )
        for number, turns in enumerate(made)
    ]
    longest = max(map(len, made))
    expected = [
        turn
        for turn in range(1, longest + 1)
        if any(a[turn - 1 : turn] != b[turn - 1 : turn] for a in made for b in made)
    ]
    assert list(differing(columns)) == expected


def test_columns_part_where_the_buffer_is_full(engine):
    """A full history and a small buffer agree until the buffer drops its first message."""
    buffer = Configuration(
        "buffer", default_setup(BUFFER), MemorySettings(system_prompt="", tools=False)
    )
    whole = Configuration("whole", default_setup(FULL_HISTORY), buffer.settings)
    found = compare(bakery(), [whole, buffer], mode=PROMPTS, engine=engine)
    dropped = [
        kept.turn for kept in found.columns[1].turns if len(kept.messages) < 2 * (kept.turn - 1)
    ]
    assert found.first == dropped[0]
    assert found.columns[0].held == found.columns[0].pieces


@SLOW
@given(played)
def test_planned_prompts_are_those_that_were_sent(tmp_path_factory, script):
    """Under the settings a turn ran with, a planned turn has the recorded prompt, byte for byte."""
    live = Live(tmp_path_factory.mktemp("planned"))
    for turn in script:
        live.say(**turn)
    pair = [
        Configuration("as it is", settings=live.settings),
        Configuration("no recall", settings=live.settings.with_(recall=False)),
    ]
    found = compare(of_session(live), pair, mode=PROMPTS, engine=live.engine)
    column = found.columns[0]
    assert column.how == PLANNED
    assert column.spent.calls == 0
    replay = Replay.read(live.engine.store, live.key)
    for kept in column.turns:
        trace = replay.trace(kept.turn)
        if trace.settings == live.settings.to_json():
            assert kept.digest == digest(trace.assembly.messages)


def test_a_played_sample_has_the_prompts_of_a_chat(engine):
    """Played apart, a sample gives the prompts that it gives in a session of the user's."""
    told = bakery()
    info = engine.create("local", "bakery", settings={})
    chat = engine.chat(info.key, settings=TIGHT, model=ModelChoice())
    sent = [
        digest(chat.play(turn.user, turn.assistant).assembly.messages)
        for turn in load_sample("bakery").turns
    ]
    found = compare(told, [configured("a"), configured("b", top_k=0)], mode=PROMPTS, engine=engine)
    assert [kept.digest for kept in found.columns[0].turns] == sent


def test_the_next_question_is_planned_as_it_would_be_sent(tmp_path):
    """A question planned at the end of a session has the prompt that a chat then sends."""
    live = Live(tmp_path)
    live.settings = live.settings.with_(summarise=False)
    live.open()
    for text in ("I can't eat nuts", "my bakery in Porto opens at 6:30", "the tram is late"):
        live.say(text, "Well. " * 30)
    memories = PastMemories(live.engine.store.records("local"), embed=HashEmbedder().embed)
    replay = Replay.read(live.engine.store, live.key, memories=memories)
    planned = replay.next("what about nuts?", now=live.memory.session.clock()).assembly
    live.say("what about nuts?", "None.")
    sent = Replay.read(live.engine.store, live.key).trace(4).assembly
    assert planned.messages == sent.messages
    with pytest.raises(NotFound):
        Replay(turns=(), messages=(), states={}).next("?", now=live.memory.session.clock())


@SLOW
@given(talks, st.sampled_from([LAYERED, BUFFER, SUMMARY_BUFFER, MEMORY_BLOCKS]))
def test_evidence_is_in_where_the_model_was_sent_it(tmp_path_factory, texts, strategy):
    """Evidence counts as in exactly when the prompt that the model got holds it word for word."""
    folder = tmp_path_factory.mktemp("evidence")
    engine = Engine(
        store=sqlite(folder), vectors=SimpleDatabase(folder / "v"), embedder=HashEmbedder()
    )
    models: list[ScriptedLLM] = []

    def scripted(*_args: object, **_kwargs: object) -> ScriptedLLM:
        models.append(ScriptedLLM(*["the answer (0)"] * 4))
        return models[-1]

    talk = spoken(texts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(side_by_side, "build_llm", scripted)
        pair = [configured("one", strategy), configured("none", STATELESS)]
        found = compare(talk, pair, mode=ANSWERS, engine=engine)
    for column, model in zip(found.columns, models, strict=True):
        assert len(column.asked) == len(model.prompts) == len(talk.questions)
        for question, asked, prompt in zip(
            talk.questions, column.asked, model.prompts, strict=True
        ):
            assert prompt.messages[-1].text == question.question
            sent = [" ".join(m.text.split()) for m in prompt.messages[:-1]]
            wanted = " ".join(talk.messages[question.evidence[0]].text.split())
            assert (asked.where[0] in IN) == any(wanted in text for text in sent)
            assert asked.told == any(question.answer in text for text in sent)
            assert asked.right == (question.answer == "(0)")


def test_every_strategy_can_be_compared(engine):
    """All of the catalogue play a conversation; those that ask a model say how often they did."""
    talk = spoken(["my bakery in Porto opens at 6:30 and the tram is late again " * 4] * 8)
    seen: dict[str, Column] = {}
    for at in range(0, len(STRATEGIES), 6):
        some = [configured(s.id, s.id) for s in STRATEGIES[at : at + 6]]
        for column in compare(talk, some, mode=PROMPTS, engine=engine).columns:
            seen[column.name] = column
    assert set(seen) == {s.id for s in STRATEGIES}
    for strategy in STRATEGIES:
        column = seen[strategy.id]
        assert not column.error
        assert len(column.turns) == 8
        assert len(column.asked) == 4
        assert not any(kept.error for kept in column.turns)
        assert column.turns[-1].total
        assert column.spent.calls == column.spent.own
        told = any("asked a model" in notice for notice in column.notices)
        assert told == bool(column.spent.own)
    assert seen[SUMMARY_BUFFER].spent.own == 0  # all of it fits in this one's limit
    assert seen["summary_memory"].spent.own


@pytest.mark.parametrize("strategy", [LAYERED, STATELESS, FULL_HISTORY, BUFFER, SUMMARY_BUFFER])
def test_a_prompt_is_what_the_agent_then_sends(engine, strategy):
    """Without a model the prompt and its tokens are those with which a real turn begins."""
    talk = spoken(["the tram is late again"])
    pair = [configured("one", strategy, tools=True), configured("two", STATELESS)]
    prompts, turns = (
        compare(talk, pair, mode=mode, engine=engine).columns[0].turns[0]
        for mode in (PROMPTS, TURNS)
    )
    assert (prompts.digest, prompts.tokens) == (turns.digest, turns.tokens)


def test_every_turn_anew_leaves_the_session_as_it_was(tmp_path):
    """Real turns run apart: the session, the user's sessions and memories stay as they were."""
    live = Live(tmp_path)
    for text in ("I can't eat nuts", "my bakery in Porto opens at 6:30"):
        live.say(text, "Noted.")
    store = live.engine.store
    before = (store.turns(live.key), store.records("local"), store.sessions("local"))
    questions = (RecallQuestion("What can't I eat?", "nuts", (0,)),)
    pair = [configured("ours"), configured("stateless", STATELESS)]
    found = compare(of_session(live, questions), pair, mode=TURNS, engine=live.engine)
    assert (store.turns(live.key), store.records("local"), store.sessions("local")) == before
    assert store.users() == ["local"]
    assert [column.how for column in found.columns] == [PLAYED, PLAYED]
    assert all(kept.answer for column in found.columns for kept in column.turns)
    ours, stateless = (column.asked[0] for column in found.columns)
    assert (ours.held, ours.right) == (1, True)
    assert (stateless.held, stateless.right) == (0, False)


@pytest.mark.parametrize("mode", [PROMPTS, TURNS])
def test_stopping_leaves_nothing_behind(engine, mode, tmp_path, monkeypatch):
    """Whenever it is stopped, no file, session, memory or user is left."""

    class StopNow(Exception):
        """The wish."""

    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))  # others on this machine use theirs
    for last in (0, 2, 7):
        steps = iter(range(last))

        def look(_step: object, steps: object = steps) -> None:
            if next(steps, None) is None:
                raise StopNow

        pair = [configured("one"), configured("two", BUFFER)]
        with pytest.raises(StopNow):
            compare(spoken(["hello", "and again"]), pair, mode=mode, engine=engine, look=look)
        assert list(folder.iterdir()) == []
        assert engine.store.users() == []


def test_a_column_that_cannot_run_says_so_and_the_others_go_on(engine):
    """A model without a key ends its own column, with the reason; a bad pair is refused."""
    talk = spoken(["hello"])
    without = Configuration("no key", model=ModelChoice(OPENAI, "gpt-4o-mini"))
    found = compare(talk, [without, configured("ours")], mode=TURNS, engine=engine)
    assert "key" in found.columns[0].error.lower()
    assert found.columns[1].turns[0].answer
    assert found.first == 1
    for bad in ([configured("a")], [configured("a"), configured(" a ")], [configured("")] * 2):
        with pytest.raises(InvalidInput):
            compare(talk, bad, mode=PROMPTS, engine=engine)


@pytest.mark.parametrize("mode", [PROMPTS, TURNS])
def test_odd_conversations_are_played_and_told(engine, mode):
    """Greetings, blank messages, tools, half an emoji and no answer: played, the rest is told."""
    said = [
        ("assistant", "Hello!"),
        ("user", ""),
        ("assistant", "Nice picture."),
        ("user", "real \ud83d question {x}"),
        ("tool", "sunny"),
        ("user", "last"),
    ]
    messages = tuple(Message.of(role, text) for role, text in said)
    questions = (RecallQuestion("what {x} \ud83d?", "real", (3,)), RecallQuestion("else?", "", ()))
    odd = Conversation("odd", messages, turns_of(messages), questions)
    some = [configured(s, s) for s in (LAYERED, BUFFER, MEMORY_BLOCKS, "vector_memory", "hybrid")]
    found = compare(odd, some, mode=mode, engine=engine)
    assert found.notices[0].startswith("2 messages")
    for column in found.columns:
        assert not column.error
        assert [kept.turn for kept in column.turns] == [1, 2, 3]
        assert not any(kept.error for kept in column.turns)
        assert not any(asked.error for asked in column.asked)
    assert from_json(json.loads(json.dumps(to_json(found)))) == found
    silent = Conversation("silent", messages[:1], (1,))
    assert compare(silent, some, mode=mode, engine=engine).first is None


def test_a_session_of_another_user_is_not_there(tmp_path):
    """A comparison reads sessions by their user, and nobody else's."""
    live = Live(tmp_path)
    live.say("I can't eat nuts", "Noted.")
    said = of_session(live)
    stolen = Conversation(
        said.title, said.messages, said.turns, key=SessionKey("thief", live.key.session)
    )
    found = compare(stolen, [configured("a"), configured("b")], mode=PROMPTS, engine=live.engine)
    assert all(column.error and not column.turns for column in found.columns)
