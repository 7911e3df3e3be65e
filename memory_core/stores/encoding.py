"""How values become text, the same in every backend.

Everything a person wrote or a model said passes through an :class:`Encoding` on its way to disk
or network: it is written as JSON, refused *before* anything is stored when no backend could hold
it (objects that are no JSON, half a surrogate pair), and sealed when there is a key. Stored text
says itself whether it is sealed, so a store may hold both while keys are changed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Protocol

from memory_core.errors import InvalidInput, StoreError
from memory_core.messages import Json, Message
from memory_core.state import AgentState
from memory_core.state import from_json as state_from_json
from memory_core.state import to_json as state_to_json
from memory_core.summary import NO_SUMMARY, Summary

SEALED, LITERAL = "enc1:", "txt1:"  # how stored text may begin; LITERAL escapes both

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Cipher(Protocol):
    """Turns text into sealed text and back."""

    def seal(self, text: str) -> str:
        """Return the text so that only holders of the key can read it."""
        ...

    def unseal(self, sealed: str) -> str:
        """Return what :meth:`seal` got; raise :class:`StoreError` without the right key."""
        ...


class Encoding:
    """Writes and reads the values of a store as text, sealed by ``cipher`` if there is one."""

    def __init__(self, cipher: Cipher | None = None) -> None:
        self.cipher = cipher

    def text(self, value: str, what: str) -> str:
        """Return text as it is stored; raise :class:`InvalidInput` when it cannot be."""
        if not isinstance(value, str):
            raise InvalidInput(f"The {what} must be text, not {type(value).__name__}.")
        try:
            value.encode("utf-8")
        except UnicodeEncodeError as exc:
            raise InvalidInput(
                f"The {what} holds half of a character at position {exc.start}; "
                "repair the text before it is stored."
            ) from exc
        if self.cipher is not None:
            return SEALED + self.cipher.seal(value)
        if "\0" in value:
            raise InvalidInput(f"The {what} holds a NUL character at {value.index(chr(0))}.")
        return LITERAL + value if value.startswith((SEALED, LITERAL)) else value

    def read_text(self, stored: str) -> str:
        """Return what :meth:`text` got."""
        if stored.startswith(LITERAL):
            return stored[len(LITERAL) :]
        if not stored.startswith(SEALED):
            return stored
        if self.cipher is None:
            raise StoreError(
                "This store is encrypted and no key is set.",
                next_step="Set MEMORY_ENCRYPTION_KEY to the key it was written with.",
            )
        return self.cipher.unseal(stored[len(SEALED) :])

    def json(self, value: Json, what: str) -> str:
        """Return a JSON value as stored text; raise :class:`InvalidInput` for anything else."""
        try:
            text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        except (TypeError, ValueError, RecursionError) as exc:
            raise InvalidInput(f"The {what} cannot be written as JSON: {exc}.") from exc
        return self.text(text, what)

    def read_json(self, stored: str) -> Json:
        """Return what :meth:`json` got."""
        return json.loads(self.read_text(stored))

    def message(self, message: Message, what: str = "message") -> str:
        """Return a message as stored text."""
        return self.json(message.to_json(), what)

    def read_message(self, stored: str) -> Message:
        """Return what :meth:`message` got."""
        return Message.from_json(self.read_json(stored))

    def state(self, state: AgentState) -> str:
        """Return a state as stored text."""
        return self.json(state_to_json(state), "state")

    def read_state(self, stored: str) -> AgentState:
        """Return what :meth:`state` got."""
        return state_from_json(self.read_json(stored))

    def summary(self, summary: Summary) -> str:
        """Return a summary as stored text."""
        return self.json(asdict(summary), "summary")

    def read_summary(self, stored: str | None) -> Summary:
        """Return what :meth:`summary` got, or no summary for ``None``."""
        return NO_SUMMARY if stored is None else summary_from_json(self.read_json(stored))


def summary_from_json(value: Mapping[str, Json]) -> Summary:
    """Return a summary from the JSON object of its fields."""
    lists = {name: tuple(value.get(name) or ()) for name in ("folded", "kept", "lost")}
    return Summary(**{**value, **lists})


def to_micros(time: datetime) -> int:
    """Return an aware time as microseconds since 1970; exact."""
    if time.tzinfo is None:
        raise ValueError("times must be aware (UTC)")
    return (time - _EPOCH) // timedelta(microseconds=1)


def from_micros(value: int) -> datetime:
    """Return the UTC time that :func:`to_micros` got."""
    return _EPOCH + timedelta(microseconds=value)
