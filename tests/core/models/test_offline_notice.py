"""What is asked, what is told, and what is worth keeping."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core.models.offline.notice import KEY, NOTABLE, asks, facts, questions, small_talk
from memory_core.samples import load_samples


@pytest.mark.parametrize(
    "text",
    [
        "What is my name?",
        "tell me my budget",
        "Ok, where do I live",
        "¿Dónde vivo?",
        "我对什么过敏\uff1f",
        'Did she say "yes"?',
        "Do you remember the oven",
    ],
)
def test_questions_are_recognised(text: str):
    """A question mark of any script or a question's first words make a question."""
    assert asks(text)


@pytest.mark.parametrize("text", ["I live in Porto.", "What a day!", "Set the step to packing"])
def test_statements_do_not_ask(text: str):
    """Statements, exclamations and orders are no questions."""
    assert not asks(text)


@pytest.mark.parametrize(
    "fact",
    [
        "I'm Dana, I run a bakery in Porto and I can't eat nuts.",
        "I can't eat nuts at all.",
        "My budget for a new oven is 3,200 euros, not a cent more.",
        "My sister lives in Braga.",
        "We decided that amounts are stored in millilitres.",
        "Ich heiße Jörg, ich wohne in Köln und habe 2 Kinder.",
    ],
)
def test_statements_about_oneself_are_key_facts(fact: str):
    """Identity, constraints, numbers and decisions are facts, word for word."""
    assert facts([fact], at_least=KEY, most=5) == [fact]


@pytest.mark.parametrize(
    "text",
    [
        "Thank you!",
        "haha, don't give my brother ideas",
        "What should I charge?",
        "I think maybe it's fine.",
        "ok",
        "",
        "🦊",
    ],
)
def test_small_talk_and_guesses_are_no_facts(text: str):
    """Thanks, jokes, questions and guesses are not kept."""
    assert facts([text], at_least=NOTABLE, most=5) == []


def test_lead_ins_are_left_out_and_the_rest_is_untouched():
    """A greeting in front is no part of the fact."""
    assert facts(["Hi, I'm Dana.  I  live in Porto."], at_least=NOTABLE, most=5) == [
        "I'm Dana.",
        "I live in Porto.",
    ]


def test_known_facts_are_not_told_again():
    """A fact is new only when no known one holds it, whatever its case and full stop."""
    told = ["I can't eat nuts.", "I live in Porto."]
    assert facts(told, at_least=NOTABLE, most=5, known=["i can't eat NUTS"]) == ["I live in Porto."]
    assert len(facts(told * 2, at_least=NOTABLE, most=5)) == 2


def test_the_weightiest_facts_are_taken_in_order():
    """With room for one fact the weightier one is taken; several keep their order."""
    told = ["I like the sun.", "I'm Dana and I'm allergic to 2 things: nuts and sesame."]
    assert facts(told, at_least=NOTABLE, most=1) == [told[1]]
    assert facts(told, at_least=NOTABLE, most=2) == told


@given(st.lists(st.text(max_size=80), max_size=4), st.integers(0, 3))
def test_facts_are_at_most_as_many_as_asked(texts: list[str], most: int):
    """Any texts give at most that many facts, none twice."""
    found = facts(texts, at_least=NOTABLE, most=most)
    assert len(found) <= most
    assert len(set(found)) == len(found)


def test_questions_of_a_text_are_its_sentences_that_ask():
    """A message may tell and ask; only the sentences that ask are questions."""
    assert questions("It costs $31. What should I charge? Thanks!") == ["What should I charge?"]


@pytest.mark.parametrize(
    "text", ["hello", "Thanks a lot!", "Boa noite!", "ok", "Good morning Dana"]
)
def test_small_talk_gets_a_short_reply(text: str):
    """Greetings, thanks, assent and goodbyes are answered in kind."""
    assert small_talk(text)


def test_statements_are_no_small_talk():
    """A fact that begins with a greeting is long enough to be a fact."""
    assert not small_talk("I run a bakery in Porto")


def test_half_of_the_planted_facts_are_key_facts():
    """Of the facts planted in the samples at least half are found, few sentences beside them."""
    planted = found = extracted = told = 0
    for sample in load_samples():
        for turn in sample.turns:
            keys = facts([turn.user], at_least=KEY, most=99)
            extracted += len(keys)
            told += 1
            for fact in turn.facts:
                planted += 1
                found += any(fact.text.rstrip(".") in " ".join(k.split()) for k in keys)
    assert found >= planted / 2
    assert extracted <= told
