"""Plotly figures as plain data, built by pure functions; nothing here imports plotly.

A figure is the dict that plotly.js reads. Without plotly's own template it weighs 2 kB instead of
9, and the page stays importable before plotly is loaded. Every figure comes with its ``alt``
text from the view-model. Colours and patterns are those of :mod:`ui.palette`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memory_core.prompt import Source
from ui.palette import GREY, PINK, swatch, translucent
from ui.view_models.budget import BudgetBar, TurnBar
from ui.view_models.retrieved import HitRow, RetrievedView
from ui.view_models.text import excerpt

Figure = dict[str, Any]

TURNS_SHOWN = 20
CONFIG = {"displayModeBar": False, "scrollZoom": False}
_ZOOM_FROM = 3  # a window this many times the limit would squeeze the bar: show less of it
_NO_TEMPLATE: Figure = {}
_QUIET_AXIS: Figure = {"showgrid": False, "zeroline": False, "fixedrange": True}
_BAR_FOOT = 0.7  # where the prompt's bar ends when past turns stand below it
_HOVER_TEXT = 40


def budget_figure(bar: BudgetBar, turns: Sequence[TurnBar] = ()) -> Figure:
    """Return one stacked bar of the next prompt and, below it, a small one per past turn."""
    end = bar.window or bar.tokens
    if end > _ZOOM_FROM * max(bar.limit, bar.tokens, 1):
        end = int(1.25 * max(bar.limit, bar.tokens, 1))
    reserve_start = max(0, bar.window - bar.reserve)
    data: list[Figure] = [
        {
            **_bar(segment.source),
            "orientation": "h",
            "x": [segment.tokens],
            "y": [""],
            "text": [swatch(segment.source).letter],
            "textposition": "inside",
            "insidetextanchor": "middle",
            "textangle": 0,
            "hovertemplate": (
                f"{segment.label}<br>{segment.tokens:,} tokens · {segment.share:.0%}<extra></extra>"
            ),
        }
        for segment in bar.segments
    ]
    if bar.free:
        data.append(_plain_bar("free", bar.free, translucent(GREY, 0.15)))
    foot = _BAR_FOOT if turns else 0.0
    shapes = [] if bar.history else [_line_at(bar.limit, top=1.0, bottom=foot)]
    if bar.reserve and reserve_start < end:
        shapes.append(_reserve_box(reserve_start, end, bottom=foot))
    layout: Figure = {
        "template": _NO_TEMPLATE,
        "barmode": "stack",
        "height": 230 if turns else 120,
        "margin": {"l": 8, "r": 8, "t": 22, "b": 48 if turns else 30},
        "showlegend": True,
        "legend": {"orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom", "x": 0},
        "xaxis": {**_QUIET_AXIS, "range": [0, max(end, 1)], "showticklabels": False},
        "yaxis": {**_QUIET_AXIS, "domain": [foot, 1.0], "showticklabels": False},
        "shapes": shapes,
        "annotations": [] if bar.history else [_note_at(bar.limit, f"limit {bar.limit:,}", end)],
        "bargap": 0.08,
    }
    if turns:
        data += _turn_traces(turns[-TURNS_SHOWN:], {s.source for s in bar.segments})
        numbers = {"tickformat": "d", "nticks": 10, "title": {"text": "turn", "standoff": 2}}
        layout["xaxis2"] = {**_QUIET_AXIS, **numbers, "anchor": "y2"}
        layout["yaxis2"] = {**_QUIET_AXIS, "anchor": "x2", "domain": [0.2, 0.6], "nticks": 3}
    return {"data": data, "layout": layout}


def retrieved_figure(view: RetrievedView) -> Figure:
    """Return hits and near misses as bars on one score axis, with the threshold line."""
    rows = [*view.hits, *view.near]
    scores, line = [row.score for row in rows], view.threshold
    span = [min([0.0, *scores]), max([1.0, *scores])]
    return {
        "data": [
            _hit_trace("in", view.hits, 0, PINK, ""),
            _hit_trace("near miss", view.near, len(view.hits), GREY, "/"),
        ],
        "layout": {
            "template": _NO_TEMPLATE,
            "height": 70 + 26 * max(1, len(rows)),
            "margin": {"l": 8, "r": 8, "t": 22, "b": 24},
            "barmode": "overlay",
            "showlegend": False,
            "xaxis": {"range": span, "fixedrange": True, "zeroline": True},
            "yaxis": {
                "automargin": True,
                "range": [len(rows) - 0.5, -0.5],
                "fixedrange": True,
                "tickmode": "array",
                "tickvals": list(range(len(rows))),
                "ticktext": [row.label for row in rows],
            },
            "shapes": [_line_at(line, top=1.0, bottom=0.0)] if line is not None else [],
            "annotations": [_note_at(line, f"threshold {line:.2f}", span[1])]
            if line is not None
            else [],
        },
    }


def _turn_traces(turns: Sequence[TurnBar], in_legend: set[Source]) -> list[Figure]:
    numbers = [turn.turn for turn in turns]
    return [
        {
            **_bar(source),
            "x": numbers,
            "y": [turn.tokens.get(source, 0) for turn in turns],
            "xaxis": "x2",
            "yaxis": "y2",
            "showlegend": source not in in_legend,
        }
        for source in Source
        if any(source in turn.tokens for turn in turns)
    ]


def _bar(source: Source) -> Figure:
    look = swatch(source)
    return {
        "type": "bar",
        "name": f"{look.letter} {look.label}",
        "legendgroup": source.value,
        "marker": {"color": look.colour, **_pattern(look.pattern)},
    }


def _plain_bar(name: str, tokens: int, colour: str) -> Figure:
    return {
        "type": "bar",
        "orientation": "h",
        "name": name,
        "x": [tokens],
        "y": [""],
        "marker": {"color": colour},
        "hovertemplate": f"{name}<br>{tokens:,} tokens<extra></extra>",
    }


def _hit_trace(name: str, rows: Sequence[HitRow], first: int, colour: str, pattern: str) -> Figure:
    return {
        "type": "bar",
        "orientation": "h",
        "name": name,
        "x": [row.score for row in rows],
        "y": list(range(first, first + len(rows))),  # labels may be equal, places are not
        "marker": {"color": colour, **_pattern(pattern)},
        "customdata": [[_hover(row.text), row.gate or "in the prompt"] for row in rows],
        "hovertemplate": "%{customdata[0]}<br>%{x:.2f} · %{customdata[1]}<extra></extra>",
    }


def _pattern(shape: str) -> Figure:
    """Return a pattern that tells two bars of one hue apart and leaves the letter readable."""
    if not shape:
        return {}
    return {"pattern": {"shape": shape, "fillmode": "overlay", "solidity": 0.15, "size": 8}}


def _hover(text: str) -> str:
    """Return a text that plotly's hover label shows as it is (it reads a few HTML tags)."""
    short = excerpt(" ".join(text.split()), _HOVER_TEXT)
    return short.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _line_at(x: float, *, top: float, bottom: float) -> Figure:
    return {
        "type": "line",
        "xref": "x",
        "yref": "paper",
        "x0": x,
        "x1": x,
        "y0": bottom,
        "y1": top,
        "line": {"color": "#D55E00", "width": 2, "dash": "dash"},
    }


def _note_at(x: float, text: str, end: float) -> Figure:
    return {
        "x": x,
        "y": 1.0,
        "xref": "x",
        "yref": "paper",
        "text": text,
        "showarrow": False,
        "xanchor": "right" if x > end * 0.7 else "left",
        "yanchor": "bottom",
    }


def _reserve_box(start: float, end: float, *, bottom: float) -> Figure:
    return {
        "type": "rect",
        "xref": "x",
        "yref": "paper",
        "x0": start,
        "x1": end,
        "y0": bottom,
        "y1": 1.0,
        "fillcolor": translucent("#009E73", 0.12),
        "line": {"width": 1, "dash": "dot", "color": "#009E73"},
        "label": {"text": "reply", "font": {"size": 11}},
    }
