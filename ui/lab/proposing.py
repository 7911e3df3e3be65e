"""The chosen model proposes questions in a thread of its own; the page looks in and may stop it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from memory_core.errors import MemoryInspectorError
from ui.problems import caught

if TYPE_CHECKING:
    from memory_core.proposing import Proposed
    from ui.lab.place import Subject

Ask = Callable[[Callable[[int, int], None], Callable[[], bool]], "Proposed"]
"""Asks a model: told of its progress, and asked whether to end."""


class Proposing:
    """One reading of a conversation by a model, seen from outside.

    ``subject`` is the conversation that is read, ``proposed`` what came of it.
    """

    def __init__(self, subject: Subject, ask: Ask) -> None:
        self.subject = subject
        self.proposed: Proposed | None = None
        self.error: MemoryInspectorError | None = None
        self.stopped = False
        self._ask = ask
        self._at = (0, 0)
        self._thread = threading.Thread(target=self._run, name="proposing", daemon=True)
        self._thread.start()

    @property
    def done(self) -> bool:
        """Whether it is over, one way or another."""
        return not self._thread.is_alive()

    @property
    def share(self) -> float:
        """How much of the conversation was read, 0 to 1."""
        done, total = self._at
        return min(1.0, done / total) if total else 0.0

    @property
    def words(self) -> str:
        """What it is doing, in words."""
        done, total = self._at
        return f"The model reads: {done:,} of {total:,} parts" if total else "Asking the model"

    def stop(self) -> None:
        """Ask it to end before the next part; what was proposed so far stays."""
        self.stopped = True

    def join(self, timeout: float | None = None) -> None:
        """Wait until it is over."""
        self._thread.join(timeout)

    def _run(self) -> None:
        with caught(self._failed, "proposing questions"):
            self.proposed = self._ask(self._told, lambda: self.stopped)

    def _failed(self, error: MemoryInspectorError) -> None:
        self.error = error

    def _told(self, done: int, total: int) -> None:
        self._at = (done, total)
