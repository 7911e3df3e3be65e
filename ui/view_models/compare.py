"""What the Compare page shows of a comparison: totals, turns that differ, columns, questions.

Everything is a pure function of the :class:`~memory_core.lab.comparison.Comparison`; the page and
the HTML report draw the same values.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from memory_core.lab.comparison import (
    ANSWERS,
    IN,
    PLANNED,
    PROMPTS,
    TURNS,
    Asked,
    Column,
    Comparison,
    Configuration,
    Kept,
)
from memory_core.messages import Json
from memory_core.models.catalogue import OFFLINE, OPENAI, price
from memory_core.prompt import Source
from memory_core.strategies import (
    LAYERED,
    STATELESS,
    default_setup,
    find_agent,
    find_strategy,
)
from ui.palette import swatch
from ui.view_models.text import excerpt, plural

LETTERS = "ABCDEF"
LONG = 150  # turns
LINE = 110  # characters of a message in a list
_QUESTION = 90
_PLACES = {
    "buffer": "buffer",
    "retrieved": "retrieved",
    "elsewhere": "elsewhere",
    "summary": "summary only",
    "out": "out",
}
_NO_CALLS = "0"
_ALWAYS = ("strategy", "model", "token_limit", "top_k")
_EVERYBODYS = ("system_prompt", "tools")  # settings that every strategy goes by


@dataclass(frozen=True)
class Item:
    """A message or text in a column: whether it is ``only`` here, or here and not everywhere."""

    label: str
    text: str
    shared: bool


@dataclass(frozen=True)
class Side:
    """One column in one turn, or in the prompt of one turn as it is compared with the others."""

    name: str
    headline: str
    kept: tuple[Item, ...]
    left: tuple[Item, ...]
    texts: tuple[Item, ...]
    reasons: tuple[str, ...]
    answer: str
    error: str


@dataclass(frozen=True)
class Piece:
    """One piece of evidence: which message, where it stood in the prompt, what it says."""

    label: str
    place: str
    held: bool
    text: str


@dataclass(frozen=True)
class Result:
    """How one column did with one question."""

    name: str
    line: str
    pieces: tuple[Piece, ...]
    answer: str
    error: str


def headline(comparison: Comparison) -> str:
    """Return where the columns part, in one sentence."""
    count = len(comparison.turns)
    if comparison.first is None:
        return f"They remember the same in all of {plural(count, 'turn')}."
    differ = len(comparison.differing)
    return f"First differs at turn {comparison.first:,}; {differ:,} of {plural(count, 'turn')} do."


def total_rows(comparison: Comparison) -> list[dict[str, object]]:
    """Return what each column cost and how much evidence its prompts held."""
    return [
        {
            "configuration": named(number, column.name),
            "evidence in": f"{column.held:,} of {column.pieces:,}" if column.asked else "",
            "right answers": _right(column, comparison.mode),
            "tokens, all prompts": f"{column.prompts:,}",
            "model calls": _calls(column, comparison.mode),
            "sent / received": _sent(column),
            "cost, US$": cost_words(column, comparison.mode),
            "seconds": f"{column.spent.seconds:.1f}",
        }
        for number, column in enumerate(comparison.columns)
    ]


def named(number: int, name: str) -> str:
    """Return a column's name behind its letter, A for the first: no heading is like it."""
    return f"{LETTERS[number]} · {name}"


def cost_words(column: Column, mode: str) -> str:
    """Return what a column cost, or what its prompts would; no figure where no price is known.

    Only prompts are counted in what it would cost: the answers are not known.
    """
    if mode != PROMPTS:
        return "no price known" if column.spent.cost is None else f"{column.spent.cost:.4f}"
    model = column.configuration.model
    known = price(model.model) if model.kind == OPENAI else None
    if known is not None:
        return f"{column.prompts * known.prompt / 1_000_000:.4f} if sent"
    return "0.0000" if model.kind == OFFLINE else "no price known"


@dataclass(frozen=True)
class Glance:
    """One column at a glance: its name, its one figure, and a line below."""

    name: str
    figure: str
    line: str


def glances(comparison: Comparison) -> tuple[Glance, ...]:
    """Return each column's evidence, or tokens where nothing was asked, and how it was made."""
    out = []
    for number, column in enumerate(comparison.columns):
        tokens = f"{column.prompts:,} tokens in all prompts"
        asked = bool(column.asked)
        out.append(
            Glance(
                named(number, column.name),
                f"{column.held:,} of {column.pieces:,}" if asked else f"{column.prompts:,} tokens",
                f"{'pieces of evidence in · ' + tokens if asked else 'in all prompts'} · "
                f"{'planned from the record' if column.how == PLANNED else 'played'}",
            )
        )
    return tuple(out)


