"""A sweep and its choice told: in one plain sentence, and as a JSON object for other programs."""

from __future__ import annotations

from dataclasses import asdict

from memory_core.lab.axes import Value
from memory_core.lab.cells import Cell
from memory_core.lab.choosing import Choice, Interval, intervals, pareto
from memory_core.lab.table import SweepResult
from memory_core.messages import Json
from memory_core.models.catalogue import Price


def in_words(result: SweepResult, choice: Choice) -> str:
    """Return the choice in plain words, with its intervals and the half held out."""
    x, y = result.x.values[choice.cell.x], result.y.values[choice.cell.y]
    fewer = f", {choice.saved:.0%} fewer than it" if choice.saved >= 0.005 else ""
    text = (
        f"{result.x.title} {plain(x)} and {result.y.title} {plain(y)} keep "
        f"{_spread(choice.chosen)} of the evidence where the best cell keeps {choice.best:.0%}, "
        f"for {choice.tokens:,.0f} tokens{fewer}."
    )
    if choice.held_out is None:
        return text
    held = _spread(choice.held_out)
    return f"Chosen on half of the questions: {text} On the half that was held out: {held}."


def as_json(result: SweepResult, choice: Choice, *, price: Price | None = None) -> dict[str, Json]:
    """Return all figures: every cell with its interval, the Pareto front and the choice."""

    def figures(cell: Cell) -> dict[str, Json]:
        row = asdict(result.row(cell, price=price))
        return {result.x.name: row.pop("x"), result.y.name: row.pop("y"), **row}

    spread = zip(result.cells, intervals(result, choice.measure), strict=True)
    return {
        "title": result.title,
        "questions": len(result.questions),
        "axes": {axis.name: list(axis.values) for axis in (result.x, result.y)},
        "strategy": result.base.strategy,
        "embedding": result.base.embedding,
        "counter": result.counter,
        "measure": choice.measure.value,
        "seconds": round(result.seconds, 3),
        "notices": list(result.notices),
        "cells": [figures(cell) | {"interval": [own.low, own.high]} for cell, own in spread],
        "pareto": [figures(cell) for cell in pareto(result, choice.measure)],
        "choice": figures(choice.cell)
        | {
            "wanted": choice.wanted,
            "best": choice.best,
            "chosen_on": asdict(choice.chosen),
            "held_out": asdict(choice.held_out) if choice.held_out else None,
            "saved": choice.saved,
            "settings": result.settings(choice.cell),
        },
    }


def plain(value: Value) -> str:
    """Return an axis value as people read it."""
    if isinstance(value, str):
        return value
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


def _spread(interval: Interval) -> str:
    return f"{interval.mean:.0%} ({interval.low:.0%} to {interval.high:.0%})"
