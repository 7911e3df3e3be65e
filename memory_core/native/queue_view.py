"""How a prompt of ``Memory`` is explained: the queue, the blocks in pieces, what is not in it.

The rule of ``Memory``: when the queue holds more than ``token_limit`` times
``chat_history_token_ratio`` tokens, the oldest messages (at least ``token_flush_size`` tokens,
whole turns) are archived and given to the blocks. A prompt is the queue, and what the blocks
return in one message; when both are over ``token_limit``, blocks of a priority above 0 are
dropped, the lowest number first.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, TextBlock
from llama_index.core.memory import FactExtractionMemoryBlock, Memory, VectorMemoryBlock
from llama_index.core.postprocessor import SimilarityPostprocessor

from memory_core.buffer import WindowPlan
from memory_core.llama import from_chat
from memory_core.messages import Message, StoredMessage
from memory_core.native.adapter import Asked, left_out, newest, stored_mark
from memory_core.native.align import NOT_STORED, align
from memory_core.native.blocks import BlockJournal, WatchedBlock
from memory_core.native.parts import Found, Mark, find, parts_of
from memory_core.native.rules import QUEUE_RULE
from memory_core.native.vectors import Searched, recall_of
from memory_core.prompt import Assembly, Gate, Hit, Omission, Part, Recall, Source
from memory_core.tokens import TokenCounter

_TEMPLATE = Mark("", Source.FORMAT, note="Memory's template around its blocks")


@dataclass(frozen=True)
class Flush:
    """Messages ``first`` to ``first + count`` left the queue in a turn; ``tokens`` it held."""

    turn: int
    first: int
    count: int
    tokens: int


@dataclass(frozen=True)
class QueueView:
    """Everything known about one request: the queue, its flushes, what each block returned.

    ``count`` gives a message's tokens by the class's own count.
    """

    memory: Memory
    blocks: Sequence[WatchedBlock]
    journal: BlockJournal
    given: Sequence[StoredMessage]
    archived: int
    flushes: Sequence[Flush]
    searches: Mapping[str, Sequence[Searched]]
    count: Callable[[StoredMessage], int]
    counter: TokenCounter

    def assembly(self, asked: Asked) -> Assembly:
        """Return the Assembly of what was returned."""
        active = self.given[self.archived :]
        places = align(asked.returned, active)
        host = _host(asked.returned, active, places)
        recall = self._recall()
        said = self._marks(recall)
        parts: list[Part] = []
        seen: set[str] = set()
        for index, (message, place) in enumerate(zip(asked.returned, places, strict=True)):
            if place != NOT_STORED:
                parts += parts_of(message, index, stored_mark(active[place]), self.counter)
                continue
            own = active[host[1]] if host is not None and host[0] == index else None
            found = _found(message, said, own)
            seen.update(item.mark.note for item in found if item.mark.note)
            parts += parts_of(message, index, _TEMPLATE, self.counter, found)
        dropped = self._dropped(seen)
        return Assembly(
            messages=asked.returned,
            message_ids=tuple("" if p == NOT_STORED else active[p].id for p in places),
            parts=tuple(parts),
            omissions=(*dropped, *self._flushed()),
            window=self._window(),
            recall=_without_dropped(recall, dropped),
            notes=tuple(self._waiting()),
            counter=self.counter.id,
        )

    def _window(self) -> WindowPlan:
        limit = int(self.memory.token_limit * self.memory.chat_history_token_ratio)
        tokens = sum(map(self.count, self.given[self.archived :]))
        last = self.flushes[-1] if self.flushes else None
        flushed = self.given[last.first : last.first + last.count] if last else ()
        return WindowPlan(
            rule=QUEUE_RULE,
            limit=limit,
            initial=0,
            total=len(self.given),
            start=self.archived,
            tokens=tokens,
            over_limit=tokens > limit,
            next_start=last.first if last else -1,
            next_needed=sum(map(self.count, flushed)),
            next_left=max(0, limit - tokens),
        )

    def _flushed(self) -> list[Omission]:
        """Return why the newest archived messages left the queue."""
        limit = int(self.memory.token_limit * self.memory.chat_history_token_ratio)
        out = []
        for index in newest(range(self.archived)):
            flush = next((f for f in self.flushes if f.first <= index < f.first + f.count), None)
            stored = self.given[index]
            if flush is None:
                out.append(left_out(stored, Gate.TOKEN_LIMIT, "archived in an earlier turn"))
                continue
            reason = (
                f"archived at turn {flush.turn}: the queue held {flush.tokens:,} of {limit:,} "
                f"tokens, at least {self.memory.token_flush_size:,} leave at once"
            )
            out.append(left_out(stored, Gate.TOKEN_LIMIT, reason, flush.tokens, limit))
        return out

    def _marks(self, recall: Recall | None) -> list[Mark]:
        """Return a mark for every piece that the blocks returned, in the order of the prompt."""
        marks: list[Mark] = []
        hits = recall.hits if recall is not None else ()
        for block in self.blocks:
            texts = texts_of(self._content(block))
            if isinstance(block.inner, FactExtractionMemoryBlock):
                marks += _fact_marks(block.name, block.inner.facts, texts)
                continue
            for text in texts:
                if isinstance(block.inner, VectorMemoryBlock):
                    marks += [
                        Mark(hit.text, Source.RETRIEVED, (hit.id,), hit.score, note=block.name)
                        for hit in hits
                        if hit.kind == record_kind(block.name) and hit.text and hit.text in text
                    ] or [Mark(text, Source.RETRIEVED, note=block.name)]
                else:
                    ids = (f"block-{block.name}",)
                    marks.append(Mark(text, _source_of(block), ids, note=block.name))
        return marks

    def _content(self, block: WatchedBlock) -> Any:
        """Return what a block's content was after its own truncation."""
        cut = self.journal.cut.get(block.name)
        return self.journal.contents.get(block.name) if cut is None else cut[0]

    def _dropped(self, seen: set[str]) -> list[Omission]:
        """Return the blocks that returned something of which nothing is in the prompt."""
        estimate = self.memory._estimate_token_count  # noqa: SLF001
        needs = {name: estimate(c) for name, c in self.journal.contents.items() if c}
        history = sum(map(self.count, self.given[self.archived :]))
        total, limit = sum(needs.values()) + history, self.memory.token_limit
        left = max(0, limit - history - sum(n for name, n in needs.items() if name in seen))
        out = []
        for block in self.blocks:
            if not needs.get(block.name) or block.name in seen:
                continue
            known = total > limit and block.priority > 0
            reason = (
                f"blocks and history need {total:,} tokens, the limit is "
                f"{limit:,}; of priorities above 0 the lowest goes first, this one is "
                f"{block.priority}"
            )
            out.append(
                Omission(
                    gate=Gate.BUDGET if known else Gate.NOT_EXPLAINED,
                    source=_source_of(block),
                    ids=(f"block-{block.name}",),
                    reason=reason if known else Gate.NOT_EXPLAINED.value,
                    needed=needs[block.name],
                    available=left,
                    text="\n".join(texts_of(self.journal.contents[block.name])),
                    tokens=needs[block.name],
                )
            )
        return out

    def _recall(self) -> Recall | None:
        """Return this request's searches; what a postprocessor took out again is a near miss."""
        searches: list[Searched] = []
        kinds: dict[str, str] = {}
        cut: dict[str, Omission] = {}
        for block in self.blocks:
            made = self.searches.get(block.name, ())
            searches += made
            kinds.update((r.id, record_kind(block.name)) for s in made for r in s.results)
            text = "\n".join(texts_of(self.journal.contents.get(block.name)))
            cutoff = _cutoff_of(block)
            recall = recall_of(made, self.counter)
            for hit in recall.hits if recall is not None and cutoff is not None else ():
                if hit.text not in text:
                    cut[hit.id] = _under_cutoff(hit, block.name, cutoff or 0.0)
        recall = recall_of(searches, self.counter)
        if recall is None:
            return None
        found = [replace(hit, kind=kinds[hit.id]) for hit in recall.hits]
        near = tuple((hit, cut[hit.id]) for hit in found if hit.id in cut)
        return replace(recall, hits=tuple(h for h in found if h.id not in cut), near=near)

    def _waiting(self) -> list[str]:
        return [
            f"{sum(len(batch.messages) for batch in block.waiting):,} archived messages wait for "
            f"the block {block.name}, which failed to take them; it is given them again."
            for block in self.blocks
            if block.waiting
        ]


