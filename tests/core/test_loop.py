"""The bridge between plain threads and the one background event loop."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator

import pytest

from memory_core.loop import background_loop, iterate, submit, whole


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


def test_a_stream_that_says_nothing_is_cancelled_from_another_thread():
    """A reader that waits is let go at once, and still gets the last words."""

    async def silent() -> AsyncIterator[str]:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            yield "last words"
            raise
        yield "never"

    stream = iterate(silent())
    stream.cancel()  # before it has begun there is nothing to end
    threading.Timer(0.05, stream.cancel).start()
    assert list(stream) == ["last words"]
    assert list(stream) == []


def test_what_must_be_whole_is_over_before_a_cancellation_is_heard():
    """A write that has begun in a thread ends, then the stop goes on."""
    begun, done = threading.Event(), []

    def write() -> None:
        begun.set()
        time.sleep(0.1)
        done.append("written")

    async def work() -> AsyncIterator[str]:
        try:
            await whole(asyncio.to_thread(write))
        finally:
            done.append("stopped")
        yield "never"

    stream = iterate(work())
    reader = threading.Thread(target=lambda: list(stream))
    reader.start()
    begun.wait()
    stream.close()
    reader.join()
    assert done == ["written", "stopped"]
