"""Rids the files of an embedded Chroma database of what was deleted.

Deleting a collection leaves its rows in free pages of ``chroma.sqlite3`` and its vectors in a
folder that nothing names any more. The index files of *other* collections hold unused room that
was written as it stood in the program's memory, with whatever text was there. All three are
cleared here. The layout of an index's header is hnswlib's; a file that does not fit it is left.
"""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import struct
from contextlib import closing
from pathlib import Path

DATABASE = "chroma.sqlite3"

_SEGMENT = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_HEADER = struct.Struct("<iQQQQ")  # version, offset, most elements, elements, bytes of one


def scrub_chroma(folder: Path) -> None:
    """Clear what was deleted from an embedded Chroma database that nobody writes to just now."""
    path = folder / DATABASE
    if not path.exists():
        return
    with closing(sqlite3.connect(path, timeout=10, isolation_level=None)) as db:
        db.execute("PRAGMA secure_delete=ON")
        db.execute("VACUUM")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        named = {str(row[0]) for row in db.execute("SELECT id FROM segments")}
    for segment in folder.iterdir():
        if segment.is_dir() and _SEGMENT.fullmatch(segment.name):
            if segment.name in named:
                _clear_unused(segment)
            else:
                shutil.rmtree(segment)


def _clear_unused(segment: Path) -> None:
    """Overwrite the room for elements that an index has not got."""
    try:
        header = (segment / "header.bin").read_bytes()
        _, _, most, count, size = _HEADER.unpack_from(header)
    except (OSError, struct.error):
        return
    for name, each in (("data_level0.bin", size), ("length.bin", 4)):
        path = segment / name
        if not path.exists() or path.stat().st_size != most * each or count > most:
            continue
        with path.open("r+b") as file:
            file.seek(count * each)
            file.write(bytes((most - count) * each))
            file.flush()
            os.fsync(file.fileno())
