"""The page Why? in process: matrix, life stories, why-not with one click, counterfactuals."""

from __future__ import annotations

import json

import pytest

from memory_core.fate import FACT, IN_PROMPT, MEMORY, MESSAGE, STATE, SUMMARY, Fate
from memory_core.models.catalogue import ModelChoice
from memory_core.whynot import place_of
from tests.app.conftest import checked, page_of
from tests.app.played import TIGHT, open_page, play
from ui.view_models.why import matrix_view

PAGE = "2_Why.py"


@pytest.fixture
def session(engine):
    """Return a session of fourteen turns whose window overflowed."""
    return play(engine)


def opened(**query):
    """Open the page and run until the ledger is folded."""
    at = open_page(PAGE, **query)
    for _ in range(5):
        if page_of(at).chronicle and page_of(at).chronicle.complete:
            break
        checked(at.run())
    return checked(at.run())


def shown(at):
    """Return all texts of the page."""
    return "\n".join(e.value for e in (*at.markdown, *at.caption, *at.code, *at.text))


def test_without_a_turn_the_page_teaches(engine):
    """An empty page says what it will show."""
    assert "has a life" in shown(open_page(PAGE))


def test_story_of_the_first_message_is_told(session):
    """The oldest message is looked at first; its text stands there and so does its life."""
    at = opened()
    asking = page_of(at).asking
    assert (asking.kind, asking.item) == (MESSAGE, asking.chronicle.said()[0].id)
    assert "Something of it stood in the prompts of turn" in shown(at)
    assert asking.chronicle.said()[0].message.text in shown(at)


def test_one_click_lets_it_in_the_next_prompt(session):
    """The first change offered for a question is used in the Playground, and it works."""
    at = opened()
    asking = page_of(at).asking
    at.text_input(key="why-question").set_value("When does the tram leave?")
    checked(at.run())
    found = asking.why(14, settings=page_of(at).settings, embedder=None)
    assert found.changes, found.sentence
    change = found.changes[0]
    at.button(key=f"why-apply-{change.setting}").click()
    checked(at.run())
    page = page_of(at)
    assert getattr(page.settings, change.setting) == change.value
    assert page.probe == "When does the tram leave?"
    assert place_of(found.item, page.chat.preview(page.settings, page.probe))


def test_what_is_enough_for_a_question_is_enough_when_it_is_asked(session, engine):
    """The question itself takes room: asked under the change the message is in, one less is not."""
    page = page_of(opened())
    asking, settings = page.asking, page.settings
    asking.question = "How many cakes did Mrs. Okonkwo order for the party on Sunday morning?"
    asking.choose(MESSAGE, page.chat.messages[18].id)
    found = asking.why(14, settings=settings, embedder=None)
    change = next(c for c in found.changes if c.setting == "token_limit")
    less = settings.with_(token_limit=change.less)
    plan, _ = page.chat.memory.if_asked(asking.question)
    assert not place_of(found.item, plan(less))
    chat = engine.chat(session.key, settings=change.apply(settings), model=ModelChoice())
    list(chat.stream(asking.question))
    assert place_of(found.item, chat.trace(chat.turns).assembly)


def test_where_the_answer_and_the_matrix_differ_it_is_said_why(session, engine):
    """Every cell that is in while the answer is not, or the other way round, is explained."""
    asking = page_of(opened()).asking
    explained = set()
    for kind in (MESSAGE, MEMORY):
        for item in asking.chronicle.ledger.tracks[kind].ids:
            asking.choose(kind, item)
            found = asking.why(10, settings=TIGHT, embedder=engine.embedder)
            fate = asking.chronicle.ledger.fate(kind, item, 10)
            told = asking.apart(10, found)
            assert bool(told) == (bool(found.place) != (fate in IN_PROMPT)), (kind, item, fate)
            explained |= {kind} if told else set()
    assert explained == {MESSAGE, MEMORY}


