"""Life stories: plain words, the right numbers, and nothing that did not happen."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings

from memory_core.fate import FACT, IN_PROMPT, KINDS, MEMORY, MESSAGE, STATE, SUMMARY, Fate
from memory_core.ledger import Ledger
from memory_core.settings import MemorySettings
from memory_core.stories import MAX_LINES, details, tell
from tests.core.made import Talk
from tests.core.test_ledger import play, turns


@pytest.fixture(scope="module")
def bakery() -> Talk:
    """Play a conversation in which the first message leaves, is folded and comes back."""
    talk = Talk(
        MemorySettings(
            system_prompt="Be kind.",
            token_limit=200,
            summary_every=2,
            share_retrieved=0.3,
            share_state=0.4,
            threshold=0.6,
            top_k=1,
        )
    )
    first = "Hi, I'm Dana, I run a bakery in Porto and I'm allergic to nuts."
    talk.similar = {first: 0.61}
    talk.say(first, fact="allergic to nuts")
    for number in range(2, 12):
        text = f"{number}: tell me something about ovens, flour and opening hours"
        talk.similar = {**talk.similar, text: 0.1}
        talk.say(text, prefer="tone" if number in (4, 6) else "")
    return talk


def test_the_story_of_a_message_that_left_and_came_back(bakery):
    """Said, left with the arithmetic, folded with what was kept and lost, found again."""
    ledger = Ledger.fold(bakery.traces)
    lines = tell(ledger, MESSAGE, "m0", bakery.messages[0]).text.splitlines()
    window = next(
        m.trace.assembly.window
        for m in bakery.moments
        if m.trace.assembly and "m0" in m.trace.evicted
    )
    left = next(line for line in lines if "left the buffer" in line)
    assert lines[0].startswith("Turn 1: said by the user, 20 tokens: 'Hi, I'm Dana")
    assert f"window {window.tokens:,} of {window.limit - window.initial:,} tokens" in left
    assert f"{window.next_needed:,}" in left
    folded = next(line for line in lines if "folded into summary 1" in line)
    assert "kept 'Dana'" in folded
    assert "lost 'allergic to nuts', 'Porto'" in folded
    assert any("the key fact 'allergic to nuts' was drawn from it" in line for line in lines)
    assert any("best long-term hit, " in line and "0.61, used." in line for line in lines)
    assert lines.index(left) < lines.index(folded)


def test_the_stories_of_fact_summary_memory_and_state(bakery):
    """Each says where it came from, when it stood in the prompt and what became of it."""
    ledger = Ledger.fold(bakery.traces)
    fact = tell(ledger, FACT, "f1")
    assert "noted as a key fact, told in turn 1: 'allergic to nuts'." in fact.text
    assert "summary 1 lost it; it stays a key fact." in fact.text
    assert fact.now is Fate.KEY_FACT
    summary = tell(ledger, SUMMARY, "summary-1")
    assert re.search(r"Turn \d+: folds \d+ messages, covers the oldest \d+", summary.text)
    assert "replaced by summary 2." in summary.text
    memory = tell(ledger, MEMORY, "r1")
    assert memory.text.startswith("Turn 1: kept in long-term memory.")
    assert "0.61, used." in memory.text
    assert tell(ledger, STATE, "preferences.tone").text.splitlines()[0] == (
        "Turn 4: set to 'value 4'."
    )
    assert "changed from 'value 4' to 'value 6'." in tell(ledger, STATE, "preferences.tone").text


@settings(max_examples=40, deadline=None)
@given(turns)
def test_every_story_agrees_with_the_matrix(script):
    """The turns a story says it was in a prompt are the matrix's, and every line has its turn."""
    talk = play(script)
    ledger = Ledger.fold(talk.traces)
    stored = {m.id: m for moment in talk.moments if moment.layers for m in moment.layers.messages}
    for kind in KINDS:
        for item in ledger.tracks[kind].ids:
            story = tell(ledger, kind, item, stored.get(item))
            told = {n for first, last in story.prompts for n in range(first, last + 1)}
            shown = {n for n in ledger.turns if ledger.fate(kind, item, n) in IN_PROMPT}
            assert told == shown
            assert story.lines
            assert all(
                line.first in ledger.turns and line.last >= line.first for line in story.lines
            )
            firsts = [line.first for line in story.lines]
            assert firsts == sorted(firsts)
            assert story.now is ledger.fate(kind, item, ledger.turns[-1])


