"""A running turn lives behind the page: it cannot be cut off, only asked to stop."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import timedelta

from memory_core.agent import Delta, Event, Failed, Finished, ToolFinished, ToolStarted
from memory_core.errors import ModelTimeout
from memory_core.trace import ToolStep, TurnTrace
from tests.ui.build import START
from ui.live import LiveTurn, Step
from ui.problems import UNEXPECTED

TRACE = TurnTrace(1, "s", START, START + timedelta(seconds=1), "layered", {})
WAIT = 30  # seconds


def test_progress_grows_with_the_events_and_ends_with_the_trace():
    """What is seen of a turn is what it has said and done so far."""
    gate = threading.Event()

    def events() -> Iterator[Event]:
        yield Delta("Let me ")
        yield ToolStarted("get_weather", '{"city": "Porto"}')
        gate.wait(WAIT)
        yield ToolFinished(ToolStep("c", "get_weather", '{"city": "Porto"}', "sunny"))
        yield Delta("see.")
        yield Finished(TRACE)

    live = LiveTurn(events, question="Weather?")
    while not live.now().steps:
        live.join(0.01)
    assert live.now().steps == (Step("get_weather", '{"city": "Porto"}'),)
    assert not live.done
    gate.set()
    live.join(WAIT)
    assert live.done
    assert live.now().answer == "Let me see."
    assert live.now().steps[0].result == "sunny"
    assert (live.trace, live.error) == (TRACE, None)


def test_stop_closes_the_stream_at_its_next_event():
    """A stop is heard at the next event; the stream is closed so that the engine can tidy up."""
    closed, told = threading.Event(), threading.Event()

    def endless() -> Iterator[Event]:
        try:
            while True:
                yield Delta("word ")
                told.wait(WAIT)
        finally:
            closed.set()

    live = LiveTurn(endless)
    live.stop()
    told.set()
    live.join(WAIT)
    assert closed.is_set()
    assert live.done
    assert live.now().answer.startswith("word ")


def test_failure_of_the_turn_is_kept_with_its_trace():
    """A turn that failed keeps its error and the trace that holds the question."""
    error = ModelTimeout("No answer in 5 seconds.")
    live = LiveTurn(lambda: iter([Failed(error, TRACE)]))
    live.join(WAIT)
    assert (live.error, live.trace) == (error, TRACE)


def test_bug_becomes_a_sentence():
    """An exception of any other kind shows as one sentence, without its details."""

    def broken() -> Iterator[Event]:
        yield Delta("a")
        raise RuntimeError("secret detail")

    live = LiveTurn(broken, question="hm?")
    live.join(WAIT)
    assert str(live.error).startswith(UNEXPECTED)
    assert "secret" not in str(live.error)
    assert live.now().answer == "a"
