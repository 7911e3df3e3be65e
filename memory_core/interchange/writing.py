"""What an export gives: the bytes of a file, and what its shape could not hold."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from memory_core.errors import InvalidInput
from memory_core.interchange.values import Notice
from memory_core.messages import Json


@dataclass(frozen=True)
class Written:
    """A file to save or download: its bytes (UTF-8), media type and a name for it."""

    data: bytes
    media_type: str
    name: str
    notices: tuple[Notice, ...] = ()


def json_text(value: Json) -> str:
    """Return a value as JSON text that every reader takes.

    Raises :class:`InvalidInput` for what JSON does not have.
    """
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as exc:
        raise InvalidInput(f"The conversation cannot be written as JSON: {exc}.") from exc


def json_bytes(value: Json) -> bytes:
    """Return a value as a JSON file; raise :class:`InvalidInput` if it has none."""
    try:
        return json_text(value).encode("utf-8")
    except UnicodeEncodeError as exc:
        raise InvalidInput("The conversation holds half of an emoji; repair it first.") from exc


def lines_bytes(values: Iterable[Json]) -> bytes:
    """Return values as a JSON Lines file."""
    return b"".join(json_bytes(value) + b"\n" for value in values)
