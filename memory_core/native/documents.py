"""A small document index for the chat engines that search one, its searches watched.

It is made of the Markdown files in ``sample_data/documents``, a record for each section, with
ids that say which. The index lives in memory and is embedded once per embedder and process.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.indices.vector_store import VectorStoreIndex
from llama_index.core.node_parser import MarkdownNodeParser
from llama_index.core.schema import (
    BaseNode,
    Document,
    MetadataMode,
    NodeWithScore,
    QueryBundle,
    TextNode,
)

from memory_core.errors import InvalidInput
from memory_core.prompt import Hit, Recall
from memory_core.tokens import TokenCounter

DOCUMENTS = Path(__file__).resolve().parents[2] / "sample_data" / "documents"
MAX_FILE = 1_000_000  # bytes

_LOCK = threading.Lock()
_indexes: dict[tuple[str, str], VectorStoreIndex] = {}


class WatchedRetriever(BaseRetriever):
    """Passes a search on and keeps what was asked and found."""

    def __init__(self, inner: BaseRetriever) -> None:
        super().__init__()
        self._inner = inner
        self.query = ""
        self.searches = 0
        self.found: Sequence[NodeWithScore] = ()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        found = self._inner.retrieve(query_bundle)
        self._note(query_bundle, found)
        return found

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        found = await self._inner.aretrieve(query_bundle)
        self._note(query_bundle, found)
        return found

    def _note(self, query: QueryBundle, found: Sequence[NodeWithScore]) -> None:
        self.query, self.found = query.query_str, found
        self.searches += 1

    def recall(self, counter: TokenCounter) -> Recall | None:
        """Return the last search, ``None`` before there was one."""
        if not self.query:
            return None
        hits = tuple(
            Hit(
                id=item.node.node_id,
                text=item.node.get_content(MetadataMode.NONE),
                similarity=item.score or 0.0,
                distance=1 - (item.score or 0.0),
                score=item.score or 0.0,
                rank=rank,
                tokens=counter.text(item.node.get_content(MetadataMode.LLM)),
                kind=str(item.node.metadata.get("file_name", "")),
            )
            for rank, item in enumerate(self.found, start=1)
        )
        return Recall(self.query, hits, searched=len(hits), scope="documents")


def open_documents(
    embedding: BaseEmbedding, *, top_k: int = 2, folder: Path = DOCUMENTS
) -> WatchedRetriever:
    """Return a search over the documents of a folder.

    Raises :class:`InvalidInput` when there are none or one cannot be read.
    """
    key = (str(folder), embedding.model_name)
    with _LOCK:
        if key not in _indexes:
            _indexes[key] = VectorStoreIndex(nodes=_read(folder), embed_model=embedding)
        index = _indexes[key]
    retriever: Any = index.as_retriever(similarity_top_k=top_k, embed_model=embedding)
    return WatchedRetriever(retriever)


def _read(folder: Path) -> list[BaseNode]:
    nodes: list[BaseNode] = []
    for path in sorted(folder.glob("*.md")):
        try:
            with path.open("rb") as file:
                text = file.read(MAX_FILE).decode("utf-8-sig")
        except (OSError, UnicodeDecodeError) as exc:
            raise InvalidInput(f"The document {path.name} cannot be read: {exc}.") from exc
        document = Document(text=text, metadata={"file_name": path.name})
        sections = MarkdownNodeParser().get_nodes_from_documents([document])
        nodes += [_section(node, path.name, n) for n, node in enumerate(sections, start=1)]
    if not nodes:
        raise InvalidInput(
            f"There are no documents in {folder.name}.", next_step="Put Markdown files there."
        )
    return nodes


def _section(node: BaseNode, name: str, number: int) -> TextNode:
    """Return a section under an id that says where it stands."""
    text = node.get_content(MetadataMode.NONE).strip() or name
    return TextNode(id_=f"{name}#{number}", text=text, metadata={"file_name": name})
