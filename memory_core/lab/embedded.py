"""Embeddings kept on disk by content and model, so that no text is embedded twice.

One SQLite file, one row a text: the key is the model's name and a hash of the text, the value
float32 numbers. Nothing in it can be read back as text. It is derived data: a file that is
damaged is set aside and begun anew, and where none can be kept embedding goes on without one.
"""

from __future__ import annotations

import hashlib
import logging
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from memory_core.models.embeddings import Embedder

log = logging.getLogger("memory_core.lab")

Vectors = NDArray[np.float32]
Progress = Callable[[int, int], None]
_Kept = dict[bytes, Vectors]
_T = TypeVar("_T")

BATCH = 256  # texts embedded between two writes, so that an interrupted run keeps what it did
_ASKED = 500  # keys in one query
_WAIT = 30.0  # seconds for another process that writes
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS vectors "
    "(model TEXT, text BLOB, vector BLOB, PRIMARY KEY (model, text))"
)


class EmbeddingCache:
    """Vectors of texts on disk. Safe between threads and processes: no connection is held.

    Without a ``file`` nothing is kept and every text is embedded each time.
    """

    def __init__(self, file: Path | None = None) -> None:
        self.file = file

    def embed(
        self,
        texts: Sequence[str],
        embedder: Embedder,
        *,
        progress: Progress = lambda _done, _total: None,
    ) -> Vectors:
        """Return the vectors of texts that are not blank, one row each, embedding only new ones.

        ``progress`` is told how many of how many distinct texts have one. Raises what the
        embedder raises; what it made before is kept.
        """
        keys = {text: _key(text) for text in texts}
        kept = self._read(embedder.name, list(keys.values()))

        def told(done: int) -> None:
            progress(len(kept) + done, len(keys))

        new = {text: key for text, key in keys.items() if key not in kept}
        made = self._make(new, embedder, told)
        if len({len(vector) for vector in (*kept.values(), *made.values())}) > 1:
            log.warning("%s changed the length of its vectors; all are made anew", embedder.name)
            old = {text: key for text, key in keys.items() if key in kept}
            kept = {}
            made |= self._make(old, embedder, told)
        kept |= made
        return np.stack([kept[keys[text]] for text in texts]) if keys else np.zeros((0, 0), "f4")

    def _make(
        self, keys: Mapping[str, bytes], embedder: Embedder, told: Callable[[int], None]
    ) -> _Kept:
        texts, made = list(keys), _Kept()
        told(0)
        for start in range(0, len(texts), BATCH):
            batch = texts[start : start + BATCH]
            vectors = np.asarray(embedder.embed(batch), np.float32)
            part = {keys[text]: vector for text, vector in zip(batch, vectors, strict=True)}
            self._write(embedder.name, part)
            made |= part
            told(len(made))
        return made

    def _read(self, model: str, keys: Sequence[bytes]) -> _Kept:
        def read(db: sqlite3.Connection) -> _Kept:
            found = _Kept()
            for start in range(0, len(keys), _ASKED):
                part = keys[start : start + _ASKED]
                marks = ",".join("?" * len(part))
                query = f"SELECT text, vector FROM vectors WHERE model = ? AND text IN ({marks})"  # noqa: S608
                for key, blob in db.execute(query, (model, *part)):
                    if (vector := _vector(blob)) is not None:
                        found[key] = vector
            return found

        return self._with_file(read, {})

    def _write(self, model: str, made: _Kept) -> None:
        rows = [(model, key, vector.tobytes()) for key, vector in made.items()]

        def write(db: sqlite3.Connection) -> None:
            db.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", rows)

        self._with_file(write, None)

    def _with_file(self, action: Callable[[sqlite3.Connection], _T], otherwise: _T) -> _T:
        if self.file is None:
            return otherwise
        try:
            with closing(_connected(self.file)) as db, db:
                return action(db)
        except (OSError, sqlite3.Error) as exc:
            log.warning("embeddings are not kept in %s: %s", self.file, exc)
            return otherwise


def _connected(file: Path) -> sqlite3.Connection:
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        return _opened(file)
    except sqlite3.OperationalError:
        raise
    except sqlite3.DatabaseError:  # not a database: set it aside
        file.replace(file.with_name(f"{file.name}.damaged"))
        return _opened(file)


def _opened(file: Path) -> sqlite3.Connection:
    db = sqlite3.connect(file, timeout=_WAIT)
    try:
        db.execute(_SCHEMA)
    except sqlite3.Error:
        db.close()
        raise
    return db


def _vector(blob: object) -> Vectors | None:
    if not isinstance(blob, bytes) or not blob or len(blob) % 4:
        return None
    vector = np.frombuffer(blob, np.float32)
    return vector if np.isfinite(vector).all() else None


def _key(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=16).digest()
