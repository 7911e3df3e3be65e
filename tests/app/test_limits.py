"""Counted, not timed: what goes to the browser per rerun, and what is imported before it."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memory_core.messages import Message, StoredMessage
from memory_core.settings import MemorySettings
from memory_core.stores.protocols import SessionKey, TurnRecord
from memory_core.tokens import TokenCounter
from memory_core.trace import TurnTrace, trace_to_json
from tests.app.conftest import checked, named, page_of, settled
from ui import inspector, sessions

ROOT = Path(__file__).resolve().parents[2]
FRAMES, BYTES = 150, 40_000
AROUND = (5, 1_500)  # what a server adds to each rerun that AppTest does not: status, session
HEAVY = ("llama_index", "chromadb", "pandas", "plotly", "numpy", "sqlalchemy", "openai")
START = datetime(2025, 1, 1, tzinfo=UTC)
PER_TURN = 100  # messages; so many turns are written at once to keep the test short


def fill(engine, key: SessionKey, count: int) -> None:
    """Store so many messages of everyday length, a hundred a turn."""
    counter = TokenCounter()
    for first in range(0, count, PER_TURN):
        number = first // PER_TURN + 1
        messages = []
        for position in range(first, min(count, first + PER_TURN)):
            role = "assistant" if position % 2 else "user"
            text = (
                f"In week {position} we baked {position * 3} loaves of rye and {position} cakes, "
                "and the hotel by the river asked for the same again next week, please."
            )
            message = Message.of(role, text)
            messages.append(
                StoredMessage(
                    id=f"m{position}",
                    position=position,
                    turn=number,
                    created=START + timedelta(minutes=position),
                    message=message,
                    tokens=counter.message(message),
                    counter=counter.id,
                )
            )
        trace = TurnTrace(number, key.session, START, START, "layered", MemorySettings().to_json())
        engine.store.commit(key, TurnRecord(number, trace_to_json(trace), tuple(messages)))


@pytest.fixture(params=[50, 500, 5000])
def long_chat(request, visit, engine):
    """Open a session of so many messages, its last turn a real one."""
    at = visit()
    page = page_of(at)
    sessions.use_settings(page, engine, page.settings.with_(summarise=False))
    fill(engine, page.info.key, request.param - 2)
    sessions.open_session(page, engine, engine.sessions(page.user)[0])
    page.chat.play("How many loaves did we bake in week 3?", "Nine loaves of rye in week 3.")
    sessions.open_session(page, engine, engine.sessions(page.user)[0])
    assert len(page.chat.messages) == request.param
    return checked(at.run())


def test_no_rerun_sends_more_than_a_screenful(long_chat, frames):
    """At 50, 500 and 5,000 messages: at most 150 frames and 40 kB per rerun, whatever is open."""
    at, page = long_chat, page_of(long_chat)

    def sent(what: str) -> None:
        count, size = frames.most()
        assert count + AROUND[0] <= FRAMES, f"{what}: {count} frames"
        assert size + AROUND[1] <= BYTES, f"{what}: {size} bytes"
        frames.clear()

    frames.clear()
    for name in (*inspector.PANELS, inspector.ALL):
        page.panel = name
        checked(at.run())
        sent(name)
    page.panel = inspector.BUFFER
    checked(at.run())
    assert len(at.chat_message) == 50
    frames.clear()
    named(at.slider, "knob-token_limit").set_value(1200)
    checked(at.run())
    sent("a knob")
    checked(at.run())
    frames.clear()
    at.chat_input[0].set_value("And how many in week 7?")
    settled(at.run())
    sent("a message")


def test_long_messages_do_not_break_the_limit(visit, engine, frames):
    """Messages of a page each are drawn in part, so that a rerun stays a screenful."""
    at = visit()
    sessions.use_settings(page_of(at), engine, page_of(at).settings.with_(summarise=False))
    chat = page_of(at).chat
    for number in range(12):
        chat.play(f"Chapter {number}. " + "Once upon a time. " * 200, "And then? " * 300)
    checked(at.run())
    for name in (*inspector.PANELS, inspector.ALL):
        page_of(at).panel = name
        frames.clear()
        checked(at.run())
        count, size = frames.most()
        assert count + AROUND[0] <= FRAMES, f"{name}: {count} frames"
        assert size + AROUND[1] <= BYTES, f"{name}: {size} bytes"


def test_nothing_heavy_is_imported_before_the_first_paint(tmp_path):
    """The frame is drawn from light modules: the libraries come behind it, in a thread.

    What Streamlit loads for an empty page (since 1.67 part of plotly) is not ours.
    """
    program = """
import json, sys
from streamlit.testing.v1 import AppTest
AppTest.from_string("import streamlit as st; st.chat_input()", default_timeout=120).run()
empty = set(sys.modules)
from ui import resources
ours = []
resources.Loader.start = lambda self: ours.extend(set(sys.modules) - empty)
at = AppTest.from_file("app.py", default_timeout=120).run()
assert not at.exception
assert at.chat_input
print(json.dumps(ours))
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env={"PATH": "", "HOME": str(tmp_path), "MEMORY_INSPECTOR_DATA": str(tmp_path / "data")},
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    ours = json.loads(done.stdout.splitlines()[-1])
    assert "memory_core.settings" in ours
    assert [name for name in ours if name.partition(".")[0] in HEAVY] == []
