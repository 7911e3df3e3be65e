"""The fate ledger says of every message and turn what that turn's exact prompt says."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_core.contents import Contents
from memory_core.fate import FACT, IN_PROMPT, KINDS, MEMORY, MESSAGE, STATE, SUMMARY, Fate
from memory_core.ledger import Ledger
from memory_core.settings import MemorySettings
from memory_core.spans import Spans
from memory_core.stories import tell
from memory_core.trace import MemoryWrite, TurnTrace
from tests.core.made import Record, Talk

WORDS = ["I can't eat nuts", "the oven is new", "Porto", "hello", "a long tale " * 12, "ça va 🙂"]

turns = st.lists(
    st.fixed_dictionaries(
        {"text": st.sampled_from(WORDS)},
        optional={
            "answer": st.sampled_from(["Noted.", "An answer that goes on and on. " * 8]),
            "tool": st.just("get_weather"),
            "fact": st.sampled_from(WORDS),
            "drop_fact": st.booleans(),
            "prefer": st.sampled_from(["tone", "size"]),
            "forget": st.booleans(),
            "supersede": st.booleans(),
            "fail": st.booleans(),
            "remember": st.booleans(),
            "token_limit": st.integers(60, 700),
            "top_k": st.integers(0, 4),
            "threshold": st.sampled_from([0.0, 0.3, 0.8]),
            "recall": st.booleans(),
            "summary_every": st.integers(1, 6),
        },
    ),
    min_size=1,
    max_size=16,
)


def play(script: list[dict]) -> Talk:
    """Play the turns of a script; texts differ by their place so that none is stored twice."""
    talk = Talk(MemorySettings(system_prompt="Be kind.", token_limit=200, summary_every=2))
    for place, turn in enumerate(script):
        talk.say(f"{place}: {turn['text']}", **{k: v for k, v in turn.items() if k != "text"})
    return talk


@settings(max_examples=60, deadline=None)
@given(turns)
def test_in_is_in_the_exact_prompt_and_out_is_not(script):
    """Every code that means "in" can be found in that turn's prompt, every other cannot."""
    talk = play(script)
    ledger = Ledger.fold(talk.traces)
    ids = ledger.tracks[MESSAGE].ids
    told = {fact.id: fact.message_id for trace in talk.traces for fact in trace.facts}
    covered: dict[int, set[str]] = {0: set()}
    for column, moment in enumerate(talk.moments):
        trace, assembly = moment.trace, moment.trace.assembly
        held = Contents.of(assembly)
        summary = moment.layers.summary if moment.layers is not None else None
        below = {m.id for m in moment.layers.messages[: summary.covers]} if summary else set()
        covered[trace.number] = below
        for item in ids:
            fate = ledger.fate(MESSAGE, item, trace.number)
            ways = {
                Fate.PROMPT: item in held.messages,
                Fate.RETRIEVED: item in held.carried,
                Fate.KEY_FACT: item in {told[f] for f in held.facts},
                Fate.SUMMARY: summary is not None and held.holds(summary) and item in below,
            }
            if fate in IN_PROMPT:
                assert ways[fate], (column, item, fate)
            else:
                assert not any(ways.values()), (column, item, fate)


@settings(max_examples=40, deadline=None)
@given(turns)
def test_facts_memories_summaries_and_state_keys_obey_the_same_law(script):
    """A fact, memory, summary or state key is coded "in" exactly where the prompt holds it."""
    talk = play(script)
    ledger = Ledger.fold(talk.traces)
    for moment in talk.moments:
        held = Contents.of(moment.trace.assembly)
        in_now = {
            FACT: {*held.facts, *held.retold},
            MEMORY: set(held.memories),
            SUMMARY: {s for s in held.summary_ids if moment.layers.summary.text.strip()},
        }
        for kind, expected in in_now.items():
            items = ledger.tracks[kind].ids
            now = {i for i in items if ledger.fate(kind, i, moment.trace.number) in IN_PROMPT}
            assert {i.split("@")[0] for i in now} == expected
        keys = {
            i
            for i in ledger.tracks[STATE].ids
            if ledger.fate(STATE, i, moment.trace.number) in IN_PROMPT
        }
        told = moment.layers.state.preferences if held.state else {}
        assert keys == {f"preferences.{name}" for name in told}


