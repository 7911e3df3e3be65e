"""Work that nobody waits for: one thread a name, ended when its owner closes.

The work is handed a function to call between two steps; once the owner closes that function
raises, so the work ends where it may be cut. What it did not finish is for the next start.
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
    """Raised in work whose owner closes."""


class Background:
    """Runs work in threads, one at a time under each name."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._threads: dict[str, threading.Thread] = {}
        self._again: dict[str, Work] = {}
        self._closed = threading.Event()

    def start(self, name: str, work: Work) -> None:
        """Run work under a name; if some runs under it already, once more after that."""
        with self._lock:
            if self._closed.is_set():
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

    def close(self) -> None:
        """End what runs at its next step and take no more."""
        self._closed.set()
        self.wait()

    def _run(self, name: str, work: Work) -> None:
        while True:
            try:
                work(self._step)
            except _Closing:
                log.info("work for later was left at the end of the program")
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

    def _step(self) -> None:
        if self._closed.is_set():
            raise _Closing