def fact_id(block: str, fact: str) -> str:
    """Return the id under which a block's fact stands in traces."""
    digest = hashlib.sha256(fact.encode("utf-8", "replace")).hexdigest()[:12]
    return f"{block}-{digest}"


def record_kind(block: str) -> str:
    """Return what a record of a vector block is called among the hits of a search."""
    return f"record of {block}"


def _fact_marks(block: str, facts: Sequence[str], texts: Sequence[str]) -> list[Mark]:
    """Return a mark for each fact as its block writes it, or for the whole where it does not."""
    text = "\n".join(texts)
    if not text:
        return []
    written = [(fact, f"<fact>{fact}</fact>") for fact in facts]
    if all(line in text for _, line in written):
        return [Mark(t, Source.FACTS, (fact_id(block, f),), note=block) for f, t in written]
    return [Mark(text, Source.FACTS, (f"block-{block}",), note=block)]


def _without_dropped(recall: Recall | None, dropped: Sequence[Omission]) -> Recall | None:
    """Return a search whose hits stand in the prompt; those of a dropped block are near misses."""
    gone = {record_kind(out.ids[0].removeprefix("block-")): out for out in dropped if out.ids}
    if recall is None or not any(hit.kind in gone for hit in recall.hits):
        return recall
    near = tuple(
        (
            hit,
            Omission(
                gate=gone[hit.kind].gate,
                source=Source.RETRIEVED,
                ids=(hit.id,),
                reason=gone[hit.kind].reason,
                needed=gone[hit.kind].needed,
                available=gone[hit.kind].available,
                text=hit.text,
                tokens=hit.tokens,
                score=hit.score,
            ),
        )
        for hit in recall.hits
        if hit.kind in gone
    )
    kept = tuple(hit for hit in recall.hits if hit.kind not in gone)
    return replace(recall, hits=kept, near=(*near, *recall.near))


