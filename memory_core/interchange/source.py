"""Where the bytes come from: a plain file, or the files inside a zip archive.

Nothing is ever unpacked to disk. Entries are read as streams, so a name that points elsewhere is
only text. An archive is refused when it, or an entry of it, unpacks to more than any chat export
would (zip bombs), and every entry is checked against the size it claims.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

from memory_core.errors import InvalidInput
from memory_core.interchange.encoding import CHUNK
from memory_core.interchange.values import Notes
from memory_core.messages import repair_text

MAX_FILE = 2_000_000_000  # bytes, unpacked
MAX_RATIO = 200  # unpacked to packed, for entries above a megabyte; chat exports have 5 to 20
MAX_ENTRIES = 20_000
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_CLOSED_KINDS = (".html", ".htm", ".zip")  # beside the data in exports, never the data itself

File = bytes | BinaryIO
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Entry:
    """One file to read: ``size`` in bytes (unpacked), ``chunks`` starts from the beginning."""

    name: str
    size: int
    chunks: Callable[[], Iterator[bytes]]

    def head(self, size: int) -> bytes:
        """Return the first bytes."""
        out = b""
        for chunk in self.chunks():
            out += chunk
            if len(out) >= size:
                break
        return out[:size]


def as_stream(file: File) -> BinaryIO:
    """Return a file as a stream at its beginning; bytes are wrapped."""
    if isinstance(file, (bytes, bytearray)):
        return io.BytesIO(file)
    file.seek(0)
    return file


def size_of(file: File) -> int:
    """Return the size of a file in bytes."""
    stream = as_stream(file)
    return stream.seek(0, io.SEEK_END)


def fingerprint(file: File) -> str:
    """Return the SHA-256 of a file's bytes, in hexadecimal: the same file twice has the same."""
    digest = hashlib.sha256()
    for chunk in _chunks(as_stream(file)):
        digest.update(chunk)
    return digest.hexdigest()


def entries(file: File, name: str, notes: Notes) -> list[Entry]:
    """Return what there is to read: the file itself, or the entries of a zip archive.

    Raises :class:`InvalidInput` for an empty, damaged or dangerous file.
    """
    size = size_of(file)
    if not size:
        raise InvalidInput("The file is empty.")
    if size > MAX_FILE:
        raise InvalidInput(f"The file has {size:,} bytes; at most {MAX_FILE:,} can be read.")
    if as_stream(file).read(4) in _ZIP:
        return _zip_entries(file, notes)
    return [Entry(name, size, lambda: _chunks(as_stream(file)))]


def _chunks(stream: BinaryIO) -> Iterator[bytes]:
    while chunk := stream.read(CHUNK):
        yield chunk


def _zip_entries(file: File, notes: Notes) -> list[Entry]:
    try:
        with zipfile.ZipFile(as_stream(file)) as archive:
            infos = [info for info in archive.infolist() if not info.is_dir()]
    except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError) as exc:
        raise InvalidInput(f"The zip archive cannot be read: {exc}.") from exc
    if len(infos) > MAX_ENTRIES:
        raise InvalidInput(f"The zip archive has {len(infos):,} entries; {MAX_ENTRIES:,} at most.")
    total = sum(info.file_size for info in infos)
    if total > MAX_FILE:
        raise InvalidInput(
            f"The zip archive unpacks to {total:,} bytes; at most {MAX_FILE:,} can be read."
        )
    found = []
    for info in infos:
        label = _label(info.filename)
        if info.file_size > max(1_000_000, info.compress_size * MAX_RATIO):
            raise InvalidInput(
                f"Entry {label!r} of the zip archive unpacks from {info.compress_size:,} to "
                f"{info.file_size:,} bytes, more than {MAX_RATIO} times its size."
            )
        if info.flag_bits & 1:
            notes.add(label, "left out: it is encrypted")
        elif not info.file_size:
            notes.add(label, "left out: it is empty")
        elif info.filename.lower().endswith(_CLOSED_KINDS):
            notes.add(label, "left out: it is no conversation file")
        else:
            found.append(Entry(label, info.file_size, _opener(file, info)))
    if not found:
        raise InvalidInput("The zip archive holds no file that can be read.")
    return sorted(found, key=lambda entry: entry.name)


def _opener(file: File, info: zipfile.ZipInfo) -> Callable[[], Iterator[bytes]]:
    def chunks() -> Iterator[bytes]:
        try:
            with (
                zipfile.ZipFile(as_stream(file)) as archive,
                archive.open(info) as stream,
            ):
                yield from _chunks(stream)  # type: ignore[arg-type]
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError) as exc:
            raise InvalidInput(
                f"Entry {_label(info.filename)!r} of the zip archive is damaged: {exc}."
            ) from exc

    return chunks


def _label(name: str) -> str:
    """Return the name of an entry as it can be shown: one line, no path tricks, not too long."""
    shown = "".join(c if c.isprintable() else "\ufffd" for c in repair_text(name)[0])
    parts = [p for p in shown.replace("\\", "/").split("/") if p not in ("", ".", "..")]
    return "/".join(parts)[-120:] or "unnamed"
