"""A LlamaIndex memory whose every call, sync or async, runs on the one background loop.

LlamaIndex asks a memory for fourteen methods; here they follow from three coroutines. Clients,
locks and database connections belong to the loop they were first used in, so there is only one.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.memory.types import BaseMemory

from memory_core.loop import background_loop, submit

T = TypeVar("T")


class OneLoopMemory(BaseMemory):
    """A memory made of ``_put``, ``_get`` and ``_set``."""

    @abstractmethod
    async def _put(self, messages: Sequence[ChatMessage], *, batch: bool) -> None:
        """Add messages, by the call for several of them when ``batch``."""

    @abstractmethod
    async def _get(
        self, query: str | ChatMessage | None, kwargs: dict[str, Any]
    ) -> list[ChatMessage]:
        """Return the prompt."""

    @abstractmethod
    async def _set(self, messages: Sequence[ChatMessage] | None) -> None:
        """Replace the history; ``None`` empties it."""

    async def aput(self, message: ChatMessage) -> None:
        """Add a message."""
        await _run(self._put([message], batch=False))

    async def aput_messages(self, messages: list[ChatMessage]) -> None:
        """Add messages; none is nothing to add."""
        if messages:
            await _run(self._put(messages, batch=True))

    async def aget(
        self,
        input: str | ChatMessage | None = None,  # noqa: A002 - LlamaIndex's name
        **kwargs: Any,
    ) -> list[ChatMessage]:
        """Return the prompt."""
        return await _run(self._get(input, kwargs))

    async def aget_all(self) -> list[ChatMessage]:
        """Return every message."""
        return self.get_all()

    async def aset(self, messages: list[ChatMessage]) -> None:
        """Replace the history, or change nothing."""
        await _run(self._set(messages))

    async def areset(self) -> None:
        """Empty the history."""
        await _run(self._set(None))

    def put(self, message: ChatMessage) -> None:
        """Add a message."""
        wait(self._put([message], batch=False))

    def put_messages(self, messages: list[ChatMessage]) -> None:
        """Add messages; none is nothing to add."""
        if messages:
            wait(self._put(messages, batch=True))

    def get(
        self,
        input: str | ChatMessage | None = None,  # noqa: A002 - LlamaIndex's name
        **kwargs: Any,
    ) -> list[ChatMessage]:
        """Return the prompt."""
        return wait(self._get(input, kwargs))

    def set(self, messages: list[ChatMessage]) -> None:
        """Replace the history, or change nothing."""
        wait(self._set(messages))

    def reset(self) -> None:
        """Empty the history."""
        wait(self._set(None))


async def _run(work: Coroutine[Any, Any, T]) -> T:
    """Run on the background loop, wherever this is called from."""
    if asyncio.get_running_loop() is background_loop():
        return await work
    return await asyncio.wrap_future(submit(work))


def wait(work: Coroutine[Any, Any, T]) -> T:
    """Run on the background loop and wait for it.

    Raises ``ValueError`` when called on that loop, which would wait for itself.
    """
    try:
        here = asyncio.get_running_loop()
    except RuntimeError:
        here = None
    if here is background_loop():
        work.close()
        raise ValueError("on the background loop a memory is used by its async calls")
    return submit(work).result()