def turn_rows(comparison: Comparison) -> list[dict[str, object]]:
    """Return a row for each turn that differs: the question, and what each column held of it.

    The columns are headed by their letters.
    """
    asked = questions_by_turn(comparison)
    rows = []
    for turn in comparison.differing:
        row: dict[str, object] = {"turn": turn, "you": excerpt(asked.get(turn, ""), 60)}
        for number, column in enumerate(comparison.columns):
            row[LETTERS[number]] = held_words(comparison.kept(column, turn))
        rows.append(row)
    return rows


def held_words(kept: Kept) -> str:
    """Return in a few words what a prompt held: messages, other texts by letter, tokens."""
    if kept.error and not kept.tokens:
        return "no prompt"
    letters: dict[str, int] = {}
    for source, _ in kept.texts:
        letter = swatch(Source(source)).letter
        letters[letter] = letters.get(letter, 0) + 1
    more = "".join(f" · {letter}{n if n > 1 else ''}" for letter, n in letters.items())
    return f"{len(kept.messages):,} in{more} · {kept.total:,}"


def questions_by_turn(comparison: Comparison) -> Mapping[int, str]:
    """Return what the person said in each turn, on one line."""
    return {
        line.turn: " ".join(line.text.split())
        for line in reversed(comparison.lines)
        if line.role == "user"
    }


def sides(comparison: Comparison, turn: int) -> tuple[Side, ...]:
    """Return all columns in one turn; what not all of them hold is marked."""
    kept = [comparison.kept(column, turn) for column in comparison.columns]
    everywhere = frozenset.intersection(*(k.messages for k in kept))
    somewhere = frozenset().union(*(k.messages for k in kept))
    texts = [frozenset(k.texts) for k in kept]
    common = frozenset.intersection(*texts)
    return tuple(
        Side(
            name=named(number, column.name),
            headline=_headline(one),
            kept=tuple(
                _message(comparison, at, shared=at in everywhere)
                for at in sorted(one.messages, reverse=True)
            ),
            left=tuple(
                _message(comparison, at, shared=at not in somewhere)
                for at in sorted(_before(comparison, turn) - one.messages, reverse=True)
            ),
            texts=tuple(
                Item(_source(source), text, shared=(source, text) in common)
                for source, text in one.texts
            ),
            reasons=one.left_out,
            answer=one.answer,
            error=one.error,
        )
        for number, (column, one) in enumerate(zip(comparison.columns, kept, strict=True))
    )


def question_rows(comparison: Comparison) -> list[dict[str, object]]:
    """Return a row for each recall question: how each column did, headed by its letter."""
    rows = []
    for number, question in enumerate(comparison.questions):
        row: dict[str, object] = {
            "question": excerpt(" ".join(question.question.split()), _QUESTION),
            "expected": excerpt(question.answer, 40) or "",
        }
        for at, column in enumerate(comparison.columns):
            asked = column.asked[number] if number < len(column.asked) else None
            words = asked_words(asked) if asked is not None else "not asked"
            row[LETTERS[at]] = words
        rows.append(row)
    return rows


def asked_words(asked: Asked) -> str:
    """Return in a few words how a column did with a question."""
    if asked.error:
        return "failed"
    mark = {True: " · ✓ right", False: " · ✗ not in the answer", None: ""}[asked.right]
    if not asked.where:
        return f"nothing to find{mark}"
    sign = "in" if asked.held == len(asked.where) else "out" if not asked.held else "partly in"
    places = dict.fromkeys(_PLACES[place] for place in asked.where if place != "out")
    beside = f" ({', '.join(places)})" if places else ""
    told = " · told" if asked.told and asked.held < len(asked.where) else ""
    return f"{sign} {asked.held}/{len(asked.where)}{beside}{told}{mark}"


def results(comparison: Comparison, number: int) -> tuple[Result, ...]:
    """Return how each column did with one question, piece by piece."""
    question = comparison.questions[number]
    out = []
    for place, column in enumerate(comparison.columns):
        name = named(place, column.name)
        if number >= len(column.asked):
            out.append(Result(name, "not asked", (), "", column.error))
            continue
        asked = column.asked[number]
        pieces = tuple(
            Piece(_label(comparison, at), _PLACES[there], there in IN, comparison.lines[at].text)
            for at, there in zip(question.evidence, asked.where, strict=False)
        )
        line = f"{asked_words(asked)} · {asked.tokens:,} tokens"
        out.append(Result(name, line, pieces, asked.answer, asked.error))
    return tuple(out)


def settings_rows(configurations: Sequence[Configuration]) -> list[dict[str, object]]:
    """Return what the configurations differ in, one setting a row; strategy and limit always.

    A setting that some of them do not have is left empty there. It is told where those that have
    it differ, or where one of them does not leave it as it comes.
    """
    values = [_flat(one) for one in configurations]
    usual = [
        _flat(Configuration("", default_setup(one.setup.strategy, one.setup.agent)))
        for one in configurations
    ]
    names = dict.fromkeys(name for value in values for name in value)
    rows = []
    for name in names:
        shown = [_plain(value[name]) if name in value else "" for value in values]
        differ = len({_plain(value[name]) for value in values if name in value}) > 1
        changed = any(v[name] != u[name] for v, u in zip(values, usual, strict=True) if name in v)
        if name in _ALWAYS or differ or (changed and "" in shown):
            row: dict[str, object] = {"setting": name.replace("_", " ")}
            for number, (one, text) in enumerate(zip(configurations, shown, strict=True)):
                row[named(number, one.name)] = text
            rows.append(row)
    return rows


