"""A conversation while it is being read.

Readers hand every message to :meth:`Draft.add`, which makes it safe
(:mod:`memory_core.interchange.clean`), reads its time and remembers its id. What comes out of
:meth:`Draft.finish` can be stored as it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from memory_core.errors import InvalidInput
from memory_core.interchange.clean import as_text, clean_message, clean_text
from memory_core.interchange.times import read_time
from memory_core.interchange.values import Conversation, Notes
from memory_core.messages import Json, Message
from memory_core.questions import RecallQuestion

MAX_TITLE = 300
UNTITLED = "Untitled"


class Draft:
    """Gathers the messages of one conversation, and what was changed in them."""

    def __init__(self, title: Json = "") -> None:
        self.title = title
        self.notes = Notes()
        self.messages: list[Message] = []
        self.times: list[datetime | None] = []
        self.ids: list[str] = []
        self.questions: list[RecallQuestion] = []
        self.branches = 0

    def __len__(self) -> int:
        return len(self.messages)

    def add(self, message: Message, *, place: str, time: Json = None, id: Json = "") -> None:  # noqa: A002
        """Add a message; ``time`` and ``id`` are as the file has them."""
        self.messages.append(clean_message(message, place, self.notes))
        self.times.append(self.time(time, place))
        self.ids.append(clean_text(as_text(id), place, self.notes) if id else "")

    def time(self, value: Json, place: str) -> datetime | None:
        """Return a time of the file in UTC; note it when it cannot be read or names no zone."""
        if value is None or value == "":
            return None
        time, zoned = read_time(value)
        if time is None:
            self.notes.add(place, "a time that cannot be read was left out")
        elif not zoned:
            self.notes.add(place, "a time without a zone was read as UTC")
        return time

    def finish(self, *, untitled: str = UNTITLED) -> Conversation:
        """Return the conversation; raise :class:`InvalidInput` when it holds no messages."""
        if not self.messages:
            raise InvalidInput("It holds no messages.")
        title = clean_text(as_text(self.title), "title", self.notes) if self.title else untitled
        if len(title) > MAX_TITLE:
            self.notes.add("title", f"cut to {MAX_TITLE} characters")
            title = title[:MAX_TITLE]
        return Conversation(
            title=title,
            messages=tuple(self.messages),
            times=tuple(self.times) if any(self.times) else (),
            ids=tuple(self.ids) if any(self.ids) else (),
            questions=tuple(self.questions),
            notices=self.notes.notices(),
            branches=self.branches,
        )


def left_out(names: Iterable[str]) -> str:
    """Return the sentence that says which fields of a file are not taken over."""
    return f"left out: {', '.join(sorted(n[:40] for n in names))}"
