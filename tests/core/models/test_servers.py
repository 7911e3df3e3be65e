"""OpenAI and compatible servers over real HTTP: requests, usage, every failure, no key anywhere."""

from __future__ import annotations

import logging
import socket
import traceback
from typing import Any

import pytest
from llama_index.core.base.llms.types import ToolCallBlock
from llama_index.core.llms import LLM, ChatMessage
from llama_index.core.tools import FunctionTool
from llama_index.llms.openai import OpenAI

from memory_core.errors import (
    MemoryInspectorError,
    ModelKeyRefused,
    ModelRateLimited,
    ModelRefused,
    ModelTimeout,
    ModelUnknown,
    ModelUnreachable,
    PromptTooLarge,
)
from memory_core.llama import from_chat
from memory_core.models.build import ServerLLM, build_llm
from memory_core.models.catalogue import HIDDEN, OPENAI, OPENAI_LIKE, ModelChoice
from memory_core.models.failures import explain, usage_of
from memory_core.tokens import TokenCounter
from tests import wire as wire_server
from tests.wire import Broken, Fail, Slow, Tools, Wire

KEY = "wire-secret-0123456789"
HELLO = [ChatMessage(role="user", content="Hello there")]
LONG = "This model's maximum context length is 10 tokens."


@pytest.fixture
def wire():
    """Run a scripted server for one test."""
    with wire_server.serve() as served:
        yield served


def choice(wire: Wire, kind: str = OPENAI_LIKE, model: str = "wire-model", **fields: Any):
    """Return a choice of the scripted server, without retries unless asked for."""
    return ModelChoice(kind, model, wire.url, **{"retries": 0, "timeout_seconds": 5.0, **fields})


def build(wire: Wire, **fields: Any) -> LLM:
    """Return the model of a choice of the scripted server."""
    return build_llm(choice(wire, **fields), key=KEY)


@pytest.mark.parametrize(
    ("kind", "model", "expected"),
    [
        (OPENAI, "gpt-4o-mini", OpenAI),
        (OPENAI, "gpt-not-known-yet", ServerLLM),
        (OPENAI_LIKE, "wire-model", ServerLLM),
    ],
)
async def test_whole_and_streamed_replies(wire: Wire, kind: str, model: str, expected: type[LLM]):
    """Every kind sends the message as it is, replies, streams, and reports the server's usage."""
    llm = build(wire, kind=kind, model=model)
    assert type(llm) is expected
    wire.default = "A fine day to you."
    assert llm.chat(HELLO).message.content == wire.default
    whole = llm.chat(HELLO)
    assert (await llm.achat(HELLO)).message.content == wire.default
    streamed = list(llm.stream_chat(HELLO))
    astreamed = [piece async for piece in await llm.astream_chat(HELLO)]
    for last in (streamed[-1], astreamed[-1]):
        assert last.message.content == wire.default
        assert usage_of(last) == usage_of(whole)
    usage = usage_of(whole)
    assert usage is not None
    assert usage.prompt == TokenCounter().messages([from_chat(m) for m in HELLO])
    assert usage.completion == TokenCounter().text(wire.default)
    for body in wire.chats:
        assert body["messages"] == [{"role": "user", "content": "Hello there"}]
        assert body["model"] == model
    assert {h["authorization"] for h in wire.headers} == {f"Bearer {KEY}"}


@pytest.mark.parametrize("kind", [OPENAI, OPENAI_LIKE])
def test_tools_are_called_whole_and_streamed(wire: Wire, kind: str):
    """Tool definitions go out, parallel calls come back the same way streamed or not."""
    llm = build(wire, kind=kind, model="gpt-4o-mini")
    tool = FunctionTool.from_defaults(fn=lambda city: city, name="weather", description="Weather.")
    calls = [("weather", {"city": "Köln"}), ("weather", {"city": "Oslo"})]
    wire.default = Tools(calls)
    whole = llm.chat_with_tools([tool], chat_history=HELLO, allow_parallel_tool_calls=True)
    *_, last = llm.stream_chat_with_tools(
        [tool], chat_history=HELLO, allow_parallel_tool_calls=True
    )
    for response in (whole, last):
        found = llm.get_tool_calls_from_response(response)
        assert [(c.tool_name, c.tool_kwargs) for c in found] == calls
        stored = from_chat(response.message)
        assert [c.name for c in stored.tool_calls] == ["weather", "weather"]
        assert TokenCounter().message(stored) - 3 == usage_of(response).completion
    assert [t["function"]["name"] for t in wire.chats[0]["tools"]] == ["weather"]


