"""Work that nobody waits for: one thread a name, ended when its owner closes.

The work is handed a function to call between two steps; once the work is to end that function
raises, so it ends where it may be cut. What it did not finish is for the next start.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from memory_core.errors import MemoryInspectorError

log = logging.getLogger("memory_core.background")

Work = Callable[[Callable[[], None]], None]

_WAIT = 10.0  # seconds that a step may take to end


class _Closing(Exception):
    """Raised in work that is to end."""


class Background:
    """Runs work in threads, one at a time under each name."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._threads: dict[str, threading.Thread] = {}
        self._again: dict[str, Work] = {}
        self._stopping: set[str] = set()
        self._closed = threading.Event()

    def start(self, name: str, work: Work) -> None:
        """Run work under a name; if some runs under it already, once more after that."""
        with self._lock:
            if self._closed.is_set() or name in self._stopping:
                return
            if name in self._threads:
                self._again[name] = work
                return
            thread = threading.Thread(
                target=self._run, args=(name, work), name="background", daemon=True
            )
            self._threads[name] = thread
            thread.start()

    def wait(self, timeout: float = _WAIT) -> None:
        """Wait until what runs now is over."""
        with self._lock:
            running = list(self._threads.values())
        for thread in running:
            thread.join(timeout)

    def stop(self, name: str) -> None:
        """End what runs under a name at its next step, and wait until it has ended."""
        with self._lock:
            self._stopping.add(name)
            self._again.pop(name, None)
            thread = self._threads.get(name)
        if thread is not None:
            thread.join()
        with self._lock:
            self._stopping.discard(name)

    def close(self) -> None:
        """End what runs at its next step and take no more."""
        self._closed.set()
        self.wait()

    def _run(self, name: str, work: Work) -> None:
        while True:
            try:
                work(lambda: self._step(name))
            except _Closing:
                log.info("work in the background was ended before it was done")
            except MemoryInspectorError as exc:
                log.warning("work is left for later: %s", exc)
            except Exception:
                log.exception("work in the background failed unexpectedly")
            with self._lock:
                again = self._again.pop(name, None)
                if again is None or self._closed.is_set():
                    del self._threads[name]
                    return
                work = again

    def _step(self, name: str) -> None:
        if self._closed.is_set() or name in self._stopping:
            raise _Closing
