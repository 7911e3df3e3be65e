"""What the Compare page says of a comparison, by hand-made ones."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from memory_core.lab.comparison import (
    ANSWERS,
    PLANNED,
    PLAYED,
    PROMPTS,
    Asked,
    Column,
    Comparison,
    Configuration,
    Kept,
    Line,
    Spent,
)
from memory_core.models.catalogue import OPENAI, ModelChoice
from memory_core.questions import RecallQuestion
from memory_core.settings import MemorySettings
from memory_core.strategies import BUFFER, default_setup
from ui.view_models.compare import (
    asked_words,
    cost_words,
    glances,
    headline,
    long_words,
    results,
    settings_rows,
    short,
    sides,
    total_rows,
    turn_rows,
    unused,
)

SAID = tuple(
    Line(turn, role, f"{role} {turn}") for turn in (1, 2, 3) for role in ("user", "assistant")
)
OURS = Configuration("turn", settings=MemorySettings(token_limit=500))
BUFFERED = Configuration("buffer", default_setup(BUFFER))


def made(mode: str = PROMPTS) -> Comparison:
    """Return two columns that part in turn 3: one has message 0, the other a summary instead."""
    tokens = {"buffer": 40, "system": 10}
    ours = Column(
        OURS,
        PLANNED,
        (
            Kept(1, tokens, 500),
            Kept(2, tokens, 500, ((0, 2),)),
            Kept(3, tokens, 500, ((0, 1), (2, 4)), left_out=("buffer “x”: no room",)),
        ),
        (Asked(("buffer",), 60, told=True, answer="user 1", right=True),),
    )
    other = Column(
        BUFFERED,
        PLAYED,
        (
            Kept(1, tokens, 300),
            Kept(2, tokens, 300, ((0, 2),)),
            Kept(3, tokens, 300, ((2, 4),), (("summary", "all of it"),)),
        ),
        (Asked(("summary",), 50, told=True),),
        Spent(3, 3, 90, 30, None, 1.5),
    )
    questions = (RecallQuestion("What?", "user 1", (0,)),)
    return Comparison("t", mode, SAID, questions, (ours, other), datetime(2026, 1, 1, tzinfo=UTC))


def test_where_they_part_is_said_and_shown():
    """The headline, the rows and the two sides of the turn tell the same difference."""
    comparison = made()
    assert headline(comparison) == "First differs at turn 3; 1 of 3 turns do."
    (row,) = turn_rows(comparison)
    assert row == {"turn": 3, "you": "user 3", "A": "3 in · 50", "B": "2 in · Σ · 50"}
    ours, other = sides(comparison, 3)
    assert [(i.label, i.shared) for i in ours.kept] == [
        ("turn 2 bot", True),
        ("turn 2 you", True),
        ("turn 1 you", False),
    ]
    assert [(i.label, i.shared) for i in other.left] == [
        ("turn 1 bot", True),
        ("turn 1 you", False),
    ]
    assert [(i.label, i.text, i.shared) for i in other.texts] == [("Σ summary", "all of it", False)]
    assert ours.reasons == ("buffer “x”: no room",)
    same = replace(comparison, columns=(comparison.columns[0],) * 2)
    assert headline(same) == "They remember the same in all of 3 turns."
    assert turn_rows(same) == []


def test_a_question_is_told_piece_by_piece():
    """In, where, and whether only the expected text got there; the answer where there is one."""
    ours, other = results(made(ANSWERS), 0)
    assert (ours.line, ours.answer) == ("in 1/1 (buffer) · ✓ right · 60 tokens", "user 1")
    assert ours.pieces[0].held
    assert ours.pieces[0].label == "turn 1 you"
    assert other.line == "out 0/1 (summary only) · told · 50 tokens"
    assert not other.pieces[0].held
    assert asked_words(Asked((), error="no")) == "failed"
    assert asked_words(Asked(())) == "nothing to find"
    assert asked_words(Asked(("out", "buffer"), right=False)) == (
        "partly in 1/2 (buffer) · ✗ not in the answer"
    )


def test_costs_are_what_is_known():
    """A price where one is known, what prompts would cost where none were sent, else nothing."""
    ours, other = made().columns
    assert [row["cost, US$"] for row in total_rows(made(ANSWERS))] == ["0.0000", "no price known"]
    priced = replace(ours, configuration=replace(OURS, model=ModelChoice(OPENAI, "gpt-4o")))
    assert cost_words(priced, PROMPTS) == "0.0004 if sent"
    assert cost_words(other, PROMPTS) == "0.0000"
    assert total_rows(made())[1]["model calls"] == "3 (stand-in)"
    assert [glance.figure for glance in glances(made())] == ["1 of 1", "0 of 1"]
    assert [glance.name for glance in glances(made())] == ["A · turn", "B · buffer"]


def test_settings_that_differ_and_no_others():
    """Strategy and limit are always told; what nobody changed is not."""
    rows = {row["setting"]: row for row in settings_rows([OURS, BUFFERED])}
    assert rows["token limit"]["A · turn"] == "500"
    assert rows["strategy"]["B · buffer"] == "ChatMemoryBuffer"
    assert rows["top k"]["B · buffer"] == ""
    assert "diversity" not in rows
    changed = replace(OURS, settings=OURS.settings.with_(diversity=0.5))
    assert any(row["setting"] == "diversity" for row in settings_rows([changed, BUFFERED]))


def test_names_and_warnings():
    """A name says the settings and is used once; a long talk warns of classes that are run."""
    assert short(OURS) == "Layered, 500 tokens, top_k 4"
    assert unused("a", ["a", "a (2)"]) == "a (3)"
    assert long_words([OURS], 5_000) == ""
    assert long_words([BUFFERED], 20) == ""
    assert "5,000 turns" in long_words([OURS, BUFFERED], 5_000)
