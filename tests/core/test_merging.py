"""Two versions of a state become one, field by field."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from memory_core.merging import merge_states
from memory_core.state import AgentState, KeyFact, diff

NAMES = st.sampled_from(["a", "b", "a.b", "key_facts.x", "ü"])
FACTS = st.lists(
    st.builds(KeyFact, st.sampled_from("xyz"), st.text(max_size=5), st.integers(1, 3)),
    max_size=3,
    unique_by=lambda fact: fact.id,
).map(tuple)
STATES = st.builds(
    AgentState,
    st.just("ann"),
    st.just("s"),
    workflow=st.sampled_from(["", "order", "refund"]),
    step=st.sampled_from(["", "1", "2"]),
    slots=st.dictionaries(NAMES, st.one_of(st.integers(), st.text(max_size=3))),
    preferences=st.dictionaries(NAMES, st.text(max_size=3)),
    key_facts=FACTS,
    version=st.integers(1, 9),
)


@given(STATES, STATES)
def test_all_of_ours_or_none(ours, theirs):
    """With every path ours the result says what ours says; with none it is theirs."""
    paths = {change.path for change in diff(theirs, ours)}
    assert diff(ours, merge_states(ours, theirs, paths)) == ()
    assert diff(theirs, merge_states(ours, theirs, ())) == ()


@given(STATES, STATES, st.data())
def test_each_field_is_as_chosen(ours, theirs, data):
    """What is left to differ from theirs is exactly what was chosen for ours, and v.v."""
    paths = sorted(change.path for change in diff(theirs, ours))
    mine = set(data.draw(st.lists(st.sampled_from(paths)))) if paths else set()
    merged = merge_states(ours, theirs, mine)
    assert {change.path for change in diff(theirs, merged)} == mine
    assert {change.path for change in diff(ours, merged)} == set(paths) - mine
    assert merged.version == theirs.version


def test_paths_that_do_not_differ_are_ignored():
    """A choice made on an older view does not touch what both agree on."""
    state = AgentState("ann", "s", slots={"a": 1}, version=2)
    assert merge_states(state, replace(state, version=5), {"slots.a", "no such"}).slots == {"a": 1}
