"""The Tuning lab's tables and figures as values: what a person reads is what was measured."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core.errors import InvalidInput
from memory_core.lab.axes import Axis, Point
from memory_core.lab.cells import BUFFER, NOWHERE, SUMMARISED, Cell, Measure
from memory_core.lab.inputs import SweepQuestion
from memory_core.lab.table import SweepResult
from memory_core.messages import Message
from memory_core.questions import RecallQuestion
from memory_core.settings import MemorySettings
from ui.lab.figures import front_figure, heat_figure
from ui.view_models.lab import changes, findings, front_rows, heat_view, misses
from ui.view_models.lab_questions import added, edited, numbers, question_rows, tally, written

ASKED = (RecallQuestion("Who?", "Ana", (0,)), RecallQuestion("Where?", "Lisbon", (2, 4)))


def result(*places):
    """Return a sweep of two limits by one top_k; ``places`` are the codes of each cell."""
    cells = tuple(
        Cell(x, 0, np.array(codes, np.int8), np.array([100 * (x + 1)] * 2), 1.0, 1.0)
        for x, codes in enumerate(places)
    )
    return SweepResult(
        title="chat",
        x=Axis("token_limit", (400, 800)),
        y=Axis("top_k", (3,)),
        base=Point(MemorySettings(), "layered", "wordllama"),
        questions=(SweepQuestion("Who?", 6, (0,)), SweepQuestion("Where?", 6, (2, 4), "Lisbon")),
        cells=cells,
    )


WHOLE = result([BUFFER, NOWHERE, SUMMARISED], [BUFFER, BUFFER, BUFFER])


def test_map_of_a_sweep_that_still_runs_has_holes():
    """Cells that are not there yet are empty, on the map and to the pointer."""
    view = heat_view(result([BUFFER, NOWHERE, BUFFER]), Measure.SHARE)
    assert view.evidence == ((0.75, None),)
    figure = heat_figure(view, chosen=None, best=None)
    assert figure["data"][1]["x"] == [0]
    assert "1 of 2 cells" in view.alt


def test_misses_name_each_message_that_is_lacking():
    """Every lacking message is told with its number and words, and where else it is told."""
    said = [Message.of("user", f"<b>{n}</b>") for n in range(6)]
    (miss,) = misses(WHOLE, WHOLE.cell(0, 0), lambda _: said)
    assert (miss.question, miss.expected, miss.number) == ("Where?", "Lisbon", 1)
    assert [(p.message, p.text, bool(p.told)) for p in miss.pieces] == [
        (2, "<b>2</b>", False),
        (4, "<b>4</b>", True),
    ]
    assert misses(WHOLE, WHOLE.cell(1, 0), lambda _: said) == ()
    assert misses(WHOLE, WHOLE.cell(0, 0), lambda _: ())[0].pieces[0].text == ""


def test_front_marks_the_recommended_cell_once():
    """One row of the front carries the star; the figure has a point for every cell."""
    found = findings(WHOLE, Measure.SHARE, 0.5)
    rows = front_rows(WHOLE, found, None)
    assert [row[""] for row in rows].count("★") == 1
    figure = front_figure(WHOLE, found, chosen=(1, 0))
    assert len(figure["data"][0]["x"]) == 2
    assert figure["data"][3]["x"] == [200.0]


def test_changes_name_only_the_knobs_that_move():
    """What applying does is told knob by knob, old and new."""
    now = MemorySettings()
    assert changes(now, now) == []
    assert changes(now, now.with_(token_limit=800, threshold=0.2)) == [
        "token_limit: 1,600 → 800",
        "threshold: 0.15 → 0.2",
    ]


def test_edits_of_the_table_are_taken_in_or_refused_by_row():
    """A good edit changes its question only; a bad one leaves the row and says why."""
    questions, wrong = edited(
        ASKED, {0: {"use": False}, 1: {"messages": "9"}, 7: {"question": "x"}}, 6
    )
    assert [q.accepted for q in questions] == [False, True]
    assert questions[1] == ASKED[1]
    assert wrong == ("Row 2: there is no message '9'; they run from 1 to 6.",)
    assert tally(questions).startswith("1 question to ask, 1 not used")


@given(st.lists(st.integers(0, 40), unique=True))
def test_messages_are_read_as_they_are_shown(evidence):
    """The numbers in the table, read again, are the evidence they were made of."""
    pieces = tuple(sorted(evidence))
    (row,) = question_rows([RecallQuestion("Who?", "", pieces)])
    assert numbers(str(row["messages"]), 41) == pieces


@given(st.text(max_size=40))
def test_no_text_of_numbers_gets_past_its_conversation(text):
    """Whatever is typed is indexes of the conversation, or refused."""
    try:
        found = numbers(text, 5)
    except InvalidInput:
        return
    assert all(0 <= index < 5 for index in found)


def test_a_written_question_needs_text_and_evidence():
    """Without either it is refused; half an emoji and NUL do not get in."""
    assert written("A\ud83d?\0", " b ", [3, 1, 3]).evidence == (1, 3)
    assert "\ud83d" not in written("A\ud83d?\0", "", [1]).question
    for text, evidence in (("  ", [1]), ("Who?", [])):
        with pytest.raises(InvalidInput):
            written(text, "", evidence)


def test_proposing_twice_adds_nothing():
    """A question that is there already is not added again."""
    assert added(ASKED, ASKED) == ASKED