def test_only_what_is_chosen_is_sent(wire: Wire):
    """Temperature, seed and reply limit are sent when chosen, under the server's own name."""
    build(wire).chat(HELLO)
    build(wire, temperature=0.2, seed=7, max_tokens=9).chat(HELLO)
    build(wire, kind=OPENAI, model="gpt-4o-mini", max_tokens=9).chat(HELLO)
    bare, full, openai = wire.chats
    assert set(bare) == {"messages", "model", "stream"}
    assert (full["temperature"], full["seed"], full["max_tokens"]) == (0.2, 7, 9)
    assert openai["max_completion_tokens"] == 9
    assert openai["temperature"] == 1.0


FAILURES = [
    (Fail(401, f"Incorrect API key provided: {KEY}"), ModelKeyRefused, "refused the key"),
    (Fail(403, f"{KEY} may not"), ModelKeyRefused, "refused the key"),
    (Fail(429, "slow down", headers={"retry-after": "7"}), ModelRateLimited, "wait 7 s"),
    (Fail(429, "slow down"), ModelRateLimited, "too many requests"),
    (Fail(429, "check plan", "insufficient_quota"), ModelRateLimited, "quota"),
    (Fail(404, "The model `x` does not exist", "model_not_found"), ModelUnknown, "wire-model"),
    (Fail(404, body="<html>nothing</html>"), ModelUnreachable, "/v1"),
    (Fail(400, LONG, "context_length_exceeded"), PromptTooLarge, "10 tokens"),
    (Fail(400, f"bad {KEY}"), ModelRefused, "status 400"),
    (Fail(503, f"overloaded {KEY}"), ModelRefused, "status 503"),
    (Fail(drop=True), ModelUnreachable, "broke off"),
]


def failure(wire: Wire, llm: LLM, chosen: ModelChoice, *, stream: bool = False):
    """Return what a failing call raises, and its translation."""
    with pytest.raises(Exception) as caught:
        _ = list(llm.stream_chat(HELLO)) if stream else llm.chat(HELLO)
    return caught.value, explain(caught.value, chosen)


@pytest.mark.parametrize(("reply", "expected", "says"), FAILURES)
@pytest.mark.parametrize("stream", [False, True])
def test_failures_become_one_clear_message(
    wire: Wire,
    reply: Fail,
    expected: type[MemoryInspectorError],
    says: str,
    stream: bool,
    caplog: pytest.LogCaptureFixture,
):
    """Each failure is the right error, says why and what to do next, and hides the key."""
    caplog.set_level(logging.DEBUG)
    chosen = choice(wire)
    wire.queue(reply)
    raised, error = failure(wire, build_llm(chosen, key=KEY), chosen, stream=stream)
    assert type(error) is expected
    assert says in str(error)
    assert error.next_step
    logging.getLogger("test").error("call failed", exc_info=raised)
    told = [str(error), repr(error), "".join(traceback.format_exception(raised)), caplog.text]
    assert not [text for text in told if KEY in text]
    assert len(wire.requests) == 1


def test_a_web_page_is_no_reply(wire: Wire):
    """A page instead of a reply is told as such; as a stream it holds no piece at all."""
    chosen = choice(wire)
    wire.default = Fail(200, body="<html>Welcome</html>")
    _, error = failure(wire, build_llm(chosen, key=KEY), chosen)
    assert type(error) is ModelRefused
    assert "no chat reply" in str(error)
    assert list(build_llm(chosen, key=KEY).stream_chat(HELLO)) == []


