"""The bridge between plain threads and the one background event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest

from memory_core.loop import background_loop, iterate, submit


async def count(limit: int) -> AsyncIterator[int]:
    """Count up, giving way to others between two numbers."""
    for number in range(limit):
        await asyncio.sleep(0)
        yield number


def test_everything_comes_through_in_order():
    """What the async iterator yields comes out of the plain one, in order."""
    assert list(iterate(count(500))) == list(range(500))


def test_error_reaches_the_reader_after_what_came_before():
    """An exception in the iterator is raised where it is read, and nothing before it is lost."""

    async def failing() -> AsyncIterator[int]:
        yield 1
        raise KeyError("gone")

    stream = iterate(failing())
    assert next(stream) == 1
    with pytest.raises(KeyError, match="gone"):
        next(stream)


def test_leaving_early_waits_until_the_other_side_has_tidied_up():
    """When a reader leaves, the iterator is cancelled and its last words are done by then."""
    tidied = []

    async def endless() -> AsyncIterator[int]:
        try:
            while True:
                await asyncio.sleep(0.001)
                yield 1
        finally:
            await asyncio.sleep(0.05)
            tidied.append("yes")

    stream = iterate(endless())
    assert next(stream) == 1
    stream.close()
    assert tidied == ["yes"]


def test_all_threads_share_one_loop():
    """Coroutines of any thread run on the same loop, which is nobody's own."""
    loops = set()

    async def where() -> None:
        loops.add(asyncio.get_running_loop())

    threads = [threading.Thread(target=lambda: submit(where()).result()) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert loops == {background_loop()}
