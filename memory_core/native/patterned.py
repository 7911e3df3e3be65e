"""Explanations of the tutorials' patterns (:mod:`memory_core.native.patterns`)."""

from __future__ import annotations

from collections.abc import Sequence

from llama_index.core.base.embeddings.base import BaseEmbedding

from memory_core.buffer import WindowPlan
from memory_core.messages import StoredMessage
from memory_core.native.adapter import (
    Adapter,
    Asked,
    State,
    Tokenizer,
    assembled,
    buffer_rule,
    left_out,
    newest,
    stored_mark,
    with_notes,
)
from memory_core.native.align import NOT_STORED, align
from memory_core.native.parts import Mark, find, parts_of
from memory_core.native.patterns import HybridMemory, Summarising, SummarisingBuffer, fact_line
from memory_core.native.records import Records, nodes_of
from memory_core.native.rules import PATTERN_RULE
from memory_core.native.summaries import SummaryNotes
from memory_core.native.vector_memory import watched_index
from memory_core.native.vectors import recall_of
from memory_core.prompt import Assembly, Gate, Hit, Omission, Part, Recall, Source
from memory_core.recording import RecordingLLM
from memory_core.session import Session
from memory_core.trace import SUMMARISE, MemoryWrite


class SummarisingAdapter(Adapter):
    """Explains both summarising patterns."""

    def __init__(self, memory: Summarising, *, session: Session, tokenizer: Tokenizer) -> None:
        super().__init__(memory, session=session, tokenizer=tokenizer)
        self.title = memory.class_name()
        self._memory = memory
        self._summaries = SummaryNotes(session)
        self._folded = 0
        self._first = 1 if isinstance(memory, SummarisingBuffer) else 0

    def explain(self, asked: Asked) -> Assembly:
        """Return the Assembly: what is in full, the summary, and which messages it stands for."""
        folded = range(self._first + self._folded, self._first + self._memory.folded)
        if folded:
            self._note_summary(folded)
        self._folded = self._memory.folded
        places = self._places(asked)
        parts: list[Part] = []
        version = self.session.summary.version
        for index, (message, place) in enumerate(zip(asked.returned, places, strict=True)):
            rest = (
                Mark("", Source.SUMMARY, (f"summary-{version}",) if version else ())
                if place == NOT_STORED
                else stored_mark(self.given.messages[place])
            )
            parts += parts_of(message, index, rest, self.counter)
        error = self._memory.error
        assembly = assembled(
            asked,
            self.given,
            parts,
            places,
            self.counter,
            omissions=tuple(self._left_out()),
            window=self._plan(),
        )
        if error is not None and self.turn is not None:
            self.turn.degrade(f"The summary failed and is tried again next time: {error}")
        return with_notes(assembly, *([f"The summary failed: {error}"] if error else []))

    def use(self, llm: RecordingLLM | None) -> None:
        """Have summaries written by this model."""
        self._memory.use(llm.for_purpose(SUMMARISE) if llm is not None else None)

    def dump(self) -> State:
        """Return everything the pattern holds."""
        return State({**self._memory.state(), **self._summaries.dump()})

    async def begin(self) -> None:
        """Give the turn the summary that was written after the last one's prompt."""
        self._summaries.begin()

    async def restore(self, state: State, messages: Sequence[StoredMessage]) -> None:
        """Give the pattern back what it held."""
        self.given.replace(messages)
        self._summaries.restore(state.data)
        if state.data:
            self._memory.load(state.data)
        else:
            self._memory.set(self.given.chats())
        self._folded = self._memory.folded

    def replaced(self, messages: Sequence[StoredMessage]) -> None:
        """Note that the history was replaced: nothing of it is folded."""
        super().replaced(messages)
        self._folded = 0

    def _places(self, asked: Asked) -> list[int]:
        """Return where each returned message stands in what was given: known from the rule."""
        given, folded = self.given.messages, self._memory.folded
        rule = [*range(self._first), *range(self._first + folded, len(given))]
        if self._memory.summary:
            rule.insert(self._first, NOT_STORED)
        rule = rule[: len(given)] if not given else rule
        agrees = len(rule) == len(asked.returned) and all(
            place == NOT_STORED or given[place].message == message
            for place, message in zip(rule, asked.returned, strict=True)
        )
        return rule if agrees else align(asked.returned, given)

    def _note_summary(self, folded: range) -> None:
        ids = [self.given.messages[i].id for i in folded]
        self._summaries.note(self._memory.summary, folded=ids, covers=folded.stop)

    def _plan(self) -> WindowPlan:
        """Return what is in full as a window; its limit is in messages, not tokens."""
        total, start = len(self.given.messages), self._first + self._memory.folded
        start = min(start, total) if self._memory.folded else 0
        kept = self.given.messages[start:]
        return WindowPlan(
            rule=PATTERN_RULE,
            limit=0,
            initial=0,
            total=total,
            start=start,
            tokens=sum(stored.tokens or 0 for stored in kept),
            pinned=tuple(range(self._first)) if start else (),
        )

    def _left_out(self) -> list[Omission]:
        folded = range(self._first, self._first + self._memory.folded)
        given = self.given.messages
        return [left_out(given[i], Gate.RULE, "folded into the summary") for i in newest(folded)]


