"""A comparison that runs in a thread of its own: the page looks in, a rerun does not cut it off.

Stopping is a wish that the thread hears after the next turn, or the next piece of an answer; what
there was is thrown away.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from memory_core.errors import MemoryInspectorError
from ui.problems import UNEXPECTED

if TYPE_CHECKING:
    from memory_core.lab.comparison import Comparison
    from memory_core.lab.side_by_side import Look, Step

log = logging.getLogger("ui.compare")

Run = Callable[["Look"], "Comparison"]


class _Stopped(Exception):
    """Raised in the thread when the comparison is to end."""


class Running:
    """One comparison, seen from outside."""

    def __init__(self, run: Run) -> None:
        self.error: MemoryInspectorError | None = None
        self.result: Comparison | None = None
        self.stopped = False
        self._step: Step | None = None
        self._thread = threading.Thread(
            target=self._work, args=(run,), name="comparison", daemon=True
        )
        self._thread.start()

    @property
    def done(self) -> bool:
        """Whether it is over, one way or another."""
        return not self._thread.is_alive()

    @property
    def share(self) -> float:
        """How much of the work is done, 0 to 1."""
        return self._step.share if self._step is not None else 0.0

    @property
    def words(self) -> str:
        """What it is doing, in words."""
        step = self._step
        if step is None:
            return "Reading the conversation"
        return (
            f"Configuration {step.column + 1} of {step.columns}, {step.name}: "
            f"{step.done:,} of {step.total:,} turns and questions"
        )

    def stop(self) -> None:
        """Ask it to end."""
        self.stopped = True

    def join(self, timeout: float | None = None) -> None:
        """Wait until it is over."""
        self._thread.join(timeout)

    def _work(self, run: Run) -> None:
        try:
            self.result = run(self._look)
        except _Stopped:
            log.info("a comparison was stopped")
        except MemoryInspectorError as exc:
            self.error = exc
        except Exception:
            log.exception("a comparison failed unexpectedly")
            self.error = MemoryInspectorError(
                UNEXPECTED, next_step="Run it again; the details are in the log of the server."
            )

    def _look(self, step: Step) -> None:
        self._step = step
        if self.stopped:
            raise _Stopped
