"""What lists of sessions show beyond the catalogue: size, words found in the text, the cap.

All of it is read from the store when it is asked for. Text is searched here and not in the
backend, since a sealed store cannot look into its own text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from memory_core.errors import InvalidInput
from memory_core.metrics import degraded, hit_cap
from memory_core.stores.protocols import SessionInfo, SessionKey, TurnStore

LONGEST_SEARCH = 500  # characters
AROUND = 60  # characters shown before and after what was found
LOOKED_AT = 5  # newest turns that say whether a session is at its cap


@dataclass(frozen=True)
class Found:
    """A session with a text in its title or messages: how often, and the first place."""

    info: SessionInfo
    messages: int
    excerpt: str


@dataclass(frozen=True)
class Strain:
    """How a session's newest turns went: looked at, at the token cap, degraded."""

    info: SessionInfo
    turns: int
    capped: int
    degraded: int

    @property
    def always(self) -> bool:
        """Whether every turn that was looked at, of at least three, hit the cap."""
        return self.turns >= 3 and self.capped == self.turns


def session_size(store: TurnStore, key: SessionKey) -> int:
    """Return the bytes of a session's messages and traces as JSON, superseded ones too."""
    messages = store.messages(key, superseded=True)
    held = sum(len(json.dumps(m.message.to_json(), ensure_ascii=False).encode()) for m in messages)
    return held + sum(len(turn.trace.encode()) for turn in store.turns(key))


def search_sessions(store: TurnStore, infos: list[SessionInfo], text: str) -> Iterator[Found]:
    """Yield the sessions that hold a text, letter case apart, in the order given.

    Raises :class:`InvalidInput` for an empty or overlong text.
    """
    wanted = text.strip().casefold()
    if not wanted:
        raise InvalidInput("Enter at least one character to search for.")
    if len(wanted) > LONGEST_SEARCH:
        raise InvalidInput(f"Search for at most {LONGEST_SEARCH} characters.")
    for info in infos:
        hits = [
            m.message.text for m in store.messages(info.key) if wanted in m.message.text.casefold()
        ]
        if hits or wanted in info.title.casefold():
            yield Found(info, len(hits), _excerpt(hits[0], wanted) if hits else "")


def strain(store: TurnStore, info: SessionInfo) -> Strain:
    """Return how the newest turns of a session went."""
    turns = store.turns(info.key, first=max(1, info.turns - LOOKED_AT + 1))
    return Strain(
        info,
        len(turns),
        sum(hit_cap(turn.trace) for turn in turns),
        sum(degraded(turn.trace) for turn in turns),
    )


def _excerpt(text: str, wanted: str) -> str:
    """Return what stands around the first place, in one line."""
    at = max(0, text.casefold().find(wanted))  # subtle: casefold may shift it by a few characters
    start, end = max(0, at - AROUND), at + len(wanted) + AROUND
    line = " ".join(text[start:end].split())
    return f"{'…' if start else ''}{line}{'…' if end < len(text) else ''}"
