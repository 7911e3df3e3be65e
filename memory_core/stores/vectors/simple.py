"""Vectors in plain files, for people without Chroma: LlamaIndex's ``SimpleVectorStore`` on disk.

A collection is two JSON files in one folder: ``<name>.json`` as ``SimpleVectorStore.persist``
writes it, so that any LlamaIndex program can load it, and ``<name>.about.json`` with title, model
and dimension. Both are written beside their place and moved over it, so a crash leaves the old
ones. Every search looks at every record and measures by cosine.

A file that another process changed is read again at the next call. Two processes writing at the
same moment can lose a vector to each other; it is derived data and comes back with a rebuild.
"""

from __future__ import annotations

import json
import os
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores.simple import SimpleVectorStore

from memory_core.errors import CollectionGone, VectorError
from memory_core.messages import repair_text
from memory_core.stores.vectors.base import (
    COSINE,
    CollectionSpec,
    Description,
    Entry,
    Near,
    Vectors,
    check_entries,
    check_in_use,
    in_steps,
    mismatch,
    notices,
    safe_name,
)

STEP = 1_000  # records between two writes of the file
_TEXT = "text"
_ABOUT = ".about.json"


class SimpleDatabase:
    """A folder of collections. Without ``keep_text`` it holds vectors and ids only."""

    def __init__(self, folder: str | Path, *, keep_text: bool = True) -> None:
        self.folder = Path(folder).expanduser().resolve()
        self.keep_text = keep_text
        self.reload()

    @property
    def where(self) -> str:
        """The folder."""
        return str(self.folder)

    def open(self, spec: CollectionSpec) -> SimpleIndex:
        """Return the collection of that title, made if it is not there."""
        title, _ = repair_text(spec.title)
        name = safe_name(title)
        about = self.folder / f"{name}{_ABOUT}"
        self._check_there()
        if not about.exists():
            made = replace(spec, title=title, user=repair_text(spec.user)[0], metric=COSINE)
            _write(about, asdict(made))
            _write(self.folder / f"{name}.json", SimpleVectorStore().to_dict())
        return SimpleIndex(self.folder, name, spec, keep_text=self.keep_text)

    def collections(self, user: str | None = None) -> list[Description]:
        """Return all collections, or those of one user, by name."""
        self._check_there()
        names = sorted(p.name.removesuffix(_ABOUT) for p in self.folder.glob(f"*{_ABOUT}"))
        specs = [(name, _read_about(self.folder, name)) for name in names]
        return [
            SimpleIndex(self.folder, name, spec).describe()
            for name, spec in specs
            if user in (None, spec.user)
        ]

    def drop(self, name: str) -> None:
        """Remove a collection with all it holds; an unknown one is ignored."""
        self._check_there()
        known = {p.name.removesuffix(_ABOUT) for p in self.folder.glob(f"*{_ABOUT}")}
        if name in known:
            (self.folder / f"{name}{_ABOUT}").unlink(missing_ok=True)
            (self.folder / f"{name}.json").unlink(missing_ok=True)

    def reload(self) -> None:
        """Make the folder if it is not there; files are read anew by themselves."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as exc:
            raise CollectionGone(f"The folder {self.folder} cannot be made: {exc}.") from exc

    def _check_there(self) -> None:
        if not self.folder.is_dir():
            raise CollectionGone(f"The folder {self.folder} was removed while in use.")


class SimpleIndex:
    """One collection in two files."""

    exact = True
    metric = COSINE

    def __init__(
        self, folder: Path, name: str, spec: CollectionSpec, *, keep_text: bool = True
    ) -> None:
        self.spec = spec
        self._folder, self._name, self._keep_text = folder, name, keep_text
        self._file = folder / f"{name}.json"
        self._lock = threading.RLock()
        self._seen: tuple[int, int] | None = None
        self._store = SimpleVectorStore()
        self._refresh()

    @property
    def dimension(self) -> int:
        """The length of its vectors."""
        return _read_about(self._folder, self._name).dimension

    def describe(self) -> Description:
        """Return what the collection is and holds."""
        about = _read_about(self._folder, self._name)
        count = self.count()
        found = Description(
            name=self._name,
            title=about.title,
            user=about.user,
            model=about.model,
            dimension=about.dimension,
            metric=COSINE,
            count=count,
            searchable=count,
            backend="files",
        )
        return replace(found, notices=notices(found, self.spec))

    def count(self) -> int:
        """Return how many records there are."""
        return len(self._embeddings())

    def ids(self) -> list[str]:
        """Return the ids of all records."""
        return list(self._embeddings())

    def read(self, ids: Sequence[str]) -> list[Entry]:
        """Return the records with these ids, in their order; unknown ids are left out."""
        vectors = self.vectors(ids)
        entries = []
        for i, vector in vectors.items():
            metadata = dict(self._store.data.metadata_dict.get(i) or {})
            text = str(metadata.pop(_TEXT, ""))
            own = {k: v for k, v in metadata.items() if k not in _NODE_KEYS}
            entries.append(Entry(i, text, vector, own))
        return entries

    def vectors(self, ids: Sequence[str]) -> dict[str, Vectors]:
        """Return the vectors of the records with these ids; unknown ids are left out."""
        stored = self._embeddings()
        return {i: np.asarray(stored[i], dtype=np.float32) for i in ids if i in stored}

    def add(self, entries: Sequence[Entry], *, replace: bool = False) -> None:
        """Add records, the file written after each step (see the Protocol)."""
        check_entries(entries)
        with self._lock:
            about = self.describe()
            for entry in entries:
                if len(entry.vector) != about.dimension:
                    raise mismatch(about, self.spec, len(entry.vector))
            if not replace:
                stored = self.read([entry.id for entry in entries])
                check_in_use(entries, stored)
                there = {entry.id for entry in stored}
                entries = [entry for entry in entries if entry.id not in there]
            in_steps(entries, STEP, self._put)

    def delete(self, ids: Sequence[str]) -> None:
        """Remove records; unknown ids are ignored."""
        with self._lock:
            there = self._embeddings()
            gone = [i for i in ids if i in there]
            if gone:
                self._store.delete_nodes(gone)
                self._save()

    def query(self, vector: Vectors, n: int) -> list[Near]:
        """Return the ``n`` nearest records by cosine distance, nearest first."""
        about = self.describe()
        if len(vector) != about.dimension:
            raise mismatch(about, self.spec, len(vector))
        stored = self._embeddings()
        if not stored or n < 1:
            return []
        matrix = np.asarray(list(stored.values()), dtype=np.float32)
        lengths = np.linalg.norm(matrix, axis=1) * float(np.linalg.norm(vector))
        cosines = matrix @ np.asarray(vector, np.float32) / np.maximum(lengths, 1e-12)
        names = list(stored)
        nearest = np.argsort(-cosines, kind="stable")[:n]
        return [Near(names[row], float(1 - cosines[row])) for row in nearest]

    def _put(self, entries: Sequence[Entry]) -> None:
        self._store.add(
            [
                TextNode(
                    id_=entry.id,
                    text="",
                    metadata={**entry.metadata, _TEXT: entry.text} if self._keep_text else {},
                    embedding=[float(x) for x in entry.vector],
                )
                for entry in entries
            ]
        )
        self._save()

    def _embeddings(self) -> dict[str, list[float]]:
        self._refresh()
        return self._store.data.embedding_dict

    def _refresh(self) -> None:
        with self._lock:
            stamp = self._stamp()
            if stamp == self._seen:
                return
            try:
                values = json.loads(self._file.read_text(encoding="utf-8"))
                self._store = SimpleVectorStore.from_dict(values)
            except (OSError, ValueError, TypeError, KeyError, AttributeError) as exc:
                raise VectorError(f"The vectors in {self._file} cannot be read: {exc}.") from exc
            self._seen = stamp

    def _stamp(self) -> tuple[int, int]:
        try:
            status = self._file.stat()
        except OSError as exc:
            raise CollectionGone(f"The collection {self._file} is gone.") from exc
        return status.st_ino, status.st_mtime_ns

    def _save(self) -> None:
        _write(self._file, self._store.to_dict())
        self._seen = self._stamp()


_NODE_KEYS = frozenset({"_node_type", "document_id", "doc_id", "ref_doc_id"})


def _read_about(folder: Path, name: str) -> CollectionSpec:
    try:
        values = json.loads((folder / f"{name}{_ABOUT}").read_text(encoding="utf-8"))
        return CollectionSpec(**values)
    except FileNotFoundError as exc:
        raise CollectionGone(f"The collection {name} is no longer in {folder}.") from exc
    except (OSError, ValueError, TypeError) as exc:
        raise VectorError(f"The description of {name} in {folder} cannot be read: {exc}.") from exc


def _write(path: Path, value: Any) -> None:
    """Write JSON beside its place, make it durable, then move it there."""
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as exc:
        raise CollectionGone(f"Nothing can be written to {path.parent}: {exc}.") from exc
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(value, file)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except OSError as exc:
        Path(temporary).unlink(missing_ok=True)
        raise VectorError(f"{path} cannot be written: {exc}.") from exc
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
