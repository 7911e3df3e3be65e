"""Planning the window for a new limit against ``ChatMemoryBuffer.get``, at 1,000 messages."""

from __future__ import annotations

from llama_index.core.llms import ChatMessage
from llama_index.core.memory import ChatMemoryBuffer

from benchmarks.report import report, seconds
from memory_core.buffer import LLAMA_INDEX, History, plan_window
from memory_core.llama import from_chat
from memory_core.tokens import TokenCounter, load_encoding

MESSAGES = 1_000
LIMIT = 3_000


def main() -> None:
    """Measure both and check that they keep the same messages."""
    encoding = load_encoding("cl100k_base")
    counter = TokenCounter("cl100k_base")
    chats = [
        ChatMessage(
            role="user" if i % 2 == 0 else "assistant",
            content=f"Message {i}: " + "the ferry to the island leaves at noon and is late. " * 3,
        )
        for i in range(MESSAGES)
    ]
    history = History(counter.text)
    for chat in chats:
        message = from_chat(chat)
        history.append(message, counter.message(message))
    buffer = ChatMemoryBuffer.from_defaults(
        chat_history=chats,
        token_limit=LIMIT,
        tokenizer_fn=lambda text: encoding.encode(text, disallowed_special=()),
    )
    kept = buffer.get()
    limits = iter(range(LIMIT, LIMIT + 10**9))
    plan = plan_window(history, LIMIT, rule=LLAMA_INDEX)
    same = [chats[i] for i in plan.kept()] == kept
    slow = seconds(buffer.get, repeat=3)
    joined = seconds(
        lambda: plan_window(history, next(limits), rule=LLAMA_INDEX), repeat=9, number=200
    )
    exact = seconds(lambda: plan_window(history, next(limits)), repeat=9, number=200)
    print(f"ChatMemoryBuffer.get at {MESSAGES:,} messages: {slow * 1e3:,.0f} ms")
    print(f"plan_window, same rule, a new limit each time: {joined * 1e6:.1f} µs, same: {same}")
    print(f"plan_window, exact rule: {exact * 1e6:.1f} µs")
    if not same:
        raise SystemExit("the windows differ")
    report(
        "window",
        {"speedup_1k": slow / joined, "speedup_1k_exact": slow / exact},
        {"messages": MESSAGES, "limit": LIMIT, "kept": len(kept), "same_window": same},
    )
