"""``Memory``: a queue of messages that is flushed into memory blocks.

Its rule: when the queue holds more than ``token_limit`` times ``chat_history_token_ratio``
tokens, the oldest messages (at least ``token_flush_size`` tokens, whole turns) are archived and
given to the blocks. A prompt is the queue, and what the blocks return in one message; when both
are over ``token_limit``, blocks of a priority above 0 are dropped, the lowest number first.

What was archived is a beginning of what was given, so the state is one number, the blocks' facts,
and the batches that a failing block still waits for.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, TextBlock
from llama_index.core.memory import FactExtractionMemoryBlock, Memory, VectorMemoryBlock
from llama_index.core.postprocessor import SimilarityPostprocessor

from memory_core.buffer import WindowPlan
from memory_core.llama import from_chat, to_chat
from memory_core.messages import Json, Message, StoredMessage
from memory_core.native.adapter import Adapter, Asked, State, Tokenizer, left_out, newest
from memory_core.native.align import NOT_STORED, align
from memory_core.native.blocks import Batch, BlockJournal, Taken, WatchedBlock
from memory_core.native.chat_store import QueueJournal, WatchedChatStore
from memory_core.native.parts import Found, Mark, find, parts_of
from memory_core.native.records import Records
from memory_core.native.standins import NoModel
from memory_core.native.vectors import recall_of
from memory_core.prompt import Assembly, Gate, Hit, Omission, Part, Recall, Source
from memory_core.recording import RecordingLLM
from memory_core.session import Session
from memory_core.trace import EXTRACT_FACTS, MemoryWrite

QUEUE_RULE = "memory queue"
_FLUSHES = 20  # flushes that are remembered with their numbers


@dataclass(frozen=True)
class Flush:
    """Messages ``first`` to ``first + count`` left the queue in a turn; ``tokens`` it held."""

    turn: int
    first: int
    count: int
    tokens: int


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
    def limit(self) -> float:
        """The tokens that the queue may hold."""
        return self._memory.token_limit * self._memory.chat_history_token_ratio

    @property
    def watched(self) -> list[WatchedBlock]:
        """The blocks, in their order."""
        return [block for block in self._memory.memory_blocks if isinstance(block, WatchedBlock)]

    def explain(self, asked: Asked) -> Assembly:
        """Return the Assembly: the queue, the blocks in pieces, what was flushed or dropped."""
        active = self.given.messages[self._archived :]
        places = align(asked.returned, active)
        host = _host(asked.returned, active, places)
        recall = self._recall()
        said = self._said(recall)
        parts: list[Part] = []
        seen: set[str] = set()
        for index, (message, place) in enumerate(zip(asked.returned, places, strict=True)):
            if place != NOT_STORED:
                parts += parts_of(message, index, _mark_of(active[place]), self.counter)
                continue
            own = host[1] if host is not None and host[0] == index else None
            found = self._found(message, said, active[own] if own is not None else None)
            seen.update(item.mark.note for item in found if item.mark.note)
            rest = Mark("", Source.FORMAT, note="Memory's template around its blocks")
            parts += parts_of(message, index, rest, self.counter, found)
        ids = tuple("" if place == NOT_STORED else active[place].id for place in places)
        return Assembly(
            messages=asked.returned,
            message_ids=ids,
            parts=tuple(parts),
            omissions=(*self._dropped(seen), *self._flushed()),
            window=self._window(),
            recall=recall,
            notes=tuple(self._waiting_notes()),
            counter=self.counter.id,
        )

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
        added, removed = [], []
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
        await self._store.hold(self._memory.session_id, self.given.chats(), archived=self._archived)
        facts, waiting = state.data.get("facts", {}), state.data.get("waiting", {})
        for block in self.watched:
            block.wait_for([_batch_from_json(item) for item in waiting.get(block.name, ())])
            if isinstance(block.inner, FactExtractionMemoryBlock):
                block.inner.facts = [str(fact) for fact in facts.get(block.name, ())]
        for records in self._records.values():
            records.hold(state.added)

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
        if stored.id not in self._counts:
            chat = to_chat(stored.message)
            self._counts[stored.id] = self._memory._estimate_token_count(chat)  # noqa: SLF001
        return self._counts[stored.id]

    def _window(self) -> WindowPlan:
        active = self.given.messages[self._archived :]
        tokens = sum(map(self._count, active))
        last = self._flushes[-1] if self._flushes else None
        flushed = self.given.messages[last.first : last.first + last.count] if last else ()
        return WindowPlan(
            rule=QUEUE_RULE,
            limit=int(self.limit),
            initial=0,
            total=len(self.given.messages),
            start=self._archived,
            tokens=tokens,
            over_limit=tokens > self.limit,
            next_start=last.first if last else -1,
            next_needed=sum(map(self._count, flushed)),
            next_left=max(0, int(self.limit) - tokens),
        )

    def _flushed(self) -> list[Omission]:
        """Return why the newest archived messages left the queue."""
        out = []
        for index in newest(range(self._archived)):
            flush = next((f for f in self._flushes if f.first <= index < f.first + f.count), None)
            stored = self.given.messages[index]
            if flush is None:
                out.append(left_out(stored, Gate.TOKEN_LIMIT, "archived in an earlier turn"))
                continue
            reason = (
                f"archived at turn {flush.turn}: the queue held {flush.tokens:,} of "
                f"{int(self.limit):,} tokens, at least {self._memory.token_flush_size:,} "
                "leave at once"
            )
            numbers = (flush.tokens, int(self.limit))
            out.append(left_out(stored, Gate.TOKEN_LIMIT, reason, *numbers))
        return out

    def _said(self, recall: Recall | None) -> list[Mark]:
        """Return a mark for every piece that the blocks returned, in the order of the prompt."""
        marks: list[Mark] = []
        hits = recall.hits if recall is not None else ()
        for block in self.watched:
            for text in _texts(self._content(block)):
                if isinstance(block.inner, VectorMemoryBlock):
                    marks += [
                        Mark(hit.text, Source.RETRIEVED, (hit.id,), hit.score, note=block.name)
                        for hit in hits
                        if hit.text and hit.text in text
                    ] or [Mark(text, Source.RETRIEVED, note=block.name)]
                    continue
                fact = isinstance(block.inner, FactExtractionMemoryBlock)
                source = Source.FACTS if fact else Source.BLOCK
                marks.append(Mark(text, source, (f"block-{block.name}",), note=block.name))
        return marks

    def _content(self, block: WatchedBlock) -> Any:
        """Return what a block's content was after its own truncation."""
        cut = self._blocks.cut.get(block.name)
        return self._blocks.contents.get(block.name) if cut is None else cut[0]

    def _found(
        self, message: Message, marks: Sequence[Mark], own: StoredMessage | None
    ) -> list[Found]:
        text, tail = message.text, own.message.text if own is not None else ""
        if own is None or not tail:
            return find(text, marks)
        cut = len(text) - len(tail)
        return [*find(text[:cut], marks), Found(_mark_of(own), cut, len(text))]

    def _dropped(self, seen: set[str]) -> list[Omission]:
        """Return the blocks that returned something of which nothing is in the prompt."""
        count = self._memory._estimate_token_count  # noqa: SLF001
        returned = {n: count(c) for n, c in self._blocks.contents.items() if c}
        history = sum(map(self._count, self.given.messages[self._archived :]))
        total, limit = sum(returned.values()) + history, self._memory.token_limit
        out = []
        for block in self.watched:
            tokens = returned.get(block.name, 0)
            if not tokens or block.name in seen:
                continue
            left = limit - history - sum(n for name, n in returned.items() if name in seen)
            known = total > limit and block.priority > 0
            reason = (
                f"dropped whole: blocks and history need {total:,} tokens, the limit is "
                f"{limit:,}; of priorities above 0 the lowest goes first, this one is "
                f"{block.priority}"
                if known
                else Gate.NOT_EXPLAINED.value
            )
            out.append(
                Omission(
                    gate=Gate.BUDGET if known else Gate.NOT_EXPLAINED,
                    source=_source_of(block),
                    ids=(f"block-{block.name}",),
                    reason=reason,
                    needed=tokens,
                    available=max(0, left),
                    text="\n".join(_texts(self._blocks.contents[block.name])),
                    tokens=tokens,
                )
            )
        return out

    def _recall(self) -> Recall | None:
        """Return this request's searches; what a postprocessor took out again is a near miss."""
        searches = []
        cutoffs: dict[str, tuple[str, float]] = {}
        for block in self.watched:
            records = self._records.get(block.name)
            if records is None:
                continue
            made = records.searches()
            searches += made
            text = "\n".join(_texts(self._blocks.contents.get(block.name)))
            cutoff = _cutoff_of(block)
            for result in (result for search in made for result in search.results):
                if cutoff is not None and result.text not in text:
                    cutoffs[result.id] = (block.name, cutoff)
        recall = recall_of(searches, self.counter)
        if recall is None or not cutoffs:
            return recall
        near = tuple(
            (hit, _under_cutoff(hit, *cutoffs[hit.id])) for hit in recall.hits if hit.id in cutoffs
        )
        kept = tuple(hit for hit in recall.hits if hit.id not in cutoffs)
        return Recall(
            query=recall.query,
            hits=kept,
            near=near,
            metric=recall.metric,
            searched=recall.searched,
            milliseconds=recall.milliseconds,
            scope=recall.scope,
        )

    def _waiting_notes(self) -> list[str]:
        return [
            f"{sum(len(batch.messages) for batch in block.waiting):,} archived messages wait for "
            f"the block {block.name}, which failed to take them; it is given them again."
            for block in self.watched
            if block.waiting
        ]

    def _tell_taken(self) -> None:
        """Note in the running turn what the blocks took or failed to take."""
        taken, self._blocks.taken = self._blocks.taken, []
        turn = self.turn
        if turn is None:
            return
        kinds = {block.name: block for block in self.watched}
        for item in taken:
            ids = self._ids_of(item)
            if item.error:
                turn.degrade(
                    f"The memory block {item.block} could not take {len(item.messages)} archived "
                    f"messages: {item.error}. They wait and are given to it again."
                )
                turn.memories.append(_write("waiting", item.block, "", item.error, ids))
                continue
            for fact in item.gone:
                reason = f"the block {item.block} condensed its facts"
                turn.memories.append(_write("forgotten", fact_id(item.block, fact), fact, reason))
            reason = f"flushed into the block {item.block}"
            for fact in item.facts:
                turn.memories.append(
                    _write("remembered", fact_id(item.block, fact), fact, reason, ids)
                )
            if isinstance(kinds[item.block].inner, VectorMemoryBlock):
                for node_id, text in self._records[item.block].news():
                    turn.memories.append(
                        _write("remembered", node_id, text, reason, ids, kind="record")
                    )

    def _ids_of(self, item: Taken) -> tuple[str, ...]:
        places = align(item.messages, self.given.messages)
        return tuple(self.given.messages[i].id for i in places if i != NOT_STORED)


