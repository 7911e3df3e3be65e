"""Where a sweep runs makes no difference to what it finds: here, in processes, on a cluster."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path

import pytest

from memory_core.errors import InvalidInput
from memory_core.lab.pool import Pool
from memory_core.lab.saving import to_json
from memory_core.lab.sweep import TUTORIAL, run_many
from tests.core.lab.talks import long_talk, sweep_of

ROOT = Path(__file__).resolve().parents[3]


def dask_is_here() -> None:
    """Skip without Dask; in CI it has to be there."""
    if find_spec("distributed") is None:
        if os.environ.get("CI") == "true":
            pytest.fail("Dask is not installed: pip install -r requirements-cluster.txt")
        pytest.skip("Dask is not installed")


def started(*arguments: str) -> subprocess.Popen[str]:
    """Start a program of Dask's."""
    return subprocess.Popen(
        [sys.executable, "-m", "distributed.cli." + arguments[0], *arguments[1:]],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Give the address of a real scheduler with two workers, each a process of its own."""
    dask_is_here()
    folder = tmp_path_factory.mktemp("dask")
    with ExitStack() as stack:

        def run(*arguments: str) -> subprocess.Popen[str]:
            process = started(*arguments)
            stack.callback(process.wait, timeout=20)
            stack.callback(process.terminate)
            return process

        main = run("dask_scheduler", "--port", "0", "--no-dashboard", "--host", "127.0.0.1")
        lines = iter(main.stderr.readline, "")
        address = next(line.split()[-1] for line in lines if "Scheduler at:" in line)
        for number in range(2):
            run(
                "dask_worker",
                address,
                *("--nthreads", "1", "--no-dashboard", "--no-nanny", "--name", str(number)),
                *("--local-directory", str(folder)),
            )
        from distributed import Client

        with Client(address, set_as_default=False) as client:
            client.wait_for_workers(2, timeout=60)
        yield address


def test_a_cluster_gives_the_same_table(scheduler: str) -> None:
    """A real Dask scheduler with two workers finds cell by cell what a local run finds."""
    sweep = sweep_of(long_talk())
    there, here = sweep.run(Pool(address=scheduler)), sweep.run()
    assert there.cells == here.cells
    assert there.complete


def test_several_conversations_run_on_a_cluster(scheduler: str) -> None:
    """Whole conversations travel to the workers; each table comes back with its number."""
    sweeps = [sweep_of(long_talk(turns), strategy=TUTORIAL) for turns in (12, 16, 20)]
    there = dict(run_many(sweeps, Pool(address=scheduler)))
    assert sorted(there) == [0, 1, 2]
    assert all(there[n].cells == sweep.run().cells for n, sweep in enumerate(sweeps))


def test_processes_give_the_same_table() -> None:
    """Two processes of this machine find the same cells as one."""
    sweep = sweep_of(long_talk(), ("strategy", "layered,tutorial"), ("token_limit", "90,400"))
    here, there = sweep.run(), sweep.run(Pool(2))
    assert to_json(here) | {"seconds": 0} == to_json(there) | {"seconds": 0}


def test_what_fails_elsewhere_is_told_here() -> None:
    """An error of a worker is raised with its own words."""
    with pytest.raises(InvalidInput, match="no axis"):
        list(Pool(2).map(_fail, ["nonsense"]))


def _fail(name: str) -> None:
    from memory_core.lab.axes import Axis

    Axis(name, (1,))


@pytest.mark.parametrize("jobs", [0, -1, 10**6, 1.5, True])
def test_a_number_of_processes_makes_sense(jobs: object) -> None:
    """Numbers of processes that make no sense are refused."""
    with pytest.raises(InvalidInput):
        Pool(jobs)


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "nonsense://x", "../../etc/passwd"])
def test_an_address_where_nobody_answers_is_refused(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrong address is a clear message, not a traceback."""
    dask_is_here()
    monkeypatch.setattr("memory_core.lab.pool._CONNECT_SECONDS", 1)
    with pytest.raises(InvalidInput, match="No Dask scheduler"):
        list(Pool(address=address).map(len, ["a"]))


def test_without_dask_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster without Dask installed names the file to install from."""
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InvalidInput) as caught:
        list(Pool(address="tcp://127.0.0.1:8786").map(len, ["a"]))
    assert "requirements-cluster.txt" in caught.value.next_step
