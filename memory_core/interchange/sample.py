"""What the beginning of a file looks like, so that its format can be told without reading it all.

:func:`sample` reads as much JSON as the first characters hold, closes whatever is still open and
so gives a partial value of the same shape as the whole. It uses no recursion and stops at the
first thing that is no JSON.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

from memory_core.messages import Json

MAX_ITEMS = 50  # members of one container that are looked at

_TOKEN = re.compile(
    r"""[\s\ufeff]*(?:
        (?P<text>"[^"\\]*(?:\\.[^"\\]*)*(?P<closed>"?))
      | (?P<mark>[\[\]{},:])
      | (?P<plain>-?[0-9][0-9.eE+-]*|-?Infinity|NaN|true|false|null)
    )""",
    re.VERBOSE | re.DOTALL,
)
_PLAIN = {"true": True, "false": False, "null": None}


@dataclass
class Sample:
    """The JSON values at the beginning of a text, the last of them perhaps partial.

    ``stopped`` is where something stands that is no JSON, ``-1`` when there is none;
    ``complete`` tells whether the first item was seen to its end.
    """

    head: str
    values: list[Json] = field(default_factory=list)
    stopped: int = -1
    complete: bool = False

    @property
    def top(self) -> Json:
        """The first value."""
        return self.values[0] if self.values else None

    @property
    def items(self) -> list[Json]:
        """The members of a list, the lines of JSON Lines, or the one value there is."""
        single = len(self.values) == 1 and isinstance(self.top, list)
        return list(self.top) if single else self.values

    @property
    def item(self) -> dict[str, Json]:
        """The first object among the items, or an empty one."""
        return next((i for i in self.items if isinstance(i, dict)), {})


def sample(head: str) -> Sample:
    """Return the beginning of a text as JSON, as far as it is JSON."""
    out = Sample(head)
    open_: list[list[Json] | dict[str, Json]] = []
    keys: list[str | None] = []

    def put(value: Json) -> None:
        if not open_:
            out.values.append(value)
        elif isinstance(open_[-1], list):
            if len(open_[-1]) < MAX_ITEMS:
                open_[-1].append(value)
        elif keys[-1] is None:
            keys[-1] = value if isinstance(value, str) else ""
        else:
            open_[-1][keys[-1]] = value
            keys[-1] = None

    at = 0
    while match := _TOKEN.match(head, at):
        at = match.end()
        mark = match["mark"]
        if mark in ("[", "{"):
            new: list[Json] | dict[str, Json] = [] if mark == "[" else {}
            put(new)
            open_.append(new)
            keys.append(None)
        elif mark in ("]", "}"):
            if not open_ or isinstance(open_[-1], list) != (mark == "]"):
                break
            open_.pop()
            keys.pop()
            out.complete |= len(open_) <= isinstance(out.top, list)
        elif match["text"] is not None:
            put(_text(match["text"], closed=bool(match["closed"])))
        elif match["plain"] is not None:
            put(_PLAIN.get(match["plain"], 1))
        elif not open_:
            break
    if head[at:].strip():
        out.stopped = at
    return out


def _text(token: str, *, closed: bool) -> str:
    try:
        return str(json.loads(token if closed else f'{token}"', strict=False))
    except json.JSONDecodeError:  # cut within an escape
        return token[1:]
