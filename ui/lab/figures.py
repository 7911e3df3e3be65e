"""The heat map that can be clicked, and evidence against tokens: plain data for plotly.js.

A heat map of plotly.js reports no clicks that Streamlit hears, so invisible points lie over its
cells; they carry the hover texts too. Each cell says its figure, so colour never stands alone.
"""

from __future__ import annotations

from memory_core.lab.table import SweepResult
from ui.charts import Figure
from ui.palette import BLUE, DARK_GREY, GREY, ORANGE, RED, translucent
from ui.view_models.lab import Findings, HeatView

_CELL, _AROUND, _LEAST, _HIGHEST = 30, 90, 260, 720  # pixels
_LETTERS = 400  # cells up to which each shows its figure
_TICKS, _LETTERS_A_LINE = 12, 34  # labels along an axis, and letters of all those below the map
_SCALE = [[0, "#EDF4FA"], [0.5, "#6FA8D6"], [1, "#0B5394"]]
Place = tuple[int, int]


def heat_figure(view: HeatView, *, chosen: Place | None, best: Place | None) -> Figure:
    """Return the map; ``chosen`` is outlined, ``best`` carries a star."""
    columns, rows = list(range(len(view.x))), list(range(len(view.y)))
    small = len(columns) * len(rows) <= _LETTERS
    known = [(x, y) for y in rows for x in columns if view.evidence[y][x] is not None]
    texts = [
        [_figure(value) + ("★" if (x, y) == best else "") for x, value in enumerate(row)]
        for y, row in enumerate(view.evidence)
    ]
    heat: Figure = {
        "type": "heatmap",
        "z": [list(row) for row in view.evidence],
        "x": columns,
        "y": rows,
        "zmin": 0,
        "zmax": 1,
        "colorscale": _SCALE,
        "showscale": False,
        "xgap": 1,
        "ygap": 1,
        "hoverinfo": "skip",
        "hoverongaps": False,
    }
    if small:
        heat |= {"text": texts, "texttemplate": "%{text}", "textfont": {"size": 11}}
    points: Figure = {
        "type": "scatter",
        "mode": "markers",
        "x": [x for x, _ in known],
        "y": [y for _, y in known],
        "marker": {"size": 22, "symbol": "square", "color": "rgba(0,0,0,0)"},
        "text": [_hover(view, x, y) for x, y in known],
        "hovertemplate": "%{text}<extra></extra>",
        "showlegend": False,
    }
    return {
        "data": [heat, points],
        "layout": {
            "template": {},
            "height": min(_HIGHEST, max(_LEAST, _AROUND + _CELL * len(rows))),
            "margin": {"l": 8, "r": 8, "t": 8, "b": 44},
            "hovermode": "closest",
            "clickmode": "event+select",
            "dragmode": False,
            "xaxis": _axis(view.x_title, view.x, most=_LETTERS_A_LINE)
            | {"range": [-0.5, len(columns) - 0.5]},
            "yaxis": _axis(view.y_title, view.y)
            | {"range": [-0.5, len(rows) - 0.5], "automargin": True},
            "shapes": [_around(*chosen)] if chosen is not None else [],
        },
    }


def front_figure(result: SweepResult, found: Findings, *, chosen: Place | None) -> Figure:
    """Return every cell as a point, the front as a line with intervals, the recommended a star."""
    measure = found.choice.measure
    spots = [
        (float(cell.tokens.mean()), float(result.scores(cell, measure).mean()), cell)
        for cell in result.cells
    ]
    at = {(cell.x, cell.y): (tokens, evidence) for tokens, evidence, cell in spots}
    line = [at[cell.x, cell.y] for cell in found.front]
    best = at[found.choice.cell.x, found.choice.cell.y]
    data: list[Figure] = [
        {
            "type": "scatter",
            "mode": "markers",
            "name": "every cell",
            "x": [tokens for tokens, _, _ in spots],
            "y": [evidence for _, evidence, _ in spots],
            "marker": {"size": 6, "color": translucent(GREY, 0.5)},
            "hovertemplate": "%{x:,.0f} tokens · %{y:.0%}<extra></extra>",
        },
        {
            "type": "scatter",
            "mode": "lines+markers",
            "name": "Pareto front, 95 % intervals",
            "x": [tokens for tokens, _ in line],
            "y": [evidence for _, evidence in line],
            "line": {"color": BLUE, "width": 2},
            "marker": {"size": 7},
            "error_y": {
                "type": "data",
                "symmetric": False,
                "array": [max(0.0, own.high - own.mean) for own in found.intervals],
                "arrayminus": [max(0.0, own.mean - own.low) for own in found.intervals],
                "thickness": 1,
                "width": 3,
            },
            "hovertemplate": "%{x:,.0f} tokens · %{y:.0%}<extra></extra>",
        },
        {
            "type": "scatter",
            "mode": "markers",
            "name": "recommended",
            "x": [best[0]],
            "y": [best[1]],
            "marker": {
                "size": 16,
                "symbol": "star",
                "color": ORANGE,
                "line": {"width": 1, "color": DARK_GREY},
            },
            "hovertemplate": "recommended: %{x:,.0f} tokens · %{y:.0%}<extra></extra>",
        },
    ]
    if chosen in at:
        data.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": "chosen cell",
                "x": [at[chosen][0]],
                "y": [at[chosen][1]],
                "marker": {
                    "size": 16,
                    "symbol": "circle-open",
                    "color": RED,
                    "line": {"width": 2},
                },
                "hoverinfo": "skip",
            }
        )
    return {
        "data": data,
        "layout": {
            "template": {},
            "height": 340,
            "margin": {"l": 8, "r": 8, "t": 8, "b": 44},
            "dragmode": False,
            "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
            "xaxis": {"title": {"text": "mean tokens of the prompt"}, "fixedrange": True},
            "yaxis": {
                "title": {"text": "evidence in the prompt"},
                "tickformat": ".0%",
                "rangemode": "tozero",
                "automargin": True,
                "fixedrange": True,
            },
        },
    }


def _axis(title: str, values: tuple[str, ...], *, most: int = 0) -> Figure:
    """Return an axis with a label for every value, or every few where they do not fit."""
    step = max(1, -(-len(values) // _TICKS))
    if most:
        step = max(step, -(-sum(map(len, values)) // most))
    ticks = list(range(0, len(values), step))
    return {
        "title": {"text": title, "standoff": 4},
        "fixedrange": True,
        "showgrid": False,
        "zeroline": False,
        "tickangle": 0,
        "tickvals": ticks,
        "ticktext": [_plain(values[at]) for at in ticks],
    }


def _hover(view: HeatView, x: int, y: int) -> str:
    tokens = view.tokens[y][x] or 0.0
    return (
        f"{view.x_title} {_plain(view.x[x])}<br>{view.y_title} {_plain(view.y[y])}<br>"
        f"evidence {_percent(view.evidence[y][x])} · {tokens:,.0f} tokens"
    )


def _figure(value: float | None) -> str:
    """Return a share in per cent without the sign, for which a cell has no room."""
    return "" if value is None else f"{100 * value:.0f}"


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:.0%}"


def _around(x: int, y: int) -> Figure:
    line = {"width": 3, "color": RED}
    box = {"x0": x - 0.5, "x1": x + 0.5, "y0": y - 0.5, "y1": y + 0.5}
    return {"type": "rect", "line": line, **box}


def _plain(text: str) -> str:
    """Return a text that plotly shows as it is (it reads a few HTML tags)."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
