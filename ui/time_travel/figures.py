"""The budget over turns as a stacked area, with the limit as a line: plain data for plotly.js."""

from __future__ import annotations

from ui.charts import Figure
from ui.palette import GREY, RED, swatch, translucent
from ui.view_models.time_travel import Area


def area_figure(area: Area, *, turn: int, other: int) -> Figure:
    """Return the stacked area; lines mark the turn looked at and the one compared with."""
    turns = list(area.turns)
    data: list[Figure] = []
    for source, tokens in area.tokens.items():
        look = swatch(source)
        data.append(
            {
                "type": "scatter",
                "mode": "lines" if len(turns) > 1 else "markers",
                "stackgroup": "tokens",
                "name": f"{look.letter} {look.label}",
                "x": turns,
                "y": list(tokens),
                "line": {"width": 1, "color": look.colour},
                "fillcolor": translucent(look.colour, 0.7),
                "hovertemplate": f"{look.label} %{{y:,}}<extra></extra>",
            }
        )
    if any(area.limits):  # a strategy of LlamaIndex's sets none to the whole prompt
        data.append(
            {
                "type": "scatter",
                "mode": "lines" if len(turns) > 1 else "markers",
                "name": "limit",
                "x": turns,
                "y": [limit or None for limit in area.limits],
                "line": {"width": 2, "color": RED, "dash": "dash", "shape": "hv"},
                "hovertemplate": "limit %{y:,}<extra></extra>",
            }
        )
    marks = [(turn, "solid", f"turn {turn}")]
    if other:
        marks.append((other, "dot", f"turn {other}"))
    return {
        "data": data,
        "layout": {
            "template": {},
            "height": 300,
            "margin": {"l": 8, "r": 8, "t": 26, "b": 70},
            "hovermode": "x unified",
            "showlegend": True,
            "legend": {
                "orientation": "h",
                "yref": "container",
                "y": 0,
                "yanchor": "bottom",
                "x": 0,
            },
            "xaxis": {
                "showgrid": False,
                "fixedrange": True,
                "tickformat": "d",
                "title": {"text": "turn", "standoff": 2},
            },
            "yaxis": {"fixedrange": True, "rangemode": "tozero", "automargin": True, "nticks": 5},
            "shapes": [_mark(at, dash) for at, dash, _ in marks],
            "annotations": [
                {
                    "x": at,
                    "y": 1,
                    "yref": "paper",
                    "yanchor": "bottom",
                    "text": text,
                    "showarrow": False,
                    "xanchor": "right" if at < turn else "left",
                }
                for at, _, text in marks
            ],
        },
    }


def _mark(at: int, dash: str) -> Figure:
    return {
        "type": "line",
        "x0": at,
        "x1": at,
        "yref": "paper",
        "y0": 0,
        "y1": 1,
        "line": {"width": 2, "dash": dash, "color": GREY},
    }
