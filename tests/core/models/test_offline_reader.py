"""The offline reader answers from what it was handed, and only from that."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core.messages import Message
from memory_core.models.offline.passages import Kind, Passage, read_prompt
from memory_core.models.offline.reader import answer
from memory_core.samples import ABSENT, UPDATED, load_samples

WORDS = st.sampled_from(
    "oven cake guests budget Porto Dana nuts eat allergic Tuesday 24 €640 actually now sister "
    "my I the is ? . , 我 😀".split()
)
TEXTS = st.lists(WORDS, max_size=15).map(" ".join)


def ask(question: str, *told: str, place: Kind = Kind.CONVERSATION) -> str:
    """Return the answer to a question from statements of the user, oldest first."""
    passages = [Passage(text, place, f"turn {i}", "user", i) for i, text in enumerate(told, 1)]
    return answer(question, passages).text


@pytest.mark.parametrize(
    ("question", "statement"),
    [
        ("What am I allergic to?", "I can't eat nuts."),
        ("What food can't I eat?", "I'm allergic to nuts."),
        ("What's my name?", "Hi there, I'm Dana and glad to be here."),
        ("Who am I?", "My name is Dana."),
        ("Where do I live?", "I live in Porto."),
        ("What do I do for a living?", "I run a bakery."),
        ("How old is my sister?", "My sister Rita lives in Braga and she is 31."),
        ("When did the oven break?", "The oven broke on Tuesday."),
        ("我对什么过敏？", "你好，我对坚果过敏"),  # noqa: RUF001
        ("¿Dónde vivo?", "Vivo en Madrid."),
    ],
)
def test_questions_in_other_words_find_their_statement(question: str, statement: str):
    """The reader connects a question with a statement that uses other words for it."""
    others = ("The market stall is on Sunday.", "We planted a quince tree.")
    assert f"“{statement}”" in ask(question, others[0], statement, others[1])


def test_the_place_is_named():
    """An answer says where its sentence stood: memory, summary, facts, state, conversation."""
    sentence = "The oven broke on Tuesday."
    said = {
        Kind.MEMORY: "You said in turn 3: ",
        Kind.SUMMARY: "The summary of turns 1-7 says: ",
        Kind.FACTS: "The key facts say: ",
        Kind.STATE: "The state says: ",
        Kind.BLOCK: "The memory block profile says: ",
        Kind.DOCUMENTS: "The documents say: ",
        Kind.TOOL: "The tool clock says: ",
        Kind.CONVERSATION: "You said earlier in this conversation: ",
    }
    places = {
        Kind.MEMORY: "turn 3",
        Kind.SUMMARY: "summary of turns 1-7",
        Kind.BLOCK: "profile",
        Kind.TOOL: "clock",
    }
    for kind, intro in said.items():
        passage = Passage(sentence, kind, places.get(kind, kind.value), "user")
        text = answer("When did the oven break?", [passage]).text
        assert text == f"{intro}“{sentence}”"


def test_other_places_of_the_same_sentence_are_named():
    """A sentence that stands in memory and in the key facts is quoted once, both places named."""
    fact = Passage("I can't eat nuts", Kind.FACTS, "key facts", "user")
    memory = Passage("I can't eat nuts", Kind.MEMORY, "turn 3", "user", 3)
    text = answer("What can't I eat?", [fact, memory]).text
    assert text.count("“") == 1
    assert "turn 3" in text
    assert "key facts" in text


def test_a_sentence_inside_a_message_names_its_message():
    """A quote from the middle of a message says how that message began."""
    text = ask(
        "When did the oven break?", "A few things at once, as always. The oven broke Tuesday."
    )
    assert "(in the message “A few things at once,…”)" in text


def test_a_correction_is_preferred_and_the_older_statement_mentioned():
    """The newest word counts; that there is an older one is said without repeating it."""
    text = ask(
        "How many guests is the cake for?",
        "The cake is for 24 guests.",
        "Small change: the cake is now for 30 guests, not 24.",
    )
    assert "30 guests" in text
    assert text.count("“") == 1
    assert "An older statement about it stands earlier in this conversation." in text


def test_a_correction_of_something_else_does_not_answer():
    """A newer correction that shares one word with the question is not taken for the answer."""
    text = ask(
        "Who is the builder we found?",
        "I've found a builder! Gwen Pritchard has rebuilt half the lane.",
        "Now that the builders have gone the code is now 7718 instead of 5093.",
    )
    assert "Gwen Pritchard" in text
    assert "7718" not in text


def test_what_is_not_there_is_said_to_be_missing():
    """Without support the reader says so and names what it looked for and where."""
    text = ask("How high is my monthly rent?", "My budget for an oven is 3,200 euros.")
    assert text.startswith("I find nothing about “high”, “monthly”, “rent”")
    assert "this conversation" in text
    assert "3,200" not in text
    assert "nothing but the question" in ask("How high is my rent?")


def test_someone_elses_life_is_not_ones_own():
    """Where my sister lives is no answer to where I live."""
    assert "Braga" not in ask("Where do I live?", "My sister Rita lives in Braga.")
    assert "Braga" in ask("Where does my sister live?", "My sister Rita lives in Braga.")


def test_questions_are_not_quoted_as_answers():
    """Neither the question itself nor the same question asked earlier is its answer."""
    question = "When did the oven break?"
    assert ask(question, question, question).startswith("I find nothing")


@given(st.lists(TEXTS, max_size=5), TEXTS)
def test_quotes_stand_in_the_prompt(told: list[str], question: str):
    """Whatever is asked, every quote of an answer is a piece of what was handed over."""
    passages = [Passage(t, Kind.MEMORY, f"turn {i}", "user", i) for i, t in enumerate(told)]
    found = answer(question, passages)
    everything = " ".join(" ".join(told).split())
    for support in found.sources:
        assert " ".join(support.sentence.text.split()) in everything
    if found.sources:
        for quoted in re.findall(r"“(.+?)”", found.text):
            assert quoted in everything


@given(st.lists(TEXTS, max_size=5), TEXTS)
def test_the_same_prompt_gives_the_same_answer(told: list[str], question: str):
    """The reader is deterministic."""
    passages = [Passage(t, Kind.MEMORY, f"turn {i}", "user", i) for i, t in enumerate(told)]
    assert answer(question, passages) == answer(question, passages)


def _recall(outcomes: dict[str, list[bool]]) -> dict[str, float]:
    return {kind: sum(right) / len(right) for kind, right in outcomes.items()}


def test_samples_are_answered_when_everything_is_in_the_prompt():
    """Given a whole sample, the reader finds at least 19 of 20 planted facts, corrections too."""
    outcomes: dict[str, list[bool]] = {}
    for sample in load_samples():
        history = [
            message
            for turn in sample.turns
            for message in (
                Message.of("user", turn.user),
                Message.of("assistant", turn.assistant),
            )
        ]
        for question in sample.questions:
            prompt = read_prompt([*history, Message.of("user", question.question)])
            found = answer(prompt.query, prompt.passages)
            right = (
                not found.sources
                if question.kind == ABSENT
                else question.answer.casefold() in found.text.casefold()
            )
            outcomes.setdefault(question.kind, []).append(right)
    shares = _recall(outcomes)
    assert set(shares) >= {UPDATED, ABSENT}
    assert min(shares.values()) >= 0.8
    assert sum(map(sum, outcomes.values())) >= 0.95 * sum(map(len, outcomes.values()))


def test_samples_are_not_answered_without_their_evidence():
    """Given a sample without the turns that answer, the reader seldom finds an answer."""
    found = []
    for sample in load_samples():
        for question in sample.questions:
            told = [t.user for i, t in enumerate(sample.turns, 1) if i not in question.evidence]
            if question.kind != UPDATED:
                found.append(question.answer in ask(question.question, *told) and question.answer)
    assert sum(map(bool, found)) <= 0.1 * len(found)
