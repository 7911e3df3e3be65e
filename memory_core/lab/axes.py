"""The knobs a sweep turns: an axis is a name and the values it takes, a point is all knobs at once.

Most axes are single settings of :class:`~memory_core.settings.MemorySettings`. Three are not:
``shares`` sets the budget's three shares together ("60/20/20": buffer, retrieved, state),
``strategy`` chooses who plans the prompt and ``embedding`` which model measures likeness.

Values can be written as a list ("400, 800, 1600"), as every whole number of a range ("1:10") or
as a number of evenly spaced ones ("500:4000:20").
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from memory_core.errors import InvalidInput
from memory_core.messages import Json, repair_text
from memory_core.settings import MemorySettings

SHARES, STRATEGY, EMBEDDING = "shares", "strategy", "embedding"
TOKEN_LIMIT, TOP_K = "token_limit", "top_k"
MOST_VALUES = 500
MOST_CELLS = 10_000

Value = int | float | str

TITLES: Mapping[str, str] = {
    TOKEN_LIMIT: "Token limit",
    TOP_K: "top_k",
    "threshold": "Score threshold",
    SHARES: "Shares (buffer/retrieved/state)",
    "summary_every": "Summary period (messages)",
    "summary_tokens": "Summary length (tokens)",
    "window_rule": "Window rule",
    STRATEGY: "Strategy",
    EMBEDDING: "Embedding model",
    "recall_method": "Recall method",
    "weight_dense": "Weight of likeness",
    "weight_bm25": "Weight of words",
    "weight_neighbours": "Weight of neighbours",
    "weight_recency": "Weight of recency",
    "recency_days": "Half-life of recency (days)",
    "diversity": "Diversity",
    "context_window": "Context window (tokens)",
    "reply_reserve": "Reply reserve (tokens)",
}
"""Every axis there is, with the title it is drawn under."""

_WHOLE = frozenset(
    {TOKEN_LIMIT, TOP_K, "summary_every", "summary_tokens", "context_window", "reply_reserve"}
)
_TEXTS = frozenset({SHARES, "window_rule", STRATEGY, EMBEDDING, "recall_method"})
_NEXT_STEP = 'Write values as "400, 800", as a range "1:10" or spaced evenly "500:4000:20".'


@dataclass(frozen=True)
class Point:
    """All knobs at once: the settings, who plans and which model embeds."""

    settings: MemorySettings
    strategy: str
    embedding: str


@dataclass(frozen=True)
class Axis:
    """One knob and the values it takes, each once, in the order in which they are drawn.

    Raises :class:`InvalidInput` for a knob that does not exist and for no or too many values.
    Whether a value suits its knob shows when it is :meth:`set <set>`.
    """

    name: str
    values: tuple[Value, ...]

    def __post_init__(self) -> None:
        if self.name not in TITLES:
            raise InvalidInput(
                f"There is no axis {self.name!r:.60}.",
                next_step=f"Choose one of: {', '.join(TITLES)}.",
            )
        unique = tuple(dict.fromkeys(self._checked(value) for value in self.values))
        if not 1 <= len(unique) <= MOST_VALUES:
            raise InvalidInput(
                f"{self.title} has {len(unique):,} values; from 1 to {MOST_VALUES:,} can be swept.",
                next_step=_NEXT_STEP,
            )
        object.__setattr__(self, "values", unique)

    @classmethod
    def parse(cls, name: str, text: str) -> Axis:
        """Return an axis from values as a person writes them; raise :class:`InvalidInput`.

        >>> Axis.parse("top_k", "1:3").values, Axis.parse("token_limit", "500:1000:3").values
        ((1, 2, 3), (500, 750, 1000))
        """
        read = _kind_of(name)
        pieces = [piece.strip() for piece in text.split(",") if piece.strip()]
        values: list[Value] = []
        for piece in pieces:
            bounds = piece.split(":") if read is not str else [piece]
            try:
                values += [read(piece)] if len(bounds) == 1 else _range(bounds, read)
            except (ValueError, OverflowError) as exc:
                raise InvalidInput(
                    f"{piece[:60]!r} is no value of {TITLES.get(name, name)[:60]}.",
                    next_step=_NEXT_STEP,
                ) from exc
        return cls(name, tuple(values))

    @property
    def title(self) -> str:
        """The knob's name as people read it."""
        return TITLES[self.name]

    def _checked(self, value: object) -> Value:
        read = _kind_of(self.name)
        if read is _number and isinstance(value, (int, float)) and not isinstance(value, bool):
            value = float(value)
            if math.isfinite(value):
                return value
        elif read is str and isinstance(value, str):
            return repair_text(value)[0]
        elif read is int and isinstance(value, int) and not isinstance(value, bool):
            return value
        raise InvalidInput(f"{self.title} takes no value like {value!r:.60}.")

    def set(self, point: Point, value: Value) -> Point:
        """Return the point with this knob at a value; raise :class:`InvalidInput` for a bad one."""
        return _moved(point, self._changes(value))

    def _changes(self, value: Value) -> dict[str, Json]:
        """Return what a value changes, of the settings or of the point, checked."""
        if self.name in (STRATEGY, EMBEDDING):
            return {self.name: value}
        changes = _shares(str(value)) if self.name == SHARES else {self.name: value}
        checked = MemorySettings().with_(**changes)
        return {name: getattr(checked, name) for name in changes}


