"""Appending one message and resuming a session, at 100 and 10,000 stored messages.

Each backend (SQLite, plain files; PostgreSQL and Redis where ``TEST_POSTGRES_URL`` and
``TEST_REDIS_URL`` name a server) against LlamaIndex's ``SimpleChatStore``, persisted after each
message, and its ``SQLAlchemyChatStore`` on a SQLite file. An append is one message with a trace,
on disk when it returns; resuming is reading all messages in a store opened anew. All are
measured in turn, burst by burst, so that a busy machine slows all of them alike.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import tempfile
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from llama_index.core.llms import ChatMessage
from llama_index.core.storage.chat_store import SimpleChatStore
from llama_index.core.storage.chat_store.sql import SQLAlchemyChatStore

from benchmarks.report import report
from memory_core.messages import Message, StoredMessage
from memory_core.stores.opening import open_store
from memory_core.stores.protocols import SessionInfo, SessionKey, Store, TurnRecord

SIZES = (100, 10_000)
SEEDED = 100  # messages a turn while a session is filled
T = TypeVar("T")

TEXT = "the ferry to the island leaves at noon and the tram is late again today"


class Ours:
    """One backend with a session of each size."""

    def __init__(self, url: str, folder: Path) -> None:
        self._url, self._folder = url, folder
        self._user = uuid.uuid4().hex
        self._store = self._open()
        self._next: dict[int, tuple[int, int]] = {}
        for size in SIZES:
            now = datetime.now(UTC)
            self._store.create(SessionInfo(self._key(size), "Benchmark", now, now))
            for number in range(1, size // SEEDED + 1):
                self._commit(size, number, (number - 1) * SEEDED, SEEDED)
            self._next[size] = (size // SEEDED + 1, size)

    def append(self, size: int) -> None:
        """Add one message."""
        number, position = self._next[size]
        self._commit(size, number, position, 1)
        self._next[size] = (number + 1, position + 1)

    def resume(self, size: int) -> None:
        """Read the session as a new program does."""
        store = self._open()
        store.head(self._key(size))
        assert len(store.messages(self._key(size))) >= size
        store.close()

    def window(self, size: int) -> None:
        """Read where the session stands and its newest 50 messages."""
        head = self._store.head(self._key(size))
        assert len(self._store.messages(self._key(size), first=head.messages - 50)) == 50

    def close(self) -> None:
        """Remove what was written."""
        self._store.erase_user(self._user)
        self._store.close()

    def _open(self) -> Store:
        return open_store(self._url, folder=self._folder)

    def _key(self, size: int) -> SessionKey:
        return SessionKey(self._user, f"size-{size}")

    def _commit(self, size: int, number: int, position: int, count: int) -> None:
        now = datetime.now(UTC)
        messages = tuple(
            StoredMessage(
                uuid.uuid4().hex, position + n, number, now, _message(position + n), 20, "o"
            )
            for n in range(count)
        )
        trace = f'{{"number":{number},"query":"{_text(0)}"}}'
        self._store.commit(self._key(size), TurnRecord(number, trace, messages))


class Simple:
    """``SimpleChatStore``, persisted after each message."""

    def __init__(self, folder: Path) -> None:
        self._stores = {size: SimpleChatStore() for size in SIZES}
        self._paths = {size: str(folder / f"simple-{size}.json") for size in SIZES}
        for size, store in self._stores.items():
            for n in range(size):
                store.add_message("k", _chat(n))
            store.persist(self._paths[size])

    def append(self, size: int) -> None:
        """Add one message and persist."""
        self._stores[size].add_message("k", _chat(1))
        self._stores[size].persist(self._paths[size])

    def resume(self, size: int) -> None:
        """Read the file."""
        found = SimpleChatStore.from_persist_path(self._paths[size])
        assert len(found.get_messages("k")) >= size


class Sql:
    """``SQLAlchemyChatStore`` on a SQLite file."""

    def __init__(self, folder: Path) -> None:
        self._uri = f"sqlite+aiosqlite:///{folder}/llama-index.db"
        self._loop = asyncio.new_event_loop()
        self._store = SQLAlchemyChatStore(table_name="chat", async_database_uri=self._uri)
        for size in SIZES:
            for start in range(0, size, SEEDED):
                batch = [_chat(start + n) for n in range(SEEDED)]
                self._run(self._store.add_messages(f"k{size}", batch))

    def append(self, size: int) -> None:
        """Add one message."""
        self._run(self._store.add_message(f"k{size}", _chat(1)))

    def resume(self, size: int) -> None:
        """Read the session as a new program does."""
        store = SQLAlchemyChatStore(table_name="chat", async_database_uri=self._uri)
        assert len(self._run(store.get_messages(f"k{size}"))) >= size
        self._run(store._async_engine.dispose())

    def close(self) -> None:
        """Let go of the file."""
        self._run(self._store._async_engine.dispose())
        self._loop.close()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(work)


def main() -> None:
    """Measure every backend in turn and report."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        ours = {
            backend: Ours(url, folder)
            for backend, url in (
                ("sqlite", f"sqlite:///{folder}/memory.db"),
                ("files", f"files://{folder}/files"),
                ("postgresql", os.environ.get("TEST_POSTGRES_URL", "")),
                ("redis", os.environ.get("TEST_REDIS_URL", "")),
            )
            if url
        }
        simple, sql = Simple(folder), Sql(folder)
        everybody = {**ours, "SimpleChatStore": simple, "SQLAlchemyChatStore": sql}
        times: dict[str, dict[str, float]] = defaultdict(dict)
        quick = {n: w for n, w in everybody.items() if n != "SimpleChatStore"}
        for what, work, rounds, burst in (
            ("append", {n: w.append for n, w in quick.items()}, 8, 20),
            ("append", {"SimpleChatStore": simple.append}, 6, 1),
            ("resume", {n: w.resume for n, w in everybody.items()}, 5, 1),
            ("newest 50", {n: w.window for n, w in ours.items()}, 5, 4),
        ):
            for (who, size), seconds in _in_turn(work, rounds, burst).items():
                times[who][f"{what} at {size}, ms"] = round(seconds * 1000, 3)
        for one in (*ours.values(), sql):
            one.close()
    for who, row in times.items():
        print(who)
        for name, value in row.items():
            print(f"  {name:24} {value:10.3f}")
    report("store", _ratios(times, list(ours)), dict(times))


