"""What an import yields: conversations, what was changed on the way, and a preview of both.

A :class:`Conversation` is a plain value without identity: ids belong to storage, the ones in a
file are only remembered. Whatever a reader changed or left out becomes a :class:`Notice`; equal
ones are gathered by :class:`Notes`, so that a file with a hundred thousand odd messages is told
in one line that says how many and where the first ones are.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from memory_core.messages import Message
from memory_core.questions import RecallQuestion

_PLACES_TOLD = 5
_KINDS_TOLD = 200
_WHOLE = "conversation"  # the place of what concerns all of one
_OTHERS = "further changes of other kinds"


@dataclass(frozen=True)
class Notice:
    """What was changed or left out, where, and how often. ``place`` names the first places."""

    place: str
    what: str
    count: int = 1

    def __str__(self) -> str:
        times = f" ({self.count:,} times)" if self.count > 1 else ""
        return f"{self.place}: {self.what}{times}" if self.place else f"{self.what}{times}"


class Notes:
    """Gathers notices while a file is read; equal sentences become one with their places."""

    def __init__(self) -> None:
        self._places: dict[str, list[str]] = {}
        self._more: dict[str, int] = {}
        self._counts: dict[str, int] = {}

    def add(self, place: str, what: str, count: int = 1) -> None:
        """Note something that was changed or left out ``count`` times at one place."""
        if what not in self._counts and len(self._counts) >= _KINDS_TOLD:
            what = _OTHERS
        self._counts[what] = self._counts.get(what, 0) + count
        places = self._places.setdefault(what, [])
        if place and place not in places[-1:]:
            if len(places) < _PLACES_TOLD:
                places.append(place)
            else:
                self._more[what] = self._more.get(what, 0) + 1

    def extend(self, notices: Iterable[Notice], *, within: str) -> None:
        """Add the notices of one conversation; what is odd all over it is told of it as a whole."""
        for notice in notices:
            few = notice.count <= _PLACES_TOLD and notice.place not in ("", _WHOLE)
            self.add(f"{within}, {notice.place}" if few else within, notice.what, notice.count)

    def notices(self) -> tuple[Notice, ...]:
        """Return what was noted, in the order of first mention."""
        return tuple(Notice(self._place(what), what, n) for what, n in self._counts.items())

    def _place(self, what: str) -> str:
        told = "; ".join(self._places[what])
        more = self._more.get(what, 0)
        return f"{told} and {more:,} more" if more else told


@dataclass(frozen=True)
class Conversation:
    """One conversation of a file.

    ``times`` (aware UTC) and ``ids`` (the file's own) are parallel to ``messages``; ``None`` and
    an empty text where the file says nothing. ``questions`` came with the file.
    ``branches`` is how many other ways the conversation went that are not part of it.
    """

    title: str
    messages: tuple[Message, ...]
    times: tuple[datetime | None, ...] = ()
    ids: tuple[str, ...] = ()
    questions: tuple[RecallQuestion, ...] = ()
    notices: tuple[Notice, ...] = ()
    branches: int = 0

    def __post_init__(self) -> None:
        for name in ("times", "ids"):
            if getattr(self, name) and len(getattr(self, name)) != len(self.messages):
                raise ValueError(f"{name} must be empty or one a message")

    def time_of(self, index: int) -> datetime | None:
        """Return when a message was said, if the file tells."""
        return self.times[index] if self.times else None

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the messages alone: equal for the same conversation in another file."""
        digest = hashlib.sha256()
        for message in self.messages:
            digest.update(json.dumps(message.to_json(), sort_keys=True).encode())
            digest.update(b"\n")
        return digest.hexdigest()


@dataclass(frozen=True)
class ConversationRow:
    """One line of a preview: a conversation without its messages. ``began`` is aware UTC."""

    title: str
    messages: int
    questions: int
    branches: int
    began: datetime | None
    fingerprint: str


@dataclass(frozen=True)
class ImportPreview:
    """What a file holds, before anything is stored.

    ``fingerprint`` is the hash of the file's bytes, ``size`` their number. ``notices`` say all
    that would be changed or left out.
    """

    name: str
    format: str
    format_title: str
    size: int
    fingerprint: str
    conversations: tuple[ConversationRow, ...]
    notices: tuple[Notice, ...]

    @property
    def messages(self) -> int:
        """How many messages the conversations hold together."""
        return sum(row.messages for row in self.conversations)

    @property
    def questions(self) -> int:
        """How many recall questions came along."""
        return sum(row.questions for row in self.conversations)

    @property
    def branches(self) -> int:
        """How many other branches could be imported as conversations of their own."""
        return sum(row.branches for row in self.conversations)