def fact_id(block: str, fact: str) -> str:
    """Return the id under which a block's fact stands in traces."""
    digest = hashlib.sha256(fact.encode("utf-8", "replace")).hexdigest()[:12]
    return f"{block}-{digest}"


def _write(
    action: str,
    write_id: str,
    text: str,
    reason: str,
    ids: tuple[str, ...] = (),
    *,
    kind: str = "fact",
) -> MemoryWrite:
    return MemoryWrite(action, write_id, text, kind, reason, ids)


def _host(
    returned: Sequence[Message], active: Sequence[StoredMessage], places: Sequence[int]
) -> tuple[int, int] | None:
    """Return which returned message is a stored one with the blocks put before its own."""
    taken = frozenset(places)
    for index, place in enumerate(places):
        if place != NOT_STORED:
            continue
        message = returned[index]
        for own in range(len(active) - 1, -1, -1):
            stored = active[own].message
            if own in taken or stored.role != message.role or stored.kwargs != message.kwargs:
                continue
            size = len(stored.blocks)
            if size < len(message.blocks) and (
                message.blocks[len(message.blocks) - size :] == stored.blocks
            ):
                return index, own
    return None


def _mark_of(stored: StoredMessage) -> Mark:
    return Mark("", Source.BUFFER, ids=(stored.id,), turn=stored.turn)


