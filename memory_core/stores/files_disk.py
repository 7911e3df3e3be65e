"""Files that are changed whole or not at all, alone or several together.

One file is replaced by a new one moved into its place, or grows by one append: what was there
before stays as it was until the new bytes are on disk. Several changes that belong together are
first written to a :class:`Journal`; once that is on disk they happen, if need be after a restart.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from memory_core.messages import Json


@dataclass(frozen=True)
class Edit:
    """One change of a file, named relative to the journal's folder.

    ``at`` is the byte offset to append at (what is behind it is cut off), ``None`` to replace the
    whole file; ``text`` of ``None`` deletes it.
    """

    name: str
    text: str | None
    at: int | None = None


def replace_file(path: Path, data: bytes) -> None:
    """Write a file anew; until it is complete on disk the old one stays."""
    scratch = path.with_name(path.name + ".new")
    with scratch.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    scratch.replace(path)
    sync_folder(path.parent)


def append_at(path: Path, offset: int, data: bytes) -> None:
    """Write bytes at the end of a file, on disk before this returns; nothing on failure."""
    with path.open("r+b") as file:
        try:
            file.truncate(offset)
            file.seek(offset)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        except OSError:
            file.truncate(offset)
            raise


def sync_folder(folder: Path) -> None:
    """Make the names in a folder survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class Journal:
    """Changes several files of one folder together. Its callers hold that folder's lock."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = folder / "journal"

    def recover(self) -> None:
        """Finish what a program that was killed had begun."""
        try:
            data = self._path.read_bytes()
        except FileNotFoundError:
            return
        if data:
            checksum, _, body = data.partition(b"\n")
            if checksum == _checksum(body):
                self._do([Edit(**edit) for edit in json.loads(body)])
            self._clear()

    def apply(self, edits: Sequence[Edit]) -> None:
        """Make all the changes, or none when this fails before the journal is on disk."""
        if len(edits) == 1:
            self._do(edits)
            return
        body = json.dumps([asdict(edit) for edit in edits]).encode()
        with self._path.open("wb") as file:
            file.write(_checksum(body) + b"\n" + body)
            file.flush()
            os.fsync(file.fileno())
        sync_folder(self._folder)
        self._do(edits)
        self._clear()

    def _do(self, edits: Sequence[Edit]) -> None:
        for edit in edits:
            path = self._folder / edit.name
            if edit.text is None:
                path.unlink(missing_ok=True)
            elif edit.at is None:
                replace_file(path, edit.text.encode())
            else:
                append_at(path, edit.at, edit.text.encode())

    def _clear(self) -> None:
        with self._path.open("r+b") as file:
            file.truncate(0)
            os.fsync(file.fileno())


def dump_line(value: dict[str, Json]) -> str:
    """Return a JSON object as one line that carries its own checksum."""
    body = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return f'{{"crc":"{zlib.crc32(body.encode()):08x}",{body[1:]}\n'


def load_line(line: bytes) -> dict[str, Json] | None:
    """Return the object in a line of :func:`dump_line`, ``None`` when it is damaged."""
    start, rest = line[:8], line[18:]
    if start != b'{"crc":"' or line[16:18] != b'",':
        return None
    body = b"{" + rest.rstrip(b"\n")
    if f"{zlib.crc32(body):08x}".encode() != line[8:16]:
        return None
    found: dict[str, Json] = json.loads(body)
    return found


def _checksum(body: bytes) -> bytes:
    return f"{zlib.crc32(body):08x} {len(body)}".encode()
