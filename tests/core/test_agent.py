"""One chat turn: streamed, stored whole, replaced on request, never lost when something fails."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from memory_core.agent import Delta, Failed, Finished, ToolFinished, ToolStarted
from memory_core.chat import Chat
from memory_core.engine import Engine
from memory_core.errors import ModelKeyRefused, ModelTimeout, NotFound, PromptTooLarge, StaleVersion
from memory_core.memory import LayeredMemory
from memory_core.models.catalogue import ModelChoice
from memory_core.prompt import Source
from memory_core.session import Session
from memory_core.settings import MemorySettings
from memory_core.state import set_preference
from memory_core.stores.vectors.chroma import open_chroma
from memory_core.testing import Call, HashEmbedder, ScriptedLLM
from memory_core.tokens import TokenCounter
from tests.core.made_sessions import sqlite

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def engine(tmp_path: Path):
    """Give an engine over SQLite, vectors in memory."""
    made = Engine(store=sqlite(tmp_path), vectors=open_chroma(), embedder=HashEmbedder())
    yield made
    made.close()


def scripted(engine: Engine, *script: object, user: str = "local", **knobs: object) -> Chat:
    """Open a chat whose model replies from a script."""
    settings = MemorySettings(**knobs)
    info = engine.create(user, "test", settings=settings.to_json())
    session = Session.open(
        store=engine.store,
        key=info.key,
        counter=TokenCounter(),
        settings=settings,
        longterm=engine.longterm,
    )
    return Chat(session, model=ModelChoice(), llm=ScriptedLLM(*script))


def say(chat: Chat, text: str) -> list:
    """Run a turn and return its events."""
    return list(chat.stream(text))


def reopened(engine: Engine, chat: Chat) -> Chat:
    """Open the same session again, as after a restart."""
    return engine.chat(chat.key, settings=chat.settings, model=ModelChoice())


def test_a_turn_streams_and_is_stored(engine: Engine) -> None:
    """The answer arrives in pieces, and the stored turn is what was streamed and sent."""
    chat = scripted(engine, "Good morning to you")
    events = say(chat, "hello")
    assert "".join(e.text for e in events if isinstance(e, Delta)) == "Good morning to you"
    (finished,) = [e for e in events if isinstance(e, Finished)]
    trace = finished.trace
    assert [m.message.text for m in chat.messages] == ["hello", "Good morning to you"]
    assert trace.appended == tuple(m.id for m in chat.messages)
    assert trace.assembly.messages[-1].text == "hello"
    again = reopened(engine, chat)
    assert again.trace(1) == trace
    assert again.messages == chat.messages


def test_tool_steps_are_told_and_kept(engine: Engine) -> None:
    """A tool call is announced, answered, stored as a whole group and part of the next prompt."""
    chat = scripted(engine, Call("set_preference", {"name": "tone", "value": "short"}), "Done.")
    events = say(chat, "be short")
    assert [type(e) for e in events if not isinstance(e, Delta)] == [
        ToolStarted,
        ToolFinished,
        Finished,
    ]
    trace = events[-1].trace
    assert trace.steps[0].name == "set_preference"
    assert json.loads(trace.steps[0].arguments) == {"name": "tone", "value": "short"}
    assert [m.message.role for m in chat.messages] == ["user", "assistant", "tool", "assistant"]
    assert trace.changes[0].path == "preferences.tone"
    assert trace.state_version == 1
    steps = [p for p in trace.calls[1].assembly.parts if p.source is Source.STEPS]
    assert len(steps) == 2
    assert reopened(engine, chat).state.preferences == {"tone": "short"}


def test_remember_recall_forget(engine: Engine) -> None:
    """What the model remembers is a key fact and a memory; what it forgets is neither."""
    chat = scripted(
        engine,
        Call("remember", {"text": "Dana cannot eat nuts"}),
        "Noted.",
        Call("recall", {"query": "nuts"}),
        "You cannot eat nuts.",
        Call("forget", {"text": "nuts"}),
        "Forgotten.",
    )
    say(chat, "remember that I cannot eat nuts")
    assert [f.text for f in chat.state.key_facts] == ["Dana cannot eat nuts"]
    assert "cannot eat nuts" in say(chat, "what about the food?")[-1].trace.steps[0].result
    last = say(chat, "forget it")[-1].trace
    assert chat.state.key_facts == ()
    assert {w.action for w in last.memories} >= {"forgotten"}
    texts = [r.text for r in engine.longterm.records("local")]
    assert not [t for t in texts if t == "Dana cannot eat nuts"]


def test_a_failed_turn_keeps_the_message_and_can_be_retried(engine: Engine) -> None:
    """After an error the user's message is stored with it; a retry replaces the failed turn."""
    chat = scripted(engine, ModelTimeout("no answer in 60 s"), "Here I am.")
    failed = say(chat, "are you there?")[-1]
    assert isinstance(failed, Failed)
    assert "no answer" in failed.trace.error
    assert [m.message.text for m in reopened(engine, chat).messages] == ["are you there?"]
    done = list(chat.retry())[-1]
    assert done.trace.supersedes == failed.trace.number
    for view in (chat, reopened(engine, chat)):
        assert [m.message.text for m in view.messages] == ["are you there?", "Here I am."]


