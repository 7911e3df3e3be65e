"""A model proposes recall questions: all of a conversation is read, failures are told."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core.errors import ModelUnreachable
from memory_core.messages import Message
from memory_core.models.catalogue import ModelChoice
from memory_core.models.offline.llm import OfflineLLM
from memory_core.proposing import LONGEST, propose_by_model, stretches
from memory_core.questions import MODEL, propose_questions
from memory_core.testing import ScriptedLLM
from memory_core.tokens import TokenCounter

COUNTER = TokenCounter()
CHOICE = ModelChoice(context_window=1_000)
TALK = [
    Message.of(role, f"{text} " + "The sea is calm and wide today, with boats. " * 20)
    for text in ("I live in Lisbon.", "My sister is called Rita.", "I work as a carpenter.")
    for role in ("user", "assistant")
]


def proposal(question: str, *messages: int) -> str:
    """Return a proposal as a model writes it."""
    return json.dumps({"question": question, "answer": "x", "messages": list(messages)})


@given(st.lists(st.integers(0, 400), max_size=30), st.sampled_from([256, 800, 2_000, 100_000]))
def test_every_message_is_read_once(words: list[int], window: int) -> None:
    """Stretches follow each other without gaps where there is text, and fit unless one is alone."""
    said = [Message.of("user", "word " * count) for count in words]
    parts = stretches(said, context_window=window, counter=COUNTER)
    read = [index for part in parts for index in part]
    assert read == sorted(set(read))
    assert {i for i, message in enumerate(said) if message.text.strip()} <= set(read)
    for part in parts:
        tokens = sum(COUNTER.message(said[i]) for i in part)
        assert len(part) == 1 or tokens <= max(100, window)


def test_questions_of_all_stretches_wait_to_be_accepted() -> None:
    """Each stretch is asked about with its own numbers; asked twice, the later telling counts."""
    parts = stretches(TALK, context_window=CHOICE.context_window, counter=COUNTER)
    assert len(parts) > 1
    replies = [proposal(f"Q{part.start}?", part.start) for part in parts]
    replies[-1] += proposal("Q0?", parts[-1].start)
    told: list[tuple[int, int]] = []
    llm = ScriptedLLM(*replies)
    done = propose_by_model(
        TALK, llm, choice=CHOICE, counter=COUNTER, progress=lambda *at: told.append(at)
    )
    assert done.error is None
    assert done.asked == done.stretches == len(parts)
    assert told == [(n, len(parts)) for n in range(len(parts) + 1)]
    by_text = {q.question: q for q in done.questions}
    assert by_text["Q0?"].evidence == (parts[-1].start,)
    assert len(by_text) == len(done.questions) == len(parts)
    assert not any(q.accepted for q in done.questions)
    assert {q.origin for q in done.questions} == {MODEL}
    assert f"[{parts[1].start}] " in llm.prompts[1].messages[-1].text


def test_what_a_reply_does_not_give_is_told() -> None:
    """A refusal and a message that does not exist are reasons in the result."""
    parts = stretches(TALK, context_window=CHOICE.context_window, counter=COUNTER)
    replies = ["I would rather not.", proposal("Q?", 99), *["none"] * len(parts)][: len(parts)]
    done = propose_by_model(TALK, ScriptedLLM(*replies), choice=CHOICE, counter=COUNTER)
    assert done.questions == ()
    assert "no question could be read" in done.rejected
    assert any("no message 99" in reason for reason in done.rejected)


def test_a_model_that_fails_leaves_what_it_proposed_before() -> None:
    """The error says what to do here; the questions of the stretches before stay."""
    llm = ScriptedLLM(proposal("Q?", 0), ModelUnreachable("Nothing listens there."))
    done = propose_by_model(TALK, llm, choice=CHOICE, counter=COUNTER)
    assert [q.question for q in done.questions] == ["Q?"]
    assert done.asked == 1
    assert isinstance(done.error, ModelUnreachable)
    assert "propose by rule" in done.error.next_step


def test_it_can_be_stopped_between_stretches() -> None:
    """Nothing is asked after the wish to stop."""
    llm = ScriptedLLM(proposal("Q?", 0))
    done = propose_by_model(
        TALK, llm, choice=CHOICE, counter=COUNTER, stopped=lambda: bool(llm.prompts)
    )
    assert (done.asked, len(done.questions), done.error) == (1, 1, None)


def test_a_message_too_long_to_show_is_shown_in_part_and_that_is_told() -> None:
    """A message as long as a book does not break the model's window."""
    book = [Message.of("user", "I live in Lisbon. " + "x" * (LONGEST * 3))]
    done = propose_by_model(book, ScriptedLLM("none"), choice=CHOICE, counter=COUNTER)
    assert "long messages were shown" in done.rejected[0]


def test_nothing_said_is_nothing_asked() -> None:
    """An empty conversation costs no call."""
    done = propose_by_model([], ScriptedLLM(), choice=CHOICE, counter=COUNTER)
    assert (done.asked, done.questions) == (0, ())


@pytest.mark.parametrize("name", ["", "Ana"])
def test_the_offline_reader_proposes_what_its_rules_find(name: str) -> None:
    """Without any model the same way works: the reader asks for the facts that rules find."""
    said = [
        Message.of("user", "I live in Lisbon. My sister is called Rita.", name=name),
        Message.of("assistant", "Noted.", name="Ben" if name else ""),
        Message.of("user", "I work as a carpenter.", name=name),
    ]
    done = propose_by_model(said, OfflineLLM(), choice=ModelChoice(), counter=COUNTER)
    found = {(q.question, q.answer, q.evidence) for q in done.questions}
    assert found == {(q.question, q.answer, q.evidence) for q in propose_questions(said)}
    assert len(found) == 3
    nothing = [Message.of("user", "Hm?")]
    told = propose_by_model(nothing, OfflineLLM(), choice=ModelChoice(), counter=COUNTER)
    assert told.questions == ()
