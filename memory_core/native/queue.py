"""``Memory``: a queue of messages that is flushed into memory blocks.

What was archived is a beginning of what was given, so the state is one number, the blocks' facts,
and the batches that a failing block still waits for. How a prompt is explained is told in
:mod:`memory_core.native.queue_view`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from llama_index.core.memory import FactExtractionMemoryBlock, Memory, VectorMemoryBlock

from memory_core.llama import from_chat, to_chat
from memory_core.messages import Json, Message, StoredMessage
from memory_core.native.adapter import Adapter, Asked, State, Tokenizer
from memory_core.native.align import NOT_STORED, align
from memory_core.native.blocks import Batch, BlockJournal, Taken, WatchedBlock
from memory_core.native.chat_store import QueueJournal, WatchedChatStore
from memory_core.native.queue_view import Flush, QueueView, fact_id
from memory_core.native.records import Records
from memory_core.native.standins import NoModel
from memory_core.prompt import Assembly
from memory_core.recording import RecordingLLM
from memory_core.session import Session
from memory_core.summary import normalise
from memory_core.trace import BLOCK_FACT, EXTRACT_FACTS, FLUSHED, WAITING, MemoryWrite

_FLUSHES = 20  # flushes that are remembered with their numbers


class MemoryAdapter(Adapter):
    """Explains ``Memory`` with any blocks, and keeps what its blocks could not take."""

    title = "Memory"

    def __init__(
        self,
        memory: Memory,
        *,
        session: Session,
        tokenizer: Tokenizer,
        store: WatchedChatStore,
        queue: QueueJournal,
        blocks: BlockJournal,
        records: Mapping[str, Records],
    ) -> None:
        super().__init__(memory, session=session, tokenizer=tokenizer)
        self._memory = memory
        self._store = store
        self._queue, self._blocks = queue, blocks
        self._records = records
        self._archived = 0
        self._flushes: list[Flush] = []
        self._counts: dict[str, int] = {}

    @property
    def watched(self) -> list[WatchedBlock]:
        """The blocks, in their order."""
        return [block for block in self._memory.memory_blocks if isinstance(block, WatchedBlock)]

    def explain(self, asked: Asked) -> Assembly:
        """Return the Assembly: the queue, the blocks in pieces, what was flushed or dropped."""
        view = QueueView(
            memory=self._memory,
            blocks=self.watched,
            journal=self._blocks,
            given=self.given.messages,
            archived=self._archived,
            flushes=self._flushes,
            searches={name: records.searches() for name, records in self._records.items()},
            count=self._count,
            counter=self.counter,
        )
        return view.assembly(asked)

    def put(self, stored: Sequence[StoredMessage]) -> None:
        """Note messages, and what the queue flushed when they came in."""
        super().put(stored)
        for archived in self._queue.archived:
            tokens = sum(self._memory._estimate_token_count(m) for m in archived.queue)  # noqa: SLF001
            turn = self.turn.number if self.turn is not None else self.session.last_turn
            self._flushes.append(Flush(turn, self._archived, archived.count, tokens))
            self._archived += archived.count
        del self._flushes[:-_FLUSHES]
        self._queue.archived.clear()
        self._tell_taken()

    def use(self, llm: RecordingLLM | None) -> None:
        """Have facts extracted by this model."""
        for block in self.watched:
            if isinstance(block.inner, FactExtractionMemoryBlock):
                block.inner.llm = llm.for_purpose(EXTRACT_FACTS) if llm is not None else NoModel()

    async def begin(self) -> None:
        """Give failing blocks again what they could not take."""
        for block in self.watched:
            await block.retry()
        self._tell_taken()

    def dump(self) -> State:
        """Return how much is archived, the blocks' facts and what waits, and new records."""
        data: dict[str, Json] = {
            "archived": self._archived,
            "flushes": [[f.turn, f.first, f.count, f.tokens] for f in self._flushes],
            "facts": {
                block.name: list(block.inner.facts)
                for block in self.watched
                if isinstance(block.inner, FactExtractionMemoryBlock)
            },
            "waiting": {
                block.name: [_batch_to_json(batch) for batch in block.waiting]
                for block in self.watched
                if block.waiting
            },
        }
        added: list[Json] = []
        removed: list[str] = []
        for records in self._records.values():
            new, gone = records.drain()
            added += new
            removed += gone
        return State(data, tuple(added), tuple(removed))

    async def restore(self, state: State, messages: Sequence[StoredMessage]) -> None:
        """Make table, facts, waiting batches and records what they were."""
        self.given.replace(messages)
        self._archived = min(int(state.data.get("archived", 0)), len(messages))
        self._flushes = [Flush(*flush) for flush in state.data.get("flushes", ())]
        self._queue.archived.clear()
        self._blocks.taken.clear()
        plain = [stored.message for stored in self.given.messages]
        await self._store.hold(self._memory.session_id, plain, archived=self._archived)
        facts, waiting = state.data.get("facts", {}), state.data.get("waiting", {})
        for block in self.watched:
            block.wait_for([_batch_from_json(item) for item in waiting.get(block.name, ())])
            if isinstance(block.inner, FactExtractionMemoryBlock):
                block.inner.facts = [str(fact) for fact in facts.get(block.name, ())]
        for records in self._records.values():
            records.hold(state.added)

    async def intact(self) -> bool:
        """Return whether table and records are as they were left, whoever else has the files."""
        total = len(self.given.messages)
        counts = await self._store.counts(self._memory.session_id)
        return counts == (total, total - self._archived) and all(
            records.intact() for records in self._records.values()
        )

    async def close(self) -> None:
        """Let go of the table."""
        await self._store.close()

    def replaced(self, messages: Sequence[StoredMessage]) -> None:
        """Note that the queue was replaced: nothing of it is archived."""
        super().replaced(messages)
        self._archived = 0
        self._flushes = []

    def _count(self, stored: StoredMessage) -> int:
        """Return a message's tokens by the class's own count."""
        if not stored.id or stored.id not in self._counts:
            chat = to_chat(stored.message)
            self._counts[stored.id] = self._memory._estimate_token_count(chat)  # noqa: SLF001
        return self._counts[stored.id]

    def _tell_taken(self) -> None:
        """Note in the running turn what the blocks took or failed to take."""
        taken, self._blocks.taken = self._blocks.taken, []
        turn = self.turn
        if turn is None:
            return
        vectors = {b.name for b in self.watched if isinstance(b.inner, VectorMemoryBlock)}
        for item in taken:
            if item.error:
                turn.degrade(
                    f"The memory block {item.block} could not take {len(item.messages)} archived "
                    f"messages: {item.error}. They wait and are given to it again."
                )
            news = self._records[item.block].news() if item.block in vectors else []
            turn.memories += _writes(item, self._ids_of(item), news)

    def _ids_of(self, item: Taken) -> tuple[str, ...]:
        places = align(item.messages, self.given.messages)
        return tuple(self.given.messages[i].id for i in places if i != NOT_STORED)


