"""Kill a program again and again while it saves turns, and look at what is left.

``python -m tests.crash --kills 200 --backend sqlite`` (or ``files``, ``postgresql``, ``redis``).
A child saves turns (two messages, a new state, a memory) and reports each one it was told is
saved; after a random time it is killed with ``SIGKILL``. A new program then checks that every
reported turn is there, and that every turn that is there is whole. The last line is a JSON object.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from memory_core.stores.protocols import SessionKey, Store
from tests.core.stores.backends import NAMES, Backend, place
from tests.core.stores.making import memory, start, turn

KEY = SessionKey("crash", "session")


def save_turns(store: Store, report: int) -> None:
    """Save turn after turn, writing the number of each to a pipe once it is acknowledged."""
    while True:
        head = store.head(KEY)
        number = head.turn + 1
        state = replace(head.state, slots={"turn": number}, version=head.state.version + 1)
        replaces = number - 1 if number % 7 == 0 else 0
        record = turn(
            number,
            f"question {number}",
            f"answer {number}" * random.choice((1, 1, 1, 2000)),
            position=head.messages,
            state=state,
            supersedes=replaces,
            title=f"title {number}" if number % 5 == 0 else "",
            records=(memory(f"r{number}", KEY, turn=number),),
        )
        store.commit(KEY, record)
        os.write(report, f"{number}\n".encode())


def torn_parts(store: Store, acknowledged: int) -> list[str]:
    """Return what is wrong with a session whose writer was killed, in words."""
    wrong = []
    head = store.head(KEY)
    if head.turn < acknowledged:
        wrong.append(f"turn {acknowledged} was acknowledged, the newest is {head.turn}")
    turns = store.turns(KEY)
    if [t.number for t in turns] != list(range(1, head.turn + 1)):
        wrong.append("turns are missing")
    messages = store.messages(KEY, superseded=True)
    if [m.position for m in messages] != list(range(head.messages)):
        wrong.append("positions are missing")
    for number in range(1, head.turn + 1):
        texts = [m.message.text for m in messages if m.turn == number]
        whole = len(texts) == 2 and texts[0] == f"question {number}"
        if not whole or set(texts[1].split("answer ")) != {"", str(number)}:
            wrong.append(f"turn {number} is torn")
    replaced = {n - 1 for n in range(7, head.turn + 1, 7)}
    if {t.number for t in turns if t.superseded_by} != replaced:
        wrong.append("a replaced turn is not marked")
    active = [m for m in messages if m.turn not in replaced]
    if store.session(KEY).messages != len(active) or len(store.messages(KEY)) != len(active):
        wrong.append("the counters are wrong")
    if (head.state.version, head.state.slots.get("turn", 0)) != (head.turn, head.turn):
        wrong.append("the state is of another turn")
    records = {r.id: r.status for r in store.records(KEY.user)}
    forgotten = {f"r{n}" for n in replaced}
    if set(records) != {f"r{n}" for n in range(1, head.turn + 1)}:
        wrong.append("memories are missing")
    elif {i for i, status in records.items() if status == "forgotten"} != forgotten:
        wrong.append("a memory has the wrong status")
    return wrong


def kill_once(backend: Backend, pause: float) -> int:
    """Let a child save turns for ``pause`` seconds, kill it, return its last acknowledged turn."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        try:
            save_turns(backend.open(), writing)
        finally:
            os._exit(1)
    os.close(writing)
    time.sleep(pause)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    with os.fdopen(reading) as file:
        reported = file.read().split()
    if not os.WIFSIGNALED(status):
        raise SystemExit(f"the child ended by itself after {reported[-1:]}")
    return int(reported[-1]) if reported else 0


def run(name: str, kills: int, seed: int) -> dict[str, object]:
    """Kill ``kills`` times and return what was found."""
    rng = random.Random(seed)
    lost, torn, last, details = 0, 0, 0, []
    with tempfile.TemporaryDirectory() as folder, place(name, Path(folder)) as backend:
        start(backend.open(), KEY)
        backend.close()
        for _ in range(kills):
            last = max(last, kill_once(backend, rng.uniform(0.005, 0.25)))
            wrong = torn_parts(backend.open(), last)
            backend.close()
            lost += any("acknowledged" in w for w in wrong)
            torn += any("acknowledged" not in w for w in wrong)
            details += wrong[:3]
            if wrong:
                break
    return {
        "backend": name,
        "kills": kills,
        "turns": last,
        "lost": lost,
        "torn": torn,
        "details": details,
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backend", choices=NAMES, default="sqlite")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=None)
    given = parser.parse_args()
    seed = random.randrange(2**32) if given.seed is None else given.seed
    found = {**run(given.backend, given.kills, seed), "seed": seed}
    print(json.dumps(found))
    sys.exit(bool(found["lost"] or found["torn"]))