def test_regenerate_and_edit_replace_the_last_turn(engine: Engine) -> None:
    """The replaced turn's messages, state and memories are gone; its trace can still be read."""
    chat = scripted(
        engine, Call("set_preference", {"name": "a", "value": "1"}), "One.", "Two.", "Three."
    )
    say(chat, "first")
    assert chat.state.preferences == {"a": "1"}
    list(chat.regenerate())
    assert chat.state.preferences == {}
    list(chat.edit_last("second"))
    for view in (chat, reopened(engine, chat)):
        assert [m.message.text for m in view.messages] == ["second", "Three."]
        assert view.state.preferences == {}
        assert view.trace(1).query == "first"
    live = [r.text for r in engine.longterm.records("local") if r.status == "active"]
    assert live == ["user: second\nassistant: Three."]


def test_a_refused_key_names_no_key(engine: Engine) -> None:
    """An error of the model leaves as one clear message, in events and trace alike."""
    chat = scripted(engine, ModelKeyRefused("The provider refused the key."))
    failed = say(chat, "hello")[-1]
    assert isinstance(failed.error, ModelKeyRefused)
    assert failed.trace.calls[-1].error == "The provider refused the key."


def test_no_room_is_told_and_nothing_is_sent(engine: Engine) -> None:
    """A limit below the fixed part makes a failed turn, with no model call."""
    chat = scripted(engine, "never said", token_limit=5, tools=False)
    failed = say(chat, "hello")[-1]
    assert isinstance(failed.error, PromptTooLarge)
    assert failed.trace.calls == ()
    chat.configure(chat.settings.with_(token_limit=500))
    assert isinstance(list(chat.retry())[-1], Finished)


def test_a_stopped_turn_keeps_the_question(engine: Engine, monkeypatch) -> None:
    """Leaving while the model speaks stores the user's message and says that it was stopped."""
    stream_chat = ScriptedLLM.astream_chat

    async def halting(self, *args, **kwargs):
        async def pieces(inner):
            async for piece in inner:
                yield piece
                await asyncio.Event().wait()  # nothing more is said

        return pieces(await stream_chat(self, *args, **kwargs))

    monkeypatch.setattr(ScriptedLLM, "astream_chat", halting)
    chat = scripted(engine, "a long answer " * 50, tools=False)
    stream = chat.stream("tell me everything")
    assert isinstance(next(stream), Delta)
    stream.cancel()
    (failed,) = stream
    assert failed.trace == chat.trace(1)
    assert chat.trace(1).error == "The answer was stopped."
    assert [m.message.text for m in chat.messages] == ["tell me everything"]


def test_a_stop_when_all_was_said_changes_nothing(engine: Engine, monkeypatch) -> None:
    """A turn that is stored by the time the stop arrives is the turn it would have been."""
    put = LayeredMemory.aput

    async def held_up(self, message):
        await put(self, message)
        if message.role == "assistant":
            await asyncio.Event().wait()  # the turn is stored, the stream not yet over

    monkeypatch.setattr(LayeredMemory, "aput", held_up)
    chat = scripted(engine, "Porto.", tools=False)
    stream = chat.stream("Where?")
    assert isinstance(next(stream), Delta)
    while not chat.turns:
        threading.Event().wait(0.01)
    stream.cancel()
    *_, last = stream
    assert isinstance(last, Finished)
    assert [m.message.text for m in chat.messages] == ["Where?", "Porto."]
    assert chat.trace(1).error == ""


