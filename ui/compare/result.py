"""A comparison drawn: where the columns part, totals, budgets, a turn side by side, questions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import streamlit as st

from memory_core.lab.comparison import MODES, Comparison
from ui.charts import CONFIG
from ui.compare.figures import alt, budget_figure
from ui.compare.place import ComparePlace, place_of
from ui.panels.tables import columns, table_height
from ui.problems import plain
from ui.state import mine, seed, value_of
from ui.view_models.compare import (
    Item,
    Result,
    Side,
    glances,
    headline,
    question_rows,
    questions_by_turn,
    results,
    settings_rows,
    sides,
    total_rows,
    turn_rows,
)
from ui.view_models.text import excerpt

_TURN, _ROWS, _ASKED = "compare-turn", "compare-rows", "compare-asked"
_A_ROW = 4  # columns that stand in one row
_One = TypeVar("_One")
_SHOWN = 8  # messages of a column before the rest is folded away
_MOST, _TEXT = 200, 1_500  # messages in a fold; characters of a text


def draw(place: ComparePlace, comparison: Comparison) -> None:
    """Draw everything that was found."""
    _head(place, comparison)
    _turns()
    if comparison.questions:
        _questions()
    _totals(comparison)


@st.fragment(key="compare-turns")
def _turns() -> None:
    """Draw everything that follows the turn that is looked at."""
    place = place_of(mine())
    comparison = place.result
    if comparison is None:
        return
    st.subheader("Budget, turn by turn")
    st.plotly_chart(
        budget_figure(comparison, turn=place.turn),
        key="compare-budget",
        config=CONFIG,
        alt=alt(comparison),
    )
    st.caption(
        "Dashed: the limit; that of a class of LlamaIndex's counts its own messages, not the "
        "system prompt and tools. Dotted: the turn below."
    )
    st.subheader("What each remembers")
    _steps(place, comparison)
    _turn(comparison, place.turn)
    _differing(comparison)


def _beside(values: Sequence[_One]) -> Iterator[tuple[Any, _One]]:
    """Yield each value with the place to draw it: side by side, more than four in rows of three."""
    row = len(values) if len(values) <= _A_ROW else 3
    for at in range(0, len(values), row):
        yield from zip(st.columns(row, gap="small"), values[at : at + row], strict=False)


def _head(place: ComparePlace, comparison: Comparison) -> None:
    name = f"“{excerpt(place.name, 80)}” · " if place.name else ""
    st.subheader(plain(excerpt(comparison.title, 80)))
    st.caption(plain(f"{name}{MODES[comparison.mode]} · {comparison.made:%Y-%m-%d %H:%M} UTC"))
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"**{headline(comparison)}**")
        if comparison.first is not None:
            st.button(
                f"Go to turn {comparison.first:,}",
                key="compare-first",
                icon=":material/arrow_forward:",
                on_click=_to,
                args=(comparison.first,),
            )
    for side, one in _beside(glances(comparison)):
        with side:
            st.metric(plain(one.name), one.figure)
            st.caption(one.line)
    for column in comparison.columns:
        if column.error:
            st.warning(plain(f"{column.name}: {column.error}"), icon=":material/error:")


def _totals(comparison: Comparison) -> None:
    st.subheader("Totals")
    rows = total_rows(comparison)
    st.dataframe(
        columns(rows),
        key="compare-totals",
        hide_index=True,
        height=table_height(len(rows)),
        alt="Evidence, answers, model calls, tokens, cost and time of each configuration",
    )
    with st.expander("How it was made, and the settings that differ", key="compare-made"):
        for notice in comparison.notices:
            st.caption(plain(notice))
        for column in comparison.columns:
            st.caption(plain(f"{column.name}: {' '.join(column.notices)}"))
        made = settings_rows([column.configuration for column in comparison.columns])
        st.dataframe(
            columns(made),
            key="compare-settings",
            hide_index=True,
            height=table_height(len(made)),
            alt="The settings in which the configurations differ",
        )


def _steps(place: ComparePlace, comparison: Comparison) -> None:
    """Draw what moves from turn to turn, and from one that differs to the next."""
    turns, differ = comparison.turns, comparison.differing
    if len(turns) > 1:
        seed(_TURN, place.turn)
        st.select_slider(f"Turn of {len(turns):,}", list(turns), key=_TURN, on_change=_slide)
    back = [turn for turn in differ if turn < place.turn]
    on = [turn for turn in differ if turn > place.turn]
    with st.container(horizontal=True, vertical_alignment="center"):
        for key, label, icon, to in (
            ("back", "Differs before", "chevron_left", back[-1:]),
            ("on", "Differs next", "chevron_right", on[:1]),
        ):
            st.button(
                f"{label}: turn {to[0]:,}" if to else label,
                key=f"compare-{key}",
                icon=f":material/{icon}:",
                disabled=not to,
                on_click=_to,
                args=(to[0] if to else place.turn,),
            )
    said = questions_by_turn(comparison).get(place.turn, "")
    same = "" if place.turn in differ else " · all remember the same here"
    st.text(f"Turn {place.turn} · you: {said[:200]}{same}")


def _turn(comparison: Comparison, turn: int) -> None:
    for place, side in _beside(sides(comparison, turn)):
        with place, st.container(border=True):
            _side(side)


def _side(side: Side) -> None:
    st.markdown(f"**{plain(side.name)}**")
    st.caption(side.headline)
    if side.error:
        st.warning(plain(side.error), icon=":material/error:")
    _items(f"In, word for word: {len(side.kept):,}", side.kept, "+")
    if side.texts:
        st.caption(f"Beside them: {len(side.texts):,}")
        for item in side.texts:
            mark = "" if item.shared else "+ "
            with st.expander(f"{mark}{item.label}", expanded=not item.shared):
                st.code(excerpt(item.text, _TEXT), language=None, wrap_lines=True)
    _items(f"Out: {len(side.left):,}", side.left, "-")
    if side.reasons:
        with st.expander(f"Why some stayed out: {len(side.reasons):,}"):
            for reason in side.reasons:
                st.text(reason)
    if side.answer:
        st.caption("Answer")
        st.code(excerpt(side.answer, _TEXT), language=None, wrap_lines=True)


def _items(title: str, items: Sequence[Item], mark: str) -> None:
    """Draw a list of messages: those the columns do not share first in sight, the rest folded."""
    st.caption(title)
    own = [item for item in items if not item.shared]
    if own:
        lines = [f"{mark} {item.label}: {item.text}" for item in own[:_SHOWN]]
        if len(own) > _SHOWN:
            lines.append(f"{mark} and {len(own) - _SHOWN:,} more, below")
        st.code("\n".join(lines), language="diff", wrap_lines=True)
    if not items:
        return
    what = "in every column" if mark == "+" else "in no column"
    shared = len(items) - len(own)
    with st.expander(f"All {len(items):,}; {shared:,} {what}"):
        for item in items[:_MOST]:
            st.text(f"{'  ' if item.shared else mark + ' '}{item.label}: {item.text}")
        if len(items) > _MOST:
            st.caption(f"and {len(items) - _MOST:,} more")


def _differing(comparison: Comparison) -> None:
    rows = turn_rows(comparison)
    if not rows:
        return
    st.markdown("**Turns that differ**")
    st.caption(
        "Messages in, other texts by their letter, tokens of the prompt. Choose a row to see it."
    )
    st.dataframe(
        columns(rows),
        key=_ROWS,
        hide_index=True,
        height=table_height(len(rows)),
        on_select=_clicked,
        selection_mode="single-row",
        alt="What each configuration held in every turn in which they differ",
    )


@st.fragment(key="compare-recall")
def _questions() -> None:
    place = place_of(mine())
    comparison = place.result
    if comparison is None:
        return
    st.subheader("Recall questions")
    rows = question_rows(comparison)
    st.caption(
        "Whether the messages that hold the answer stand in the exact prompt, word for word; "
        "“told”: not they, but the expected text does. Choose a row for its pieces and answers."
    )
    st.dataframe(
        columns(rows),
        key=_ASKED,
        hide_index=True,
        height=table_height(len(rows)),
        on_select=_chosen,
        selection_mode="single-row",
        alt="Recall questions, and whether each configuration's prompt held their evidence",
    )
    number = min(place.question, len(rows) - 1)
    question = comparison.questions[number]
    st.text(f"Question {number + 1}: {' '.join(question.question.split())[:300]}")
    if question.answer:
        st.text(f"expected: {question.answer[:300]}")
    for side, result in _beside(results(comparison, number)):
        with side, st.container(border=True):
            _result(result)


def _result(result: Result) -> None:
    st.markdown(f"**{plain(result.name)}**")
    st.caption(plain(result.line))
    if result.error:
        st.warning(plain(result.error), icon=":material/error:")
    for piece in result.pieces:
        mark = "✓" if piece.held else "✗"
        st.text(
            f"{mark} {piece.label}, {piece.place}: {excerpt(' '.join(piece.text.split()), 160)}"
        )
    if result.answer:
        st.code(excerpt(result.answer, _TEXT), language=None, wrap_lines=True)


def _to(turn: int) -> None:
    place_of(mine()).turn = turn


def _slide() -> None:
    place = place_of(mine())
    place.turn = int(value_of(_TURN) or place.turn)


def _clicked() -> None:
    place, event = place_of(mine()), value_of(_ROWS)
    rows = event.selection.rows if event is not None else []
    if rows and place.result is not None and rows[0] < len(place.result.differing):
        place.turn = place.result.differing[rows[0]]


def _chosen() -> None:
    place, event = place_of(mine()), value_of(_ASKED)
    rows = event.selection.rows if event is not None else []
    if rows:
        place.question = int(rows[0])
