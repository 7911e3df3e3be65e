"""One background event loop for the process, and the bridges to it from plain threads.

LlamaIndex is async inside, a Streamlit script is a plain thread. Loops are never nested: every
coroutine runs on this one, in a daemon thread, so the program ends when it is done.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator
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


def iterate(source: AsyncIterator[T]) -> Iterator[T]:
    """Yield what an async iterator yields, running it on the background loop.

    Leaving early cancels it and waits until it has tidied up.
    """
    items: queue.SimpleQueue[tuple[T] | None] = queue.SimpleQueue()
    over = threading.Event()

    async def drain() -> None:
        try:
            async for item in source:
                items.put((item,))
        finally:
            items.put(None)
            over.set()

    running = submit(drain())
    try:
        while (boxed := items.get()) is not None:
            yield boxed[0]
        running.result()
    finally:
        if running.cancel():
            over.wait(TIDYING)
