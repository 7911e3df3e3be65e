"""Recall questions: proposed by rule with their evidence, or by a model and read with care."""

from __future__ import annotations

import doctest
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_core import questions
from memory_core.messages import Message
from memory_core.questions import (
    MODEL,
    RULE,
    propose_questions,
    questions_prompt,
    read_questions,
)
from memory_core.samples import load_samples


def proposed(*texts: str) -> list[tuple[str, str]]:
    """Return question and answer of what is proposed from a user's messages."""
    found = propose_questions([Message.of("user", text) for text in texts])
    return [(q.question, q.answer) for q in found]


@pytest.mark.parametrize(
    ("text", "question", "answer"),
    [
        ("Hi, my name is Ada Lovelace, nice to meet you.", "What is my name?", "Ada Lovelace"),
        ("I\u2019m severely allergic to peanuts!", "What am I allergic to?", "peanuts"),
        ("I live in Lisbon, Portugal.", "Where do I live?", "Lisbon, Portugal"),
        ("I live in Lisbon but I work from home.", "Where do I live?", "Lisbon"),
        ("We have just met. I've just moved to Porto.", "Where did I move to?", "Porto"),
        ("I work as a nurse.", "What do I work as?", "a nurse"),
        ("I work at the harbour office.", "Where do I work?", "the harbour office"),
        ("I was born on 3 May 1987.", "When was I born?", "3 May 1987"),
        ("I was born in Leeds.", "Where was I born?", "Leeds"),
        ("My cat is named Tom.", "What is my cat called?", "Tom"),
        ("I have a boat called Marlin.", "What is my boat called?", "Marlin"),
        ("The meeting is on Friday at 10.", "When is the meeting?", "Friday at 10"),
        ("The demo has been moved to 9 May.", "When is the demo?", "9 May"),
        ("Our flight leaves at 7:45.", "When is my flight?", "7:45"),
        ("The spoons are in the biscuit tin.", "Where are the spoons?", "the biscuit tin"),
        ("The wifi password is hunter2", "What is the wifi password?", "hunter2"),
        ("My favourite colour is teal.", "What is my favourite colour?", "teal"),
        ("My budget is 3,200 euros because of the oven.", "What is my budget?", "3,200 euros"),
        ("I prefer mornings.", "What do I prefer?", "mornings"),
        ("We agreed to store amounts in cents.", "What did we decide?", "store amounts in cents"),
    ],
)
def test_a_sentence_that_states_a_fact_becomes_a_question(text: str, question: str, answer: str):
    """The question asks for the fact, the answer stands word for word in the turn."""
    assert (question, answer) in proposed(text)
    assert answer in text


@pytest.mark.parametrize(
    "text",
    [
        "Is my name Bob?",
        "I love it.",
        "My back is killing me.",
        "My bike is dead.",
        "My idea is that we leave.",
        "I live in the hope that it works" + " and works" * 200,
        "",
        "\ufffd\n\n?!",
    ],
)
def test_what_states_no_fact_is_left_alone(text: str):
    """Questions, moods, passing states and endless sentences propose nothing."""
    assert proposed(text) == []


def test_only_the_user_tells_facts():
    """What the model says about itself is no fact about the user."""
    messages = [
        Message.of("assistant", "My name is Bot."),
        Message.of("system", "I live in a box."),
    ]
    assert propose_questions(messages) == []


def test_a_fact_told_again_replaces_the_earlier_one():
    """The newest telling counts: it is the answer and the evidence."""
    (question,) = propose_questions(
        [Message.of("user", "I live in Rome."), Message.of("user", "I live in Oslo now.")]
    )
    assert (question.question, question.evidence) == ("Where do I live?", (1,))
    assert question.answer.startswith("Oslo")


def test_likes_stand_beside_each_other():
    """Of likes there may be many; all their turns are evidence."""
    (question,) = propose_questions(
        [
            Message.of("user", text)
            for text in ("I collect stamps.", "Hm.", "I collect coins. I collect stamps.")
        ]
    )
    assert (question.answer, question.evidence) == ("stamps; coins", (0, 2))


