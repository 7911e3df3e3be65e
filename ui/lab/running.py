"""Sweeps that run in a thread of their own: the page looks in, a rerun does not cut them off.

Embedding comes first and is told as texts done; then cells arrive one by one. Stopping is a wish
that the thread hears at the next batch of texts or the next cell; what was measured stays.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence

from memory_core.errors import MemoryInspectorError
from memory_core.lab.cells import Cell
from memory_core.lab.embedded import Progress
from memory_core.lab.pool import Pool
from memory_core.lab.sweep import Sweep, cells_of, pool_for, table_of
from memory_core.lab.table import SweepResult
from ui.problems import UNEXPECTED

log = logging.getLogger("ui.lab")

Prepare = Callable[[Progress], Sequence[Sweep]]


class _Stopped(Exception):
    """Raised when the sweep is to end while texts are embedded."""


class Running:
    """One sweep of one or several conversations, seen from outside.

    ``total`` is how many cells are planned in all, a cell of each conversation counted apart.
    Without a ``pool`` it runs where it is best run on this machine.
    """

    def __init__(
        self, prepare: Prepare, *, total: int, title: str = "", pool: Pool | None = None
    ) -> None:
        self.total = total
        self.title = title
        self.error: MemoryInspectorError | None = None
        self.sweeps: tuple[Sweep, ...] = ()
        self.stopped = False
        self._prepare = prepare
        self._pool = pool
        self._lock = threading.Lock()
        self._cells: list[tuple[int, Cell]] = []
        self._texts = (0, 0)
        self._began = time.perf_counter()
        self._seconds = 0.0
        self._thread = threading.Thread(target=self._run, name="sweep", daemon=True)
        self._thread.start()

    @property
    def done(self) -> bool:
        """Whether it is over, one way or another."""
        return not self._thread.is_alive()

    @property
    def share(self) -> float:
        """How much of the work at hand is done, 0 to 1."""
        if not self.sweeps:
            done, total = self._texts
            return min(1.0, done / total) if total else 0.0
        return min(1.0, len(self._cells) / max(self.total, 1))

    @property
    def words(self) -> str:
        """What it is doing, in words."""
        if not self.sweeps:
            done, total = self._texts
            return f"Embedding: {done:,} of {total:,} texts" if total else "Reading the questions"
        return f"Planning: {len(self._cells):,} of {self.total:,} cells"

    def now(self) -> SweepResult | None:
        """Return the table of the cells there are so far, ``None`` before the first one."""
        if not self.sweeps:
            return None
        with self._lock:
            cells = list(self._cells)
        seconds = self._seconds or time.perf_counter() - self._began
        return table_of(self.sweeps, cells, self.title, seconds=seconds)

    def stop(self) -> None:
        """Ask it to end; the cells there are stay."""
        self.stopped = True

    def join(self, timeout: float | None = None) -> None:
        """Wait until it is over."""
        self._thread.join(timeout)

    def _run(self) -> None:
        try:
            self.sweeps = tuple(self._prepare(self._embedded))
            self._began = time.perf_counter()
            for numbered in cells_of(self.sweeps, self._pool or pool_for(self.sweeps)):
                with self._lock:
                    self._cells.append(numbered)
                if self.stopped:
                    break
            self._seconds = time.perf_counter() - self._began
        except _Stopped:
            log.info("a sweep was stopped while it embedded")
        except MemoryInspectorError as exc:
            self.error = exc
        except Exception:
            log.exception("a sweep failed unexpectedly")
            self.error = MemoryInspectorError(
                UNEXPECTED, next_step="Run it again; the details are in the log of the server."
            )

    def _embedded(self, done: int, total: int) -> None:
        self._texts = (done, total)
        if self.stopped:
            raise _Stopped
