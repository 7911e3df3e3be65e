"""``VectorMemory``, and ``SimpleComposableMemory`` with a buffer first and a vector memory second.

``VectorMemory`` keeps each user message with its answers as one record and returns the messages
of the records nearest to the question; asked without a question it returns nothing. It needs a
store that holds nested metadata, which Chroma refuses, so it runs on LlamaIndex's own
``SimpleVectorStore``; the records are kept in the strategy's log with their vectors.

``SimpleComposableMemory`` puts what its second memory returns into the first system message.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.indices.vector_store import VectorStoreIndex
from llama_index.core.memory import ChatMemoryBuffer, SimpleComposableMemory, VectorMemory
from llama_index.core.memory.vector_memory import _get_starter_node_for_new_batch
from llama_index.core.schema import TextNode
from llama_index.core.storage.storage_context import StorageContext
from llama_index.core.vector_stores import SimpleVectorStore

from memory_core.llama import from_chat, to_chat
from memory_core.messages import Json, Message, StoredMessage
from memory_core.native.adapter import (
    Adapter,
    Asked,
    State,
    Tokenizer,
    buffer_rule,
    left_out,
    newest,
    stored_mark,
    with_notes,
)
from memory_core.native.align import NOT_STORED, align
from memory_core.native.parts import Mark, find, parts_of
from memory_core.native.records import Records, nodes_of
from memory_core.native.vectors import Journal, WatchedVectorStore, recall_of
from memory_core.prompt import Assembly, Gate, Omission, Part, Recall, Source
from memory_core.session import Session
from memory_core.trace import MemoryWrite

STORE = "vectors"
NO_QUESTION = (
    "The agent asked this memory without the question, so it searched nothing; retrieval by "
    "meaning needs an engine that passes the question on."
)


def watched_index(embedding: BaseEmbedding) -> tuple[VectorStoreIndex, Records]:
    """Return an empty index over a watched store of LlamaIndex's own kind."""
    journal = Journal()
    store = WatchedVectorStore(SimpleVectorStore(), journal=journal)
    index = VectorStoreIndex(
        nodes=[],
        storage_context=StorageContext.from_defaults(vector_store=store),
        embed_model=embedding,
    )
    return index, Records(STORE, store, journal=journal, embedding=embedding)


class VectorMemoryAdapter(Adapter):
    """Explains ``VectorMemory``: which records were found, and the messages they hold."""

    title = "VectorMemory"

    def __init__(
        self,
        memory: VectorMemory,
        *,
        session: Session,
        tokenizer: Tokenizer,
        records: Records,
        embedding: BaseEmbedding,
    ) -> None:
        super().__init__(memory, session=session, tokenizer=tokenizer)
        self.vectors = _Vectors(memory, records, embedding)

    def explain(self, asked: Asked) -> Assembly:
        """Return the Assembly: each returned message under the record that holds it."""
        recall = recall_of(self.vectors.records.searches(), self.counter)
        parts: list[Part] = []
        held = self.vectors.messages(recall)
        known = tuple(message for _, _, message in held) == asked.returned
        for index, message in enumerate(asked.returned):
            mark = Mark("", Source.UNKNOWN, note=Gate.NOT_EXPLAINED.value)
            if known:
                mark = Mark("", Source.RETRIEVED, (held[index][0],), held[index][1])
            parts += parts_of(message, index, mark, self.counter)
        found = self.vectors.texts(recall)
        out = [
            left_out(stored, Gate.RULE, "no record with it is among the nearest")
            for stored in self.given.messages
            if stored.message.text not in found
        ]
        assembly = Assembly(
            messages=asked.returned,
            message_ids=("",) * len(asked.returned),
            parts=tuple(parts),
            omissions=tuple(out[i] for i in newest(range(len(out)))),
            recall=recall,
            counter=self.counter.id,
        )
        return with_notes(assembly, *([] if asked.query else [NO_QUESTION]))

    def put(self, stored: Sequence[StoredMessage]) -> None:
        """Note messages and the records made of them."""
        super().put(stored)
        self.vectors.tell(self, stored)

    def dump(self) -> State:
        """Return the batch that is still open, and new records."""
        return self.vectors.dump()

    async def restore(self, state: State, messages: Sequence[StoredMessage]) -> None:
        """Make the index hold what it held."""
        self.given.replace(messages)
        self.vectors.restore(state)

    async def seed(self, messages: Sequence[StoredMessage]) -> None:
        """Put each message in, as the class does when it is given a history."""
        self.given.replace(messages)
        self.vectors.restore(State())
        await self.memory.aput_messages(self.given.chats())