def test_people_with_names_are_asked_about_by_name():
    """In a talk of two people the question says whose fact it is."""
    messages = [
        Message.of("user", "I live in Rome.", name="Ann"),
        Message.of("assistant", "My dog is called Rex.", name="Bo"),
    ]
    found = [(q.question, q.answer, q.evidence) for q in propose_questions(messages)]
    assert found == [
        ("Where does Ann live?", "Rome", (0,)),
        ("What is Bo's dog called?", "Rex", (1,)),
    ]


def test_proposals_wait_to_be_accepted():
    """What a rule found is marked as proposed, with the rule's name as its category."""
    (question,) = propose_questions([Message.of("user", "My name is Ada.")])
    assert (question.origin, question.category, question.accepted) == (RULE, "name", False)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(max_size=80), max_size=4))
def test_any_text_gives_the_same_proposals_twice(texts: list[str]):
    """The rules are deterministic, raise for nothing, and quote the turn they name."""
    messages = [Message.of("user", f"My code is X9. {text}") for text in texts]
    found = propose_questions(messages)
    assert found == propose_questions(messages)
    for question in found:
        told = " ".join(messages[index].text for index in question.evidence)
        assert all(part in told for part in question.answer.split("; "))


def test_the_samples_get_questions_that_quote_their_turns():
    """On conversations that people wrote, every proposal has its words in its evidence."""
    count = 0
    for sample in load_samples():
        messages = [Message.of("user", turn.user) for turn in sample.turns]
        for question in propose_questions(messages):
            told = " ".join(messages[index].text for index in question.evidence)
            assert all(part in told for part in question.answer.split("; "))
            count += 1
    assert count >= 15


def test_a_model_is_asked_with_numbered_messages():
    """The prompt numbers the messages as the conversation does and names the task."""
    system, user = questions_prompt(
        [Message.of("user", "hi"), Message.of("assistant", "yo", name="Bo")], first=7, count=3
    )
    assert "propose-recall-questions" in system.text
    assert "up to 3" in system.text
    assert user.text == "[7] user: hi\n[8] Bo: yo"


def test_a_reply_is_read_whatever_stands_around_it():
    """Fences, lists and chatter around the objects do not matter."""
    good = {"question": "Where?", "answer": "Rome", "messages": [8, "7", 7]}
    reply = f"Sure! ```json\n[{json.dumps(good)}, {{broken]\n``` Done."
    read = read_questions(reply, first=7, last=9)
    assert read.rejected == ()
    (question,) = read.questions
    assert (question.question, question.answer, question.evidence) == ("Where?", "Rome", (7, 8))
    assert (question.origin, question.accepted) == (MODEL, False)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"answer": "a", "messages": [0]}, "no question"),
        ({"question": " ", "answer": "a", "messages": [0]}, "no question"),
        ({"question": "q", "answer": 5, "messages": [0]}, "no answer"),
        ({"question": "q", "answer": "a"}, "names no messages"),
        ({"question": "q", "answer": "a", "messages": [9]}, "no message 9"),
        ({"question": "q", "answer": "a", "messages": [-1]}, "no message -1"),
        ({"question": "q", "answer": "a", "messages": ["9" * 5000]}, "no message 999"),
        ({"question": "q", "answer": "a", "messages": [None]}, "no message None"),
    ],
)
def test_proposals_that_cannot_be_used_are_told(value: dict[str, object], reason: str):
    """Nothing of a model's reply is dropped in silence."""
    read = read_questions(json.dumps(value), first=0, last=2)
    assert read.questions == ()
    assert len(read.rejected) == 1
    assert reason in read.rejected[0]


@pytest.mark.parametrize("reply", ["", "I cannot help with that.", "{" * 5_000, '{"a":' * 3_000])
def test_a_reply_without_questions_is_told(reply: str):
    """A refusal or a runaway reply is a result that says so."""
    assert read_questions(reply, first=0, last=1).rejected == ("no question could be read",)


def test_the_example_in_the_docstring_holds():
    """What the module shows is what it does."""
    assert doctest.testmod(questions).failed == 0