def before_words(one: Configuration, *, plans: bool, mode: str) -> str:
    """Return how a configuration will be run and what that asks of a model."""
    strategy = find_strategy(one.setup.strategy)
    own = "" if strategy.calls == _NO_CALLS else strategy.calls
    if mode == TURNS:
        return "Played anew, every turn answered by its model." + (
            f" The memory's own calls: {own}." if own else ""
        )
    if plans:
        return "Prompts are planned from the session's record, without a model call." + (
            " Each question is one." if mode == ANSWERS else ""
        )
    start = "Played through the engine."
    if not own:
        return f"{start} The memory makes no model call." + (
            " Each question is one call." if mode == ANSWERS else ""
        )
    who = "its model" if mode == ANSWERS else "the offline reader, which stands in"
    return f"{start} The memory's own model calls go to {who}: {own}."


def long_words(configurations: Iterable[Configuration], turns: int) -> str:
    """Return what a long conversation costs in time, empty where it costs little."""
    classes = [one for one in configurations if one.setup.strategy not in (LAYERED, STATELESS)]
    if turns <= LONG or not classes:
        return ""
    return (
        f"{turns:,} turns: classes of LlamaIndex's are really run, and some count their whole "
        "history anew in every turn, which after a few hundred turns takes seconds each. Stop is "
        "heard after the turn at hand."
    )


def short(one: Configuration) -> str:
    """Return a name for a configuration that has none yet."""
    settings = one.settings
    if one.setup.strategy == LAYERED:
        return f"Layered, {settings.token_limit:,} tokens, top_k {settings.top_k}"
    title = find_strategy(one.setup.strategy).title.partition(" (")[0]
    limit = getattr(one.setup.knobs, "token_limit", None)
    if isinstance(limit, int) and one.setup.strategy != STATELESS:
        return f"{title}, {limit:,} tokens"
    return title


def is_short(name: str, one: Configuration) -> bool:
    """Return whether a name is the one that was made for it."""
    return re.fullmatch(re.escape(short(one)) + r"( \(\d+\))?", name) is not None


def unused(name: str, names: Iterable[str]) -> str:
    """Return a name that is none of these: as it is, else with a number."""
    taken = set(names)
    number = 2
    out = name
    while out in taken:
        out = f"{name} ({number})"
        number += 1
    return out


def _headline(kept: Kept) -> str:
    limit = f" of {kept.limit:,}" if kept.limit else ""
    return f"{kept.total:,}{limit} tokens"


def _message(comparison: Comparison, at: int, *, shared: bool) -> Item:
    text = " ".join(comparison.lines[at].text.split())
    short = text if len(text) <= LINE else f"{text[:LINE]}…"
    return Item(_label(comparison, at), short, shared)


def _label(comparison: Comparison, at: int) -> str:
    line = comparison.lines[at]
    who = {"user": "you", "assistant": "bot"}.get(line.role, line.role)
    return f"turn {line.turn} {who}"


def _before(comparison: Comparison, turn: int) -> frozenset[int]:
    return frozenset(at for at, line in enumerate(comparison.lines) if line.turn < turn)


def _source(source: str) -> str:
    look = swatch(Source(source))
    return f"{look.letter} {look.label}"


def _right(column: Column, mode: str) -> str:
    judged = [asked.right for asked in column.asked if asked.right is not None]
    if mode == PROMPTS:
        return "not asked"
    return f"{sum(judged):,} of {len(judged):,}" if judged else ""


def _calls(column: Column, mode: str) -> str:
    spent = column.spent
    if not spent.calls:
        return "0"
    if mode == PROMPTS:
        return f"{spent.own:,} (stand-in)"
    return f"{spent.calls:,} ({spent.own:,} by the memory)"


def _sent(column: Column) -> str:
    spent = column.spent
    return f"{spent.prompt:,} / {spent.completion:,}" if spent.calls else ""


def _flat(one: Configuration) -> dict[str, Json]:
    """Return everything that can be set on a configuration, by name."""
    setup = one.setup.to_json()
    knobs = dict(setup["knobs"]) if one.setup.strategy != LAYERED else {}
    model, settings = one.model, one.settings.to_json()
    layered = one.setup.strategy == LAYERED
    return {
        "strategy": find_strategy(one.setup.strategy).title,
        "agent": find_agent(one.setup.agent).title,
        "model": model.model if model.kind != OFFLINE else "offline reader",
        **{name: settings[name] for name in (settings if layered else _EVERYBODYS)},
        **knobs,
    }


def _plain(value: Json) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)):
        return f"{value:,}" if isinstance(value, int) else f"{value:g}"
    return excerpt(" ".join(str(value).split()), 80)
