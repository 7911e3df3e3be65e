"""Which cell to take: worked by hand, and laws that hold for any sweep."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_core.errors import InvalidInput
from memory_core.lab.axes import Axis, Point
from memory_core.lab.cells import BUFFER, NOWHERE, RETRIEVED, SUMMARISED, Cell, Evidence, Measure
from memory_core.lab.choosing import bootstrap, cheapest, halves, intervals, pareto
from memory_core.lab.inputs import SweepQuestion
from memory_core.lab.table import SweepResult
from memory_core.models.catalogue import Price
from memory_core.settings import MemorySettings

QUESTIONS = (
    SweepQuestion("first?", 9, (0, 4)),
    SweepQuestion("second?", 9, (3,)),
    SweepQuestion("third?", 9, (1, 2, 8)),
)


def made(*cells: tuple[int, int, list[int], list[int]]) -> SweepResult:
    """Return a sweep of two by two cells with these codes and tokens."""
    return SweepResult(
        title="Made",
        x=Axis("token_limit", (100, 200)),
        y=Axis("top_k", (1, 2)),
        base=Point(MemorySettings(), "layered", "m"),
        questions=QUESTIONS,
        cells=tuple(
            Cell(x, y, np.array(where, np.int8), np.array(tokens, np.int64), 2.0, 1.5)
            for x, y, where, tokens in cells
        ),
    )


B, R, S, N = BUFFER, RETRIEVED, SUMMARISED, NOWHERE
RESULT = made(
    (0, 0, [N, B, N, N, S, N], [50, 60, 70]),
    (1, 0, [B, B, R, N, S, B], [100, 110, 120]),
    (0, 1, [B, B, N, N, N, B], [130, 130, 130]),
)


def test_a_cell_in_figures() -> None:
    """Any, all, share and places of evidence, tokens and cost, worked by hand."""
    row = RESULT.row(RESULT.cell(1, 0), price=Price(2.0, 1.0, 8.0))
    assert (row.x, row.y) == (200, 1)
    assert row.any == pytest.approx(3 / 3)
    assert row.all == pytest.approx(2 / 3)
    assert row.share == pytest.approx((1 + 1 + 1 / 3) / 3)
    assert row.places["buffer"] == pytest.approx((1 + 0 + 1 / 3) / 3)
    assert row.places["retrieved"] == pytest.approx(1 / 3)
    assert row.places["summary"] == pytest.approx((1 / 3) / 3)
    assert row.places["elsewhere"] == 0
    assert (row.tokens, row.most_tokens) == (110, 120)
    assert row.cost == pytest.approx(110 * 2 / 1e6)
    assert RESULT.row(RESULT.cell(1, 0)).cost is None


def test_the_map_and_its_holes() -> None:
    """The map has a row for each y and a column for each x; a cell not there yet is NaN."""
    heat = RESULT.heat()
    assert heat.shape == (2, 2)
    assert np.isnan(heat[1, 1])
    assert heat[0, 1] == pytest.approx(RESULT.row(RESULT.cell(1, 0)).share)
    assert not RESULT.complete
    only = np.array([False, True, False])
    assert RESULT.heat(Measure.ALL, which=only)[0].tolist() == [0, 1]
    assert RESULT.tokens(which=only)[0].tolist() == [60, 110]
    with pytest.raises(InvalidInput):
        RESULT.cell(1, 1)


def test_misses_name_the_messages() -> None:
    """A cell's misses are the questions it does not serve whole, with what they lack."""
    missed = RESULT.missed(RESULT.cell(1, 0))
    assert [(one.number, one.question.text, one.missing) for one in missed] == [
        (2, "third?", (1, 2))
    ]


def test_the_settings_of_a_cell() -> None:
    """A cell gives the settings that a session takes, the other knobs as they stood."""
    settings_ = RESULT.settings(RESULT.cell(1, 0))
    assert settings_ == MemorySettings(token_limit=200, top_k=1).to_json()


def test_the_front_leaves_out_what_is_beaten() -> None:
    """Cheapest first, each with more evidence than all before; the beaten cell is not in it."""
    assert [(cell.x, cell.y) for cell in pareto(RESULT)] == [(0, 0), (1, 0)]


