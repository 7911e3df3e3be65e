"""The fakes that ship with the package keep what they promise."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.llms import ChatMessage
from llama_index.core.memory import Memory
from llama_index.core.tools import FunctionTool

from memory_core.models.failures import usage_of
from memory_core.testing import Call, FrozenClock, HashEmbedder, ScriptedLLM
from memory_core.trace import Usage

HELLO = [ChatMessage(role="user", content="Hello")]


async def test_a_script_is_followed_in_order():
    """Replies, errors and tool calls come as queued, however they are asked for."""
    llm = ScriptedLLM("one", RuntimeError("two"), "three four")
    llm.queue(Call("clock", {"zone": "UTC"}))
    assert llm.chat(HELLO).message.content == "one"
    with pytest.raises(RuntimeError, match="two"):
        await llm.achat(HELLO)
    assert [p.delta for p in llm.stream_chat(HELLO)] == ["three ", "four"]
    pieces = [p async for p in await llm.astream_chat(HELLO)]
    (call,) = llm.get_tool_calls_from_response(pieces[-1])
    assert (call.tool_name, call.tool_kwargs) == ("clock", {"zone": "UTC"})


def test_prompts_are_kept():
    """Every prompt is kept with its tools, also one that failed."""
    tool = FunctionTool.from_defaults(fn=lambda: "noon", name="clock", description="Tell the time.")
    llm = ScriptedLLM(ValueError("no"), "yes")
    with pytest.raises(ValueError, match="no"):
        llm.chat(HELLO)
    llm.chat_with_tools([tool], chat_history=HELLO)
    first, second = llm.prompts
    assert [m.text for m in first.messages] == ["Hello"]
    assert first.tools == ()
    assert second.tools[0]["function"]["name"] == "clock"


def test_running_out_of_script_is_noticed():
    """A call that nobody planned for fails the test that makes it."""
    with pytest.raises(AssertionError, match="reply 1"):
        ScriptedLLM().chat(HELLO)


def test_usage_is_reported_as_a_provider_does():
    """With a usage, whole and streamed replies carry it."""
    usage = {"prompt_tokens": 7, "completion_tokens": 2}
    llm = ScriptedLLM("one two", "one two", usage=usage)
    assert usage_of(llm.chat(HELLO)) == Usage(7, 2)
    *rest, last = llm.stream_chat(HELLO)
    assert usage_of(last) == Usage(7, 2)
    assert usage_of(rest[0]) is None


async def test_an_agent_runs_on_a_script():
    """A function agent calls a scripted tool and ends with the scripted reply."""
    clock = FunctionTool.from_defaults(
        fn=lambda: "noon", name="clock", description="Tell the time."
    )
    llm = ScriptedLLM((Call("clock", {}), Call("clock", {})), "It is noon.")
    reply = await FunctionAgent(tools=[clock], llm=llm).run("Time?", memory=Memory.from_defaults())
    assert str(reply) == "It is noon."
    assert [m.role for m in llm.prompts[-1].messages][-2:] == ["tool", "tool"]


def test_hash_vectors_are_stable_and_tell_texts_apart():
    """Equal texts are equal, shared words are near, lengths are 1, and texts are counted."""
    embedder = HashEmbedder(32)
    vectors = embedder.embed(["red oven", "red cake", "blue sky", "Red, oven!"])
    near = vectors @ vectors.T
    assert vectors.shape == (4, 32)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    assert near[0, 3] == pytest.approx(1)
    assert near[0, 1] > near[0, 2]
    assert np.array_equal(HashEmbedder(32).embed(["red oven"])[0], vectors[0])
    assert embedder.embedded == 4
    assert embedder.name == "hash-32"


def test_blank_text_has_no_hash_vector():
    """Blank text is refused, as the real embedders do; symbols alone are fine."""
    with pytest.raises(ValueError, match="blank"):
        HashEmbedder().embed(["  "])
    assert HashEmbedder().embed(["🦊", "\ud83d"]).shape == (2, 64)


def test_a_frozen_clock_moves_only_when_told():
    """The clock stands still, advances by what it is told, and is always UTC."""
    clock = FrozenClock()
    assert clock() == clock()
    assert clock.advance(hours=2) == clock() == datetime(2026, 1, 1, 14, tzinfo=UTC)
    east = FrozenClock(datetime(2026, 1, 1, 2, tzinfo=timezone(timedelta(hours=2))))
    assert east().hour == 0
    with pytest.raises(ValueError, match="aware"):
        FrozenClock(datetime(2026, 1, 1))  # noqa: DTZ001
