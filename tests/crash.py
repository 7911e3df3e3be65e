"""Kill a program again and again while it saves turns, and look at what is left.

``python -m tests.crash --kills 200 --backend sqlite`` (or ``files``, ``postgresql``, ``redis``),
with ``--vectors`` also with an embedded Chroma beside it. A child saves turns (two messages, a
new state, a memory), embeds the memory, and reports each turn it was told is saved; after a
random time it is killed with ``SIGKILL``. A new program then checks that every reported turn is
there, that every turn that is there is whole, and that after catching up the index holds exactly
the vectors of the memories. The last line is a JSON object.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import select
import signal
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from memory_core.stores.checks import FORGOTTEN
from memory_core.stores.protocols import SessionKey, Store
from tests.core.stores.backends import NAMES, Backend, place
from tests.core.stores.making import memory, start, turn

KEY = SessionKey("crash", "session")


def save_turns(store: Store, report: int, vectors: Path | None) -> None:
    """Save turn after turn, writing the number of each to a pipe once it is acknowledged."""
    index = None if vectors is None else long_term(store, vectors)[0]
    os.write(report, b"0\n")  # ready
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
        if index is not None:
            index.catch_up(KEY.user)


def long_term(store: Store, folder: Path):
    """Return the long-term memory over an embedded Chroma, and that database."""
    from memory_core.longterm import LongTermMemory
    from memory_core.stores.vectors.chroma import open_chroma
    from memory_core.testing import FrozenClock, HashEmbedder

    database = open_chroma(path=folder)
    memory = LongTermMemory(
        vectors=database, embedder=HashEmbedder(), store=store, clock=FrozenClock()
    )
    return memory, database


def wrong_vectors(store: Store, folder: Path) -> list[str]:
    """Return what is wrong with the index once a new program has caught up, in words."""
    from memory_core.records import vector_id

    long_term_memory, database = long_term(store, folder)
    long_term_memory.catch_up(KEY.user)
    found = [i for d in database.collections(KEY.user) for i in database.opened(d.name).ids()]
    wanted = {vector_id(r.id) for r in store.records(KEY.user) if r.status != FORGOTTEN}
    wrong = []
    if len(found) > len(set(found)) or set(found) - wanted:
        wrong.append(f"orphan vectors: {sorted(set(found) - wanted)[:3]}")
    if wanted - set(found):
        wrong.append(f"vectors are missing: {sorted(wanted - set(found))[:3]}")
    if store.records(KEY.user, pending=True):
        wrong.append("memories still wait")
    return wrong


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


def kill_once(backend: Backend, rng: random.Random, vectors: Path | None) -> int:
    """Let a child save turns for a while, kill it, return its last acknowledged turn."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        try:
            save_turns(backend.open(), writing, vectors)
        finally:
            os._exit(1)
    os.close(writing)
    if rng.random() < 0.8:  # else it may be killed while it starts
        select.select([reading], [], [], 60)
    time.sleep(rng.uniform(0.005, 0.25 if vectors is None else 1.5))
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    with os.fdopen(reading) as file:
        reported = file.read().split()
    if not os.WIFSIGNALED(status):
        raise SystemExit(f"the child ended by itself after {reported[-1:]}")
    return int(reported[-1]) if reported else 0


def look(backend: Backend, acknowledged: int, vectors: Path | None) -> list[str]:
    """Return what is wrong after a kill, as a program of its own sees it."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.close(reading)
            store = backend.open()
            wrong = torn_parts(store, acknowledged)
            if vectors is not None:
                wrong += wrong_vectors(store, vectors)
        except BaseException as exc:
            wrong = [f"looking failed: {type(exc).__name__}: {exc}"]
        os.write(writing, json.dumps(wrong).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as file:
        found = json.load(file)
    os.waitpid(child, 0)
    return found


def run(name: str, kills: int, seed: int, *, vectors: bool = False) -> dict[str, object]:
    """Kill ``kills`` times and return what was found."""
    rng = random.Random(seed)
    lost = torn = orphans = last = 0
    details: list[str] = []
    with tempfile.TemporaryDirectory() as folder, place(name, Path(folder)) as backend:
        index = Path(folder) / "vectors" if vectors else None
        start(backend.open(), KEY)
        backend.close()
        for _ in range(kills):
            last = max(last, kill_once(backend, rng, index))
            wrong = look(backend, last, index)
            lost += any("acknowledged" in w for w in wrong)
            orphans += any("vectors" in w or "wait" in w for w in wrong)
            torn += bool(wrong)
            details += wrong[:3]
            if wrong:
                break
    return {
        "backend": name,
        "kills": kills,
        "turns": last,
        "lost": lost,
        "torn": torn,
        "orphans": orphans,
        "details": details,
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backend", choices=NAMES, default="sqlite")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--vectors", action="store_true", help="with an embedded Chroma")
    parser.add_argument("--seed", type=int, default=None)
    given = parser.parse_args()
    if given.vectors:
        import memory_core.stores.vectors.chroma
        import memory_core.testing  # noqa: F401  imported once, not in each child
    seed = random.randrange(2**32) if given.seed is None else given.seed
    found = {**run(given.backend, given.kills, seed, vectors=given.vectors), "seed": seed}
    print(json.dumps(found))
    sys.exit(bool(found["lost"] or found["torn"]))
