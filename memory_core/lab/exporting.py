"""A sweep for other programs and other people: CSV, and one HTML page that needs nothing else.

The page is plain HTML with its own styles: a coloured table, figures and the choice. It runs no
script and loads nothing, so it opens anywhere and years later. Every text in it is escaped.
"""

from __future__ import annotations

import csv
import html
import io
import math
from collections.abc import Iterable

from memory_core.lab.axes import Value
from memory_core.lab.cells import PLACES, Measure
from memory_core.lab.choosing import Choice, intervals, pareto
from memory_core.lab.report import in_words, plain
from memory_core.lab.table import SweepResult
from memory_core.models.catalogue import Price

_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet would run a text that begins so
_LIGHT, _DARK = (237, 244, 250), (11, 83, 148)
_NAMES = {
    Measure.SHARE: "share of the evidence",
    Measure.ANY: "any piece of the evidence",
    Measure.ALL: "all of the evidence",
}
_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:72rem;padding:0 1rem;"
    "color:#1c2733;background:#fff}h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}"
    "table{border-collapse:collapse;font-variant-numeric:tabular-nums}"
    "th,td{padding:.25rem .6rem;text-align:right;border:1px solid #fff}"
    "th{font-weight:600;background:#f4f6f8}.best{outline:3px solid #c0392b;outline-offset:-3px}"
    "td.text,th.text{text-align:left}p.note{color:#55606b}.map{overflow-x:auto}"
)


def to_csv(result: SweepResult, *, price: Price | None = None) -> str:
    """Return one line a cell: the values of both axes and every figure of it."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    shares = [f"share_{name}" for name in PLACES.values()]
    head = [result.x.name, result.y.name, "evidence_any", "evidence_all", "evidence_share", *shares]
    head += ["tokens_mean", "tokens_most", "cost_usd", "embeddings_a_turn", "model_calls_a_turn"]
    writer.writerow(head)
    for row in result.rows(price=price):
        writer.writerow(
            [_cell(row.x), _cell(row.y), *map(_figure, (row.any, row.all, row.share))]
            + [_figure(row.places[name]) for name in PLACES.values()]
            + [_figure(row.tokens), row.most_tokens]
            + ["" if row.cost is None else f"{row.cost:.8f}"]
            + [_figure(row.embeddings), _figure(row.model_calls)]
        )
    return out.getvalue()


def to_html(result: SweepResult, choice: Choice, *, price: Price | None = None) -> str:
    """Return a page with the heat map (by the choice's measure), the choice and what tokens buy."""
    measure, chosen = choice.measure, html.escape(in_words(result, choice))
    title = html.escape(f"{result.title}: {result.x.title} by {result.y.title}")
    asked = f"{len(result.questions):,} questions, tokens counted by {result.counter}"
    about = f"Each cell: {_NAMES[measure]} in the prompt, averaged over the questions, and the"
    body = [
        f"<h1>{title}</h1>",
        f'<p class="note">{html.escape(asked)}. {about} mean tokens of the prompt.</p>',
        *(f'<p class="note">{html.escape(notice)}</p>' for notice in result.notices),
        f'<div class="map">{_heat(result, measure, choice)}</div>',
        f"<h2>Cheapest setting that keeps enough</h2><p>{chosen}</p>",
        f"<h2>What a token buys</h2>{_front(result, measure, price)}",
    ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{title}</title><style>{_STYLE}</style></head><body>{''.join(body)}</body></html>"
    )


def _heat(result: SweepResult, measure: Measure, choice: Choice) -> str:
    evidence, tokens = result.heat(measure), result.tokens()
    corner = html.escape(f"{result.y.title} \\ {result.x.title}")
    head = "".join(f"<th>{_shown(value)}</th>" for value in result.x.values)
    lines = [f"<tr><th class='text'>{corner}</th>{head}</tr>"]
    for j, value in enumerate(result.y.values):
        cells = []
        for i in range(len(result.x.values)):
            if math.isnan(evidence[j, i]):
                cells.append("<td></td>")
                continue
            best = ' class="best"' if (i, j) == (choice.cell.x, choice.cell.y) else ""
            shown = f"{evidence[j, i]:.0%}<br><small>{tokens[j, i]:,.0f}</small>"
            cells.append(f'<td{best} style="{_colour(evidence[j, i])}">{shown}</td>')
        lines.append(f"<tr><th>{_shown(value)}</th>{''.join(cells)}</tr>")
    return f"<table>{''.join(lines)}</table>"


def _front(result: SweepResult, measure: Measure, price: Price | None) -> str:
    spread = dict(zip(map(id, result.cells), intervals(result, measure), strict=True))
    names = [result.x.title, result.y.title, "evidence", "95 % interval", "tokens", "US$ a turn"]
    lines = [[f"<th>{html.escape(name)}</th>" for name in names]]
    for cell in pareto(result, measure):
        row, own = result.row(cell, price=price), spread[id(cell)]
        cost = "" if row.cost is None else f"{row.cost:.6f}"
        texts = [_shown(row.x), _shown(row.y), f"{own.mean:.1%}"]
        texts += [f"{own.low:.0%} to {own.high:.0%}", f"{row.tokens:,.0f}", cost]
        lines.append([f"<td>{text}</td>" for text in texts])
    return f"<table>{''.join(f'<tr>{_joined(line)}</tr>' for line in lines)}</table>"


def _joined(pieces: Iterable[str]) -> str:
    return "".join(pieces)


def _colour(share: float) -> str:
    mixed = [round(a + (b - a) * share) for a, b in zip(_LIGHT, _DARK, strict=True)]
    text = "#fff" if share > 0.5 else "#1c2733"
    return f"background:rgb({mixed[0]},{mixed[1]},{mixed[2]});color:{text}"


def _shown(value: Value) -> str:
    return html.escape(plain(value))


def _cell(value: Value) -> Value:
    if isinstance(value, str) and value.startswith(_FORMULA):
        return f"'{value}"
    return value


def _figure(value: float) -> str:
    return f"{value:.6g}"