@settings(max_examples=40, deadline=None)
@given(turns)
def test_a_message_is_said_to_have_left_exactly_when_the_prompt_lost_it(script):
    """Each "left the buffer" line stands at a turn whose prompt no longer had the message."""
    talk = play(script)
    ledger = Ledger.fold(talk.traces)
    had: dict[str, int] = {}  # message -> the last turn that sent it
    for trace in talk.traces:
        if trace.assembly is None:
            continue
        now = {i for i in trace.assembly.message_ids if i}
        for item in [i for i, last in had.items() if i not in now]:
            told = {
                line.first
                for line in tell(ledger, MESSAGE, item).lines
                if "left the buffer" in line.text or "superseded: the turn" in line.text
            }
            assert any(had[item] < turn <= trace.number for turn in told), (item, trace.number)
            del had[item]
        had |= dict.fromkeys(now, trace.number)


def test_a_superseded_message_says_so():
    """The replaced turn's message is superseded, its memory too, and nothing left the buffer."""
    talk = Talk()
    talk.say("I live in Faro", fact="I live in Faro")
    talk.say("I live in Porto", supersede=True)
    ledger = Ledger.fold(talk.traces)
    assert "Turn 2: superseded: the turn was answered again." in tell(ledger, MESSAGE, "m0").text
    assert "Turn 2: superseded." in tell(ledger, MEMORY, "r1").text
    assert "taken back: its turn was superseded." in tell(ledger, FACT, "f1").text


def test_a_failed_turn_does_not_hide_when_a_message_left():
    """A turn without a prompt says nothing; the next prompt without the message does."""
    talk = Talk(MemorySettings(system_prompt="Be kind.", token_limit=55, recall=False))
    talk.say("first of all, a sentence with quite a few words in it")
    talk.say("this one fails", fail=True)
    talk.say("another sentence with quite a few words in it, long enough to push " * 2)
    story = tell(Ledger.fold(talk.traces), MESSAGE, "m0").text
    assert "Turn 3: left the buffer" in story
    assert "Turn 2" not in story


def test_a_long_life_is_cut_and_says_how_much():
    """A memory that turns up again and again, used and not, has a bounded story."""
    talk = Talk(MemorySettings(token_limit=400, threshold=0.5, summarise=False))
    talk.say("the oven is new", "A long answer that fills the buffer at once. " * 60)
    for number in range(160):
        talk.similar = {"the oven is new": 0.9 if number % 2 else 0.2}
        talk.say(f"{number}?", "Noted.", remember=False)
    story = tell(Ledger.fold(talk.traces), MEMORY, "r1")
    assert len(story.lines) == MAX_LINES
    assert story.left_out > 0


def test_what_was_never_seen_has_no_story():
    """An unknown id gives an empty story, not an error."""
    ledger = Ledger.fold([Talk().say("hello there").trace])
    for kind in KINDS:
        assert tell(ledger, kind, "no such").lines == ()


def test_details_are_names_and_numbers():
    """Names inside a sentence and numbers are details; sentence starts and titles' dots are not."""
    assert details("Hi, I'm Dana, I run a bakery in Porto with 4 people.") == ["Dana", "Porto", "4"]
    assert details("The bakery opens at 6:30. It closes on 24/12.") == ["6:30", "24/12"]
    assert details("nothing here, übrigens") == []
    assert details("") == []
