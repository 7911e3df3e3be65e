"""The window: the same as ChatMemoryBuffer's under its rule, honest about tokens under ours."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core.llms import ChatMessage
from llama_index.core.memory import ChatMemoryBuffer

from memory_core.buffer import EXACT, LLAMA_INDEX, History, plan_window
from memory_core.llama import from_chat
from memory_core.messages import Message
from memory_core.tokens import TokenCounter, load_encoding

COUNTER = TokenCounter("cl100k_base")


def encode(text: str) -> list[int]:
    """Tokenise as the oracle is told to."""
    return load_encoding("cl100k_base").encode(text, disallowed_special=())


def history_of(messages: list[Message]) -> History:
    """Return the history of these messages with exact counts."""
    history = History(lambda text: len(encode(text)))
    for message in messages:
        history.append(message, COUNTER.message(message))
    return history


words = st.text(
    alphabet=st.sampled_from("ab éß日本\n\t .,!?/'<|>0123😀"), min_size=0, max_size=30
) | st.sampled_from(["", " ", "  x", "x  ", "\n", "<|endoftext|>", "it's", "/path", "a" * 60])
roles = st.sampled_from(["user", "assistant", "system", "tool"])


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    """Draw a history with whole, split, orphan and unanswered tool groups."""
    out: list[Message] = []
    for number in range(draw(st.integers(0, 12))):
        kind = draw(st.sampled_from(["user", "assistant", "system", "group", "orphan", "open"]))
        text = draw(words)
        call = {
            "block_type": "tool_call",
            "tool_call_id": f"c{number}",
            "tool_name": "look",
            "tool_kwargs": {"q": text},
        }
        if kind in ("group", "open"):
            out.append(Message("assistant", (call,)))
            if kind == "group":
                out.append(Message.of("tool", text, tool_call_id=f"c{number}"))
        elif kind == "orphan":
            out.append(Message.of("tool", text, tool_call_id="gone"))
        else:
            out.append(Message.of(kind, text))
    return out


@settings(max_examples=400, deadline=None)
@given(st.lists(st.tuples(roles, words), max_size=14), st.integers(1, 120), st.integers(0, 60))
def test_same_window_as_chat_memory_buffer(
    rows: list[tuple[str, str]], limit: int, initial: int
) -> None:
    """Under LlamaIndex's rule the kept messages are those ChatMemoryBuffer.get returns."""
    chats = [ChatMessage(role=role, content=text) for role, text in rows]
    oracle = ChatMemoryBuffer.from_defaults(
        chat_history=list(chats), token_limit=limit, tokenizer_fn=encode
    )
    plan = plan_window(
        history_of([from_chat(c) for c in chats]), limit, initial=initial, rule=LLAMA_INDEX
    )
    if initial > limit:
        with pytest.raises(ValueError, match="Initial token count"):
            oracle.get(initial_token_count=initial)
        assert list(plan.kept()) == []
        assert plan.over_limit
        return
    expected = oracle.get(initial_token_count=initial)
    assert [chats[i] for i in plan.kept()] == expected
    assert len(expected) == plan.total - plan.start


@settings(max_examples=300, deadline=None)
@given(conversations(), st.integers(0, 200), st.integers(0, 80))
def test_exact_window_laws(messages: list[Message], limit: int, initial: int) -> None:
    """Groups are whole, tokens are what is sent, the window is the longest that fits."""
    history = history_of(messages)
    plan = plan_window(history, limit, initial=initial, rule=EXACT)
    kept = list(plan.kept())
    calls = {c.id: i for i in kept for c in messages[i].tool_calls}
    answered = {messages[i].tool_call_id for i in kept if messages[i].role == "tool"}
    for i in kept:
        if messages[i].role == "tool":
            assert calls[messages[i].tool_call_id] < i
        if messages[i].tool_calls:
            whole = all(c.id in answered for c in messages[i].tool_calls)
            assert whole or i in plan.unanswered
    conversation = [i for i in kept if messages[i].role != "system"]
    if conversation:
        assert messages[conversation[0]].role == "user"
    assert plan.tokens == sum(COUNTER.message(messages[i]) for i in kept)
    if not plan.over_limit:
        assert plan.tokens + initial <= limit or not kept
    if plan.next_start >= 0 and not plan.over_limit:
        assert plan.next_needed > plan.next_left
        longer = plan_window(history, limit + plan.next_needed - plan.next_left, initial=initial)
        assert longer.start == plan.next_start
        shorter = plan_window(
            history, limit + plan.next_needed - plan.next_left - 1, initial=initial
        )
        assert shorter.start == plan.start


@settings(max_examples=100, deadline=None)
@given(conversations(), st.integers(0, 200))
def test_pinned_system_messages_stay(messages: list[Message], limit: int) -> None:
    """A system message in the history is in every window that has room for it at all."""
    plan = plan_window(history_of(messages), limit)
    system = [i for i, m in enumerate(messages) if m.role == "system"]
    if sum(COUNTER.message(messages[i]) for i in system) <= limit:
        assert all(plan.keeps(i) for i in system)


