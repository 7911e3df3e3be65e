"""Counterfactuals: one thing left out or changed, the turn planned again."""

from __future__ import annotations

import pytest

from memory_core.contents import Contents
from memory_core.errors import InvalidInput, NotFound
from memory_core.fate import FACT, MEMORY, MESSAGE, STATE
from memory_core.lab.without import Edit, answer, counterfactual
from memory_core.models.offline.llm import OfflineLLM
from memory_core.testing import HashEmbedder
from tests.core.lab.test_replay import Live

QUESTION = "What can't I eat?"


@pytest.fixture
def live(tmp_path):
    """Return a session in which a planted fact has left the buffer and came back as a memory."""
    live = Live(tmp_path)
    live.say(
        "I can't eat nuts, please remember.", "Noted.", fact="can't eat nuts", summary_every=99
    )
    for n in range(6):
        live.say(f"Tell me about oven number {n}.", "Well. " * 40)
    live.say(QUESTION, "Nuts.")
    return live


def ask(live, edit):
    """Return the counterfactual of the last turn."""
    return counterfactual(
        live.engine.store, live.key, 8, edit, embed=HashEmbedder().embed, model="hash"
    )


def sent(turn):
    """Return all text of a planned prompt."""
    return "\n".join(m.text for m in turn.assembly.messages)


def first_message(live):
    """Return the message that told the fact."""
    return live.engine.store.messages(live.key)[0]


def test_the_turn_as_it_was_is_the_recorded_one(live):
    """The side it is compared with equals what was really sent."""
    found = ask(live, Edit(MESSAGE, first_message(live).id))
    assert found.before.as_recorded


def test_message_left_out_takes_its_memory_and_key_fact_along(live):
    """Nothing that was made from it is in the prompt any more; the rest is."""
    fact = live.memory.session.state.key_facts[0]
    edit = Edit(MESSAGE, first_message(live).id)
    found = ask(live, edit)
    assert edit.id in Contents.of(found.before.assembly).carried
    assert "I can't eat nuts" in sent(found.before)
    assert "I can't eat nuts" not in sent(found.after)
    assert fact.id in found.after.assembly.ids_in()  # told by a tool, not drawn from the message
    assert QUESTION in sent(found.after)


def test_key_fact_or_memory_alone_can_be_left_out(live):
    """Leaving out one of them leaves the other where it was."""
    fact = live.memory.session.state.key_facts[0]
    found = ask(live, Edit(FACT, fact.id))
    assert fact.id not in found.after.assembly.ids_in()
    assert "I can't eat nuts" in sent(found.after)
    memory = Contents.of(found.before.assembly).memories[0]
    assert memory not in ask(live, Edit(MEMORY, memory)).after.assembly.ids_in()


def test_changed_words_are_in_the_prompt_and_in_the_memory(live):
    """An edited message is edited wherever it stands, and the answer follows."""
    edit = Edit(MESSAGE, first_message(live).id, "I can't eat cheese, please remember.")
    found = ask(live, edit)
    assert "cheese" in sent(found.after)
    assert "cheese" in answer(OfflineLLM(), found.after.assembly)
    assert "nuts" in answer(OfflineLLM(), found.before.assembly)


def test_what_cannot_be_changed_is_refused_in_words(live):
    """The turn's own question, an unknown turn, an empty text and a whole state are refused."""
    question = live.engine.store.messages(live.key)[-2]
    assert question.message.text == QUESTION
    with pytest.raises(InvalidInput, match="question of the turn"):
        ask(live, Edit(MESSAGE, question.id))
    with pytest.raises(InvalidInput, match="empty"):
        Edit(MESSAGE, "m1", " \n")
    with pytest.raises(InvalidInput, match="cannot be left out"):
        Edit(STATE, "slots.size")
    with pytest.raises(NotFound):
        counterfactual(
            live.engine.store, live.key, 99, Edit(MESSAGE, "m"), embed=HashEmbedder().embed
        )
