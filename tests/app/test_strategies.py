"""Every strategy in every agent LlamaIndex allows: chosen in the app, chatted on, restarted."""

from __future__ import annotations

import pytest

from memory_core.errors import MemoryInspectorError
from memory_core.models.catalogue import ModelChoice
from memory_core.prompt import Source
from memory_core.settings import MemorySettings
from memory_core.strategies import AGENTS, LAYERED, STRATEGIES, default_setup, pairing
from tests.app.conftest import checked, page_of, say

PAIRS = [(s.id, a.id) for s in STRATEGIES for a in AGENTS if pairing(s.id, a.id).works]


@pytest.mark.parametrize(("strategy", "agent"), PAIRS)
def test_each_pairing_chats_and_survives_a_restart(engine, strategy, agent):
    """Three turns are answered and explained; opened again, the session goes on where it was."""
    info = engine.create("local", "pairing", settings={})

    def opened():
        chat = engine.chat(info.key, settings=MemorySettings(), model=ModelChoice())
        chat.run_as(default_setup(strategy, agent))
        return chat

    chat = opened()
    for text in ("My locker code is 4417 blue.", "Hello there", "What is my locker code?"):
        last = list(chat.stream(text))[-1]
        assert not isinstance(getattr(last, "error", None), MemoryInspectorError), last
        assembly = last.trace.assembly
        assert sum(part.tokens for part in assembly.parts) == assembly.tokens
        assert Source.UNKNOWN not in assembly.tokens_by_source()
    again = opened()
    assert [m.message for m in again.messages] == [m.message for m in chat.messages]
    last = list(again.stream("And once more: what is my locker code?"))[-1]
    assert last.trace.number == 4
    assert last.trace.strategy == strategy
    if strategy != "stateless":
        assert "4417" in last.trace.replies[-1].reply.text


def test_a_strategy_is_chosen_in_the_app_and_kept(visit):
    """The form sets strategy and knobs; the choice is kept with the session."""
    at = say(visit(), "My locker code is 4417 blue.")
    page_of(at).dialog = "model"
    checked(at.run())
    at.selectbox(key="strategy-name").set_value("chat_memory_buffer")
    checked(at.run())
    at.number_input(key="strategy-chat_memory_buffer-token_limit").set_value(777)
    at.button(key="strategy-use").click()
    checked(at.run())
    page = page_of(at)
    assert page.chat.setup.strategy == "chat_memory_buffer"
    assert page.chat.setup.knobs.token_limit == 777
    say(at, "What is my locker code?")
    again = visit(session=page.info.key.session)
    assert page_of(again).chat.setup == page.chat.setup
    assert page_of(again).info.strategy == "chat_memory_buffer"


def test_the_default_is_ours(visit):
    """A new session remembers by LayeredMemory."""
    assert page_of(visit()).chat.setup.strategy == LAYERED
