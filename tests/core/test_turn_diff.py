"""The difference between two turns adds up to what each of them holds."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from memory_core.contents import Contents
from memory_core.prompt import Source
from memory_core.settings import MemorySettings
from memory_core.state import AgentState
from memory_core.turn_diff import ADDED, REMOVED, SAME, TurnView, compare_turns, text_diff
from tests.core.made import Talk
from tests.core.test_ledger import play, turns

texts = st.text(st.sampled_from("ab \n.é🙂"), max_size=40)


@given(texts, texts)
def test_pieces_make_up_both_texts(before, after):
    """What is the same or removed is the first text, what is the same or added the second."""
    pieces = text_diff(before, after)
    assert "".join(p.text for p in pieces if p.kind in (SAME, REMOVED)) == before
    assert "".join(p.text for p in pieces if p.kind in (SAME, ADDED)) == after
    assert all(p.text for p in pieces)


def test_equal_texts_have_no_change():
    """A text differs in nothing from itself, an empty one from an empty one neither."""
    assert {p.kind for p in text_diff("the same", "the same")} == {SAME}
    assert text_diff("", "") == ()


def test_long_texts_are_compared_by_lines():
    """A text of many thousand words is compared line by line and still adds up."""
    before = "\n".join(f"line {n} of a very long summary" for n in range(4_000))
    after = before.replace("line 70 ", "line seventy ")
    changed = [p for p in text_diff(before, after) if p.kind != SAME]
    assert [p.text for p in changed] == [
        "line 70 of a very long summary\n",
        "line seventy of a very long summary\n",
    ]


@settings(max_examples=30, deadline=None)
@given(turns, st.data())
def test_a_difference_leads_from_one_turn_to_the_other(script, data):
    """Taking away what left and adding what entered gives the other turn's buffer and tokens."""
    talk = play(script)
    pick = st.sampled_from(talk.moments)
    first, second = data.draw(pick), data.draw(pick)
    views = [
        TurnView(m.trace, m.layers.state, m.layers.summary)
        if m.layers is not None
        else TurnView(m.trace, AgentState(user="u", session="s"))
        for m in (first, second)
    ]
    found = compare_turns(*views)
    had, has = Contents.of(first.trace.assembly), Contents.of(second.trace.assembly)
    for moves, old, new in (
        (found.messages, had.messages, has.messages),
        (found.memories, had.memories, has.memories),
        (found.facts, had.facts, has.facts),
    ):
        assert (set(old) - set(moves.left)) | set(moves.entered) == set(new)
        assert set(moves.stayed) == set(old) & set(new)
    for at, moment in ((1, first), (2, second)):
        assembly = moment.trace.assembly
        total = assembly.tokens if assembly is not None else 0
        assert sum(row[at] for row in found.tokens) == total
    back = compare_turns(*reversed(views))
    assert back.messages.entered == found.messages.left
    if first is second:
        assert not found.state
        assert not found.settings
        assert not found.messages.entered


def test_a_turn_under_other_settings_shows_them():
    """Knobs moved between two turns are named with both values, preferences as state changes."""
    talk = Talk(MemorySettings(token_limit=400))
    one = talk.say("hello there", prefer="tone")
    two = talk.say("and again", token_limit=500)
    views = (
        TurnView(one.trace, one.layers.state),
        TurnView(two.trace, two.layers.state),
    )
    found = compare_turns(*views)
    assert [(c.path, c.before, c.after) for c in found.settings] == [("token_limit", 400, 500)]
    assert [c.path for c in found.state] == ["preferences.tone"]
    assert Source.BUFFER in {source for source, _, _ in found.tokens}
