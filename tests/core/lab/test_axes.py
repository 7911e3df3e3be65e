"""Axes: values as people write them, checked before anything runs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core.errors import InvalidInput
from memory_core.lab.axes import MOST_VALUES, TITLES, Axis, Point, grid
from memory_core.settings import MemorySettings

BASE = Point(MemorySettings(), "layered", "model")


@pytest.mark.parametrize(
    ("name", "text", "values"),
    [
        ("token_limit", "500:4000:20", 20),
        ("top_k", "1:10", 10),
        ("top_k", " 3, 1,3 ", 2),
        ("threshold", "0:0.5:6", 6),
        ("shares", "60/20/20, 1/1/0", 2),
        ("recall_method", "dense,bm25,hybrid", 3),
        ("token_limit", "900:100:3", 3),
        ("token_limit", "700:700:1", 1),
    ],
)
def test_values_are_read(name: str, text: str, values: int) -> None:
    """Lists, ranges and even spacing give distinct values of the knob's type, ends included."""
    axis = Axis.parse(name, text)
    assert len(axis.values) == values
    assert len(grid(axis, Axis("diversity", (0.5,)), BASE)[0]) == values


def test_even_spacing_keeps_both_ends() -> None:
    """A spaced range begins and ends at what was asked for."""
    values = Axis.parse("token_limit", "500:4000:20").values
    assert (values[0], values[-1]) == (500, 4000)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("nonsense", "1"),
        ("top_k", ""),
        ("top_k", ","),
        ("top_k", "1:2:3:4"),
        ("top_k", "one"),
        ("top_k", "1.5"),
        ("top_k", "5:1"),
        ("top_k", "9" * 6000),
        ("top_k", "1:" + "9" * 400),
        ("top_k", "0:10:-3"),
        ("token_limit", f"1:{MOST_VALUES + 1}"),
        ("threshold", "nan"),
        ("threshold", "0:inf:3"),
        ("threshold", "0:1"),
        ("top_k", "1e3"),
        ("top_k", "\0\ud800"),
    ],
)
def test_what_is_no_value_is_refused(name: str, text: str) -> None:
    """Anything else is refused in a sentence that says how to write values."""
    with pytest.raises(InvalidInput):
        Axis.parse(name, text)


def test_a_range_of_too_many_values_says_how_many() -> None:
    """A range read as more values than can be swept is told its number, not that it is none."""
    with pytest.raises(InvalidInput, match="100,000 values") as refused:
        Axis.parse("token_limit", "1:1000000:100000")
    assert "20 values" in str(refused.value.next_step)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("token_limit", 0),
        ("top_k", 10**9),
        ("window_rule", "newest"),
        ("shares", "1/2"),
        ("shares", "0/0/0"),
        ("shares", "-1/1/1"),
        ("shares", "a/b/c"),
        ("shares", "1e308/1e308/1e308"),
        ("recall_method", "<script>"),
        ("threshold", 2.0),
    ],
)
def test_a_value_must_suit_its_knob(name: str, value: object) -> None:
    """A value outside the setting's range is refused when the grid is made."""
    with pytest.raises(InvalidInput):
        grid(Axis(name, (value,)), Axis("diversity", (0.0,)), BASE)


@pytest.mark.parametrize("value", [True, None, 1.5, "3", float("nan"), [1]])
def test_values_have_their_type(value: object) -> None:
    """A whole-number knob takes whole numbers only."""
    with pytest.raises(InvalidInput):
        Axis("top_k", (value,))


def test_a_grid_needs_two_knobs_and_an_end() -> None:
    """The same knob twice and grids without end are refused."""
    with pytest.raises(InvalidInput, match="Both axes"):
        grid(Axis("top_k", (1,)), Axis("top_k", (2,)), BASE)
    many = tuple(range(1, MOST_VALUES + 1))
    with pytest.raises(InvalidInput, match="too many"):
        grid(Axis("top_k", many), Axis("token_limit", many), BASE)


@given(x=st.sampled_from(sorted(TITLES)), y=st.sampled_from(sorted(TITLES)))
def test_any_two_knobs_make_a_grid(x: str, y: str) -> None:
    """Every pair of different knobs can be swept, and a point is as if each were set alone."""
    texts = {"shares": "50/25/25", "window_rule": "exact", "recall_method": "bm25"}
    texts |= {"strategy": "tutorial", "embedding": "other", "context_window": "4096"}
    axes = [
        Axis.parse(name, texts.get(name, "1" if name != "summary_tokens" else "20"))
        for name in (x, y)
    ]
    if x == y:
        return
    ((point,),) = grid(axes[0], axes[1], BASE)
    assert point == axes[0].set(axes[1].set(BASE, axes[1].values[0]), axes[0].values[0])