def _writes(
    item: Taken, ids: tuple[str, ...], news: Sequence[tuple[str, str]]
) -> Iterator[MemoryWrite]:
    """Yield what became of one batch: that a block took it, the facts or records it made."""
    if item.error:
        yield MemoryWrite(WAITING, item.block, "", "batch", item.error, ids)
        return
    if not item.keeps:
        return
    made = _counted(len(news), "new record") if news else _counted(len(item.facts), "new fact")
    made += f", {len(item.gone)} condensed away" if item.gone else ""
    yield MemoryWrite(FLUSHED, item.block, "", "batch", made, ids)
    for fact in item.gone:
        why = f"the block {item.block} condensed its facts"
        yield MemoryWrite("forgotten", fact_id(item.block, fact), fact, BLOCK_FACT, why)
    why = f"flushed into the block {item.block}"
    for fact in item.facts:
        told = _told_in(fact, item.messages, ids)
        yield MemoryWrite("remembered", fact_id(item.block, fact), fact, BLOCK_FACT, why, told)
    for record_id, text in news:
        yield MemoryWrite("remembered", record_id, text, "record", why, ids)


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number or 'no'} {noun}s"


def _told_in(fact: str, messages: Sequence[Message], ids: tuple[str, ...]) -> tuple[str, ...]:
    """Return the message of a batch that says a fact word for word, else all of the batch."""
    if len(ids) != len(messages):
        return ids
    words = normalise(fact)
    told = [i for i, m in zip(ids, messages, strict=True) if words and words in normalise(m.text)]
    return tuple(told[:1]) or ids


def _batch_to_json(batch: Batch) -> Json:
    return {
        "session": batch.session_id,
        "messages": [from_chat(message).to_json() for message in batch.messages],
    }


def _batch_from_json(value: Mapping[str, Json]) -> Batch:
    messages = tuple(to_chat(Message.from_json(item)) for item in value["messages"])
    return Batch(messages, value.get("session"))
