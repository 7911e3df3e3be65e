"""What time travel, the fate ledger and why-not cost at 5,000 messages against 50.

A session is played into the real store and long-term memory, then the core's part of each page
is measured: one turn of the slider (its trace read and compared with the turn before), a 60 x 60
view of the ledger with a life story, one why-not with its smallest changes. A growth of 1 means
that the length of the session does not matter.
"""

from __future__ import annotations

import logging
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from llama_index.core.llms import ChatMessage

from benchmarks.report import report, seconds
from memory_core.config import EngineConfig
from memory_core.contents import Contents
from memory_core.engine import Engine, open_engine
from memory_core.fate import MESSAGE
from memory_core.gates import Item
from memory_core.lab.past import PastMemories
from memory_core.lab.replay import Replay, ReplayedTurn
from memory_core.ledger import Ledger
from memory_core.memory import LayeredMemory
from memory_core.models.catalogue import ModelChoice
from memory_core.models.offline.llm import OfflineLLM
from memory_core.recording import RecordingLLM
from memory_core.session import Session, utc_now
from memory_core.settings import MemorySettings
from memory_core.stores.protocols import SessionInfo, SessionKey
from memory_core.stories import tell
from memory_core.tokens import TokenCounter
from memory_core.trace import TurnTrace
from memory_core.turn_diff import TurnView, compare_turns
from memory_core.whynot import why_not

SIZES = (50, 5_000)
SETTINGS = MemorySettings(token_limit=600)  # full at 50 messages already
RECALLED = 12  # newest turns played with long-term memory; the rest is indexed in batches
BACK = 40  # how far back the message of the why-not was said


@dataclass
class Played:
    """A session of some length, open, with its ledger and its newest turn ready to replay."""

    session: Session
    ledger: Ledger
    turn: ReplayedTurn
    opened: float


def play(engine: Engine, size: int) -> Played:
    """Play a session of ``size`` messages, the newest turns with all layers at work."""
    store, key = engine.store, SessionKey("local", f"inspect-{size}")
    now = utc_now()
    kept = {"memory": SETTINGS.to_json(), "model": ModelChoice().to_json()}
    store.create(SessionInfo(key, "inspect", now, now, settings=kept))
    session = Session(key=key, counter=TokenCounter(), settings=SETTINGS, store=store)
    memory = LayeredMemory(session)
    memory.watch(RecordingLLM(OfflineLLM(), recorder=memory.recorder(), translate=_as_is))
    turns = size // 2
    for number in range(turns):
        if number == turns - RECALLED:
            _remember(engine, session)
            session.longterm = engine.longterm
        memory.put(ChatMessage(role="user", content=_question(number)))
        memory.get()
        memory.put(ChatMessage(role="assistant", content=f"Ferry {number % 113} it is, at noon."))
    memories = PastMemories(store.records("local"), embed=engine.embedder.embed)
    replay = Replay.read(store, key, memories=memories)
    ledger = Ledger.fold(replay.trace(number) for number in replay.turns)
    began = time.perf_counter()
    turn = replay.at(turns)
    return Played(session, ledger, turn, time.perf_counter() - began)


def _question(number: int) -> str:
    return f"Message {number}: does ferry {number % 113} leave the island at {number % 24}:30?"


def _as_is(exc: Exception) -> Exception:
    return exc


def _remember(engine: Engine, session: Session) -> None:
    """Write the memories of all turns so far, and index them in one go."""
    by_turn: dict[int, list] = {}
    for stored in session.messages:
        by_turn.setdefault(stored.turn, []).append(stored)
    for turn, messages in by_turn.items():
        records, _ = engine.longterm.plan_turn(
            user="local", session=session.key.session, turn=turn, messages=messages, now=utc_now()
        )
        engine.store.put_records(records)
    engine.longterm.catch_up("local")


def slide(played: Played) -> None:
    """Read turns as the slider does: trace, what it holds, what differs from the turn before."""
    last = len(played.ledger.columns)
    for number in range(last - 8, last):
        before, after = (_view(played, n) for n in (number - 1, number))
        compare_turns(before, after)
        Contents.of(after.trace.assembly)


def _view(played: Played, number: int) -> TurnView:
    session = played.session
    row = session.store.turns(session.key, first=number, last=number)[0]
    trace = _trace(session, row.trace)
    state = session.store.state(session.key, trace.state_version)
    return TurnView(trace, state, played.ledger.columns[number - 1].summary)


def _trace(session: Session, text: str) -> TurnTrace:
    from memory_core.trace import trace_from_json

    return trace_from_json(text, session.find)


def look(played: Played) -> None:
    """Draw the newest 60 x 60 cells of the ledger and tell the story of a message in them."""
    rows, columns = len(played.ledger.tracks[MESSAGE]), len(played.ledger.columns)
    played.ledger.view(MESSAGE, range(rows - 60, rows), range(columns - 60, columns))
    stored = played.session.messages[-BACK]
    tell(played.ledger, MESSAGE, stored.id, stored)


def ask(played: Played) -> None:
    """Ask why an older message is not in the newest prompt, with the changes that let it in."""
    turn, index = played.turn, len(played.turn.layers.messages) - BACK
    item = Item(MESSAGE, turn.layers.messages[index].id, index)
    answer = why_not(item, settings=turn.settings, plan=turn.plan, history=turn.layers.history)
    assert answer.place or answer.changes


def measure(played: dict[int, Played], rounds: int) -> dict[int, dict[str, float]]:
    """Return the seconds of each at each size: the best of rounds taken in turns.

    What else the machine does slows all of them, at some times more than at others.
    """
    actions: dict[str, Callable[[Played], None]] = {"slider": slide, "ledger": look, "why_not": ask}
    times = {size: dict.fromkeys(actions, float("inf")) for size in played}
    for name, action in actions.items():
        for _ in range(rounds + 1):  # the first fills what is cached once per process
            for size, session in played.items():
                took = seconds(lambda a=action, s=session: a(s), repeat=1)
                times[size][name] = min(times[size][name], took)
    return times


def main() -> None:
    """Measure and report."""
    logging.disable(logging.INFO)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        engines = {
            size: open_engine(EngineConfig(folder=Path(folder) / str(size))) for size in SIZES
        }
        played = {size: play(engine, size) for size, engine in engines.items()}
        times = measure(played, rounds=20)
    small, large = (times[size] for size in SIZES)
    for name in small:
        print(f"{name:8} {small[name] * 1000:8.2f} ms at 50, {large[name] * 1000:8.2f} ms at 5,000")
    report(
        "inspect",
        {f"{name}_growth_5k": large[name] / small[name] for name in small},
        {
            "milliseconds": {
                str(size): {name: round(t * 1000, 3) for name, t in times[size].items()}
                for size in SIZES
            },
            "opening a turn to ask": {
                str(size): round(played[size].opened * 1000, 1) for size in SIZES
            },
        },
    )