def texts_of(content: Any) -> list[str]:
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


def _host(
    returned: Sequence[Message], active: Sequence[StoredMessage], places: Sequence[int]
) -> tuple[int, int] | None:
    """Return which returned message is a stored one with the blocks put before its own."""
    taken = frozenset(places)
    for index, place in enumerate(places):
        message = returned[index]
        for own in range(len(active) - 1, -1, -1) if place == NOT_STORED else ():
            stored = active[own].message
            if own in taken or stored.role != message.role or stored.kwargs != message.kwargs:
                continue
            before = len(message.blocks) - len(stored.blocks)
            if before > 0 and message.blocks[before:] == stored.blocks:
                return index, own
    return None


def _found(message: Message, marks: Sequence[Mark], own: StoredMessage | None) -> list[Found]:
    """Return where the blocks' pieces stand, and the stored message's own text behind them."""
    text, tail = message.text, own.message.text if own is not None else ""
    if own is None or not tail:
        return find(text, marks)
    cut = len(text) - len(tail)
    return [*find(text[:cut], marks), Found(stored_mark(own), cut, len(text))]


def _source_of(block: WatchedBlock) -> Source:
    if isinstance(block.inner, FactExtractionMemoryBlock):
        return Source.FACTS
    return Source.RETRIEVED if isinstance(block.inner, VectorMemoryBlock) else Source.BLOCK


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
