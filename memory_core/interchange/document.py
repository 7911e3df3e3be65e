"""One text of a file with what its beginning looks like: what the formats recognise and read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from memory_core.errors import InvalidInput
from memory_core.interchange.encoding import decode
from memory_core.interchange.jsonstream import JsonText, members, values
from memory_core.interchange.sample import Sample, sample
from memory_core.interchange.source import Entry
from memory_core.interchange.values import Conversation, Notes
from memory_core.messages import Json

FIRST_LOOK, LAST_LOOK = 1 << 16, 1 << 24  # bytes of the beginning that are looked at


@dataclass
class Document:
    """A text to read. ``notes`` are about the file as a whole; ``branches`` asks for all of it."""

    entry: Entry
    sample: Sample
    notes: Notes = field(default_factory=Notes)
    branches: bool = False
    on_bytes: Callable[[int], None] = lambda _: None

    @property
    def title(self) -> str:
        """The name of the file without its ending, as a title for what has none."""
        name = self.entry.name.rsplit("/", 1)[-1]
        return name.rsplit(".", 1)[0] or name or "Imported"

    def chunks(self) -> Iterator[str]:
        """Yield the text in chunks, reporting the bytes read."""

        def counted() -> Iterator[bytes]:
            for chunk in self.entry.chunks():
                self.on_bytes(len(chunk))
                yield chunk

        return decode(counted(), self.notes)

    def lines(self) -> Iterator[str]:
        """Yield the lines of the text, without splitting at form feeds and the like."""
        rest: list[str] = []
        for chunk in self.chunks():
            first, *others = chunk.split("\n")
            rest.append(first)
            for line in others:
                yield "".join(rest) + "\n"
                rest = [line]
        if last := "".join(rest):
            yield last

    def items(self) -> Iterator[Json]:
        """Yield the members of a list, the lines of JSON Lines, or the one value there is."""
        text = JsonText(self.chunks())
        if len(self.sample.values) == 1 and isinstance(self.sample.top, list):
            return (value for _, value in members(text))
        return values(text)

    def members(self, *path: str, rest: dict[str, Json]) -> Iterator[tuple[str | int, Json]]:
        """Yield the members of the container at a path; see :mod:`.jsonstream`."""
        return members(JsonText(self.chunks()), path, rest)

    def each(
        self, items: Iterable[Json], read: Callable[[Json, str], Iterable[Conversation]]
    ) -> Iterator[Conversation]:
        """Read each item as conversations; an item that cannot be is left out with a notice.

        Raises the first refusal when no item could be read.
        """
        refused: InvalidInput | None = None
        any_read = False
        for number, item in enumerate(items, start=1):
            place = f"conversation {number:,}"
            try:
                for conversation in read(item, place):
                    any_read = True
                    yield conversation
            except InvalidInput as exc:
                refused = refused or InvalidInput(f"{place[0].upper()}{place[1:]}: {exc}")
                self.notes.add(place, f"left out: {exc}")
        if not any_read:
            raise refused or InvalidInput("The file holds no conversation.")


def look(entry: Entry, size: int = FIRST_LOOK) -> Sample:
    """Return the beginning of a file as a sample; a wrong encoding is refused here."""
    return sample("".join(decode([entry.head(size)], Notes())))


def unwrapped(entry: Entry) -> Entry:
    """Return what a JSON text written as a JSON string holds.

    Raises :class:`InvalidInput` when the file is anything else.
    """
    text = JsonText(decode(entry.chunks(), Notes()))
    inner = text.value()
    if not isinstance(inner, str) or text.peek():
        raise InvalidInput("The file is a quoted text, and not one of JSON.")
    data = inner.encode("utf-8", "surrogatepass")
    return Entry(entry.name, len(data), lambda: iter([data]))
