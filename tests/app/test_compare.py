"""The Compare page in process: conversation, configurations, run, stop, look, keep, reopen."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from memory_core.lab.comparison import ANSWERS, PLANNED, PLAYED, TURNS
from memory_core.lab.comparison_folder import ComparisonFolder, comparisons_of
from memory_core.samples import load_sample
from memory_core.strategies import SUMMARY_BUFFER
from tests.app.conftest import APP, PATIENCE, checked, page_of
from tests.app.played import open_page, play
from ui.compare.place import FILE, SAMPLE
from ui.compare.report import to_html

PAGE = "3_Compare.py"


def shown(at):
    """Return all texts of the page."""
    return "\n".join(e.value for e in (*at.markdown, *at.caption, *at.text, *at.code))


def chatted(engine, turns=14):
    """Play the bakery into a session that knows which sample it is."""
    info = play(engine, turns=turns)
    engine.store.update(replace(info, settings={**info.settings, "sample": "bakery"}))
    return info


def press(at, key):
    """Press a button by its key."""
    at.button(key=key).click()
    return checked(at.run())


def card(at, number, name):
    """Return the key of a widget on a card."""
    place = page_of(at).compare
    return f"compare-{place.version}-{place.drafts[number].uid}-{name}"


def compared(at):
    """Run the comparison to its end."""
    press(at, "compare-run")
    place = page_of(at).compare
    if place.running is not None:
        place.running.join(PATIENCE)
        checked(at.run())
    assert place.running is None
    assert not at.error, [e.value for e in at.error]
    return at


def test_an_empty_page_teaches_and_offers_a_sample(engine):
    """Without a chat the page says what it will show, and one button gets there."""
    at = open_page(PAGE)
    assert "two to six memories side by side" in shown(at)
    assert at.button(key="compare-run").disabled
    press(at, "compare-try")
    assert page_of(at).compare.conversation.title == load_sample("bakery").title
    assert not at.button(key="compare-run").disabled


def test_three_ways_of_a_session(engine):
    """A session is planned under its own and other settings; a class of LlamaIndex's is played."""
    info = chatted(engine)
    at = compared(open_page(PAGE))
    result = page_of(at).compare.result
    assert [column.how for column in result.columns] == [PLANNED, PLANNED, PLAYED]
    assert "14 of the 14 turns" in shown(at)
    assert f"First differs at turn {result.first:,}" in shown(at)
    assert page_of(at).compare.turn == result.first
    assert len(result.questions) == len(result.columns[0].asked) > 0
    assert engine.store.session(info.key).turns == 14
    last = result.turns[-1]
    at.select_slider(key="compare-turn").set_value(last)
    checked(at.run())
    assert f"Turn {last} · you:" in shown(at)
    press(at, "compare-first")
    assert page_of(at).compare.turn == result.first


def test_cards_are_copied_changed_named_and_removed(engine):
    """Two to six cards; a name that says the settings follows them, one's own name stays."""
    play(engine, turns=3)
    at = open_page(PAGE)
    place = page_of(at).compare
    at.number_input(key=card(at, 0, "token_limit")).set_value(700)
    checked(at.run())
    assert place.drafts[0].configuration.settings.token_limit == 700
    assert "700 tokens" in place.drafts[0].configuration.name
    at.text_input(key=card(at, 0, "name")).set_value("mine")
    checked(at.run())
    at.number_input(key=card(at, 0, "top_k")).set_value(1)
    checked(at.run())
    assert place.drafts[0].configuration.name == "mine"
    for _ in range(3):
        press(at, f"compare-copy-{place.drafts[0].uid}")
    assert len(place.drafts) == 6
    assert at.button(key="compare-add").disabled
    assert len({draft.configuration.name for draft in place.drafts}) == 6
    for _ in range(4):
        press(at, f"compare-remove-{place.drafts[-1].uid}")
    assert at.button(key=f"compare-remove-{place.drafts[0].uid}").disabled
    at.text_input(key=card(at, 1, "name")).set_value("mine")
    checked(at.run())
    press(at, "compare-run")
    assert "named" in at.error[0].value


def test_a_summary_class_says_what_it_asks_of_a_model(engine):
    """A native class with calls of its own says so before, and how often it did after."""
    at = press(open_page(PAGE), "compare-try")
    at.selectbox(key=card(at, 1, "strategy")).set_value(SUMMARY_BUFFER)
    checked(at.run())
    assert "own model calls go to the offline reader" in shown(at)
    at.number_input(key=card(at, 1, f"{SUMMARY_BUFFER}-token_limit")).set_value(600)
    checked(at.run())
    at = compared(at)
    column = page_of(at).compare.result.columns[1]
    assert column.configuration.setup.knobs.token_limit == 600
    assert column.spent.own
    assert "asked a model" in shown(at)


@pytest.mark.parametrize("mode", [ANSWERS, TURNS])
def test_answers_are_the_models_own(engine, mode):
    """With answers wanted the model answers the questions, or every turn, from each memory."""
    chatted(engine, turns=4)
    before = [info.key for info in engine.sessions("local")]
    at = open_page(PAGE)
    at.segmented_control(key="compare-mode").set_value(mode)
    at = compared(checked(at.run()))
    result = page_of(at).compare.result
    assert all(asked.answer for column in result.columns for asked in column.asked)
    assert all(bool(k.answer) == (mode == TURNS) for c in result.columns for k in c.turns)
    assert all(column.spent.calls for column in result.columns)
    assert [info.key for info in engine.sessions("local")] == before


