"""Short forms of the crash and race tests; the full counts are run by one command each."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.core.stores.backends import NAMES, place
from tests.core.stores.making import start, turn
from tests.crash import KEY, torn_parts

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(params=NAMES)
def name(request, tmp_path):
    """Return the name of each backend that is here."""
    with place(request.param, tmp_path):
        return request.param


def run(module: str, *options: str) -> dict:
    """Run a module of the tests as a program and return the JSON object it ends with."""
    command = [sys.executable, "-m", module, *options]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_kill_nine_loses_nothing_acknowledged(name):
    """A writer killed at random moments leaves every acknowledged turn, and only whole ones."""
    for _ in range(5):  # on a busy machine a writer may be killed before its first turn
        found = run("tests.crash", "--kills", "4", "--backend", name)
        assert (found["kills"], found["lost"], found["torn"]) == (4, 0, 0)
        if found["turns"]:
            return
    pytest.fail("no writer got as far as a turn")


def test_kill_nine_leaves_no_orphan_vector():
    """After catching up, the index holds exactly the vectors of the memories that are stored."""
    found = run("tests.crash", "--kills", "2", "--backend", "sqlite", "--vectors")
    assert (found["lost"], found["torn"], found["orphans"]) == (0, 0, 0)


def test_racing_programs_lose_nothing(name):
    """Programs that write to one session at once lose no turn and no count in its state."""
    found = run("tests.race", "--processes", "4", "--writes", "5", "--backend", name)
    assert (found["lost_appends"], found["double_appends"], found["lost_updates"]) == (0, 0, 0)
    assert found["total_order"]


def test_the_crash_test_would_notice(tmp_path):
    """What the crash test looks for is found when it is there."""
    with place("sqlite", tmp_path) as backend:
        store = backend.open()
        start(store, KEY)
        assert torn_parts(store, 0) == []
        store.commit(KEY, turn(1, "question 1", "answer 1"))
        wrong = torn_parts(store, 2)
        assert "turn 2 was acknowledged, the newest is 1" in wrong
        assert "memories are missing" in wrong
        assert "the state is of another turn" in wrong
        store.commit(KEY, turn(2, "question 2", position=2))
        assert "turn 2 is torn" in torn_parts(store, 2)
