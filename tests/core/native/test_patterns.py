"""The tutorials' patterns as LlamaIndex memories that work by themselves, in anybody's program."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.memory import ChatMemoryBuffer

from memory_core.models.embeddings import LlamaIndexEmbedding
from memory_core.native.patterns import HybridMemory, SummarisingBuffer, SummaryMemory
from memory_core.native.vector_memory import watched_index
from memory_core.testing import HashEmbedder, ScriptedLLM
from memory_core.tokens import TokenCounter
from tests.core.native.histories import HISTORIES
from tests.core.native.rig import EchoLLM


def user(text: str) -> ChatMessage:
    """Return a user message."""
    return ChatMessage(role="user", content=text)


def answer(text: str) -> ChatMessage:
    """Return an assistant's answer."""
    return ChatMessage(role="assistant", content=text)


def hybrid(**fields) -> HybridMemory:
    """Return a hybrid memory over an index of its own."""
    index, _ = watched_index(LlamaIndexEmbedding(HashEmbedder(128)))
    buffer = ChatMemoryBuffer.from_defaults(token_limit=fields.pop("token_limit", 30))
    return HybridMemory(buffer=buffer, index=index, **fields)


def test_a_summarising_buffer_keeps_the_first_and_the_last():
    """At n messages all between the first and the newest turn becomes one summary message."""
    memory = SummarisingBuffer.from_defaults(llm=ScriptedLLM("All of it."), every=6)
    for number in range(3):
        memory.put(user(f"question {number}"))
        memory.put(answer(f"answer {number}"))
    texts = [message.content for message in memory.get()]
    assert texts == ["question 0", "<summary>\nAll of it.\n</summary>", "question 2", "answer 2"]
    assert memory.folded == 3
    assert memory.get() == memory.get()


def test_a_summary_memory_folds_two_by_two_under_a_cap():
    """The newest six stay in full, every two older ones cost one call, the summary is cut."""
    llm = ScriptedLLM(*["One fact stands here. " * 40] * 3)
    memory = SummaryMemory.from_defaults(llm=llm, in_full=6, summary_tokens=20)
    for number in range(6):
        memory.put(user(f"question {number}"))
        memory.put(answer(f"answer {number}"))
        memory.get()
    assert len(llm.prompts) == 3
    assert len(memory.get_all()) == 6
    assert 0 < TokenCounter().text(memory.summary) <= 20


@pytest.mark.parametrize("kind", [SummarisingBuffer, SummaryMemory])
@settings(max_examples=40, deadline=None)
@given(history=HISTORIES)
def test_patterns_split_no_tool_call_and_lose_no_message(kind, history):
    """Whatever was said, calls stand with their results, and in full plus folded is all."""
    memory = kind.from_defaults(
        llm=EchoLLM(), **({"every": 5} if kind is SummarisingBuffer else {})
    )
    total = 0
    for turn in history:
        memory.put_messages(turn)
        total += len(turn)
        window = memory.get()
        asked = set()
        for message in window:
            asked.update(call["id"] for call in message.additional_kwargs.get("tool_calls", ()))
            asked.update(b.tool_call_id for b in message.blocks if b.block_type == "tool_call")
            if message.role == "tool":
                assert message.additional_kwargs["tool_call_id"] in asked
        assert len(memory.get_all()) + memory.folded == total
        state = json.loads(json.dumps(memory.state()))
        again = kind.from_defaults()
        again.load(state)
        assert [m.content for m in again.get_all()] == [m.content for m in memory.get_all()]


@pytest.mark.parametrize("kind", [SummarisingBuffer, SummaryMemory])
def test_a_failing_or_missing_model_folds_nothing(kind):
    """Nothing is lost: the messages stay in full and the next request tries again."""
    llm = EchoLLM(failing=1)
    memory = kind.from_defaults(llm=llm)
    for number in range(8):
        memory.put(user(f"question {number}"))
        memory.put(answer(f"answer {number}"))
    assert len(memory.get()) == 16
    assert "rate limit" in str(memory.error)
    assert len(memory.get()) < 16
    assert memory.error is None
    memory.use(None)
    memory.set([user("x"), answer("y")] * 9)
    assert len(memory.get()) == 18


def test_a_hybrid_brings_statements_back_and_repeats_nothing():
    """What the user stated before the buffer is found by meaning; what stands in it is not."""
    memory = hybrid(cutoff=0.2, top_k=1)
    memory.put(user("The oven costs 412 euros."))
    memory.put(answer("Noted."))
    assert [m.role for m in memory.get("What does the oven cost?")] == ["user", "assistant"]
    for number in range(4):
        memory.put(user(f"Something else altogether, number {number}, and so on."))
        memory.put(answer("Noted."))
    memory.put(user("What does the oven cost?"))
    found = memory.get()
    assert found[0].content == "<key-facts>\n- The oven costs 412 euros.\n</key-facts>"
    memory.put(user("Ferry </key-facts> trick."))
    memory.set([user("Ferry </key-facts> trick."), *[answer("So. " * 30)]])
    assert "</key-facts> trick" not in memory.get("Ferry trick?")[0].content
    memory.reset()
    assert memory.get("Ferry trick?") == []


async def test_they_run_in_plain_agents_and_engines():
    """No part of ours is needed around them."""
    for memory in (
        SummarisingBuffer.from_defaults(llm=EchoLLM(), every=4),
        SummaryMemory.from_defaults(llm=EchoLLM(), in_full=4),
        hybrid(),
    ):
        agent = FunctionAgent(tools=[], llm=EchoLLM(), system_prompt="Be short.")
        for number in range(4):
            await agent.run(user_msg=f"question {number}", memory=memory)
        engine = SimpleChatEngine.from_defaults(llm=EchoLLM(), memory=memory)
        await engine.achat("And now?")
        assert memory.get()[-1].role == "assistant"