@settings(max_examples=40, deadline=None)
@given(turns, st.data())
def test_a_viewport_is_a_cut_of_the_whole_picture(script, data):
    """Any viewport equals the same cells of the whole matrix, and single cells agree."""
    talk = play(script)
    ledger = Ledger.fold(talk.traces)
    for kind in KINDS:
        height, width = len(ledger.tracks[kind]), len(ledger.columns)
        whole = ledger.view(kind, range(height), range(width))
        assert whole.shape == (height, width)
        assert whole.dtype == "uint8"
        a, b = sorted(data.draw(st.tuples(st.integers(0, height), st.integers(0, height))))
        c, d = sorted(data.draw(st.tuples(st.integers(0, width), st.integers(0, width))))
        assert (ledger.view(kind, range(a, b), range(c, d)) == whole[a:b, c:d]).all()


@settings(max_examples=40, deadline=None)
@given(turns)
def test_folding_at_once_and_one_by_one_give_the_same(script):
    """A ledger that grew turn by turn shows the past as it did when it was newest."""
    talk = play(script)
    growing, columns = Ledger(), []
    for trace in talk.traces:
        growing.extend(trace)
        last = len(growing.columns) - 1
        columns.append(growing.view(MESSAGE, range(10**6), range(last, last + 1))[:, 0])
    whole = Ledger.fold(talk.traces).view(MESSAGE, range(10**6), range(10**6))
    for at, column in enumerate(columns):
        assert (whole[: len(column), at] == column).all()
        assert (whole[len(column) :, at] == Fate.NOT_YET).all()


def test_extending_costs_what_changed_not_what_is_there():
    """The edges written by one more quiet turn are as few after 120 turns as after 30."""

    def edges(ledger: Ledger) -> int:
        spans = [s for t in ledger.tracks.values() for s in t.layers.values()]
        return sum(len(e) for s in spans for e in s._edges.values())

    talk = Talk(MemorySettings(system_prompt="Be kind.", token_limit=300, recall=False))
    ledger, grown = Ledger(), {}
    for number in range(1, 121):
        before = edges(ledger)
        ledger.extend(talk.say(f"message {number} of equal length {number % 10}").trace)
        grown[number] = edges(ledger) - before
    assert max(grown[n] for n in range(80, 121)) <= max(grown[n] for n in range(30, 71))


def test_a_superseded_turn_is_taken_back():
    """Messages, facts, memories and the summary of a replaced turn no longer count."""
    talk = Talk(MemorySettings(system_prompt="Be kind.", token_limit=260, summary_every=2))
    for number in range(6):
        talk.say(f"opening {number} with enough words to fill the window quickly, yes")
    talk.say("I am vegan", fact="I am vegan", prefer="diet")
    talk.say("I am vegan no more", supersede=True)
    ledger = Ledger.fold(talk.traces)
    old = talk.traces[6]
    assert [ledger.fate(MESSAGE, i, 8) for i in old.appended] == [Fate.SUPERSEDED] * 2
    assert ledger.fate(MEMORY, "r7", 8) is Fate.SUPERSEDED
    assert ledger.fate(FACT, "f7", 8) is Fate.GONE
    assert ledger.fate(STATE, "preferences.diet", 8) is Fate.GONE
    assert ledger.fate(MESSAGE, old.appended[0], 7) is Fate.PROMPT


def test_a_turn_without_a_prompt_says_so():
    """Where a turn failed before its prompt, nothing is shown as in or gone."""
    talk = Talk()
    talk.say("hello there")
    talk.say("this one fails", fail=True)
    ledger = Ledger.fold(talk.traces)
    assert ledger.fate(MESSAGE, "m0", 2) is Fate.NO_PROMPT
    assert ledger.fate(MESSAGE, "m2", 2) is Fate.SAID