def test_the_cheapest_that_keeps_enough() -> None:
    """The fewest tokens with 90 % of the best cell's evidence, and what that saves."""
    choice = cheapest(RESULT, hold_out=False)
    assert (choice.cell.x, choice.cell.y) == (1, 0)
    assert choice.held_out is None
    assert choice.saved == 0
    less = cheapest(RESULT, keep=0.1, hold_out=False)
    assert (less.cell.x, less.cell.y) == (0, 0)
    assert less.saved == pytest.approx(1 - 60 / 110)
    assert less.wanted == pytest.approx(0.1 * less.best)


def test_what_cannot_be_chosen_is_refused() -> None:
    """No cells, and shares that are none, are refused."""
    for keep in (-0.1, 1.1, float("nan")):
        with pytest.raises(InvalidInput):
            cheapest(RESULT, keep=keep)
    for choose in (cheapest, pareto, intervals):
        with pytest.raises(InvalidInput):
            choose(made())


@given(texts=st.lists(st.text(max_size=5), min_size=1, max_size=30, unique=True))
def test_halves_are_equal_and_do_not_depend_on_order(texts: list[str]) -> None:
    """Every question is in exactly one half, the same one in whatever order they come."""
    questions = [SweepQuestion(text, 1, (0,)) for text in texts]
    first, second = halves(questions)
    assert (first ^ second).all()
    assert abs(int(first.sum()) - int(second.sum())) <= 1
    turned, _ = halves(questions[::-1])
    assert turned[::-1].tolist() == first.tolist()


@given(
    rows=st.lists(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=6, max_size=6), min_size=1)
)
@settings(max_examples=30, deadline=None)
def test_intervals_hold_the_mean(rows: list[list[float]]) -> None:
    """An interval lies within what was seen, around the mean, the same every time."""
    scores = np.array(rows)
    found = bootstrap(scores, rounds=200)
    assert found == bootstrap(scores, rounds=200)
    for own, row in zip(found, rows, strict=True):
        assert min(row) - 1e-9 <= own.low <= own.mean + 1e-9
        assert own.mean - 1e-9 <= own.high <= max(row) + 1e-9


def test_an_interval_is_about_as_wide_as_theory_says() -> None:
    """Of 400 questions of which half are served, 95 % lie within about 5 points."""
    (own,) = bootstrap(np.array([[0.0, 1.0] * 200]))
    assert own.high - own.mean == pytest.approx(1.96 * 0.5 / 20, rel=0.2)


@given(
    codes=st.lists(
        st.lists(st.sampled_from([N, S, B, R]), min_size=6, max_size=6), min_size=4, max_size=4
    ),
    tokens=st.lists(st.integers(0, 9), min_size=4, max_size=4),
    measure=st.sampled_from(Measure),
    keep=st.floats(0, 1),
)
@settings(max_examples=80, deadline=None)
def test_choices_keep_their_promise(
    codes: list[list[int]], tokens: list[int], measure: Measure, keep: float
) -> None:
    """No cell beats one of the front; the choice is on the front's price or below, and enough."""
    cells = [(n % 2, n // 2, codes[n], [tokens[n]] * 3) for n in range(4)]
    result = made(*cells)
    result.check()
    front = pareto(result, measure)
    for cell in result.cells:
        mine = result.scores(cell, measure).mean()
        better = [
            one
            for one in front
            if result.scores(one, measure).mean() >= mine and one.tokens[0] <= cell.tokens[0]
        ]
        assert better
    choice = cheapest(result, measure, keep=keep, hold_out=False)
    evidence = {id(cell): result.scores(cell, measure).mean() for cell in result.cells}
    best = max(evidence.values())
    assert evidence[id(choice.cell)] >= keep * best - 1e-9
    assert all(
        cell.tokens[0] >= choice.cell.tokens[0]
        for cell in result.cells
        if evidence[id(cell)] >= keep * best
    )


def test_evidence_lies_in_one_row() -> None:
    """Question after question; each owns as many pieces as it has evidence."""
    evidence = Evidence.of(QUESTIONS)
    assert evidence.owner.tolist() == [0, 0, 1, 2, 2, 2]
    assert evidence.message.tolist() == [0, 4, 3, 1, 2, 8]
    assert evidence.counts.tolist() == [2, 1, 3]
