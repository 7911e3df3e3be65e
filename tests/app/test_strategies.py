"""Every strategy in every agent LlamaIndex allows: chosen in the app, chatted on, restarted.

``ALL_PAIRINGS=1`` runs all of them on the page, not one for each agent.
"""

from __future__ import annotations

import os
from dataclasses import replace
from html import unescape

import pytest

from memory_core.errors import MemoryInspectorError
from memory_core.models.catalogue import ModelChoice
from memory_core.prompt import Source
from memory_core.settings import MemorySettings
from memory_core.strategies import (
    AGENTS,
    LAYERED,
    STRATEGIES,
    agent_table,
    default_setup,
    pairing,
    pairing_table,
    table,
)
from tests.app.conftest import checked, page_of, say, texts
from ui.player import samples

IN_THE_PAGE = [
    ("chat_memory_buffer", "function_agent"),
    ("memory_blocks", "react_agent"),
    ("chat_summary_memory_buffer", "simple_chat_engine"),
    ("vector_memory", "context_chat_engine"),
    ("hybrid", "condense_plus_context_chat_engine"),
]
PAIRS = [(s.id, a.id) for s in STRATEGIES for a in AGENTS if pairing(s.id, a.id).works]
if os.environ.get("ALL_PAIRINGS"):
    IN_THE_PAGE = PAIRS


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


@pytest.mark.parametrize(("strategy", "agent"), IN_THE_PAGE)
def test_each_pairing_fills_the_panels_and_survives_a_restart(visit, engine, strategy, agent):
    """On the page itself: turns of a sample, every panel drawn, opened again and gone on with."""
    info = engine.create("local", "pairing", settings={})
    kept = {
        "memory": MemorySettings().to_json(),
        "model": ModelChoice().to_json(),
        "strategy": default_setup(strategy, agent).to_json(),
    }
    engine.store.update(replace(info, settings=kept, strategy=strategy))
    said = [turn.user for turn in next(x for x in samples() if x.id == "bakery").turns[:3]]
    at = visit()
    assert page_of(at).chat.setup == default_setup(strategy, agent)
    for text in said:
        at = say(at, text)
    at.segmented_control(key="panel").set_value("All")
    checked(at.run())
    assert not at.error
    page = page_of(at)
    trace = page.chat.trace(3)
    assert any(f"{trace.assembly.tokens:,} " in caption.value for caption in at.caption)
    drawn = " ".join(e.value for e in (*at.markdown, *at.caption, *at.text, *at.code))
    if strategy != LAYERED:
        times = "once" if trace.asked == 1 else f"{trace.asked} times"
        assert f"The agent asked its memory for the prompt {times}" in drawn
    assert ("What went into which block" in drawn) == (strategy == "memory_blocks")
    before = [message.message for message in page.chat.messages]
    again = visit()
    assert page_of(again).info.key == info.key
    assert [message.message for message in page_of(again).chat.messages] == before
    assert said[-1] in texts(again)
    again = say(again, "And once more, please.")
    last = page_of(again).chat.trace(4)
    assert last.strategy == strategy
    assert not last.error


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


def test_all_strategies_stand_side_by_side_in_the_app(visit):
    """The table of the document is drawn, opened from the form, and old names lead somewhere."""
    at = say(visit(), "Hello")
    page_of(at).dialog = "model"
    checked(at.run())
    at.button(key="strategy-table").click()
    checked(at.run())
    drawn = unescape("".join(element.proto.body for element in at.get("html")))
    for shown in (table(), agent_table(), pairing_table()):
        assert all(cell in drawn for row in (shown.head, *shown.rows) for cell in row)
    at.text_input(key="strategies-name").set_value("ConversationBufferMemory")
    checked(at.run())
    assert any("**ChatMemoryBuffer** today" in element.value for element in at.markdown)
    at.button(key="strategies-back").click()
    checked(at.run())
    assert at.selectbox(key="strategy-name")


def test_blocks_are_chosen_ordered_and_edited_one_by_one(visit):
    """Any blocks in any order, each with name, priority and content; a wrong name is refused."""
    at = say(visit(), "Hello")
    page_of(at).dialog = "model"
    checked(at.run())
    at.selectbox(key="strategy-name").set_value("memory_blocks")
    checked(at.run())
    for press in ("block-2-remove", "block-1-up", "block-add-static"):
        at.button(key=press).click()
        checked(at.run())
    at.text_input(key="block-2-name").set_value("two words")
    at.text_area(key="block-2-content").set_value("Opens at 6:30.")
    at.number_input(key="block-2-priority").set_value(4)
    at.button(key="strategy-use").click()
    checked(at.run())
    assert any("cannot be named" in error.value for error in at.error)
    at.text_input(key="block-2-name").set_value("hours")
    at.button(key="strategy-use").click()
    checked(at.run())
    blocks = page_of(at).chat.setup.knobs.blocks
    assert [(b.kind, b.name) for b in blocks] == [
        ("facts", "facts"),
        ("static", "about_user"),
        ("static", "hours"),
    ]
    assert (blocks[2].content, blocks[2].priority) == ("Opens at 6:30.", 4)
    at = say(at, "When does it open?")
    sent = page_of(at).chat.trace(2).assembly.messages
    assert any("<hours>" in message.text for message in sent)


def test_knobs_in_the_sidebar_are_those_of_the_strategy(visit):
    """A change is kept with the session and the next prompt is drawn with it, no model asked."""
    at = visit()
    chat = page_of(at).chat
    chat.run_as(default_setup("chat_memory_buffer"))
    for text in ("My locker code is 4417 blue.", "My ferry leaves at noon from pier 4."):
        at = say(at, text)
    assert not any(slider.label == "top_k" for slider in at.slider)
    limit = next(n for n in at.number_input if n.label == "token limit")
    limit.set_value(12)
    checked(at.run())
    page = page_of(at)
    assert page.chat.setup.knobs.token_limit == 12
    assert "4417" not in "".join(m.text for m in page.scene[1].assembly.messages)
    assert page.chat.turns == 2
    assert page.scene[1].what_if.newly_out
    assert any("What your change does" in code.value for code in at.code)
    again = visit(session=page.info.key.session)
    assert page_of(again).chat.setup == page.chat.setup


def test_the_default_is_ours(visit):
    """A new session remembers by LayeredMemory."""
    assert page_of(visit()).chat.setup.strategy == LAYERED
