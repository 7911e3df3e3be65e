"""Vectors in Chroma: embedded in a folder, in memory, or on a Chroma server.

Records are LlamaIndex nodes written by ``ChromaVectorStore``, so a collection opens in any
LlamaIndex program. What that class or Chroma does wrong is done on the collection itself, each
from a public report: steps no larger than the client allows, an id in use is noticed, a changed
record gets its new vector, raw distances instead of ``exp(-distance)``, the metric and dimension
that the collection really has.

Clients: one per folder and process, however its path is written; an in-memory database of its
own for each :func:`open_chroma` without a place, so visitors never share; a vanished folder or
server is :class:`CollectionGone`, and :meth:`ChromaDatabase.reload` opens the place anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from chromadb.api.models.Collection import Collection
from chromadb.errors import NotFoundError
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores.utils import node_to_metadata_dict
from llama_index.vector_stores.chroma import ChromaVectorStore

from memory_core.messages import repair_text
from memory_core.stores.vectors import clients
from memory_core.stores.vectors.base import (
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
from memory_core.stores.vectors.clients import Place

TIMEOUT = 10.0  # seconds a Chroma server has for an answer
PROBED_UP_TO = 20_000  # records; larger collections are not asked how many can be searched
HNSW = {"ef_construction": 400, "ef_search": 400, "max_neighbors": 32}  # count at creation only
_READ = 1_000  # ids named in one request


def open_chroma(
    *,
    path: str | Path | None = None,
    url: str = "",
    keep_text: bool = True,
    timeout: float = TIMEOUT,
    at_once: bool = True,
) -> ChromaDatabase:
    """Return the Chroma database in a folder, at a server's URL, or a new one in memory.

    Without ``keep_text`` Chroma holds vectors and ids only. ``timeout`` is in seconds, for a
    server, which without ``at_once`` may be away and is looked for when it is first needed.
    Raises :class:`CollectionGone` when the place cannot be opened,
    :class:`InvalidInput` for an address that is none.
    """
    if path is not None and url:
        raise ValueError("a database is in a folder or at a URL, not both")
    if url:
        address = clients.address_of(url)
        place = Place(
            lambda: clients.server(address, timeout), where=address.geturl(), at_once=at_once
        )
    elif path is None:
        place = Place(clients.in_memory, where="memory", lasting=False)
    else:
        folder = Path(path).expanduser().resolve()
        place = Place(lambda: clients.in_folder(folder), where=str(folder), folder=folder)
    return ChromaDatabase(place, keep_text=keep_text)


class ChromaDatabase:
    """A place that holds Chroma collections."""

    def __init__(self, place: Place, *, keep_text: bool = True) -> None:
        self.place = place
        self.keep_text = keep_text

    @property
    def where(self) -> str:
        """The folder, the server's URL, or ``memory``."""
        return self.place.where

    def open(self, spec: CollectionSpec) -> ChromaIndex:
        """Return the collection of that title, made if it is not there."""
        title, _ = repair_text(spec.title)
        name = safe_name(title)
        with self.place.guard():
            try:
                collection = self.place.client.get_collection(name, embedding_function=None)
            except NotFoundError:
                collection = self._create(name, title, spec)
        return ChromaIndex(collection, spec, place=self.place, keep_text=self.keep_text)

    def collections(self, user: str | None = None) -> list[Description]:
        """Return all collections (other programs' too), or those of one user, by name."""
        with self.place.guard():
            found = self.place.client.list_collections()
        names = [c.name for c in found if user in (None, (c.metadata or {}).get("user"))]
        return [self.opened(name).describe() for name in sorted(names)]

    def opened(self, name: str) -> ChromaIndex:
        """Return a collection by its own name, whoever made it, wanting what it is."""
        with self.place.guard():
            collection = self.place.client.get_collection(name, embedding_function=None)
        found = _described(collection, count=0, searchable=0)
        spec = CollectionSpec(
            title=found.title,
            model=found.model,
            dimension=found.dimension,
            user=found.user,
            metric=found.metric,
        )
        return ChromaIndex(collection, spec, place=self.place, keep_text=self.keep_text)

    def drop(self, name: str) -> None:
        """Remove a collection with all it holds; an unknown one is ignored."""
        with self.place.guard():
            try:
                self.place.client.delete_collection(name)
            except NotFoundError:
                return

    def reload(self) -> None:
        """Open the place anew; indexes opened before must be opened again."""
        self.place.reload()

    def _create(self, name: str, title: str, spec: CollectionSpec) -> Collection:
        configuration: Any = {"hnsw": {"space": spec.metric, **HNSW}}
        return self.place.client.create_collection(
            name,
            embedding_function=None,
            configuration=configuration,
            metadata={
                "title": title,
                "model": spec.model,
                "dimension": spec.dimension,
                "user": repair_text(spec.user)[0],
            },
            get_or_create=True,
        )


