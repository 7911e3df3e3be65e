"""Let many programs write to one session at the same time, and count what is lost.

``python -m tests.race --processes 32 --writes 50 --backend sqlite`` (or ``files``,
``postgresql``, ``redis``). Each write appends a turn and counts up in the state, and tries again
when somebody else was first. The last line is a JSON object.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import sys
import tempfile
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

from memory_core.errors import StaleVersion
from memory_core.stores.protocols import SessionKey
from tests.core.stores.backends import NAMES, Backend, place
from tests.core.stores.making import start, turn

KEY = SessionKey("race", "session")


def write(backend: Backend, name: int, writes: int) -> None:
    """Append ``writes`` turns and count up as often in the state, each until it is saved."""
    store, rng = backend.open(), random.Random(name)
    for n in range(writes):
        while True:
            head = store.head(KEY)
            count = head.state.slots.get("count", 0) + 1
            state = replace(head.state, slots={"count": count}, version=head.state.version + 1)
            record = turn(head.turn + 1, f"{name}.{n}", position=head.messages, state=state)
            try:
                store.commit(KEY, record)
            except StaleVersion:
                time.sleep(rng.uniform(0, 0.05))
            else:
                break
        while True:
            state = store.state(KEY)
            count = state.slots["count"] + 1
            try:
                store.save_state(
                    KEY, replace(state, slots={"count": count}, version=state.version + 1)
                )
            except StaleVersion:
                time.sleep(rng.uniform(0, 0.05))
            else:
                break
    store.close()


def run(name: str, processes: int, writes: int) -> dict[str, object]:
    """Race and return what was found."""
    with tempfile.TemporaryDirectory() as folder, place(name, Path(folder)) as backend:
        store = backend.open()
        start(store, KEY)
        backend.close()
        began = time.perf_counter()
        fork = multiprocessing.get_context("fork")
        children = [fork.Process(target=write, args=(backend, n, writes)) for n in range(processes)]
        for child in children:
            child.start()
        for child in children:
            child.join()
        seconds = time.perf_counter() - began
        store = backend.open()
        messages = store.messages(KEY)
        wanted = {f"{p}.{n}" for p in range(processes) for n in range(writes)}
        texts = Counter(m.message.text for m in messages)
        in_order = [m.position for m in messages] == list(range(len(messages)))
        own_order = all(
            [t for t in (m.message.text for m in messages) if t.startswith(f"{p}.")]
            == [f"{p}.{n}" for n in range(writes)]
            for p in range(processes)
        )
        count = store.state(KEY).slots["count"]
        return {
            "backend": name,
            "processes": processes,
            "writes": writes,
            "failed": sum(child.exitcode != 0 for child in children),
            "lost_appends": len(wanted - set(texts)),
            "double_appends": sum(n - 1 for n in texts.values()),
            "lost_updates": 2 * processes * writes - count,
            "total_order": in_order and own_order,
            "seconds": round(seconds, 1),
        }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backend", choices=NAMES, default="sqlite")
    parser.add_argument("--processes", type=int, default=32)
    parser.add_argument("--writes", type=int, default=50)
    given = parser.parse_args()
    found = run(given.backend, given.processes, given.writes)
    print(json.dumps(found))
    losses = ("failed", "lost_appends", "double_appends", "lost_updates")
    sys.exit(any(found[name] for name in losses) or not found["total_order"])
