"""The vector records of one block or memory: what is new, what was searched, what must be there.

A collection of vectors is derived data; the records that belong to a turn are kept in the
strategy's own log (:mod:`memory_core.native.log`). After a restart, or when a turn is superseded,
:meth:`Records.hold` takes out of the collection what does not belong and puts back what is
missing, with its vector where that was kept, else embedded anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.schema import BaseNode, MetadataMode, TextNode
from llama_index.core.vector_stores import SimpleVectorStore

from memory_core.messages import Json
from memory_core.native.vectors import Journal, Searched, WatchedVectorStore

AT_ONCE = 1_000  # records put back at once; Chroma's client refuses more than some thousand


class Records:
    """One watched store under the name of the block that fills it."""

    def __init__(
        self, name: str, store: WatchedVectorStore, *, journal: Journal, embedding: BaseEmbedding
    ) -> None:
        self.name = name
        self.store = store
        self._journal = journal
        self._embedding = embedding
        self._told: set[str] = set()
        self._known: set[str] = set()

    def searches(self) -> list[Searched]:
        """Return the searches since this was last asked."""
        made = list(self._journal.searches)
        self._journal.searches.clear()
        return made

    def news(self) -> list[tuple[str, str]]:
        """Return id and text of the records added since this was last asked."""
        new = [i for i in self._journal.added if i not in self._told]
        self._told.update(new)
        return [(i, str(self._journal.added[i]["node"].get("text") or "")) for i in new]

    def drain(self) -> tuple[list[Json], list[str]]:
        """Return the records added and the ids removed since this was last asked."""
        about = {"store": self.name, "model": self._embedding.model_name}
        added = [{**item, **about} for item in self._journal.added.values()]
        self._known |= set(self._journal.added)
        self._known -= set(self._journal.removed)
        removed = list(self._journal.removed)
        self._journal.added.clear()
        self._journal.removed.clear()
        self._told.clear()
        return added, removed

    def hold(self, records: Iterable[Json]) -> None:
        """Make the store hold exactly these of its records."""
        self.drain()
        self.searches()
        wanted = {r["id"]: r for r in records if r.get("store") == self.name}
        inner = self.store.inner
        self._known = set(wanted)
        have = set(self._ids())
        if unwanted := sorted(have - set(wanted)):
            inner.delete_nodes(unwanted)
        missing = [record for record_id, record in wanted.items() if record_id not in have]
        for first in range(0, len(missing), AT_ONCE):
            inner.add(nodes_of(missing[first : first + AT_ONCE], self._embedding))

    def intact(self) -> bool:
        """Return whether the store holds what was put there, and nothing else."""
        new = (self._known | set(self._journal.added)) - set(self._journal.removed)
        return set(self._ids()) == new

    def replace(self, other: Records) -> None:
        """Go on with another store and its journal."""
        self.store, self._journal = other.store, other._journal
        self._told.clear()

    def _ids(self) -> list[str]:
        inner = self.store.inner
        if isinstance(inner, SimpleVectorStore):
            return list(inner.data.embedding_dict)
        return list(inner.client.get(include=[])["ids"])


class FrozenRecords(Records):
    """Records that a preview searches and never changes."""

    def hold(self, records: Iterable[Json]) -> None:
        """Leave the store as it is."""

    def intact(self) -> bool:
        """Say that it is: a preview looks at what there is."""
        return True


def nodes_of(records: Sequence[Mapping[str, Json]], embedding: BaseEmbedding) -> list[BaseNode]:
    """Return records as nodes with their vectors, embedded anew where another model made them."""
    nodes: list[BaseNode] = []
    for record in records:
        node = TextNode.from_dict(dict(record["node"]))
        same = record.get("model") == embedding.model_name
        vector = record.get("vector") if same else None
        node.embedding = (
            list(vector)
            if vector is not None
            else embedding.get_text_embedding(node.get_content(MetadataMode.NONE))
        )
        nodes.append(node)
    return nodes
