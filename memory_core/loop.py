"""One background event loop for the process, and the bridges to it from plain threads.

LlamaIndex is async inside, a Streamlit script is a plain thread. Loops are never nested: every
coroutine runs on this one, in a daemon thread, so the program ends when it is done.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import AsyncIterator, Awaitable, Coroutine, Iterator
from concurrent.futures import Future
from typing import Any, TypeVar

TIDYING = 30.0  # seconds that a stream which is left early may take to end

T = TypeVar("T")
_START = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None


def background_loop() -> asyncio.AbstractEventLoop:
    """Return the running background loop, starting it on first use."""
    global _loop  # noqa: PLW0603 - one loop for the process is the point
    with _START:
        if _loop is None or _loop.is_closed():
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_loop.run_forever, name="memory-core-loop", daemon=True).start()
        return _loop


def submit(coroutine: Coroutine[Any, Any, T]) -> Future[T]:
    """Start a coroutine on the background loop."""
    return asyncio.run_coroutine_threadsafe(coroutine, background_loop())


async def whole(work: Awaitable[T]) -> T:
    """Await what must not be cut off half-way: a cancellation is heard when it is over."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


class Stream(Iterator[T]):
    """What an async iterator yields, read from a plain thread; it runs on the background loop.

    It begins when it is first read. :meth:`cancel` ends it from any thread, and what it says last
    is still read; :meth:`close` also waits until it has tidied up.
    """

    def __init__(self, source: AsyncIterator[T]) -> None:
        self._source = source
        self._items: queue.SimpleQueue[tuple[T] | None] = queue.SimpleQueue()
        self._over = threading.Event()
        self._begun = self._cancelled = False
        self._task: asyncio.Task[None] | None = None
        self._error: BaseException | None = None

    def __next__(self) -> T:
        if not self._begun:
            self._begun = True
            background_loop().call_soon_threadsafe(self._run)
        boxed = self._items.get()
        if boxed is not None:
            return boxed[0]
        self._items.put(None)
        error, self._error = self._error, None
        if error is not None:
            raise error
        raise StopIteration

    def __del__(self) -> None:
        if self._begun and not self._over.is_set():
            self.cancel()

    def cancel(self) -> None:
        """Ask it to end, without waiting; what is over or not begun is left as it is."""
        if self._begun:
            background_loop().call_soon_threadsafe(self._cancel)

    def close(self) -> None:
        """End it and wait until it has tidied up."""
        self.cancel()
        if self._begun:
            self._over.wait(TIDYING)

    def _run(self) -> None:
        self._task = background_loop().create_task(self._drain())
        self._task.add_done_callback(self._ended)

    def _cancel(self) -> None:
        if self._task is not None and not self._cancelled:
            self._cancelled = True
            # subtle: a task that is cancelled before its first step would never have begun
            background_loop().call_soon(self._task.cancel)

    async def _drain(self) -> None:
        async for item in self._source:
            self._items.put((item,))

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._error = None if task.cancelled() else task.exception()
        self._over.set()
        self._items.put(None)


def iterate(source: AsyncIterator[T]) -> Stream[T]:
    """Return a plain iterator over an async one, which runs on the background loop."""
    return Stream(source)
