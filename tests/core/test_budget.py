"""Budgets: nothing exceeds the limit, unused shares flow to the buffer, collisions have numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core.budget import Shares, allocate_budget, collisions

tokens = st.integers(0, 5000)


def test_the_worked_example() -> None:
    """The example in the module's docstring holds."""
    got = allocate_budget(
        window=4096,
        reserve=512,
        token_limit=1600,
        fixed=400,
        shares=Shares(),
        state_needs=100,
        retrieved_needs=240,
    )
    assert (got.memory, got.buffer, got.state, got.retrieved) == (1200, 860, 100, 240)


@given(tokens, tokens, tokens, tokens, tokens, tokens, st.floats(0, 1), st.floats(0, 1))
def test_parts_never_exceed_the_limit(
    window: int, reserve: int, limit: int, fixed: int, state: int, hits: int, a: float, b: float
) -> None:
    """Whatever is asked for, memory's layers sum to the room there is, none below zero."""
    shares = Shares(1 - max(a, b), min(a, b), max(a, b) - min(a, b))
    got = allocate_budget(
        window=window,
        reserve=reserve,
        token_limit=limit,
        fixed=fixed,
        shares=shares,
        state_needs=state,
        retrieved_needs=hits,
    )
    assert got.buffer + got.state + got.retrieved == max(0, got.memory)
    assert min(got.buffer, got.state, got.retrieved, got.limit) >= 0
    assert got.limit <= max(0, window - reserve)
    assert got.state <= state
    assert got.retrieved <= hits


def test_collisions_name_both_numbers() -> None:
    """A layer that needs more than its share is named with both numbers, and so is no room."""
    got = allocate_budget(
        window=4096,
        reserve=512,
        token_limit=300,
        fixed=451,
        shares=Shares(),
        state_needs=50,
        retrieved_needs=0,
    )
    notes = collisions(got, state_needs=50, retrieved_needs=0)
    assert "Fixed part larger than the limit" in notes[0]
    assert "451" in notes[0]
    assert "300" in notes[0]
    assert "need 50 tokens, their share is 0" in notes[1]


def test_shares_must_sum_to_one() -> None:
    """Shares that do not sum to 1 or are negative are a programmer's mistake."""
    with pytest.raises(ValueError, match="sum to 1"):
        Shares(0.5, 0.2, 0.2)
    with pytest.raises(ValueError, match="at least 0"):
        Shares(1.2, -0.2, 0.0)
