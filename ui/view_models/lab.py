"""What the Tuning lab shows of a sweep: map, front, misses, differences, and what applying does."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from memory_core.lab.cells import PLACES, SUMMARISED, Cell, Measure
from memory_core.lab.choosing import Choice, Interval, bootstrap, cheapest, pareto
from memory_core.lab.comparing import Difference
from memory_core.lab.report import in_words, plain
from memory_core.lab.table import SweepResult
from memory_core.messages import Message
from memory_core.models.catalogue import OFFLINE, ModelChoice, Price
from memory_core.settings import MemorySettings
from ui.view_models.text import excerpt, plural

MEASURES = {
    Measure.SHARE: "share of the evidence",
    Measure.ANY: "any of it",
    Measure.ALL: "all of it",
}
_TEXT = 220  # characters of a message


@dataclass(frozen=True)
class Findings:
    """What a sweep says by one measure: the recommended cell and the front with its intervals."""

    choice: Choice
    words: str
    front: tuple[Cell, ...]
    intervals: tuple[Interval, ...]


@dataclass(frozen=True)
class HeatView:
    """The map: evidence (0 to 1, ``None`` where not known) and tokens, row after row of y."""

    x_title: str
    y_title: str
    x: tuple[str, ...]
    y: tuple[str, ...]
    evidence: tuple[tuple[float | None, ...], ...]
    tokens: tuple[tuple[float | None, ...], ...]
    alt: str


@dataclass(frozen=True)
class Piece:
    """A message of evidence that a prompt lacks. ``told`` says where else it is, if anywhere."""

    message: int
    speaker: str
    text: str
    told: str


@dataclass(frozen=True)
class Miss:
    """A question that a cell does not serve whole."""

    number: int
    question: str
    expected: str
    held: str
    pieces: tuple[Piece, ...]


def findings(result: SweepResult, measure: Measure, keep: float) -> Findings:
    """Return the recommended cell and the front of a sweep that has cells."""
    choice = cheapest(result, measure, keep=keep)
    front = tuple(pareto(result, measure))
    scores = np.stack([result.scores(cell, measure) for cell in front])
    return Findings(choice, in_words(result, choice), front, tuple(bootstrap(scores)))


def heat_view(result: SweepResult, measure: Measure) -> HeatView:
    """Return the map of a sweep, also of one that still runs."""
    known = len(result.cells)
    whole = len(result.x.values) * len(result.y.values)
    evidence = result.heat(measure)
    best = f", at most {np.nanmax(evidence):.0%}" if known else ""
    return HeatView(
        x_title=result.x.title,
        y_title=result.y.title,
        x=tuple(map(plain, result.x.values)),
        y=tuple(map(plain, result.y.values)),
        evidence=_rows(evidence.tolist()),
        tokens=_rows(result.tokens().tolist()),
        alt=f"Evidence in the prompt ({MEASURES[measure]}) by {result.x.title} and "
        f"{result.y.title}: {known:,} of {plural(whole, 'cell')}{best}.",
    )


def cell_line(result: SweepResult, cell: Cell, price: Price | None) -> str:
    """Return the figures of one cell in a line."""
    row = result.row(cell, price=price)
    places = ", ".join(
        f"{row.places[name]:.0%} {'only told in the ' if code == SUMMARISED else ''}{name}"
        for code, name in PLACES.items()
        if row.places[name] > 0
    )
    parts = [
        f"evidence: any {row.any:.0%}, all {row.all:.0%}, share {row.share:.0%}",
        places,
        f"{row.tokens:,.0f} tokens (at most {row.most_tokens:,})",
        f"US$ {row.cost:.6f} a turn" if row.cost is not None else "",
        f"{row.embeddings:.1f} embeddings and {row.model_calls:.1f} model calls a turn",
    ]
    return " · ".join(filter(None, parts))


def misses(
    result: SweepResult, cell: Cell, said: Callable[[int], Sequence[Message]]
) -> tuple[Miss, ...]:
    """Return the questions a cell misses.

    ``said`` gives the conversation that a question is about, empty if it is not at hand.
    """
    owner, message = result.evidence.owner, result.evidence.message
    codes = dict(zip(zip(owner.tolist(), message.tolist(), strict=True), cell.where, strict=True))
    out = []
    for missed in result.missed(cell):
        asked = missed.question
        pieces = tuple(
            _piece(index, said(missed.number), summarised=codes[missed.number, index] == SUMMARISED)
            for index in missed.missing
        )
        there = len(asked.evidence) - len(pieces)
        held = f"{there:,} of {plural(len(asked.evidence), 'message')} in the prompt"
        out.append(Miss(missed.number, asked.text, asked.expected, held, pieces))
    return tuple(out)


def front_rows(
    result: SweepResult, found: Findings, price: Price | None
) -> list[dict[str, object]]:
    """Return a row a cell of the front, cheapest first, the recommended one marked."""
    rows: list[dict[str, object]] = []
    for cell, own in zip(found.front, found.intervals, strict=True):
        row = result.row(cell, price=price)
        best = (cell.x, cell.y) == (found.choice.cell.x, found.choice.cell.y)
        line: dict[str, object] = {
            "": "★" if best else "",
            result.x.title: plain(row.x),
            result.y.title: plain(row.y),
            "evidence": f"{own.mean:.0%}",
            "95 % interval": f"{own.low:.0%} to {own.high:.0%}",
            "tokens": round(row.tokens),
        }
        if row.cost is not None:
            line["US$ a turn"] = f"{row.cost:.6f}"
        rows.append(line)
    return rows


def comparison(
    first: SweepResult, differences: Iterable[Difference]
) -> tuple[str, list[dict[str, object]]]:
    """Return in a sentence how sweep B does beside sweep A, and a row a cell that both have."""
    rows: list[dict[str, object]] = []
    better = worse = 0
    for one in differences:
        before, after = one.evidence
        better, worse = better + (after > before), worse + (after < before)
        rows.append(
            {
                first.x.title: plain(one.x),
                first.y.title: plain(one.y),
                "evidence A": f"{before:.0%}",
                "evidence B": f"{after:.0%}",
                "tokens A": round(one.tokens[0]),
                "tokens B": round(one.tokens[1]),
                "gained": len(one.gained),
                "lost": len(one.lost),
            }
        )
    words = (
        f"Of {plural(len(rows), 'cell')} that both have, B keeps more evidence in {better:,} "
        f"and less in {worse:,}. Gained and lost count the questions that B serves better or worse."
    )
    return words, rows


def model_name(model: ModelChoice) -> str:
    """Return what the chosen model is called in a sentence."""
    return "the offline reader" if model.kind == OFFLINE else model.model


def changes(now: MemorySettings, then: MemorySettings) -> list[str]:
    """Return what applying would change, a knob a line."""
    before, after = now.to_json(), then.to_json()
    return [
        f"{name}: {_short(before[name])} → {_short(value)}"
        for name, value in after.items()
        if value != before[name]
    ]


def _rows(values: Iterable[Iterable[float]]) -> tuple[tuple[float | None, ...], ...]:
    return tuple(tuple(None if math.isnan(v) else v for v in row) for row in values)


def _piece(index: int, said: Sequence[Message], *, summarised: bool) -> Piece:
    told = "in a summary's words only" if summarised else ""
    if index >= len(said):
        return Piece(index, "", "", told)
    message = said[index]
    return Piece(index, message.name or message.role, excerpt(message.text, _TEXT), told)


def _short(value: object) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return f"{value:,}" if type(value) is int else excerpt(str(value), 60)