def _source_of(block: WatchedBlock) -> Source:
    if isinstance(block.inner, FactExtractionMemoryBlock):
        return Source.FACTS
    return Source.RETRIEVED if isinstance(block.inner, VectorMemoryBlock) else Source.BLOCK


def _texts(content: Any) -> list[str]:
    """Return the texts of a block's content: a text, content blocks or messages."""
    if isinstance(content, str):
        return [content] if content else []
    texts = []
    for item in content or ():
        if isinstance(item, ChatMessage):
            texts.append(from_chat(item).text)
        elif isinstance(item, TextBlock):
            texts.append(item.text)
    return [text for text in texts if text]


def _cutoff_of(block: WatchedBlock) -> float | None:
    if isinstance(block.inner, VectorMemoryBlock):
        for postprocessor in block.inner.node_postprocessors:
            if isinstance(postprocessor, SimilarityPostprocessor):
                return postprocessor.similarity_cutoff
    return None


def _under_cutoff(hit: Hit, block: str, cutoff: float) -> Omission:
    return Omission(
        gate=Gate.THRESHOLD,
        source=Source.RETRIEVED,
        ids=(hit.id,),
        reason=f"the store's score {hit.score:.2f} is under {block}'s cutoff {cutoff:.2f}",
        needed=hit.score,
        available=cutoff,
        text=hit.text,
        tokens=hit.tokens,
        score=hit.score,
    )


def _batch_to_json(batch: Batch) -> Json:
    return {
        "session": batch.session_id,
        "messages": [from_chat(message).to_json() for message in batch.messages],
    }


def _batch_from_json(value: Mapping[str, Json]) -> Batch:
    messages = tuple(to_chat(Message.from_json(item)) for item in value["messages"])
    return Batch(messages, value.get("session"))
