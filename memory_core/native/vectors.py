"""A vector store that is watched: every call is passed on unchanged, searches and writes noted.

LlamaIndex's memories throw the scores of their searches away, and its Chroma class gives
``exp(-distance)`` for a similarity. What is noted here is the text that was searched, the filter,
every result with the score the class saw, the raw distance and the cosine similarity computed
from the vectors themselves. Reading those vectors back is the only thing added; it asks no model
and writes nothing.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.schema import BaseNode, MetadataMode
from llama_index.core.vector_stores import SimpleVectorStore
from llama_index.core.vector_stores.types import (
    BasePydanticVectorStore,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryResult,
)

from memory_core.messages import Json
from memory_core.prompt import Hit, Recall
from memory_core.tokens import TokenCounter

SESSION_KEY = "session_id"  # the metadata key by which VectorMemoryBlock tells sessions apart


@dataclass(frozen=True)
class Result:
    """One result of a search. ``score`` is what the class saw; the rest is computed by us.

    ``None``: the store does not tell the vectors it is computed from.
    """

    id: str
    text: str
    score: float
    distance: float | None
    cosine: float | None
    session: str = ""


@dataclass(frozen=True)
class Searched:
    """One search. ``session`` is what the filter asked for, empty: no such filter."""

    query: str
    results: tuple[Result, ...]
    filters: str = ""
    session: str = ""
    metric: str = ""
    milliseconds: float = 0.0


@dataclass
class Journal:
    """What a watched store did since it was last emptied, and the text of all it was given."""

    searches: list[Searched] = field(default_factory=list)
    added: dict[str, Json] = field(default_factory=dict)
    removed: dict[str, None] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)

    def note_added(self, node: BaseNode, *, vector: bool) -> None:
        """Note a record, with its vector where nothing else keeps it."""
        dumped = node.to_dict()
        embedding = dumped.pop("embedding", None)
        self.texts[node.node_id] = node.get_content(MetadataMode.NONE)
        self.added[node.node_id] = {"id": node.node_id, "node": dumped} | (
            {"vector": embedding} if vector else {}
        )
        self.removed.pop(node.node_id, None)

    def note_removed(self, ids: Sequence[str]) -> None:
        """Note that records were taken out."""
        for node_id in ids:
            self.added.pop(node_id, None)
            self.removed[node_id] = None


class WatchedVectorStore(BasePydanticVectorStore):
    """Passes every call on to ``inner`` and notes searches and writes in a journal."""

    stores_text: bool = True
    is_embedding_query: bool = True
    _inner: BasePydanticVectorStore = PrivateAttr()
    _journal: Journal = PrivateAttr()
    _metric: str = PrivateAttr()

    def __init__(
        self, inner: BasePydanticVectorStore, *, journal: Journal, metric: str = "cosine"
    ) -> None:
        super().__init__(stores_text=inner.stores_text, is_embedding_query=inner.is_embedding_query)
        self._inner, self._journal, self._metric = inner, journal, metric

    @classmethod
    def class_name(cls) -> str:
        """Return the name LlamaIndex serialises the class under."""
        return "WatchedVectorStore"

    @property
    def inner(self) -> BasePydanticVectorStore:
        """The store behind."""
        return self._inner

    @property
    def client(self) -> Any:
        """The client of the store behind."""
        return self._inner.client

    def get_nodes(self, *args: Any, **kwargs: Any) -> list[BaseNode]:
        """Pass the call on."""
        return self._inner.get_nodes(*args, **kwargs)

    async def aget_nodes(self, *args: Any, **kwargs: Any) -> list[BaseNode]:
        """Pass the call on."""
        return await self._inner.aget_nodes(*args, **kwargs)

    def add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        """Pass the records on and note them."""
        ids = self._inner.add(nodes, **kwargs)
        self._note(nodes)
        return ids

    async def async_add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        """Pass the records on and note them."""
        ids = await self._inner.async_add(nodes, **kwargs)
        self._note(nodes)
        return ids

    def delete(self, ref_doc_id: str, **kwargs: Any) -> None:
        """Pass the call on and note it."""
        self._inner.delete(ref_doc_id, **kwargs)
        self._journal.note_removed([ref_doc_id])

    def delete_nodes(
        self,
        node_ids: list[str] | None = None,
        filters: MetadataFilters | None = None,
        **kwargs: Any,
    ) -> None:
        """Pass the call on and note it."""
        self._inner.delete_nodes(node_ids, filters, **kwargs)
        self._journal.note_removed(node_ids or [])

    def clear(self) -> None:
        """Pass the call on and note it."""
        self._inner.clear()
        self._journal.note_removed(list(self._journal.texts))

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """Pass the search on and note what was asked and found."""
        began = time.perf_counter()
        result = self._inner.query(query, **kwargs)
        self._searched(query, result, time.perf_counter() - began)
        return result

    async def aquery(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """Pass the search on and note what was asked and found."""
        began = time.perf_counter()
        result = await self._inner.aquery(query, **kwargs)
        self._searched(query, result, time.perf_counter() - began)
        return result

    def _note(self, nodes: Sequence[BaseNode]) -> None:
        lasting = not isinstance(self._inner, SimpleVectorStore)
        for node in nodes:
            self._journal.note_added(node, vector=not lasting)

    def _searched(
        self, query: VectorStoreQuery, found: VectorStoreQueryResult, seconds: float
    ) -> None:
        ids = list(found.ids or [node.node_id for node in found.nodes or []])
        nodes = {node.node_id: node for node in found.nodes or []}
        vectors = vectors_of(self._inner, ids)
        scores = list(found.similarities or [])
        results = []
        for place, node_id in enumerate(ids):
            node = nodes.get(node_id)
            score = float(scores[place]) if place < len(scores) else math.nan
            results.append(
                Result(
                    id=node_id,
                    text=self._text(node_id, node),
                    score=score,
                    distance=distance(query.query_embedding, vectors.get(node_id), self._metric),
                    cosine=cosine(query.query_embedding, vectors.get(node_id)),
                    session=str(node.metadata.get(SESSION_KEY) or "") if node is not None else "",
                )
            )
        self._journal.searches.append(
            Searched(
                query=query.query_str or "",
                results=tuple(results),
                filters=describe(query.filters),
                session=_session_in(query.filters),
                metric=self._metric,
                milliseconds=seconds * 1000,
            )
        )

    def _text(self, node_id: str, node: BaseNode | None) -> str:
        if node is None:  # LlamaIndex's own store gives ids only
            return self._journal.texts.get(node_id, "")
        return node.get_content(MetadataMode.NONE)


def vectors_of(store: BasePydanticVectorStore, ids: Sequence[str]) -> Mapping[str, Sequence[float]]:
    """Return the stored vectors of records, where the store tells them."""
    if isinstance(store, SimpleVectorStore):
        known = store.data.embedding_dict
        return {i: known[i] for i in ids if i in known}
    read: Callable[..., Any] | None = getattr(store.client, "get", None)
    if read is None or not ids:
        return {}
    got = read(ids=list(ids), include=["embeddings"])
    return dict(zip(got["ids"], got["embeddings"], strict=True))


def cosine(one: Sequence[float] | None, other: Sequence[float] | None) -> float | None:
    """Return the cosine similarity of two vectors, -1 to 1; ``None`` where one has no length."""
    if one is None or other is None:
        return None
    a, b = np.asarray(one, np.float64), np.asarray(other, np.float64)
    lengths = float(np.linalg.norm(a) * np.linalg.norm(b))
    if not lengths:
        return None
    return float(np.clip(a @ b / lengths, -1.0, 1.0))


def distance(
    one: Sequence[float] | None, other: Sequence[float] | None, metric: str
) -> float | None:
    """Return the distance of two vectors as Chroma defines it: ``l2`` is squared."""
    if one is None or other is None:
        return None
    a, b = np.asarray(one, np.float64), np.asarray(other, np.float64)
    if metric == "l2":
        return float(((a - b) ** 2).sum())
    if metric == "ip":
        return float(1 - a @ b)
    similarity = cosine(one, other)
    return None if similarity is None else 1 - similarity


def recall_of(searches: Sequence[Searched], counter: TokenCounter) -> Recall | None:
    """Return the searches of one request as one Recall, ``None`` when nothing was searched."""
    if not searches:
        return None
    hits: list[Hit] = []
    for searched in searches:
        for result in searched.results:
            hits.append(
                Hit(
                    id=result.id,
                    text=result.text,
                    similarity=_known(result.cosine),
                    distance=_known(result.distance),
                    score=_known(result.score),
                    rank=len(hits) + 1,
                    tokens=counter.text(result.text),
                    session=result.session,
                    kind="record",
                )
            )
    last = searches[-1]
    return Recall(
        query=last.query,
        hits=tuple(hits),
        metric=last.metric,
        searched=len(hits),
        milliseconds=sum(searched.milliseconds for searched in searches),
        scope=last.filters,
    )


def describe(filters: MetadataFilters | None) -> str:
    """Return a filter in words, empty when there is none."""
    if filters is None:
        return ""
    words = []
    for item in filters.filters:
        if isinstance(item, MetadataFilter):
            words.append(f"{item.key} {item.operator.value} {item.value}")
        else:
            words.append(f"({describe(item)})")
    condition = filters.condition.value if filters.condition is not None else "and"
    return f" {condition} ".join(words)


def _session_in(filters: MetadataFilters | None) -> str:
    for item in filters.filters if filters is not None else ():
        if isinstance(item, MetadataFilter) and item.key == SESSION_KEY:
            return str(item.value)
    return ""


def _known(value: float | None) -> float:
    """Return a number that JSON can hold: what is not known becomes -1, the worst there is."""
    return value if value is not None and math.isfinite(value) else -1.0