class ComposableAdapter(Adapter):
    """Explains ``SimpleComposableMemory`` of a ``ChatMemoryBuffer`` and a ``VectorMemory``."""

    title = "SimpleComposableMemory"

    def __init__(
        self,
        memory: SimpleComposableMemory,
        *,
        session: Session,
        tokenizer: Tokenizer,
        buffer: ChatMemoryBuffer,
        vector: VectorMemory,
        records: Records,
        embedding: BaseEmbedding,
    ) -> None:
        super().__init__(memory, session=session, tokenizer=tokenizer)
        self._buffer = buffer
        self.vectors = _Vectors(vector, records, embedding)

    def explain(self, asked: Asked) -> Assembly:
        """Return the Assembly: retrieved messages in the system message, then the buffer."""
        recall = recall_of(self.vectors.records.searches(), self.counter)
        places = align(asked.returned, self.given.messages)
        parts: list[Part] = []
        for index, (message, place) in enumerate(zip(asked.returned, places, strict=True)):
            if place != NOT_STORED:
                rest = stored_mark(self.given.messages[place])
                parts += parts_of(message, index, rest, self.counter)
                continue
            found = find(message.text, self._lines(recall))
            rest = Mark("", Source.FORMAT, note="SimpleComposableMemory's words around them")
            parts += parts_of(message, index, rest, self.counter, found)
        plan, out = buffer_rule(
            asked,
            self.given,
            _with_host(places, asked.returned, self.given.messages),
            limit=self._buffer.token_limit,
            name="ChatMemoryBuffer",
        )
        ids = tuple("" if p == NOT_STORED else self.given.messages[p].id for p in places)
        assembly = Assembly(
            messages=asked.returned,
            message_ids=ids,
            parts=tuple(parts),
            omissions=(*out, *self._repeated(recall, asked.returned)),
            window=plan,
            recall=recall,
            counter=self.counter.id,
        )
        return with_notes(assembly, *([] if asked.query else [NO_QUESTION]))

    def put(self, stored: Sequence[StoredMessage]) -> None:
        """Note messages and the records made of them."""
        super().put(stored)
        self.vectors.tell(self, stored)

    def dump(self) -> State:
        """Return the batch that is still open, and new records."""
        return self.vectors.dump()

    async def restore(self, state: State, messages: Sequence[StoredMessage]) -> None:
        """Make buffer and index hold what they held."""
        self.given.replace(messages)
        self._buffer.set(self.given.chats())
        self.vectors.restore(state)

    async def seed(self, messages: Sequence[StoredMessage]) -> None:
        """Give both memories the history."""
        self.given.replace(messages)
        self._buffer.set([])
        self.vectors.restore(State())
        for chat in self.given.chats():
            await self.memory.aput(chat)

    def _lines(self, recall: Recall | None) -> list[Mark]:
        """Return a mark for each line that the class writes for a retrieved message."""
        marks = []
        for node_id, score, message in self.vectors.messages(recall):
            content = to_chat(message).content
            line = f"\t{message.role.upper()}: {content}\n"
            marks.append(Mark(line, Source.RETRIEVED, (node_id,), score))
        return marks

    def _repeated(self, recall: Recall | None, returned: Sequence[Message]) -> list[Omission]:
        """Return the retrieved messages that stand in the buffer and are not repeated."""
        return [
            Omission(
                gate=Gate.IN_BUFFER,
                source=Source.RETRIEVED,
                ids=(node_id,),
                reason="stands in the buffer word for word",
                text=message.text,
                score=score,
            )
            for node_id, score, message in self.vectors.messages(recall)
            if message in returned
        ]


class _Vectors:
    """The vector memory of either strategy: its records, its open batch, what a search holds."""

    def __init__(self, memory: VectorMemory, records: Records, embedding: BaseEmbedding) -> None:
        self._memory = memory
        self.records = records
        self._embedding = embedding

    def messages(self, recall: Recall | None) -> list[tuple[str, float, Message]]:
        """Return record, score and message of a search's results, in order."""
        return [
            (hit.id, hit.score, message)
            for hit in (recall.hits if recall is not None else ())
            for message in self._messages_of(hit.id)
        ]

    def texts(self, recall: Recall | None) -> frozenset[str]:
        """Return the texts that a search's results hold."""
        return frozenset(message.text for _, _, message in self.messages(recall))

    def tell(self, adapter: Adapter, stored: Sequence[StoredMessage]) -> None:
        """Note in the running turn which records were made or grew."""
        turn = adapter.turn
        news = self.records.news()
        if turn is None or not news:
            return
        ids = tuple(message.id for message in stored)
        told = {write.id: n for n, write in enumerate(turn.memories)}
        for node_id, text in news:
            reason = "one record for a user message and its answers"
            write = MemoryWrite("remembered", node_id, text, "record", reason, ids)
            if node_id in told:
                before = turn.memories[told[node_id]]
                turn.memories[told[node_id]] = replace(
                    write, message_ids=(*before.message_ids, *ids)
                )
            else:
                turn.memories.append(write)

    def dump(self) -> State:
        """Return the batch that is still open, and new records."""
        added, removed = self.records.drain()
        batch = self._memory.cur_batch_textnode
        open_batch: Json = {"id": batch.node_id, "node": _bare(batch)}
        return State({"batch": open_batch}, tuple(added), tuple(removed))

    def restore(self, state: State) -> None:
        """Fill a fresh index with the records, and go on with the open batch."""
        index, fresh = watched_index(self._embedding)
        nodes = nodes_of(state.added, self._embedding)
        if nodes:
            index.insert_nodes(nodes)
        fresh.drain()
        self.records.replace(fresh)
        self._memory.vector_index = index
        batch = state.data.get("batch")
        self._memory.cur_batch_textnode = (
            TextNode.from_dict(dict(batch["node"]))
            if batch is not None
            else _get_starter_node_for_new_batch()
        )

    def _messages_of(self, node_id: str) -> list[Message]:
        """Return the messages of a record as the class itself reads them back."""
        node = self._memory.vector_index.docstore.get_document(node_id, raise_error=False)
        subs = node.metadata.get("sub_dicts", ()) if node is not None else ()
        return [from_chat(ChatMessage.model_validate(sub)) for sub in subs]


def _bare(node: TextNode) -> Json:
    dumped: dict[str, Any] = copy.deepcopy(node.to_dict())
    dumped.pop("embedding", None)
    return dumped


def _with_host(
    places: Sequence[int], returned: Sequence[Message], given: Sequence[StoredMessage]
) -> list[int]:
    """Return the places with that of a stored system message that the class wrote into."""
    out = list(places)
    if returned and out[0] == NOT_STORED and len(out) > 1 and out[1] > 0:
        before = given[out[1] - 1].message
        if before.role == "system" and returned[0].text.startswith(before.text.strip()):
            out[0] = out[1] - 1
    return out
