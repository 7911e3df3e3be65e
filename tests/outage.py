"""Stop a real server in the middle of a chat, start it again, and count what is lost.

``python -m tests.outage --seconds 30 --backend redis`` (or ``postgresql``, ``chroma``). A chat of
turns goes on all the time; the server is killed, or with ``--freeze`` made to hang. Beside a
Chroma server the chat is one with the embedded model, whose memories are looked for afterwards.
The last line is a JSON object.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

from memory_core.config import EngineConfig
from memory_core.engine import open_engine
from memory_core.models.catalogue import ModelChoice
from memory_core.settings import MemorySettings
from memory_core.stores.buffered import BufferedStore
from memory_core.stores.encoding import Encoding
from memory_core.stores.opening import open_store
from memory_core.stores.protocols import SessionKey
from memory_core.stores.spool import Spool
from tests.core.stores.making import memory, start, turn
from tests.servers import Server, chroma_server, postgres_server, redis_server

KEY = SessionKey("outage", "session")
SERVERS = {"redis": redis_server, "postgresql": postgres_server}


class Chat:
    """A chat that saves a turn again and again, as a visitor would."""

    def __init__(self, store: BufferedStore, pause: float) -> None:
        self.store = store
        self.pause = pause
        self.said: list[str] = []
        self.errors: Counter[str] = Counter()
        self.slowest = 0.0
        self.banners: list[str] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._chat, daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End after the turn that is running."""
        self._over.set()
        self._thread.join()

    def _chat(self) -> None:
        while not self._over.wait(self.pause):
            began = time.perf_counter()
            try:
                head = self.store.head(KEY)
                number = head.turn + 1
                words = f"question {number}"
                self.store.commit(
                    KEY,
                    turn(number, words, "answer", position=head.messages,
                         records=(memory(f"r{number}", KEY, turn=number),)),
                )  # fmt: skip
                self.said.append(words)
                self.store.messages(KEY, first=max(0, head.messages - 50))
                self.store.sessions(KEY.user)
            except Exception as exc:
                self.errors[f"{type(exc).__name__}: {exc}"] += 1
            self.slowest = max(self.slowest, time.perf_counter() - began)
            banner = self.store.banner
            if banner and banner not in self.banners:
                self.banners.append(banner)


def run(
    server: Server, folder: Path, *, seconds: float, freeze: bool, timeout: float, pause: float
) -> dict[str, object]:
    """Chat through an outage and return what was found."""
    server.start()
    try:
        spool = Spool.open(folder / "spool", encoding=Encoding())
        store = BufferedStore(
            lambda: open_store(server.url, folder=folder), timeout=timeout, retry=0.2, spool=spool
        )
        start(store, KEY)
        _until(store.flush)
        chat = Chat(store, pause)
        chat.start()
        _until(lambda: len(chat.said) >= 5)
        before = len(chat.said)
        (server.freeze if freeze else server.stop)()
        _until(lambda: bool(store.banner))
        time.sleep(seconds)
        during = len(chat.said) - before
        (server.thaw if freeze else server.start)()
        _until(lambda: not store.banner)
        after = len(chat.said)
        _until(lambda: len(chat.said) >= after + 5)
        chat.stop()
        store.close()
        direct = open_store(server.url, folder=folder)
        texts = [m.message.text for m in direct.messages(KEY)]
        records = len(direct.records(KEY.user))
        direct.close()
    finally:
        server.stop()
    stored = texts[::2]
    return {
        "turns": len(chat.said),
        "during": during,
        "lost": len(set(chat.said) - set(stored)),
        "double": len(stored) - len(set(stored)),
        "in_order": stored == sorted(stored, key=lambda words: int(words.split()[1])),
        "memories": records,
        "errors": dict(chat.errors),
        "conflicts": len(store.conflicts),
        "slowest_seconds": round(chat.slowest, 2),
        "banner": chat.banners[:1],
    }


def run_vectors(server: Server, folder: Path, *, seconds: float, freeze: bool) -> dict[str, object]:
    """Chat through an outage of a Chroma server, recalling all the while."""
    server.start()
    said: list[str] = []
    errors: Counter[str] = Counter()
    slowest, degraded = 0.0, set()
    engine = open_engine(EngineConfig(folder=folder / "data", chroma_url=server.url))
    key = engine.create("local", "outage", settings={}).key
    chat = engine.chat(key, settings=MemorySettings(token_limit=600), model=ModelChoice())

    def say() -> None:
        nonlocal slowest
        number, began = len(said) + 1, time.perf_counter()
        try:
            for _ in chat.stream(f"Shelf {number} holds the jar of {number * 37} olives."):
                pass
        except Exception as exc:
            errors[f"{type(exc).__name__}: {exc}"] += 1
        said.append(f"Shelf {number} ")
        slowest = max(slowest, time.perf_counter() - began)
        degraded.update(chat.trace(chat.turns).degradations)

    try:
        for _ in range(5):
            say()
        (server.freeze if freeze else server.stop)()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            say()
            time.sleep(0.2)
        during = len(said) - 5
        (server.thaw if freeze else server.start)()
        engine.longterm.standing(key.user)  # reads the index anew, whenever it was last tried
        for _ in range(3):
            say()
        engine.longterm.catch_up(key.user)
        standing = engine.longterm.standing(key.user)
        texts = [m.message.text for m in engine.store.messages(key) if m.message.role == "user"]
        found = engine.longterm.recall(
            "Which shelf holds the jar of 259 olives?",
            user=key.user,
            session="another",
            settings=MemorySettings(),
        )
    finally:
        engine.close()
        server.stop()
    return {
        "turns": len(said),
        "during": during,
        "lost": sum(not any(text.startswith(words) for text in texts) for words in said),
        "double": len(texts) - len(set(texts)),
        "in_order": texts == sorted(texts, key=lambda text: int(text.split()[1])),
        "memories": standing.memories,
        "without_vector": standing.waiting + standing.pending,
        "orphans": standing.orphans,
        "recalled": any("Shelf 7 " in hit.text for hit in found.hits),
        "errors": dict(errors),
        "conflicts": 0,
        "slowest_seconds": round(slowest, 2),
        "banner": sorted(degraded)[-3:],
    }


def _until(true, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            raise RuntimeError("it never came to that")
        time.sleep(0.01)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    names = sorted((*SERVERS, "chroma"))
    parser.add_argument("--backend", choices=names, default="redis")
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--freeze", action="store_true", help="let the server hang")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        if given.backend == "chroma":
            chroma = chroma_server(Path(name) / "chroma")
            told = run_vectors(chroma, Path(name), seconds=given.seconds, freeze=given.freeze)
        else:
            found = SERVERS[given.backend](Path(name))
            if found is None:
                sys.exit(f"there is no {given.backend} server on this machine")
            told = run(found, Path(name), seconds=given.seconds, freeze=given.freeze,
                       timeout=5, pause=0.2)  # fmt: skip
    print(json.dumps({"backend": given.backend, "seconds": given.seconds, **told}))
    sys.exit(bool(told["lost"] or told["double"] or told["errors"] or told["conflicts"]))
