"""Where the work of a sweep runs: in this process, in several, or on a cluster by its address.

One function and a list of work items, results as they are ready. Several processes are joblib's
(loky); a cluster is a Dask scheduler that joblib's own backend talks to, for which
``requirements-cluster.txt`` is needed here and, with this package, on the workers. Items and
results travel by pickle: give the address of a scheduler you trust.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeVar

from memory_core.errors import InvalidInput

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

MOST_JOBS = 256
_CONNECT_SECONDS = 10


@dataclass(frozen=True)
class Pool:
    """``jobs`` processes of this machine, or all workers of the Dask scheduler at ``address``.

    Raises :class:`InvalidInput` for a number of jobs that makes no sense.
    """

    jobs: int = 1
    address: str = ""

    def __post_init__(self) -> None:
        if type(self.jobs) is not int or not 1 <= self.jobs <= MOST_JOBS:
            raise InvalidInput(
                f"A sweep runs on 1 to {MOST_JOBS} processes, not {self.jobs!r:.40}."
            )

    @property
    def here(self) -> bool:
        """Whether all work is done in this process."""
        return self.jobs == 1 and not self.address

    @property
    def parts(self) -> int:
        """In how many parts work is best cut: one here, a few a process elsewhere."""
        if self.address:
            return 16
        return 4 * self.jobs if self.jobs > 1 else 1

    def map(
        self, function: Callable[[_Item], _Result], items: Sequence[_Item]
    ) -> Iterator[_Result]:
        """Yield the function's results, each as soon as it is ready, in any order.

        The function must be importable by name elsewhere. Raises what it raises, and
        :class:`InvalidInput` when no scheduler answers at the address.
        """
        if self.here:
            yield from map(function, items)
            return
        from joblib import Parallel, delayed, parallel_config

        with ExitStack() as stack:
            if self.address:
                client = stack.enter_context(_client(self.address))
                stack.enter_context(parallel_config(backend="dask", client=client))
                run = Parallel(return_as="generator_unordered", pre_dispatch="all", batch_size=1)
            else:
                run = Parallel(self.jobs, return_as="generator_unordered", batch_size=1)
            yield from run(delayed(function)(item) for item in items)


def _client(address: str) -> Any:
    try:
        distributed: Any = import_module("distributed")
    except ImportError as exc:
        raise InvalidInput(
            "A cluster needs Dask, which is not installed.",
            next_step="pip install -r requirements-cluster.txt, or run the sweep on this machine.",
        ) from exc
    try:
        return distributed.Client(address, timeout=_CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError) as exc:
        raise InvalidInput(
            f"No Dask scheduler answers at {address!r:.100}: {exc}",
            next_step="Start one with `dask scheduler`, or correct the address (tcp://host:8786).",
        ) from exc