def _from_openai(raw: dict[str, object], style: str = "kwargs") -> Message:
    calls = raw.get("tool_calls")
    kwargs = {"tool_call_id": raw["tool_call_id"]} if "tool_call_id" in raw else {}
    if not calls:
        return Message.of(str(raw["role"]), str(raw["content"] or ""), **kwargs)
    if style == "kwargs":
        return Message(str(raw["role"]), (), {"tool_calls": calls})
    blocks = tuple(
        {
            "block_type": "tool_call",
            "tool_call_id": call["id"],
            "tool_name": call["function"]["name"],
            "tool_kwargs": json.loads(call["function"]["arguments"]),
        }
        for call in calls
    )
    return Message(str(raw["role"]), blocks)


@pytest.mark.parametrize("style", ["kwargs", "blocks"])
def test_c01_no_half_tool_groups(case, style: str) -> None:
    """C01: no result without its call, no call without its results, unless flagged."""
    data = case("C01")
    check = data["expected"]["check"]
    plans = {}
    for name, variant in data["input"]["variants"].items():
        messages = [_from_openai(m, style) for m in variant["messages"]]
        plans[name] = plan_window(history_of(messages), variant["token_limit"])
    first = plans["import_starts_with_tool"]
    assert set(first.kept()) >= set(check["import_starts_with_tool"]["must_keep"])
    assert not first.keeps(0)
    long = plans["last_result_too_long"]
    assert list(long.kept()) in ([0, 1, 2], [])
    assert long.over_limit
    cut = set(plans["parallel_calls_at_the_cut"].kept())
    assert cut >= {5, 6}
    assert cut & {1, 2, 3} in (set(), {1, 2, 3})
    assert plans["call_never_answered"].unanswered == (1,)


def test_c02_tool_arguments_count(case) -> None:
    """C02: names and arguments of tool calls count, about the same in both storage styles."""
    data = case("C02")
    check = data["expected"]["check"]
    totals = [
        sum(COUNTER.message(_from_openai(m, style)) for m in data["input"]["messages"])
        for style in ("kwargs", "blocks")
    ]
    assert min(totals) >= check["total_tokens_at_least"]
    assert max(totals) / min(totals) <= 1.2
    plan = plan_window(
        history_of([_from_openai(m) for m in data["input"]["messages"]]), check["limit"]
    )
    assert plan.over_limit


def test_c03_prefix_over_the_limit(case) -> None:
    """C03: a fixed part over the limit leaves no room, without an exception, and says so."""
    data = case("C03")
    prefix = COUNTER.message(Message.of("system", data["input"]["system_prompt"]))
    history = history_of([_from_openai(m) for m in data["input"]["messages"]])
    plan = plan_window(history, data["settings"]["token_limit"], initial=prefix)
    assert list(plan.kept()) == []
    assert plan.over_limit
    assert len(list(plan_window(history, prefix + 1000, initial=prefix).kept())) == 3


def test_c04_long_history(case) -> None:
    """C04: a thousand messages give the window the slow way would, starting with the user."""
    data = case("C04")
    made = data["input"]["generate"]
    messages = [
        Message.of(made["roles"][i % 2], made["text"].replace("{i}", str(i)))
        for i in range(made["count"])
    ]
    plan = plan_window(history_of(messages), data["settings"]["token_limit"], rule=LLAMA_INDEX)
    low, high = data["expected"]["check"]["kept_between"]
    assert low <= len(list(plan.kept())) <= high
    assert messages[plan.start].role == "user"


def test_planning_encodes_nothing_twice() -> None:
    """Planning for another limit encodes no text that was counted before."""
    counter = TokenCounter("cl100k_base")
    history = History(counter.text)
    for i in range(200):
        message = Message.of("user" if i % 2 == 0 else "assistant", f"message number {i} is here")
        history.append(message, counter.message(message))
    plan_window(history, 500, rule=LLAMA_INDEX)
    before = counter.encoded
    for limit in range(100, 2000, 100):
        plan_window(history, limit)
    assert counter.encoded == before


def test_a_hand_worked_window() -> None:
    """Three turns of 10, 20 and 30 tokens: 50 tokens hold the last two, 49 the last one."""
    history = History()
    for tokens in (10, 20, 30):
        history.append(Message.of("user", "q"), tokens)
    assert plan_window(history, 50).start == 1
    plan = plan_window(history, 49)
    assert (plan.start, plan.next_start, plan.next_needed, plan.next_left) == (2, 1, 20, 19)


@given(before=conversations(), after=conversations(), limit=st.integers(0, 80))
@settings(max_examples=60, deadline=None)
def test_a_copy_grows_apart(before: list[Message], after: list[Message], limit: int) -> None:
    """A copied history plans as one made anew, and what is added to it leaves the first alone."""
    first = history_of(before)
    plan_window(first, limit, rule=LLAMA_INDEX)
    grown = first.copy()
    for message in after:
        grown.append(message, COUNTER.message(message))
    for rule in (EXACT, LLAMA_INDEX):
        assert plan_window(grown, limit, rule=rule) == plan_window(
            history_of([*before, *after]), limit, rule=rule
        )
        assert plan_window(first, limit, rule=rule) == plan_window(
            history_of(before), limit, rule=rule
        )
