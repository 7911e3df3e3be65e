"""A store in front of a real one that can be made to fail."""

from __future__ import annotations

import threading

from memory_core.errors import StoreUnavailable

_WRITES = {
    "commit", "save_state", "create", "update", "purge", "put_records", "mark_indexed",
    "erase_user",
}  # fmt: skip


class FlakyStore:
    """Hands every call on to ``inner``, as its ``mode`` says.

    It is ``up``, ``down``, ``slow``, ``read-only`` or ``deaf``: does what it is asked to and then
    fails to answer.
    """

    def __init__(self, inner):
        self.inner = inner
        self.mode = "up"
        self.calls = []
        self.released = threading.Event()

    def __getattr__(self, name):
        method = getattr(self.inner, name)
        if not callable(method):
            return method

        def call(*args, **kwargs):
            self.calls.append(name)
            if self.mode == "down" and name != "close":
                raise StoreUnavailable("The store does not answer: it is down.")
            if self.mode == "slow":
                self.released.wait(20)
            if self.mode == "read-only" and name in _WRITES:
                raise StoreUnavailable("The store does not answer: it is read-only.")
            answer = method(*args, **kwargs)
            if self.mode == "deaf" and name in _WRITES:
                raise StoreUnavailable("The store does not answer: the connection broke.")
            return answer

        return call