def test_seeded_messages_have_rows_before_the_first_turn():
    """Messages imported before the first turn come first, in their order."""
    talk = Talk()
    talk.say("hello there")
    ledger = Ledger(seeded=("old1", "old2"))
    ledger.extend(talk.traces[0])
    assert ledger.tracks[MESSAGE].ids[:3] == ["old1", "old2", "m0"]
    assert ledger.fate(MESSAGE, "old1", 1) is Fate.GONE


def test_memories_of_other_sessions_have_no_message_rows():
    """A hit from another session is a memory row only; its messages are not this session's."""
    talk = Talk(similar={"from elsewhere": 0.9})
    talk.records.append(Record("other", "from elsewhere", 3, "another", ("x1", "x2")))
    talk.say("hello there")
    ledger = Ledger.fold(talk.traces)
    assert ledger.fate(MEMORY, "other", 1) is Fate.RETRIEVED
    assert ledger.tracks[MESSAGE].ids == ["m0", "m1"]


def test_a_correction_puts_the_new_memory_in_the_old_ones_place():
    """The corrected memory is superseded from the next turn on, the new one holds its messages."""
    talk = Talk(MemorySettings(recall=False))
    talk.say("I live in Faro")
    trace = talk.say("No, in Porto", remember=False).trace
    new = MemoryWrite("corrected", "r9", "I live in Porto", replaces="r1")
    talk.moments[1] = replace(talk.moments[1], trace=replace(trace, memories=(new,)))
    talk.say("and now?")
    ledger = Ledger.fold(talk.traces)
    assert ledger.fate(MEMORY, "r1", 3) is Fate.SUPERSEDED
    assert ledger.fate(MEMORY, "r9", 3) is Fate.LONG_TERM
    assert ledger.notes.memories_of["m0"] == ["r1", "r9"]
    assert "replaced by 'I live in Porto'." in tell(ledger, MEMORY, "r1").text


def test_turns_must_come_in_order():
    """A trace that is not newer than the last is refused, and unknown turns have no column."""
    talk = Talk()
    ledger = Ledger.fold([talk.say("one").trace])
    with pytest.raises(ValueError, match="comes after"):
        ledger.extend(talk.traces[0])
    with pytest.raises(KeyError):
        ledger.column_of(7)
    gap: TurnTrace = replace(talk.say("two").trace, number=9)
    ledger.extend(gap)
    assert ledger.turns == [1, 9]
    assert ledger.column_of(9) == 1


def test_empty_ranges_and_an_empty_ledger_give_empty_pictures():
    """Asking for cells that are not there gives an array without them, never an error."""
    assert Ledger().view(MESSAGE, range(10), range(10)).shape == (0, 0)
    ledger = Ledger.fold([Talk().say("one").trace])
    assert ledger.view(MESSAGE, range(5, 9), range(1)).shape == (0, 1)
    assert ledger.view(FACT, range(9), range(9)).shape == (0, 1)


@given(st.lists(st.sets(st.integers(0, 4)), max_size=12), st.integers(0, 11), st.integers(0, 12))
def test_spans_remember_exactly_what_was_marked(marks, first, width):
    """Runs, counts, single cells and pictures agree with the sets that were marked."""
    import numpy as np

    spans = Spans()
    for column, rows in enumerate(marks):
        spans.mark(rows, column)
    end = len(marks)
    picture = np.zeros((5, width), dtype=np.uint8)
    spans.paint(picture, 0, first, 7)
    for row in range(5):
        held = [c for c in range(end) if row in marks[c]]
        assert [c for c in range(end) if spans.holds(row, c)] == held
        runs = [c for a, b in spans.runs(row, end) for c in range(a, b + 1)]
        assert runs == held
        assert spans.count(row, end) == len(held)
        assert spans.first(row) == (held[0] if held else None)
        inside = {c - first for c in range(first, min(end, first + width)) if row in marks[c]}
        painted = {int(c) for c in np.flatnonzero(picture[row])}
        assert {c for c in painted if c + first < end} == inside