def test_two_tabs_on_one_session(engine: Engine) -> None:
    """A turn based on an old view is refused as stale; opened again it goes through."""
    one = scripted(engine, "One.")
    two = scripted(engine, "Two.")
    two.session.key = one.key
    say(one, "from the first tab")
    failed = say(two, "from the second tab")[-1]
    assert isinstance(failed, Failed)
    assert isinstance(failed.error, StaleVersion)
    fresh = reopened(engine, one)
    assert isinstance(say(fresh, "from the second tab")[-1], Finished)


def test_users_do_not_see_each_other(engine: Engine) -> None:
    """Another user's session cannot be opened, and recall never finds another user's memory."""
    mine = scripted(engine, "Noted.", user="ana")
    say(mine, "my locker code is 4417 blue")
    with pytest.raises(NotFound):
        engine.chat(
            type(mine.key)("bob", mine.key.session),
            settings=MemorySettings(),
            model=ModelChoice(),
        )
    other = scripted(engine, "No idea.", user="bob")
    trace = say(other, "what is my locker code")[-1].trace
    assert "4417" not in str(trace.assembly)


def test_a_state_edit_by_hand_is_checked(engine: Engine) -> None:
    """A hand edit is saved as the next version; one based on an older version is refused."""
    chat = scripted(engine, "One.")
    say(chat, "hello")
    edited = chat.edit_state(set_preference(chat.state, "tone", "dry"), expect=0)
    assert edited.version == 1
    with pytest.raises(StaleVersion):
        chat.edit_state(set_preference(chat.state, "tone", "wet"), expect=0)
    assert reopened(engine, chat).state.preferences == {"tone": "dry"}


def test_c05_parallel_turns_of_many_sessions(case, engine: Engine) -> None:
    """C05: messages written at the same time in several sessions are all kept, once."""
    wanted = case("C05")["input"]["two_sessions_one_store"]
    chats = {name: scripted(engine, *["ok"] * n) for name, n in wanted.items()}

    def chat_on(name: str) -> None:
        for number in range(wanted[name]):
            say(chats[name], f"{name} {number}")

    threads = [threading.Thread(target=chat_on, args=(name,)) for name in wanted]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name, count in wanted.items():
        texts = [m.message.text for m in reopened(engine, chats[name]).messages]
        assert texts[::2] == [f"{name} {n}" for n in range(count)]


def test_c40_a_program_that_chats_ends(tmp_path: Path) -> None:
    """C40: a script that opens an engine, chats and ends does end by itself."""
    script = f"""
from pathlib import Path
from memory_core.config import EngineConfig
from memory_core.engine import open_engine
from memory_core.memory import LayeredMemory
from memory_core.models.catalogue import ModelChoice
from memory_core.settings import MemorySettings

engine = open_engine(EngineConfig(folder=Path({str(tmp_path)!r})))
info = engine.create("local", "x", settings={{}})
chat = engine.chat(info.key, settings=MemorySettings(), model=ModelChoice())
print(list(chat.stream("My name is Dana."))[-1].trace.number)
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=ROOT,
        check=False,
    )
    assert (done.returncode, done.stdout.strip()) == (0, "1"), done.stderr


def test_the_log_tells_what_was_recalled_and_texts_only_when_asked(engine: Engine, caplog) -> None:
    """Ids, scores and gates at info level; words of a conversation at debug level alone."""
    chat = scripted(engine, "Noted.", "Well. " * 30, "Nuts.")
    for level, told in ((logging.INFO, False), (logging.DEBUG, True)):
        caplog.clear()
        with caplog.at_level(level, "memory_core"):
            say(chat, "I can't eat walnuts" if not told else "What about walnuts?")
            say(chat, "What can't I eat?") if not told else None
        lines = [r.getMessage() for r in caplog.records if r.name == "memory_core.memory"]
        assert any(" recalled " in line and "; dropped " in line for line in lines)
        assert any("walnuts" in line for line in lines) is told
