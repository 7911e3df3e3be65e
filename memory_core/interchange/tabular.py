"""Tables: CSV (or TSV) with a row for each message: role, text and, if there is one, time.

Columns are found by their names, in any order; a table without a header is read as role, text,
time. A column that names the conversation splits the table. Quoting is read strictly, so that a
quote left open is refused with its line instead of swallowing the rest of the file.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence

from memory_core.errors import InvalidInput
from memory_core.interchange.clean import text_block
from memory_core.interchange.document import Document
from memory_core.interchange.draft import Draft
from memory_core.interchange.roles import role_of_name, roles_of_speakers
from memory_core.interchange.sample import Sample
from memory_core.interchange.values import Conversation, Notes
from memory_core.messages import Message

MAX_CELL = 50_000_000  # characters

_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "role": ("role", "speaker", "sender", "from", "author", "who", "name", "user"),
    "text": ("text", "content", "message", "body", "utterance", "value"),
    "time": ("time", "timestamp", "datetime", "date", "created_at", "sent_at"),
    "conversation": ("conversation", "conversation_id", "session", "session_id", "thread", "chat"),
    "id": ("id", "message_id", "uuid"),
}
_DELIMITERS = (",", ";", "\t", "|")


def recognises(sample: Sample) -> bool:
    """Tell whether a text begins like a table of messages."""
    return _shape(sample.head) is not None


def read(document: Document) -> Iterator[Conversation]:
    """Yield the conversations of a table."""
    shape = _shape(document.sample.head)
    if shape is None:
        raise InvalidInput("The table has no columns for role and text.")
    delimiter, columns, header = shape
    csv.field_size_limit(MAX_CELL)  # subtle: the limit is the process's, 128 KB by default
    rows = csv.reader(document.lines(), delimiter=delimiter, strict=True)
    tables: dict[str, list[tuple[str, dict[str, str]]]] = {}
    begun = 1  # line at which the row being read begins
    try:
        for row in rows:
            place, begun = f"line {begun:,}", rows.line_num + 1
            if not any(row) or row[0].startswith("sep="):
                continue
            if header:
                header = False
                continue
            if len(row) > len(columns):
                document.notes.add(place, "cells beyond the columns left out")
            cells = {name: cell for name, cell in zip(columns, row, strict=False) if name}
            if "text" not in cells:
                document.notes.add(place, "left out: it has no text")
                continue
            tables.setdefault(cells.get("conversation", ""), []).append((place, cells))
    except csv.Error as exc:
        raise InvalidInput(f"The table cannot be read at line {begun:,}: {exc}.") from exc
    unused = [name for name, use in _header_of(document.sample.head, delimiter, columns) if not use]
    if unused:
        document.notes.add("file", f"columns left out: {', '.join(unused)[:120]}")
    yield from document.each(
        tables.items(), lambda item, _: [_conversation(item[0] or document.title, item[1])]
    )


def _conversation(title: str, rows: Sequence[tuple[str, Mapping[str, str]]]) -> Conversation:
    draft = Draft(title)
    names = list(dict.fromkeys(cells.get("role", "").strip() for _, cells in rows))
    roles = roles_of_speakers([n for n in names if n], notes=draft.notes)
    for place, cells in rows:
        draft.add(
            message_of(cells.get("role", "").strip(), cells["text"], roles, place, draft.notes),
            place=place,
            time=cells.get("time"),
            id=cells.get("id"),
        )
    return draft.finish()


def message_of(name: str, text: str, roles: Mapping[str, str], place: str, notes: Notes) -> Message:
    """Return what a speaker said; the name is kept unless it only names a role."""
    if not name:
        notes.add(place, "has no role, read as user")
    kwargs = {"name": name} if name and not role_of_name(name) else {}
    return Message(roles.get(name, "user"), (text_block(text),), kwargs)


def _shape(head: str) -> tuple[str, list[str], bool] | None:
    """Return delimiter, what each column means, and whether there is a header."""
    lines = [line for line in head.splitlines() if line.strip() and not line.startswith("sep=")][:5]
    for delimiter in _DELIMITERS if lines else ():
        rows = [_cells(line, delimiter) for line in lines]
        columns = _meanings(rows[0])
        if "role" in columns and "text" in columns:
            return delimiter, columns, True
        width = len(rows[0])
        told = all(len(row) >= 2 and role_of_name(row[0]) for row in rows)
        if told and 2 <= width <= 3 and len(rows) > 1:
            return delimiter, ["role", "text", "time"][:width], False
    return None


def _cells(line: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:
        return []


def _meanings(header: Sequence[str]) -> list[str]:
    """Return the meaning of each column, an empty text where there is none."""
    names = [name.strip().lstrip("\ufeff").casefold() for name in header]
    found = {
        next((names.index(alias) for alias in aliases if alias in names), -1): meaning
        for meaning, aliases in _COLUMNS.items()
    }
    return [found.get(place, "") for place in range(len(names))]


def _header_of(head: str, delimiter: str, columns: Sequence[str]) -> Iterator[tuple[str, str]]:
    for line in head.splitlines():
        if line.strip() and not line.startswith("sep="):
            cells = _cells(line, delimiter)
            if "text" in _meanings(cells):
                yield from zip(cells, columns, strict=False)
            return
