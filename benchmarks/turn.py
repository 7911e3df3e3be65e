"""A memory turn (two puts, one get, durably persisted) as the history grows, against LlamaIndex.

Model and embedding are excluded on both sides: ours runs without a long-term layer's search, the
other is ``ChatMemoryBuffer`` over ``SimpleChatStore`` persisted after each turn.
"""

from __future__ import annotations

import statistics
import tempfile
import time
import warnings
from pathlib import Path

from llama_index.core.llms import ChatMessage
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.storage.chat_store import SimpleChatStore

from benchmarks.report import report
from memory_core.memory import LayeredMemory
from memory_core.opening import open_session
from memory_core.settings import MemorySettings
from memory_core.stores.protocols import SessionKey
from memory_core.tokens import TokenCounter, load_encoding

TEXT = "the ferry to the island leaves at noon and the tram is late again today, "
LIMIT = 3_000


def _message(role: str, number: int) -> ChatMessage:
    return ChatMessage(role=role, content=f"Message {number}: {TEXT * 3}".strip())


def _ours(folder: Path, sizes: tuple[int, ...], repeat: int) -> dict[int, float]:
    """Return the median seconds of a turn at each number of stored messages, in one session."""
    settings = MemorySettings(
        token_limit=LIMIT, context_window=8192, recall=False, remember_turns=False, summarise=False
    )
    times = {}
    for size in sizes:
        key = SessionKey("local", f"bench-{size}")
        session = open_session(folder, key, counter=TokenCounter(), settings=settings)
        memory = LayeredMemory(session)
        for start in range(0, size, 50):  # seeded 50 messages a turn
            memory.put_messages(
                [_message("user" if i % 2 == 0 else "assistant", start + i) for i in range(50)]
            )
        rounds = []
        for n in range(repeat):
            question, answer = _message("user", size + 2 * n), _message("assistant", size + 2 * n)
            began = time.perf_counter()
            memory.put(question)
            memory.get()
            memory.put(answer)
            rounds.append(time.perf_counter() - began)
        times[size] = statistics.median(rounds)
    return times


def _theirs(folder: Path, size: int, repeat: int) -> float:
    encoding = load_encoding("cl100k_base")
    store = SimpleChatStore()
    buffer = ChatMemoryBuffer.from_defaults(
        chat_store=store,
        chat_store_key="k",
        token_limit=LIMIT,
        tokenizer_fn=lambda text: encoding.encode(text, disallowed_special=()),
    )
    for i in range(size):
        store.add_message("k", _message("user" if i % 2 == 0 else "assistant", i))
    rounds = []
    for n in range(repeat):
        began = time.perf_counter()
        buffer.put(_message("user", size + 2 * n))
        buffer.get()
        buffer.put(_message("assistant", size + 2 * n))
        store.persist(str(folder / "store.json"))
        rounds.append(time.perf_counter() - began)
    return statistics.median(rounds)


def main() -> None:
    """Measure both and print how they grow."""
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ours = _ours(folder, (100, 1_000, 10_000), repeat=25)
        theirs = _theirs(folder, 1_000, repeat=3)
    for size, spent in ours.items():
        print(f"LayeredMemory turn at {size:,} stored messages: {spent * 1e3:.2f} ms")
    print(f"ChatMemoryBuffer + SimpleChatStore turn at 1,000: {theirs * 1e3:,.0f} ms")
    report(
        "turn",
        {"growth_10k": ours[10_000] / ours[100], "speedup_1k": theirs / ours[1_000]},
        {"ours_ms": {k: v * 1e3 for k, v in ours.items()}, "theirs_ms": theirs * 1e3},
    )