def grid(x: Axis, y: Axis, base: Point) -> list[list[Point]]:
    """Return the point of every cell, ``grid[j][i]`` with the i-th value of x and j-th of y.

    Raises :class:`InvalidInput` for the same axis twice, for too many cells, for a bad value.
    """
    if x.name == y.name:
        raise InvalidInput(f"Both axes are {x.title}.", next_step="Choose two different axes.")
    cells = len(x.values) * len(y.values)
    if cells > MOST_CELLS:
        raise InvalidInput(
            f"{cells:,} cells are too many; at most {MOST_CELLS:,} can be swept.",
            next_step="Take fewer values on one axis.",
        )
    columns = [x._changes(value) for value in x.values]  # noqa: SLF001 - checked once a value
    rows = [y._changes(value) for value in y.values]  # noqa: SLF001
    return [[_moved(base, row | column) for column in columns] for row in rows]


def _moved(point: Point, changes: Mapping[str, Json]) -> Point:
    about = {name: changes[name] for name in (STRATEGY, EMBEDDING) if name in changes}
    knobs = {name: value for name, value in changes.items() if name not in about}
    return replace(point, settings=replace(point.settings, **knobs), **about)


def _kind_of(name: str) -> Callable[[str], Value]:
    if name in _TEXTS:
        return str
    return int if name in _WHOLE else _number


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("not a finite number")
    return value


def _range(bounds: list[str], read: Callable[[str], Value]) -> list[Value]:
    first, last = float(read(bounds[0])), float(read(bounds[1]))
    count = int(bounds[2]) if len(bounds) == 3 else int(last - first) + 1
    whole = read is int
    if len(bounds) > 3 or count < 1 or (len(bounds) == 2 and not whole):
        raise ValueError("no range")
    if count > MOST_VALUES:
        raise InvalidInput(
            f"{':'.join(bounds)[:60]!r} are {count:,} values; "
            f"from 1 to {MOST_VALUES:,} can be swept.",
            next_step='Space them evenly: "500:4000:20" are 20 values from 500 to 4,000.',
        )
    step = (last - first) / (count - 1) if count > 1 else 0.0
    spaced = [first + step * i for i in range(count)]
    return [round(v) for v in spaced] if whole else [round(v, 6) for v in spaced]


def _shares(text: str) -> dict[str, Json]:
    try:
        buffer, retrieved, state = (_number(piece) for piece in text.split("/"))
    except ValueError as exc:
        raise InvalidInput(
            f"{text[:60]!r} are no shares.", next_step='Write buffer/retrieved/state: "60/20/20".'
        ) from exc
    total = buffer + retrieved + state
    if min(buffer, retrieved, state) < 0 or not 0 < total < math.inf:
        raise InvalidInput("Shares must be 0 or more, and not all of them 0.")
    return {
        "share_buffer": buffer / total,
        "share_retrieved": retrieved / total,
        "share_state": state / total,
    }
