"""The turn that is running: it lives in a thread of its own, and the page only looks in.

A page script can be cut off at any moment (a slider moves, another page opens). The turn must
not be: it goes on behind, and whichever rerun comes next finds it where it stands. A stop reaches
the turn at once, also while its model says nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import Any

from memory_core.errors import MemoryInspectorError
from memory_core.trace import ToolStep, TurnTrace
from ui.problems import caught


@dataclass(frozen=True)
class Step:
    """A tool call as it is shown while the turn runs; ``result`` is ``None`` until it is done."""

    name: str
    arguments: str
    result: str | None = None
    failed: bool = False


@dataclass(frozen=True)
class Progress:
    """What a turn has come to so far."""

    answer: str
    steps: tuple[Step, ...]


class LiveTurn:
    """One turn, seen from outside; ``question`` is what was asked ("": nothing new)."""

    def __init__(self, start: Callable[[], Iterator[Any]], *, question: str = "") -> None:
        self.question = question
        self.error: MemoryInspectorError | None = None
        self.trace: TurnTrace | None = None
        self._start = start
        self._stopped = False
        self._events: Iterator[Any] | None = None
        self._lock = threading.Lock()
        self._answer: list[str] = []
        self._steps: list[Step] = []
        self._thread = threading.Thread(target=self._run, name="turn", daemon=True)
        self._thread.start()

    @property
    def done(self) -> bool:
        """Whether the turn is over, one way or another."""
        return not self._thread.is_alive()

    def now(self) -> Progress:
        """Return what there is so far."""
        with self._lock:
            return Progress("".join(self._answer), tuple(self._steps))

    def stop(self) -> None:
        """Ask the turn to end; the engine keeps the message, the part of an answer is let go."""
        self._stopped = True
        cancel = getattr(self._events, "cancel", None)
        if cancel is not None:
            cancel()

    def join(self, timeout: float | None = None) -> None:
        """Wait until the turn is over."""
        self._thread.join(timeout)

    def _run(self) -> None:
        with caught(self._failed, "the turn"):
            events = self._events = self._start()
            for event in events:
                self._take(event)
                if self._stopped:
                    self.stop()  # it may have been asked for before there was a stream
                if self._stopped and isinstance(events, Generator):
                    events.close()
                    break

    def _failed(self, error: MemoryInspectorError) -> None:
        self.error = error

    def _take(self, event: Any) -> None:
        from memory_core.agent import Delta, Failed, Finished, ToolFinished, ToolStarted

        with self._lock:
            if isinstance(event, Delta):
                self._answer.append(event.text)
            elif isinstance(event, ToolStarted):
                self._steps.append(Step(event.name, event.arguments))
            elif isinstance(event, ToolFinished):
                self._finish(event.step)
            elif isinstance(event, Finished):
                self.trace = event.trace
            elif isinstance(event, Failed):
                self.trace = event.trace
                if event.trace is None or not self._stopped:  # else the turn itself says it
                    self.error = event.error

    def _finish(self, step: ToolStep) -> None:
        finished = Step(step.name, step.arguments, step.result, step.failed)
        for i, open_step in enumerate(self._steps):
            if open_step.result is None and open_step.name == step.name:
                self._steps[i] = finished
                return
        self._steps.append(finished)
