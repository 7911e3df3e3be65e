"""Work that nobody waits for: one at a time a name, ended by its owner, never in silence."""

from __future__ import annotations

import logging
import threading

import pytest

from memory_core.background import Background
from memory_core.errors import StoreUnavailable


def test_work_of_one_name_runs_one_after_the_other() -> None:
    """What is started while the same runs is run once more after it, however often it was asked."""
    background, gate, ran = Background(), threading.Event(), []

    def work(_step: object) -> None:
        gate.wait(30)
        ran.append(threading.get_ident())

    for _ in range(4):
        background.start("ann", work)
    background.start("bob", lambda _step: ran.append(0))
    gate.set()
    background.wait()
    assert len(ran) == 3
    background.start("ann", work)
    background.wait()
    assert len(ran) == 4


def test_closing_ends_work_at_its_next_step() -> None:
    """Endless work ends when its owner closes, and nothing begins afterwards."""
    background, begun, ran = Background(), threading.Event(), []

    def endless(step: object) -> None:
        begun.set()
        while True:
            step()

    background.start("ann", endless)
    assert begun.wait(30)
    background.close()
    background.start("ann", lambda _step: ran.append(1))
    background.wait()
    assert ran == []


def test_work_of_one_name_can_be_ended_alone() -> None:
    """It ends at its next step and others go on; afterwards the name is free again."""
    background, begun, go_on, ran = Background(), threading.Event(), threading.Event(), []

    def endless(step: object) -> None:
        begun.set()
        while True:
            step()

    def other(_step: object) -> None:
        go_on.wait(30)
        ran.append("bob")

    background.start("ann", endless)
    background.start("ann", endless)
    background.start("bob", other)
    assert begun.wait(30)
    background.stop("ann")
    background.stop("nobody")
    assert ran == []
    go_on.set()
    background.start("ann", lambda _step: ran.append("ann"))
    background.wait()
    assert sorted(ran) == ["ann", "bob"]


@pytest.mark.parametrize("error", [StoreUnavailable("away"), KeyError("boom")])
def test_work_that_fails_is_logged_and_the_next_runs(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    """An error is in the log, and the name is free again."""
    background, ran = Background(), []

    def failing(_step: object) -> None:
        raise error

    with caplog.at_level(logging.WARNING):
        background.start("ann", failing)
        background.wait()
    assert "away" in caplog.text or "boom" in caplog.text
    background.start("ann", lambda _step: ran.append(1))
    background.wait()
    assert ran == [1]
