"""State: each change is a new version, round trips are whole, diffs name every difference."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core import state as s
from memory_core.errors import InvalidInput

EMPTY = s.AgentState(user="u", session="x")
values = st.none() | st.booleans() | st.integers() | st.text(max_size=10)


def test_changes_make_versions() -> None:
    """Each real change counts the version up by one; a change to the same does not."""
    one = s.set_preference(EMPTY, "tone", "short")
    two = s.update_workflow(one, workflow="order", step="address", slots={"city": "Porto"})
    assert (one.version, two.version) == (1, 2)
    assert s.set_preference(one, "tone", "short") is one
    assert s.set_preference(two, "tone", "").preferences == {}
    assert s.update_workflow(two, workflow=None, step=None, slots={"city": None}).slots == {}


def test_equal_facts_are_kept_once() -> None:
    """A fact that differs only in case, spacing or end punctuation is not added again."""
    once = s.add_fact(EMPTY, s.KeyFact("1", "The user's name is Kim", 1))
    assert s.add_fact(once, s.KeyFact("2", "the user's  name is Kim.", 2)) is once
    assert s.drop_facts(once, frozenset({"1"})).key_facts == ()


@given(
    st.dictionaries(st.text(max_size=8), values, max_size=4),
    st.dictionaries(st.text(min_size=1, max_size=8), st.text(max_size=8), max_size=4),
)
def test_json_round_trip(slots: dict, preferences: dict) -> None:
    """A state comes back from its JSON exactly as it was."""
    made = s.AgentState(
        "u",
        "x",
        "w",
        "st",
        slots,
        preferences,
        (s.KeyFact("1", "fact", 3),),
        7,
        datetime(2026, 1, 2, tzinfo=UTC),
    )
    assert s.from_json(s.to_json(made)) == made


def test_diff_names_each_difference() -> None:
    """The diff of two states holds exactly the paths that differ, with both values."""
    one = s.set_preference(EMPTY, "tone", "short")
    two = s.add_fact(s.set_preference(one, "tone", "long"), s.KeyFact("f1", "Nut allergy", 2))
    assert s.diff(one, two) == (
        s.Change("preferences.tone", "short", "long"),
        s.Change("key_facts.f1", None, "Nut allergy"),
    )
    assert s.diff(two, two) == ()


def test_bad_input_is_refused() -> None:
    """A nameless preference, a huge state and a foreign JSON are refused in one sentence."""
    with pytest.raises(InvalidInput, match="needs a name"):
        s.set_preference(EMPTY, " ", "x")
    with pytest.raises(InvalidInput, match="characters long"):
        s.set_preference(EMPTY, "x", "y" * 200_000)
    with pytest.raises(InvalidInput, match="no state"):
        s.from_json({"user": "u"})
