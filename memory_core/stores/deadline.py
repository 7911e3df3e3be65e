"""Calls that must answer in time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from memory_core.errors import StoreUnavailable

T = TypeVar("T")


def within(seconds: float, call: Callable[[], T]) -> T:
    """Return what ``call`` returns; raise :class:`StoreUnavailable` when that takes too long.

    A call that is given up on goes on in a thread that nobody waits for: whether it did its work
    is not known, so only calls that can be repeated may be asked this way.
    """
    answers: list[T] = []
    failures: list[BaseException] = []

    def run() -> None:
        try:
            answers.append(call())
        except BaseException as exc:  # noqa: BLE001  it is raised again by whoever waits
            failures.append(exc)

    thread = threading.Thread(target=run, daemon=True, name="store-call")
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        raise StoreUnavailable(f"The store gave no answer in {seconds:g} seconds.")
    if failures:
        raise failures[0]
    return answers[0]