def test_a_link_asks_about_a_message_a_question_and_other_settings(session):
    """Who follows it sees that message, in the prompt of that question, under those settings."""
    at = opened()
    item = page_of(at).asking.chronicle.said()[2].id
    knobs = json.dumps({"token_limit": 300, "top_k": 0})
    question = "When does the tram leave?"
    at = opened(
        session=session.key.session, turn="14", message=item, question=question, knobs=knobs
    )
    page = page_of(at)
    asking = page.asking
    assert (asking.kind, asking.item, asking.question) == (MESSAGE, item, question)
    then = page.settings.with_(token_limit=300, top_k=0)
    found = asking.why(14, settings=then, embedder=None)
    assert bool(found.place) == bool(place_of(found.item, page.chat.preview(then, question)))
    assert found.sentence in shown(at)
    assert "under the settings of the link: token_limit 300, top_k 0" in shown(at)
    assert asking.asked == page.place.asked
    at.button(key="why-own").click()
    checked(at.run())
    assert "under the settings of the link" not in shown(at)


@pytest.mark.parametrize(
    "wrong",
    [
        {"message": "nobody", "question": "Who?"},
        {"question": "x" * 501},
        {"question": "Who?", "knobs": "{"},
        {"question": "Who?", "knobs": "[" * 3000},
        {"question": "Who?", "knobs": '{"nonsense": 1}'},
        {"question": "Who?", "knobs": '{"top_k": "many"}'},
    ],
)
def test_a_link_that_asks_nonsense_is_refused_in_words(session, wrong):
    """One clear message, and the page as it is without the link."""
    at = open_page(PAGE, session=session.key.session, turn="14", **wrong)
    errors = [e.value for e in at.error]
    for _ in range(5):
        if page_of(at).chronicle and page_of(at).chronicle.complete:
            break
        checked(at.run())
        errors += [e.value for e in at.error]
    assert len(errors) == 1, errors


def test_gates_of_a_past_turn_are_told_with_numbers(session):
    """For a turn of the past the verdict equals what its stored prompt holds."""
    at = opened(session=session.key.session, turn="13")
    asking = page_of(at).asking
    fate = asking.chronicle.ledger.fate(MESSAGE, asking.item, 13)
    verdict = next(m.value for m in at.markdown if "the prompt of turn 13" in m.value)
    assert ("✓ in" in verdict) == (fate in (Fate.PROMPT, Fate.RETRIEVED))
    assert "tokens" in shown(at)


def test_every_kind_can_be_looked_at(session, engine):
    """Facts, summaries, memories and state keys have rows, stories and a verdict of their own."""
    at = opened()
    for kind in (FACT, SUMMARY, MEMORY, STATE):
        at.segmented_control(key="why-kind").set_value(kind)
        checked(at.run())
        assert not at.error
        ledger = page_of(at).chronicle.ledger
        if len(ledger.tracks[kind]):
            assert "Its life" in shown(at)
        else:
            assert at.info


def test_counterfactual_shows_both_prompts_and_both_answers(session):
    """Leaving a message out of a turn shows the turn before and after, side by side."""
    at = opened(session=session.key.session, turn="3")
    next(b for b in at.button if b.label == "Replay the turn").click()
    checked(at.run())
    tried = page_of(at).asking.tried
    assert not at.error
    assert tried.answers is not None
    first = page_of(at).asking.item
    assert first in tried.found.before.assembly.ids_in()
    assert first not in tried.found.after.assembly.ids_in()
    assert "As it would be" in shown(at)


def test_own_question_cannot_be_left_out(session):
    """The question of the turn itself is refused in words, and the page stays whole."""
    at = opened(session=session.key.session, turn="1")
    next(b for b in at.button if b.label == "Replay the turn").click()
    checked(at.run())
    assert any("question of the turn" in e.value for e in at.error)


def test_click_on_a_cell_chooses_its_row_and_its_turn(session):
    """What a click reports is the thing and the turn of just that cell, also when sampled."""
    at = opened()
    asking = page_of(at).asking
    ledger = asking.chronicle.ledger
    view = matrix_view(
        ledger, MESSAGE, range(len(ledger.tracks[MESSAGE])), range(len(ledger.columns)), str
    )
    for row, item in enumerate(view.ids):
        for column, turn in enumerate(view.turns):
            assert view.codes[row][column] == ledger.fate(MESSAGE, item, turn)


def test_find_narrows_the_list_to_what_holds_the_words(session):
    """Only things whose text holds the words are offered, in any case."""
    at = opened()
    at.text_input(key="why-find").set_value("NUTS")
    checked(at.run())
    asking = page_of(at).asking
    offered = set(at.selectbox(key="why-item").options)
    assert offered
    assert len(offered) < len(asking.chronicle.said())
