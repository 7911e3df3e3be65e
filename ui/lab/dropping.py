"""A file that was dropped on a page, read as conversations, with progress."""

from __future__ import annotations

from io import BytesIO
from itertools import islice
from typing import Any

from memory_core.errors import InvalidInput
from memory_core.interchange import Conversation, conversations, preview
from ui.lab.place import Dropped
from ui.progress import bar


def read(file: Any) -> Dropped:
    """Read an uploaded file: what it holds, and its first conversation, with questions if any has.

    Raises :class:`InvalidInput` for a file that cannot be read or holds no conversation.
    """
    data = file.getvalue()
    with bar("Reading the file") as move:
        told = preview(BytesIO(data), name=file.name, progress=move)
    if not told.conversations:
        raise InvalidInput("The file holds no conversation.")
    first = next((n for n, row in enumerate(told.conversations) if row.questions), 0)
    return Dropped(file.file_id, told, first, nth(data, file.name, first))


def nth(data: bytes, name: str, number: int) -> Conversation:
    """Read one conversation of a file, by its place from 0."""
    with bar("Reading the conversation") as move:
        found = conversations(BytesIO(data), name=name, progress=move)
        return next(islice(found, number, None))
