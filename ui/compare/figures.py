"""Budget bars over turns, a strip for each configuration on the same scale: data for plotly.js."""

from __future__ import annotations

from memory_core.lab.comparison import Comparison
from memory_core.prompt import Source
from ui.charts import Figure
from ui.palette import GREY, RED, swatch
from ui.view_models.compare import LETTERS

_STRIP, _AROUND = 96, 108  # pixels
_GAP = 0.12  # of a strip, between two


def budget_figure(comparison: Comparison, *, turn: int) -> Figure:
    """Return stacked bars by source, a dashed line for each limit and a mark at one turn.

    The strips of all configurations share both scales, so that heights can be compared.
    """
    columns, turns = comparison.columns, list(comparison.turns)
    count = len(columns)
    most = max((kept.total for column in columns for kept in column.turns), default=1)
    limits = [kept.limit for column in columns for kept in column.turns]
    top = max(most, *(limit for limit in (*limits, 1) if limit <= 2 * most)) * 1.08
    data: list[Figure] = []
    layout: Figure = {
        "template": {},
        "barmode": "stack",
        "bargap": 0.08 if len(turns) <= 60 else 0,
        "height": _AROUND + _STRIP * count,
        "margin": {"l": 8, "r": 8, "t": 8, "b": 96},
        "dragmode": False,
        "showlegend": True,
        "legend": {"orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom", "x": 0},
        "shapes": [],
        "annotations": [],
    }
    shown: set[Source] = set()
    for number, column in enumerate(columns):
        axis = str(number + 1) if number else ""
        bottom, height = (count - 1 - number) / count, 1 / count
        kept = [comparison.kept(column, at) for at in turns]
        for source in Source:
            tokens = [one.tokens.get(source.value, 0) for one in kept]
            if not any(tokens):
                continue
            look = swatch(source)
            data.append(
                {
                    "type": "bar",
                    "name": f"{look.letter} {look.label}",
                    "legendgroup": source.value,
                    "showlegend": source not in shown,
                    "x": turns,
                    "y": tokens,
                    "xaxis": "x",
                    "yaxis": f"y{axis}",
                    "marker": {"color": look.colour, "line": {"width": 0}},
                    "hovertemplate": f"turn %{{x}} · {look.label} %{{y:,}}<extra></extra>",
                }
            )
            shown.add(source)
        layout[f"yaxis{axis}"] = {
            "domain": [bottom, bottom + height * (1 - _GAP)],
            "range": [0, top],
            "fixedrange": True,
            "nticks": 3,
            "automargin": True,
            "title": {"text": LETTERS[number], "standoff": 4},
            "gridcolor": "rgba(140,140,140,0.2)",
        }
        layout["shapes"] += _limits(turns, [one.limit for one in kept], f"y{axis}", top)
    layout["xaxis"] = {
        "fixedrange": True,
        "showgrid": False,
        "tickformat": "d",
        "nticks": 12,
        "anchor": f"y{count}" if count > 1 else "y",
        "title": {"text": "turn", "standoff": 10},
    }
    layout["shapes"].append(
        {
            "type": "line",
            "x0": turn,
            "x1": turn,
            "yref": "paper",
            "y0": 0,
            "y1": 1,
            "line": {"width": 1.5, "dash": "dot", "color": GREY},
        }
    )
    return {"data": data, "layout": layout}


def alt(comparison: Comparison) -> str:
    """Return the figure in words."""
    parts = [
        f"{column.name}: {column.prompts:,} tokens over all turns, most in one turn "
        f"{max((kept.total for kept in column.turns), default=0):,}"
        for column in comparison.columns
    ]
    return f"Prompt tokens per turn and configuration. {'; '.join(parts)}."


def _limits(turns: list[int], limits: list[int], axis: str, top: float) -> list[Figure]:
    """Return a line at each stretch of turns that has the same limit."""
    out: list[Figure] = []
    for at, limit in enumerate(limits):
        if not 0 < limit <= top:
            continue
        if out and out[-1]["y0"] == limit and out[-1]["x1"] == turns[at] - 0.5:
            out[-1]["x1"] = turns[at] + 0.5
            continue
        out.append(
            {
                "type": "line",
                "x0": turns[at] - 0.5,
                "x1": turns[at] + 0.5,
                "y0": limit,
                "y1": limit,
                "yref": axis,
                "line": {"width": 1.5, "dash": "dash", "color": RED},
            }
        )
    return out