def test_it_can_be_stopped(engine):
    """Stop is heard; nothing is shown, and the page can be used again."""
    at = press(open_page(PAGE), "compare-try")
    at.selectbox(key="compare-sample").set_value("old-house-year")
    checked(at.run())
    press(at, "compare-run")
    running = page_of(at).compare.running
    running.stop()
    running.join(PATIENCE)
    checked(at.run())
    assert page_of(at).compare.result is None
    assert "Nothing of it was kept" in at.success[0].value
    assert not at.button(key="compare-run").disabled


def test_save_reopen_by_link_delete(engine):
    """Saved under a name, opened by its address, not by another user; deleted after a tick."""
    at = compared(press(open_page(PAGE), "compare-try"))
    at.text_input(key="compare-name").set_value("three *ways*")
    press(at, "compare-save")
    made = page_of(at).compare.result
    folder = ComparisonFolder(comparisons_of(engine.config.folder, "local"))
    (kept,) = folder.list()
    assert kept.name == "three *ways*"
    assert at.query_params["comparison"] in (kept.id, [kept.id])
    again = open_page(PAGE, comparison=kept.id)
    assert page_of(again).compare.result == made
    assert "three" in shown(again)
    other = ComparisonFolder(comparisons_of(engine.config.folder, "somebody"))
    assert other.list() == []
    assert again.button(key="compare-delete").disabled
    again.checkbox(key=f"compare-sure-{kept.id}").check()
    checked(again.run())
    press(again, "compare-delete")
    assert folder.list() == []
    lost = open_page(PAGE, comparison=kept.id)
    assert "no such comparison" in lost.error[0].value


def test_a_link_names_the_session(engine):
    """The address of the page may name the session; one that is not there is told."""
    first = play(engine, turns=2, title="first")
    play(engine, turns=3, title="second")
    at = open_page(PAGE, session=first.key.session)
    assert page_of(at).compare.conversation.title == "first"
    lost = open_page(PAGE, session="nobody's")
    assert "not among yours" in lost.error[0].value


def test_the_way_here_from_a_session(engine):
    """The menus of a session, in the list and in the Playground, lead here with it chosen."""
    first = play(engine, turns=2, title="first")
    play(engine, turns=3, title="second")
    at = open_page("4_Sessions.py")
    at.menu_button(key=f"do-{first.key.session}").set_value("Compare memories on it")
    checked(at.run())
    assert at.title[0].value == "Compare"
    assert page_of(at).compare.conversation.title == "first"
    at = AppTest.from_file(APP, default_timeout=PATIENCE)
    checked(at.run())
    at.session_state["session-menu"] = "Compare memories on it"
    mine = page_of(at)
    mine.dialog = "Compare memories on it"
    checked(at.run())
    assert at.title[0].value == "Compare"
    assert page_of(at).compare.conversation.title == "second"


def test_hostile_text_is_text(engine):
    """Names and messages full of markup are shown and exported as they are."""
    bad = "<script>alert(1)</script> **x** $y$"
    chat = [
        {"role": role, "content": f"{bad} {n}"} for n in range(4) for role in ("user", "assistant")
    ]
    at = open_page(PAGE)
    at.segmented_control(key="compare-source").set_value(FILE)
    checked(at.run())
    at.file_uploader(key="compare-file").set_value(
        ("chat.json", json.dumps(chat).encode(), "application/json")
    )
    checked(at.run())
    at.text_input(key=card(at, 0, "name")).set_value(bad)
    at = compared(checked(at.run()))
    page = to_html(page_of(at).compare.result, name=bad)
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert not re.search(r"(src|href)\s*=|@import|url\(", page)


def test_questions_are_proposed_and_written(engine):
    """Rules propose questions and people write their own; unticked ones are not asked."""
    play(engine, turns=2)
    at = open_page(PAGE)
    place = page_of(at).compare
    count = len(place.conversation.questions)
    at.text_input(key="compare-question").set_value("What is baked?")
    at.text_input(key="compare-answer").set_value("bread")
    at.multiselect(key="compare-evidence").set_value([0])
    press(at, "compare-ask")
    assert len(place.conversation.questions) == count + 1
    press(at, "compare-propose")
    at.checkbox(key=f"compare-use-{place.version}-{count}").uncheck()
    checked(at.run())
    asked = [q for q in place.conversation.questions if q.accepted]
    at = compared(at)
    assert page_of(at).compare.result.questions == tuple(asked)
    assert "What is baked?" not in [q.question for q in asked]


def test_the_sample_stays_chosen(engine):
    """What was chosen is there again after another page was looked at."""
    at = press(open_page(PAGE), "compare-try")
    at.selectbox(key="compare-sample").set_value("support-case")
    checked(at.run())
    at.switch_page("pages/5_Storage.py")
    checked(at.run())
    at.switch_page(f"pages/{PAGE}")
    checked(at.run())
    assert page_of(at).compare.source == SAMPLE
    assert at.selectbox(key="compare-sample").value == "support-case"
