"""A comparison as one HTML page that needs nothing else: no script, no network, its own styles.

Everything that people or models wrote is escaped. The page folds with ``<details>``, which every
browser has, and draws its bars with plain boxes.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence

from memory_core.lab.comparison import MODES, Comparison, Kept
from memory_core.prompt import Source
from ui.palette import swatch
from ui.view_models.compare import (
    Item,
    Result,
    Side,
    headline,
    named,
    question_rows,
    questions_by_turn,
    results,
    settings_rows,
    sides,
    total_rows,
)
from ui.view_models.text import excerpt

MOST_TURNS = 200  # that differ, told in full
_MOST_ITEMS, _MOST_TEXT = 100, 4_000
_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:84rem;padding:0 1rem;"
    "color:#1c2733;background:#fff}h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}"
    ".wide{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums}"
    "th,td{padding:.3rem .6rem;text-align:left;vertical-align:top;border:1px solid #dde3e8}"
    "th{background:#f4f6f8}p.note{color:#55606b}summary{cursor:pointer}"
    ".sides{display:grid;grid-auto-flow:column;grid-auto-columns:minmax(14rem,1fr);gap:.8rem;"
    "overflow-x:auto}.side{border:1px solid #dde3e8;border-radius:.4rem;padding:.6rem;"
    "overflow-wrap:anywhere}.side p{margin:.2rem 0}"
    ".own{background:#eef6ea}.gone{background:#fbeee8}"
    "pre{white-space:pre-wrap;background:#f4f6f8;padding:.4rem;margin:.2rem 0}"
    ".bar{display:flex;height:.8rem;margin:1px 0}.bar span{height:100%}"
    ".bars{display:grid;grid-template-columns:2.5rem 1fr;gap:0 .4rem;font-size:.75rem}"
    "@media print{details{display:block}}"
)


def to_html(comparison: Comparison, *, name: str = "") -> str:
    """Return the page."""
    title = f"{name or comparison.title}: {len(comparison.columns)} configurations side by side"
    about = f"{comparison.title} · {MODES[comparison.mode]} · {comparison.made:%Y-%m-%d %H:%M} UTC"
    body = [
        f"<h1>{_text(title)}</h1>",
        f'<p class="note">{_text(about)}</p>',
        f"<p><strong>{_text(headline(comparison))}</strong></p>",
        _table(total_rows(comparison)),
        *_notices(comparison),
        "<h2>Settings that differ</h2>",
        _table(settings_rows([column.configuration for column in comparison.columns])),
        "<h2>Budget, turn by turn</h2>",
        _legend(comparison),
        *_budgets(comparison),
    ]
    if comparison.questions:
        body += ["<h2>Recall questions</h2>", _table(question_rows(comparison))]
        body += [_asked(comparison, number) for number in range(len(comparison.questions))]
    body += ["<h2>Turns that differ</h2>", *_turns(comparison)]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{_text(title)}</title><style>{_STYLE}</style></head>"
        f"<body>{''.join(body)}</body></html>"
    )


def _notices(comparison: Comparison) -> Iterable[str]:
    for notice in comparison.notices:
        yield f'<p class="note">{_text(notice)}</p>'
    for number, column in enumerate(comparison.columns):
        told = " ".join((*column.notices, *([f"Ended early: {column.error}"] * bool(column.error))))
        yield f'<p class="note">{_text(named(number, column.name))}: {_text(told)}</p>'


def _turns(comparison: Comparison) -> Iterable[str]:
    asked = questions_by_turn(comparison)
    if not comparison.differing:
        yield "<p>None.</p>"
    for turn in comparison.differing[:MOST_TURNS]:
        said = _text(excerpt(asked.get(turn, ""), 200))
        inner = "".join(map(_side, sides(comparison, turn)))
        opened = " open" if turn == comparison.first else ""
        yield (
            f"<details{opened}><summary>Turn {turn}: {said}</summary>"
            f'<div class="sides">{inner}</div></details>'
        )
    left = len(comparison.differing) - MOST_TURNS
    if left > 0:
        yield f"<p>and {left:,} more turns that differ</p>"


def _side(side: Side) -> str:
    parts = [f"<p><strong>{_text(side.name)}</strong> · {_text(side.headline)}</p>"]
    if side.error:
        parts.append(f"<p>{_text(side.error)}</p>")
    parts.append(f"<p>In: {len(side.kept):,}</p>{_items(side.kept, 'own', '+')}")
    for item in side.texts:
        mark = "" if item.shared else "+ "
        text = _text(excerpt(item.text, _MOST_TEXT))
        parts.append(
            f"<details><summary>{mark}{_text(item.label)}</summary><pre>{text}</pre></details>"
        )
    parts.append(f"<p>Out: {len(side.left):,}</p>{_items(side.left, 'gone', '-')}")
    if side.answer:
        parts.append(f"<p>Answer</p><pre>{_text(excerpt(side.answer, _MOST_TEXT))}</pre>")
    return f'<div class="side">{"".join(parts)}</div>'


def _items(items: Sequence[Item], mark: str, sign: str) -> str:
    own = [item for item in items if not item.shared]
    lines = [
        f'<p class="{mark}">{sign} {_text(item.label)}: {_text(item.text)}</p>'
        for item in own[:_MOST_ITEMS]
    ]
    if len(own) > _MOST_ITEMS:
        lines.append(f"<p>and {len(own) - _MOST_ITEMS:,} more</p>")
    return "".join(lines)


def _asked(comparison: Comparison, number: int) -> str:
    question = comparison.questions[number]
    inner = "".join(map(_result, results(comparison, number)))
    expected = f" · expected: {_text(question.answer)}" if question.answer else ""
    return (
        f"<details><summary>{_text(question.question)}{expected}</summary>"
        f'<div class="sides">{inner}</div></details>'
    )


def _result(result: Result) -> str:
    parts = [f"<p><strong>{_text(result.name)}</strong></p><p>{_text(result.line)}</p>"]
    if result.error:
        parts.append(f"<p>{_text(result.error)}</p>")
    for piece in result.pieces:
        mark, kind = ("✓", "own") if piece.held else ("✗", "gone")
        text = _text(excerpt(" ".join(piece.text.split()), 300))
        parts.append(
            f'<p class="{kind}">{mark} {_text(piece.label)}, {_text(piece.place)}: {text}</p>'
        )
    if result.answer:
        parts.append(f"<pre>{_text(excerpt(result.answer, _MOST_TEXT))}</pre>")
    return f'<div class="side">{"".join(parts)}</div>'


def _legend(comparison: Comparison) -> str:
    present = {
        source for column in comparison.columns for kept in column.turns for source in kept.tokens
    }
    keys = [
        f'<span style="background:{look.colour};color:{look.ink};padding:0 .4rem">'
        f"{_text(look.letter)}</span> "
        f"{_text(look.label)} &nbsp; "
        for source in Source
        if source.value in present
        for look in [swatch(source)]
    ]
    return f'<p class="note">{"".join(keys)}</p>'


def _budgets(comparison: Comparison) -> Iterable[str]:
    most = max((k.total for c in comparison.columns for k in c.turns), default=0) or 1
    for number, column in enumerate(comparison.columns):
        bars = "".join(_bar(kept, most) for kept in column.turns)
        name = _text(named(number, column.name))
        yield f'<details open><summary>{name}</summary><div class="bars">{bars}</div></details>'


def _bar(kept: Kept, most: int) -> str:
    pieces = "".join(
        f'<span style="background:{swatch(Source(source)).colour};'
        f'width:{100 * tokens / most:.2f}%" title="{_text(source)} {tokens:,}"></span>'
        for source, tokens in kept.tokens.items()
    )
    return f'<span>{kept.turn}</span><div class="bar">{pieces}</div>'


def _table(rows: Sequence[Mapping[str, object]]) -> str:
    if not rows:
        return "<p>None.</p>"
    head = "".join(f"<th>{_text(name)}</th>" for name in rows[0])
    lines = [
        f"<tr>{''.join(f'<td>{_text(value)}</td>' for value in row.values())}</tr>" for row in rows
    ]
    return f'<div class="wide"><table><tr>{head}</tr>{"".join(lines)}</table></div>'


def _text(value: object) -> str:
    return html.escape(str(value))