class ChromaIndex:
    """One Chroma collection."""

    exact = False

    def __init__(
        self, collection: Collection, spec: CollectionSpec, *, place: Place, keep_text: bool
    ) -> None:
        self.spec = spec
        self.collection = collection
        self._place = place
        self._keep_text = keep_text
        self._nodes = ChromaVectorStore(chroma_collection=collection)
        self._found = _described(collection, count=0, searchable=0)

    @property
    def metric(self) -> str:
        """The metric, read back from the collection."""
        return self._found.metric

    @property
    def dimension(self) -> int:
        """The length of its vectors, 0 while nobody said."""
        return self._found.dimension

    def describe(self) -> Description:
        """Return what the collection is and holds, from a fresh handle."""
        with self._place.guard():
            fresh = self._place.client.get_collection(self.collection.name, embedding_function=None)
            count = fresh.count()
            dimension = _described(fresh, count=count, searchable=count).dimension
            found = _described(fresh, count=count, searchable=_searchable(fresh, dimension, count))
        self._found = found
        return replace(found, notices=notices(found, self.spec))

    def count(self) -> int:
        """Return how many records there are."""
        with self._place.guard():
            return self.collection.count()

    def ids(self) -> list[str]:
        """Return the ids of all records."""
        with self._place.guard():
            return list(self.collection.get(include=[])["ids"])

    def read(self, ids: Sequence[str]) -> list[Entry]:
        """Return the records with these ids, in their order; unknown ids are left out."""
        found: dict[str, Entry] = {}
        for some in _chunks(ids):
            got = self._get(some, ["embeddings", "documents", "metadatas"])
            for i, vector, text, metadata in zip(
                got["ids"], got["embeddings"], got["documents"], got["metadatas"], strict=True
            ):
                own = {k: v for k, v in (metadata or {}).items() if k not in _NODE_KEYS}
                found[i] = Entry(i, text or "", np.asarray(vector, dtype=np.float32), own)
        return [found[i] for i in ids if i in found]

    def vectors(self, ids: Sequence[str]) -> dict[str, Vectors]:
        """Return the vectors of the records with these ids; unknown ids are left out."""
        found: dict[str, Vectors] = {}
        for some in _chunks(ids):
            got = self._get(some, ["embeddings"])
            found.update(zip(got["ids"], np.asarray(got["embeddings"], np.float32), strict=True))
        return found

    def add(self, entries: Sequence[Entry], *, replace: bool = False) -> None:
        """Add records in steps no larger than the client allows (see the Protocol)."""
        check_entries(entries)
        for entry in entries:
            self._check_length(entry.vector)
        if not replace:
            entries = self._new_among(entries)
        with self._place.guard():
            step = int(self._place.client.get_max_batch_size())
        in_steps(entries, step, self._put if replace else self._append)

    def delete(self, ids: Sequence[str]) -> None:
        """Remove records; unknown ids are ignored."""
        for some in _chunks(ids):
            with self._place.guard():
                self.collection.delete(ids=list(some))

    def query(self, vector: Vectors, n: int) -> list[Near]:
        """Return the ``n`` nearest records with Chroma's raw distances, nearest first."""
        self._check_length(vector)
        if n < 1:
            return []
        with self._place.guard():
            got = self.collection.query(
                query_embeddings=np.asarray([vector], dtype=np.float32),
                n_results=n,
                include=["distances"],
            )
        distances = got["distances"] or [[]]
        return [Near(i, float(d)) for i, d in zip(got["ids"][0], distances[0], strict=True)]

    def _append(self, entries: Sequence[Entry]) -> None:
        with self._place.guard():
            self._nodes.add([self._node(entry) for entry in entries])

    def _put(self, entries: Sequence[Entry]) -> None:
        """Write records over those with their ids, which ``ChromaVectorStore.add`` would keep."""
        nodes = [self._node(entry) for entry in entries]
        with self._place.guard():
            self.collection.upsert(
                ids=[node.node_id for node in nodes],
                embeddings=np.asarray([entry.vector for entry in entries], dtype=np.float32),
                documents=[node.text for node in nodes],
                metadatas=[
                    {
                        k: "" if v is None else v
                        for k, v in node_to_metadata_dict(
                            node, remove_text=True, flat_metadata=True
                        ).items()
                    }
                    for node in nodes
                ],
            )

    def _node(self, entry: Entry) -> TextNode:
        keep = self._keep_text
        return TextNode(
            id_=entry.id,
            text=entry.text if keep else "",
            metadata=dict(entry.metadata) if keep else {},
            embedding=[float(x) for x in entry.vector],
        )

    def _new_among(self, entries: Sequence[Entry]) -> list[Entry]:
        stored = self.read([entry.id for entry in entries])
        check_in_use(entries, stored)
        there = {entry.id for entry in stored}
        return [entry for entry in entries if entry.id not in there]

    def _get(self, ids: Sequence[str], include: list[Any]) -> Any:
        with self._place.guard():
            return self.collection.get(ids=list(ids), include=include)

    def _check_length(self, vector: Vectors) -> None:
        if len(vector) == (self._found.dimension or len(vector)) == self.spec.dimension:
            return
        found = self._found if self._found.dimension else self.describe()
        if found.dimension and found.dimension != len(vector):
            raise mismatch(found, self.spec, len(vector))


_NODE_KEYS = frozenset({"_node_content", "_node_type", "document_id", "doc_id", "ref_doc_id"})


def _described(collection: Collection, *, count: int, searchable: int) -> Description:
    metadata = collection.metadata or {}
    configuration: Any = collection.configuration
    index = configuration.get("hnsw") or configuration.get("spann") or {}
    own = metadata.get("dimension") or collection._model.dimension or 0  # noqa: SLF001
    return Description(
        name=collection.name,
        title=str(metadata.get("title") or collection.name),
        user=str(metadata.get("user") or ""),
        model=str(metadata.get("model") or ""),
        dimension=int(own),
        metric=str(index.get("space") or "l2"),
        count=count,
        searchable=searchable,
        backend="chroma",
    )


def _searchable(collection: Collection, dimension: int, count: int) -> int:
    """Return how many records a search reaches: fewer when another process wrote."""
    if not dimension or not 0 < count <= PROBED_UP_TO:
        return count
    probe = np.ones((1, dimension), dtype=np.float32)
    got = collection.query(query_embeddings=probe, n_results=count, include=[])
    return len(got["ids"][0])


def _chunks(ids: Sequence[str]) -> Iterable[Sequence[str]]:
    return (ids[start : start + _READ] for start in range(0, len(ids), _READ))