class HybridAdapter(Adapter):
    """Explains :class:`HybridMemory`."""

    title = "HybridMemory"

    def __init__(
        self,
        memory: HybridMemory,
        *,
        session: Session,
        tokenizer: Tokenizer,
        records: Records,
        embedding: BaseEmbedding,
    ) -> None:
        super().__init__(memory, session=session, tokenizer=tokenizer)
        self._memory = memory
        self._records = records
        self._embedding = embedding

    def explain(self, asked: Asked) -> Assembly:
        """Return the Assembly: facts with their scores, the buffer, near misses."""
        recall = self._gated(recall_of(self._records.searches(), self.counter), asked)
        places = align(asked.returned, self.given.messages)
        parts: list[Part] = []
        facts = [
            Mark(fact_line(hit.text), Source.RETRIEVED, (hit.id,), hit.score)
            for hit in (recall.hits if recall is not None else ())
        ]
        for index, (message, place) in enumerate(zip(asked.returned, places, strict=True)):
            if place == NOT_STORED:
                rest = Mark("", Source.FORMAT, note="heading of the facts")
                parts += parts_of(message, index, rest, self.counter, find(message.text, facts))
            else:
                rest = stored_mark(self.given.messages[place])
                parts += parts_of(message, index, rest, self.counter)
        plan, out = buffer_rule(
            asked,
            self.given,
            places,
            limit=self._memory.buffer.token_limit,
            name="ChatMemoryBuffer",
        )
        return assembled(
            asked,
            self.given,
            parts,
            places,
            self.counter,
            omissions=tuple(out),
            window=plan,
            recall=recall,
        )

    def put(self, stored: Sequence[StoredMessage]) -> None:
        """Note messages and the facts made of them."""
        super().put(stored)
        ids = tuple(message.id for message in stored)
        for node_id, text in self._records.news():
            if self.turn is not None:
                self.turn.memories.append(
                    MemoryWrite("remembered", node_id, text, "fact", "a statement of the user", ids)
                )

    def dump(self) -> State:
        """Return new records; the buffer is the record's own history."""
        added, removed = self._records.drain()
        return State({}, tuple(added), tuple(removed))

    async def restore(self, state: State, messages: Sequence[StoredMessage]) -> None:
        """Give buffer and index back what they held."""
        self.given.replace(messages)
        self._memory.buffer.set(self.given.chats())
        index, fresh = watched_index(self._embedding)
        nodes = nodes_of(state.added, self._embedding)
        if nodes:
            index.insert_nodes(nodes)
        fresh.drain()
        self._records.replace(fresh)
        self._memory.index = index

    async def seed(self, messages: Sequence[StoredMessage]) -> None:
        """Give the memory a history: its statements become records."""
        await self.restore(State(), messages)
        self._memory.set(self.given.chats())

    def _gated(self, recall: Recall | None, asked: Asked) -> Recall | None:
        """Return the search with what stayed out under the gate that stopped it."""
        if recall is None:
            return None
        kept = {node.node.node_id for node in self._memory.kept}
        said = {message.text for message in asked.returned}
        hits = tuple(hit for hit in recall.hits if hit.id in kept)
        near = tuple((hit, self._stop(hit, said)) for hit in recall.hits if hit.id not in kept)
        return Recall(
            query=recall.query,
            hits=hits,
            near=near,
            metric=recall.metric,
            searched=recall.searched,
            milliseconds=recall.milliseconds,
            scope=recall.scope,
        )

    def _stop(self, hit: Hit, said: set[str]) -> Omission:
        repeated = hit.text in said
        cutoff = self._memory.cutoff
        return Omission(
            gate=Gate.IN_BUFFER if repeated else Gate.THRESHOLD,
            source=Source.RETRIEVED,
            ids=(hit.id,),
            reason=(
                "stands in the buffer word for word"
                if repeated
                else f"similarity {hit.score:.2f} is under the cutoff {cutoff:.2f}"
            ),
            needed=hit.score,
            available=cutoff,
            text=hit.text,
            tokens=hit.tokens,
            score=hit.score,
        )