def test_a_slow_server_is_a_timeout(wire: Wire):
    """No answer in the stated time says the time, and that it was tried more than once."""
    chosen = choice(wire, timeout_seconds=0.2, retries=1)
    wire.default = Slow()
    _, error = failure(wire, build_llm(chosen, key=KEY), chosen)
    assert type(error) is ModelTimeout
    assert "0.2 s, tried 2 times" in str(error)


def test_nobody_listens():
    """A dead address is named."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    chosen = ModelChoice(OPENAI_LIKE, "m", f"http://127.0.0.1:{port}/v1", retries=0)
    with pytest.raises(Exception) as caught:
        build_llm(chosen, key=None).chat(HELLO)
    error = explain(caught.value, chosen)
    assert type(error) is ModelUnreachable
    assert f"http://127.0.0.1:{port}/v1" in str(error)


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (Broken(), ModelUnreachable),
        (Broken(error={"message": f"overloaded {KEY}", "code": "server_error"}), ModelRefused),
        (Broken(error={"message": LONG, "code": "context_length_exceeded"}), PromptTooLarge),
        (Broken(error={"message": "slow down", "code": 429}), ModelRateLimited),
    ],
)
def test_a_stream_that_breaks_off(wire: Wire, reply: Broken, expected: type[MemoryInspectorError]):
    """A stream that ends early or carries an error event is no whole reply."""
    chosen = choice(wire)
    wire.queue(reply)
    raised, error = failure(wire, build_llm(chosen, key=KEY), chosen, stream=True)
    assert type(error) is expected
    assert KEY not in f"{error} {raised!r}"


def test_a_passing_failure_is_retried(wire: Wire):
    """With a retry, one failure of the server is not seen; refused keys are not tried again."""
    chosen = choice(wire, retries=1)
    wire.queue(Fail(500, headers={"retry-after-ms": "1"}), "Back again.")
    assert build_llm(chosen, key=KEY).chat(HELLO).message.content == "Back again."
    wire.queue(Fail(401))
    _, error = failure(wire, build_llm(chosen, key=KEY), chosen)
    assert type(error) is ModelKeyRefused
    assert len(wire.requests) == 3


def test_openai_without_a_key_is_refused_at_once():
    """No request is made without a key; other servers may need none."""
    with pytest.raises(ModelKeyRefused, match="none was given"):
        build_llm(ModelChoice(OPENAI, "gpt-4o"))


@pytest.mark.parametrize("kind", [OPENAI, OPENAI_LIKE])
def test_the_key_stands_in_no_field(wire: Wire, kind: str):
    """Neither repr nor any dump of a model holds its key."""
    llm = build(wire, kind=kind, model="gpt-4o-mini")
    for dump in (repr(llm), str(llm), str(llm.to_dict()), llm.to_json(), llm.model_dump_json()):
        assert KEY not in dump
    assert llm.api_key == HIDDEN


def test_the_environment_decides_nothing(wire: Wire, monkeypatch: pytest.MonkeyPatch):
    """Keys, URLs, organisations and proxies of the environment do not change where a call goes."""
    monkeypatch.setenv("OPENAI_API_KEY", "from-environment")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("OPENAI_API_BASE", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-from-environment")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    build_llm(choice(wire), key=None).chat(HELLO)
    (headers,) = wire.headers
    assert "from-environment" not in str(headers)


def test_arguments_are_counted_as_they_are_sent(wire: Wire):
    """Arguments kept as values, in any script, count as the text that goes over the wire."""
    block = ToolCallBlock(tool_call_id="c1", tool_name="weather", tool_kwargs={"city": "東京 Köln"})
    history = [
        *HELLO,
        ChatMessage(role="assistant", blocks=[block]),
        ChatMessage(role="tool", content="rain", additional_kwargs={"tool_call_id": "c1"}),
    ]
    usage = usage_of(build(wire).chat(history))
    assert usage is not None
    assert usage.prompt == TokenCounter().messages([from_chat(m) for m in history])
