"""The fate matrix as a heat map whose cells can be clicked: plain data for plotly.js.

A heat map of plotly.js reports no clicks that Streamlit hears, so invisible points lie over its
cells, one trace a row; they carry the hover texts too.
"""

from __future__ import annotations

from memory_core.fate import Fate
from ui.charts import Figure
from ui.palette import DARK_GREY
from ui.view_models.why import MatrixView, look

_CELL, _AROUND, _LEAST = 15, 82, 170  # pixels
_LETTERS = 1_200  # cells up to which each shows its letter
_KINDS = len(Fate)


def matrix_figure(view: MatrixView, *, item: str, turn: int) -> Figure:
    """Return the matrix with the row and the column that are looked at outlined."""
    columns = list(range(len(view.turns)))
    letters = [[look(Fate(c), view.kind).letter for c in row] for row in view.codes]
    small = len(view.ids) * len(columns) <= _LETTERS
    data: list[Figure] = [
        {
            "type": "heatmap",
            "z": [list(row) for row in view.codes],
            "x": columns,
            "y": list(range(len(view.ids))),
            "zmin": -0.5,
            "zmax": _KINDS - 0.5,
            "colorscale": _scale(view.kind),
            "showscale": False,
            "xgap": 1,
            "ygap": 1,
            "hoverinfo": "skip",
            **(
                {"text": letters, "texttemplate": "%{text}", "textfont": {"size": 9}}
                if small
                else {}
            ),
        }
    ]
    for at, (label, row) in enumerate(zip(view.labels, view.codes, strict=True)):
        there = [column for column in columns if row[column] != Fate.NOT_YET]
        data.append(
            {
                "type": "scatter",
                "mode": "markers",
                "x": there,
                "y": [at] * len(there),
                "marker": {"size": 13, "symbol": "square", "color": "rgba(0,0,0,0)"},
                "text": [look(Fate(row[column]), view.kind).words for column in there],
                "customdata": [view.turns[column] for column in there],
                "hovertemplate": f"{_plain(label)}<br>turn %{{customdata}}: %{{text}}"
                "<extra></extra>",
                "showlegend": False,
            }
        )
    ticks = _ticks(len(columns))
    return {
        "data": data,
        "layout": {
            "template": {},
            "height": max(_LEAST, _AROUND + _CELL * len(view.ids)),
            "margin": {"l": 8, "r": 8, "t": 8, "b": 48},
            "hovermode": "closest",
            "clickmode": "event+select",
            "dragmode": False,
            "xaxis": {
                "fixedrange": True,
                "showgrid": False,
                "zeroline": False,
                "range": [-0.5, len(columns) - 0.5],
                "tickangle": 0,
                "tickvals": ticks,
                "ticktext": [f"{view.turns[at]:,}" for at in ticks],
                "title": {"text": "turn", "standoff": 12},
            },
            "yaxis": {
                "fixedrange": True,
                "showgrid": False,
                "zeroline": False,
                "range": [len(view.ids) - 0.5, -0.5],
                "automargin": True,
                "tickvals": list(range(len(view.ids))),
                "ticktext": [_plain(label) for label in view.labels],
                "tickfont": {"size": 10},
            },
            "shapes": [*_outline(view, item, turn)],
        },
    }


def _scale(kind: str) -> list[list[object]]:
    """Return a scale of flat steps, one a fate."""
    steps: list[list[object]] = []
    for fate in Fate:
        colour = look(fate, kind).colour
        steps += [[fate / _KINDS, colour], [(fate + 1) / _KINDS, colour]]
    return steps


def _ticks(count: int) -> list[int]:
    step = max(1, -(-count // 8))
    return list(range(0, count, step))


def _outline(view: MatrixView, item: str, turn: int) -> list[Figure]:
    shapes: list[Figure] = []
    line = {"width": 2, "color": DARK_GREY}
    if item in view.ids:
        at = view.ids.index(item)
        shapes.append(
            {
                "type": "rect",
                "x0": -0.5,
                "x1": len(view.turns) - 0.5,
                "y0": at - 0.5,
                "y1": at + 0.5,
                "line": line,
            }
        )
    if view.turns and view.turns[0] <= turn <= view.turns[-1] + view.every[1] - 1:
        at = max(i for i, number in enumerate(view.turns) if number <= turn)
        shapes.append(
            {
                "type": "rect",
                "x0": at - 0.5,
                "x1": at + 0.5,
                "y0": -0.5,
                "y1": len(view.ids) - 0.5,
                "line": {**line, "dash": "dot"},
            }
        )
    return shapes


def _plain(text: str) -> str:
    """Return a text that plotly shows as it is (it reads a few HTML tags)."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
