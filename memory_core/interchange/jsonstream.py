"""Reads JSON value by value from text that comes in chunks.

:class:`JsonText` keeps a window of the text and hands it to the standard library's scanner, which
is written in C; when a value runs past the window's end, the window is doubled and the value read
again, so all work stays proportional to the text and memory to the largest value.
:func:`members` walks into a container and yields what it holds one by one.

Numbers that Python would refuse or round to infinity come back as
:class:`~memory_core.interchange.clean.Digits`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator

from memory_core.errors import InvalidInput
from memory_core.interchange.clean import Digits
from memory_core.messages import Json

MAX_VALUE = 200_000_000  # characters of one value (one conversation, or one message of a list)
_WINDOW = 1 << 18
_DIGITS = 4_000  # of one integer; Python refuses to read more than 4,300
_NEAR_END = 24  # a broken escape or literal this close to the window's end may just be cut
_SPACE = re.compile(r"[ \t\r\n\ufeff]*")


def _integer(text: str) -> int | Digits:
    return int(text) if len(text) < _DIGITS else Digits(text)


_DECODER = json.JSONDecoder(strict=False, parse_int=_integer, parse_constant=Digits)


class JsonText:
    """A window on JSON text. ``done`` characters were read and dropped before it."""

    def __init__(self, chunks: Iterable[str]) -> None:
        self._chunks = iter(chunks)
        self._window = ""
        self._at = 0
        self._ended = False
        self._lines = 1
        self._column = 1

    def peek(self) -> str:
        """Return the next character that is no white space; empty at the end of the text."""
        while True:
            match = _SPACE.match(self._window, self._at)
            self._at = match.end() if match else self._at
            if self._at < len(self._window):
                return self._window[self._at]
            if self._ended:
                return ""
            self._widen()

    def take(self, character: str) -> bool:
        """Step over the next character if it is this one."""
        if self.peek() != character:
            return False
        self._at += 1
        return True

    def value(self) -> Json:
        """Return the next value; raise :class:`InvalidInput` with the place if there is none."""
        if not self.peek():
            raise self.broken("the text ends where a value should stand")
        while True:
            try:
                value, end = _DECODER.raw_decode(self._window, self._at)
            except json.JSONDecodeError as exc:
                cut = exc.pos + _NEAR_END > len(self._window) or exc.msg.startswith("Unterminated")
                if cut and not self._ended:
                    self._widen()
                    continue
                self._at = min(exc.pos, len(self._window))
                raise self.broken("the text is cut off" if cut else exc.msg.lower()) from exc
            except RecursionError as exc:
                raise self.broken("values are nested too deeply") from exc
            if end == len(self._window) and not self._ended and self._window[end - 1] not in '}]"':
                self._widen()  # a number may go on
                continue
            self._at = end
            return value

    def broken(self, problem: str) -> InvalidInput:
        """Return the refusal of the file at the place where reading stopped."""
        line, column = self._place()
        return InvalidInput(f"Not readable as JSON at line {line:,}, column {column:,}: {problem}.")

    def _place(self) -> tuple[int, int]:
        before = self._window[: self._at]
        breaks = before.count("\n")
        column = len(before) - before.rfind("\n") if breaks else self._column + len(before)
        return self._lines + breaks, column

    def _widen(self) -> None:
        self._lines, self._column = self._place()
        rest = self._window[self._at :]
        wanted = max(_WINDOW, len(rest))
        if len(rest) > MAX_VALUE:
            raise self.broken(f"one value is longer than {MAX_VALUE:,} characters")
        parts = [rest]
        while wanted > 0:
            chunk = next(self._chunks, None)
            if chunk is None:
                self._ended = True
                break
            parts.append(chunk)
            wanted -= len(chunk)
        self._window, self._at = "".join(parts), 0


def values(text: JsonText) -> Iterator[Json]:
    """Yield the values of JSON Lines, or of JSON values one after another."""
    while text.peek():
        yield text.value()


def members(
    text: JsonText, path: tuple[str, ...] = (), rest: dict[str, Json] | None = None
) -> Iterator[tuple[str | int, Json]]:
    """Yield index and value of each member of the list or object found at ``path``.

    What stands beside the path is read into ``rest``. Raises :class:`InvalidInput` for broken
    JSON, and for text after the end of the outermost value.
    """
    yield from _members(text, path, {} if rest is None else rest)
    if text.peek():
        raise text.broken("there is more text after the end")


def _members(
    text: JsonText, path: tuple[str, ...], rest: dict[str, Json]
) -> Iterator[tuple[str | int, Json]]:
    if not path and text.take("["):
        index = 0
        while not text.take("]"):
            if index and not text.take(","):
                raise text.broken(_missing(text, "a comma"))
            yield index, text.value()
            index += 1
    elif text.take("{"):
        first = True
        while not text.take("}"):
            if not first and not text.take(","):
                raise text.broken(_missing(text, "a comma"))
            first = False
            if text.peek() != '"':
                raise text.broken(_missing(text, "a quoted name"))
            key = str(text.value())
            if not text.take(":"):
                raise text.broken(_missing(text, "a colon"))
            if not path:
                yield key, text.value()
            elif key == path[0] and text.peek() in "[{":
                yield from _members(text, path[1:], rest)
            else:
                rest[key] = text.value()
    else:
        raise text.broken(_missing(text, "an object or a list"))


def _missing(text: JsonText, what: str) -> str:
    return f"{what} is missing" if text.peek() else "the text is cut off"