def _in_turn(
    work: dict[str, Callable[[int], object]], rounds: int, burst: int
) -> dict[tuple[str, int], float]:
    """Return the median seconds of each action at each size, measured burst by burst in turn."""
    found: dict[tuple[str, int], list[float]] = defaultdict(list)
    for turn in range(rounds + 1):
        for who, action in work.items():
            for place in range(burst):
                for size in SIZES if place % 2 else SIZES[::-1]:
                    began = time.perf_counter()
                    action(size)
                    if turn:  # the first round warms up
                        found[who, size].append(time.perf_counter() - began)
    return {key: statistics.median(values) for key, values in found.items()}


def _ratios(times: dict[str, dict[str, float]], backends: list[str]) -> dict[str, float]:
    few, many = SIZES

    def ms(who: str, what: str, size: int) -> float:
        return times[who][f"{what} at {size}, ms"]

    ratios = {
        "append_growth_10k": ms("sqlite", "append", many) / ms("sqlite", "append", few),
        "speedup_over_simple_chat_store_10k": ms("SimpleChatStore", "append", many)
        / ms("sqlite", "append", many),
        "speedup_over_sqlalchemy_chat_store_10k": ms("SQLAlchemyChatStore", "append", many)
        / ms("sqlite", "append", many),
    }
    for who in backends:
        ratios[f"{who}_append_growth_10k"] = ms(who, "append", many) / ms(who, "append", few)
        for other in ("SimpleChatStore", "SQLAlchemyChatStore"):
            ratios[f"{who}_resume_10k_over_{other}"] = ms(who, "resume", many) / ms(
                other, "resume", many
            )
    return ratios


def _text(number: int) -> str:
    """Return a question, or an answer of eight sentences."""
    return f"Message {number}: {TEXT * (8 if number % 2 else 1)}"


def _message(number: int) -> Message:
    return Message.of("assistant" if number % 2 else "user", _text(number))


def _chat(number: int) -> ChatMessage:
    return ChatMessage(role="assistant" if number % 2 else "user", content=_text(number))
