"""What a sweep is run on: questions that can be measured, the others told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from memory_core.errors import InvalidInput
from memory_core.interchange import Conversation
from memory_core.lab.inputs import (
    MOST_QUESTIONS,
    from_conversation,
    from_sample,
    from_session,
    make_input,
)
from memory_core.messages import Message
from memory_core.questions import RecallQuestion
from memory_core.samples import load_samples
from tests.core.lab.talks import long_talk

SAID = [Message.of("user", "I like tea"), Message.of("assistant", "Noted"), Message.of("user", "x")]


def asks(*evidence: int, text: str = "What do I like?", accepted: bool = True) -> RecallQuestion:
    """Return a question with this evidence."""
    return RecallQuestion(text, "tea", evidence, accepted=accepted)


def test_what_cannot_be_measured_is_told() -> None:
    """Questions without evidence, blank or only proposed ones, are left out with a sentence."""
    questions = [asks(0), asks(), asks(9), asks(0, text=" "), asks(0, accepted=False), asks(1, 99)]
    made = make_input("Talk", SAID, questions)
    assert [question.evidence for question in made.questions] == [(0,), (1,)]
    assert [notice.split()[0] for notice in made.notices] == ["3", "1", "2"]


def test_a_question_is_asked_at_its_place() -> None:
    """Only what was said before can be evidence; without a place it is asked at the end."""
    made = make_input("Talk", SAID, [asks(0, 2), asks(2)], asked_at={0: 1})
    assert [(q.position, q.evidence) for q in made.questions] == [(1, (0,)), (3, (2,))]
    with pytest.raises(InvalidInput, match="no question"):
        make_input("Talk", SAID, [asks(0)], asked_at={0: -5})


def test_nothing_to_ask_is_refused() -> None:
    """Without a question that has evidence there is no sweep; neither with endlessly many."""
    for questions in ([], [asks()], [asks(0, accepted=False)]):
        with pytest.raises(InvalidInput) as caught:
            make_input("Talk \ud800", SAID, questions)
        assert caught.value.next_step
        str(caught.value).encode()
    with pytest.raises(InvalidInput, match="too many"):
        make_input("Talk", SAID, [asks(0)] * (MOST_QUESTIONS + 1))


def test_halves_of_an_emoji_are_repaired() -> None:
    """Texts from anywhere can be counted, embedded and saved."""
    made = make_input("\ud83d", [Message.of("user", "a\ud83d\0")], [asks(0, text="b\udc00")])
    for text in (made.title, made.messages[0].text, made.questions[0].text):
        assert text.encode().decode() == text


def test_samples_and_conversations_can_be_swept() -> None:
    """Every sample has questions to ask, asked at its end; so has a conversation with its own."""
    for sample in load_samples():
        made = from_sample(sample)
        assert all(question.position == 2 * len(sample.turns) for question in made.questions)
        for question in made.questions:
            assert all(made.messages[index].role == "user" for index in question.evidence)
    talk = Conversation("T", tuple(SAID), questions=(asks(0),))
    assert from_conversation(talk) == make_input("T", SAID, [asks(0)])
    assert from_conversation(talk, [asks(1)]).questions[0].evidence == (1,)


def test_turns_begin_with_the_user() -> None:
    """Turns are numbered as an import stores them, and messages stand a minute apart."""
    roles = ["assistant", "user", "assistant", "tool", "user", "user"]
    made = make_input("T", [Message.of(role, "x") for role in roles], [asks(0)])
    assert made.turns == (1, 1, 1, 1, 2, 3)
    assert all(b.created > a.created for a, b in zip(made.said, made.said[1:], strict=False))
    session = from_session("S", made.said, [asks(0)])
    assert session.times == tuple(stored.created for stored in made.said)
    assert [stored.created for stored in session.said] == list(session.times)


def test_known_times_are_kept() -> None:
    """Where a file tells times they hold; between them time goes on."""
    first, later = long_talk().said[0].created, long_talk().said[5].created
    made = make_input("T", SAID, [asks(0)], times=[None, first, later])
    assert [stored.created for stored in made.said] == [first, first, later]
    assert replace(made, times=()).said[0].created == first
