"""Memory blocks that are watched and guarded: what each was given, returned, and failed to take.

``Memory`` archives messages before its blocks have taken them, so a block that fails (a model's
rate limit) loses them. A :class:`WatchedBlock` stands in a failing block's place: it keeps the
batch, undoes what the failed attempt changed, lets the turn go on, and gives the batch again
before the next one, so that every flushed message reaches the block exactly once. It also builds
the vector block's session filter anew for each search, which by itself would keep the first
session's for ever. Where nothing fails, everything is passed on unchanged.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.memory import (
    FactExtractionMemoryBlock,
    StaticMemoryBlock,
    VectorMemoryBlock,
)
from llama_index.core.memory.memory import BaseMemoryBlock

from memory_core.errors import MemoryInspectorError
from memory_core.llama import from_chat
from memory_core.messages import Message
from memory_core.native.vectors import SESSION_KEY


@dataclass(frozen=True)
class Batch:
    """Messages that left the queue together."""

    messages: tuple[ChatMessage, ...]
    session_id: str | None


@dataclass(frozen=True)
class Taken:
    """A block took a batch, or could not (``error``). ``facts`` it added, ``gone`` it dropped.

    A block of fixed text ``keeps`` nothing of what it is given.
    """

    block: str
    messages: tuple[Message, ...]
    facts: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    error: str = ""
    keeps: bool = True


@dataclass
class BlockJournal:
    """What the blocks of one memory did since it was last emptied.

    ``contents`` is what each block returned when last asked, ``cut`` what its own truncation
    left of that and how many tokens it was asked to save.
    """

    contents: dict[str, Any] = field(default_factory=dict)
    cut: dict[str, tuple[Any, int]] = field(default_factory=dict)
    taken: list[Taken] = field(default_factory=list)
    milliseconds: dict[str, float] = field(default_factory=dict)


class WatchedBlock(BaseMemoryBlock[Any]):
    """Stands in a block's place in ``Memory``. A ``frozen`` one takes nothing in."""

    _inner: BaseMemoryBlock[Any] = PrivateAttr()
    _journal: BlockJournal = PrivateAttr()
    _frozen: bool = PrivateAttr()
    _waiting: list[Batch] = PrivateAttr(default_factory=list)
    _query_kwargs: dict[str, Any] = PrivateAttr(default_factory=dict)

    def __init__(
        self, inner: BaseMemoryBlock[Any], *, journal: BlockJournal, frozen: bool = False
    ) -> None:
        super().__init__(
            name=inner.name,
            description=inner.description,
            priority=inner.priority,
            accept_short_term_memory=inner.accept_short_term_memory,
        )
        self._inner, self._journal, self._frozen = inner, journal, frozen
        if isinstance(inner, VectorMemoryBlock):
            self._query_kwargs = copy.deepcopy(inner.query_kwargs)

    @property
    def inner(self) -> BaseMemoryBlock[Any]:
        """The block behind."""
        return self._inner

    @property
    def waiting(self) -> Sequence[Batch]:
        """The batches that the block failed to take, oldest first."""
        return self._waiting

    async def aget(self, messages: list[ChatMessage] | None = None, **kwargs: Any) -> Any:
        """Return what the block returns, noted."""
        self._fresh_filter()
        began = time.perf_counter()
        content = await self._inner.aget(messages, **kwargs)
        self._fresh_filter()
        self._journal.milliseconds[self.name] = (time.perf_counter() - began) * 1000
        self._journal.contents[self.name] = copy.deepcopy(content)
        self._journal.cut.pop(self.name, None)
        return content

    async def aput(
        self,
        messages: list[ChatMessage],
        from_short_term_memory: bool = False,
        session_id: str | None = None,
    ) -> None:
        """Give the block what waits, then these messages; keep what it cannot take."""
        if self._frozen or (from_short_term_memory and not self.accept_short_term_memory):
            return
        if not await self.retry():
            self._keep(messages, session_id)
            return
        before = self._mark()
        spare = copy.deepcopy(messages)  # subtle: blocks write into the messages they are given
        try:
            await self._inner.aput(messages, from_short_term_memory, session_id)
        except Exception as exc:  # noqa: BLE001 - whatever a block raises must not lose messages
            self._undo(before)
            self._keep(spare, session_id)
            self._note(spare, before, error=_first_cause(exc))
        else:
            self._note(spare, before)

    async def atruncate(self, content: Any, tokens_to_truncate: int) -> Any:
        """Return what the block leaves of a content, noted."""
        left = await self._inner.atruncate(content, tokens_to_truncate)
        self._journal.cut[self.name] = (left, tokens_to_truncate)
        return left

    async def retry(self) -> bool:
        """Give the block again what it failed to take; return whether nothing waits any more."""
        while self._waiting and not self._frozen:
            batch = self._waiting[0]
            before = self._mark()
            messages = copy.deepcopy(list(batch.messages))
            try:
                await self._inner.aput(messages, True, batch.session_id)  # noqa: FBT003
            except Exception as exc:  # noqa: BLE001 - see aput
                self._undo(before)
                self._note(batch.messages, before, error=_first_cause(exc))
                return False
            self._waiting.pop(0)
            self._note(batch.messages, before)
        return True

    def wait_for(self, batches: Sequence[Batch]) -> None:
        """Take over batches that waited before a restart."""
        self._waiting = list(batches)

    async def _aget(self, messages: list[ChatMessage] | None = None, **kwargs: Any) -> Any:
        return await self._inner._aget(messages, **kwargs)  # noqa: SLF001

    async def _aput(self, messages: list[ChatMessage]) -> None:
        await self._inner._aput(messages)  # noqa: SLF001

    def _keep(self, messages: Sequence[ChatMessage], session_id: str | None) -> None:
        self._waiting.append(Batch(tuple(copy.deepcopy(list(messages))), session_id))

    def _note(self, messages: Sequence[ChatMessage], before: list[str], *, error: str = "") -> None:
        plain = tuple(_without_session(from_chat(message)) for message in messages)
        now = self._mark()
        facts = tuple(fact for fact in now if fact not in before)
        gone = tuple(fact for fact in before if fact not in now)
        keeps = not isinstance(self._inner, StaticMemoryBlock)
        self._journal.taken.append(Taken(self.name, plain, facts, gone, error, keeps=keeps))

    def _mark(self) -> list[str]:
        inner = self._inner
        return list(inner.facts) if isinstance(inner, FactExtractionMemoryBlock) else []

    def _undo(self, before: list[str]) -> None:
        if isinstance(self._inner, FactExtractionMemoryBlock):
            self._inner.facts = before

    def _fresh_filter(self) -> None:
        if isinstance(self._inner, VectorMemoryBlock):
            self._inner.query_kwargs = copy.deepcopy(self._query_kwargs)


def _without_session(message: Message) -> Message:
    """Return a message without the session id that blocks write into it."""
    kwargs = {name: value for name, value in message.kwargs.items() if name != SESSION_KEY}
    return Message(message.role, message.blocks, kwargs)


def _first_cause(exc: BaseException) -> str:
    """Return the text of the real error, however deep it was wrapped."""
    error: BaseException = exc
    while not isinstance(error, MemoryInspectorError):
        inner = error.__cause__ or error.__context__
        if inner is None:
            break
        error = inner
    return str(error) or type(error).__name__
