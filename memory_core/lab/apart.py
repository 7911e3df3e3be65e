"""An engine apart: real store, real vectors, real turns, and nothing of it stays.

What a configuration would remember is found out by letting it. The store is a SQLite file in a
temporary folder that is removed at the end, sealed where the program's own store is; vectors live
in memory. The user of it is nobody else's, so no memory comes in from, or gets out to, a user's
own sessions.
"""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from memory_core.engine import Engine
from memory_core.models.embeddings import Embedder
from memory_core.redaction import Redactor
from memory_core.stores.encoding import Cipher, Encoding
from memory_core.stores.protocols import Store
from memory_core.stores.redacting import RedactingStore
from memory_core.stores.sql import SqlStore
from memory_core.stores.vectors.base import Vectors
from memory_core.stores.vectors.chroma import open_chroma

PREFIX = "memory-inspector-apart-"


class OnceEmbedder:
    """Passes texts on to another embedder, each only once: columns ask for the same ones."""

    def __init__(self, inner: Embedder) -> None:
        self._inner = inner
        self._known: dict[str, Vectors] = {}

    @property
    def embedded(self) -> int:
        """How many texts the embedder behind has embedded for this one."""
        return len(self._known)

    @property
    def name(self) -> str:
        """The name of the embedder behind."""
        return self._inner.name

    @property
    def dimension(self) -> int:
        """How many numbers one vector has."""
        return self._inner.dimension

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one vector a text, as rows."""
        missing = [text for text in dict.fromkeys(texts) if text not in self._known]
        if missing:
            self._known |= dict(zip(missing, self._inner.embed(missing), strict=True))
        return np.stack([self._known[text] for text in texts])


@contextmanager
def engine_apart(
    embedder: Embedder, *, cipher: Cipher | None = None, redactor: Redactor | None = None
) -> Iterator[tuple[Engine, str]]:
    """Open an engine of its own and yield it with its only user; at the end nothing is left."""
    user, vectors = f"apart-{uuid.uuid4().hex}", open_chroma()
    with tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True) as folder:
        store: Store = SqlStore.open(
            f"sqlite:///{Path(folder) / 'apart.db'}", encoding=Encoding(cipher)
        )
        if redactor is not None:
            store = RedactingStore(store, redactor=redactor)
        engine = Engine(store=store, vectors=vectors, embedder=embedder)
        try:
            yield engine, user
        finally:
            engine.close()
            for found in vectors.collections(user):
                vectors.drop(found.name)
