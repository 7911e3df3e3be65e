"""What the trace says was sent is what arrived, over real HTTP, in random sessions.

The server counts tokens by itself, with the same encoding: parts sum to its count.
"""

from __future__ import annotations

import json
import os
import random
from functools import cache
from typing import Any

import pytest
from llama_index.core.llms import LLM

from memory_core.agent import Finished, run_turn
from memory_core.chat import Chat
from memory_core.engine import Engine
from memory_core.messages import Message
from memory_core.models.build import build_llm
from memory_core.models.catalogue import OPENAI, OPENAI_LIKE, ModelChoice
from memory_core.prompt import Assembly
from memory_core.session import Session
from memory_core.settings import MemorySettings
from memory_core.stores.vectors.chroma import open_chroma
from memory_core.testing import HashEmbedder
from memory_core.tokens import TokenCounter, encoding_for
from memory_core.trace import REPLY
from tests import wire as wire_server
from tests.core.made_sessions import run, sqlite

SESSIONS = int(os.environ.get("WIRE_SESSIONS", "200"))
WORDS = [
    *"tram ferry noon 12 €30 nuts Porto café 日本語 naïve 😀 code `x` $5 <b> </memories>".split(),
    *"<|endoftext|> allergic meeting Thursday remember please not never green 4417".split(),
    "line\ttab\nline",
]


@pytest.fixture(scope="module")
def wire():
    """Run the scripted server for this module."""
    with wire_server.serve() as served:
        yield served


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    """Give an engine with vectors in memory."""
    made = Engine(
        store=sqlite(tmp_path_factory.mktemp("wire")),
        vectors=open_chroma(),
        embedder=HashEmbedder(),
    )
    yield made
    made.close()


def some_text(rng: random.Random, most: int = 40) -> str:
    """Return random words, some of them awkward."""
    return " ".join(rng.choice(WORDS) for _ in range(rng.randint(1, most)))


def some_reply(rng: random.Random, *, tools: bool) -> list[Any]:
    """Return what the server replies in one turn: maybe tool calls, then a text."""
    replies: list[Any] = []
    if tools and rng.random() < 0.5:
        calls = [
            ("get_weather", {"city": some_text(rng, 2)}),
            ("remember", {"text": some_text(rng, 6)}),
            ("set_preference", {"name": "tone", "value": some_text(rng, 2)}),
        ]
        replies.append(wire_server.Tools(rng.sample(calls, rng.randint(1, 3))))
    return [*replies, some_text(rng)]


def open_chat(engine: Engine, wire, rng: random.Random, user: str) -> Chat:
    """Open a new session with random knobs, of a user of its own."""
    knobs = MemorySettings(
        token_limit=rng.choice([700, 900, 1200, 3000]),
        top_k=rng.randint(0, 6),
        threshold=rng.choice([-1.0, 0.0, 0.2]),
        summary_every=rng.randint(1, 6),
        summarise=rng.random() < 0.5,
        recall=rng.random() < 0.8,
        tools=rng.random() < 0.5,
        system_prompt=rng.choice(["", "Be brief.", some_text(rng)]),
    )
    info = engine.create(user, "random", settings=knobs.to_json())
    model, llm = models(wire.url)[rng.randint(0, 1)]
    counter = TokenCounter(encoding_for(model.model))
    session = Session.open(
        store=engine.store,
        key=info.key,
        counter=counter,
        settings=knobs,
        longterm=engine.longterm,
    )
    return Chat(session, model=model, llm=llm)


@cache
def models(url: str) -> list[tuple[ModelChoice, LLM]]:
    """Return an OpenAI model and one of a compatible server, both at the scripted server."""
    choices = [
        ModelChoice(kind=OPENAI, model="gpt-4o-mini", base_url=url),
        ModelChoice(kind=OPENAI_LIKE, model="wire-model", base_url=url),
    ]
    return [(choice, build_llm(choice, key="sk-test")) for choice in choices]


def plain(message: Message) -> dict[str, Any]:
    """Return what of a message goes on the wire, in a shape both sides can take."""
    return {
        "role": message.role,
        "content": message.text or None,
        "calls": [(c.id, c.name, json.loads(c.arguments)) for c in message.tool_calls],
        "answers": message.tool_call_id,
    }


def arrived(message: dict[str, Any]) -> dict[str, Any]:
    """Return the same of a message in a request."""
    content = message.get("content")
    if isinstance(content, list):
        content = "\n".join(part["text"] for part in content)
    calls = message.get("tool_calls") or []
    return {
        "role": message["role"],
        "content": content or None,
        "calls": [
            (c["id"], c["function"]["name"], json.loads(c["function"]["arguments"])) for c in calls
        ],
        "answers": message.get("tool_call_id"),
    }


def check(assembly: Assembly, request: dict[str, Any], reported: int) -> None:
    """Compare one call of a trace with the request that arrived and the server's own count."""
    assert [plain(m) for m in assembly.messages] == [arrived(m) for m in request["messages"]]
    assert sum(p.tokens for p in assembly.parts) == assembly.tokens
    assert abs(assembly.tokens - reported) <= 0.02 * reported


@pytest.mark.parametrize("block", range(4))
def test_random_sessions(engine: Engine, wire, block: int) -> None:
    """Message for message, the request is the Assembly; the counts agree within 2 %."""
    for number in range(block, SESSIONS, 4):
        rng = random.Random(number)
        chat = open_chat(engine, wire, rng, f"user-{number}")
        streaming = rng.random() < 0.6
        for _ in range(rng.randint(2, 5)):
            first = len(wire.chats)
            wire.default = "- " + some_text(rng, 8)
            turn = run_turn(
                chat.memory, chat._llm, chat._tools, some_text(rng), streaming=streaming
            )
            wire.replies.clear()
            replies = some_reply(rng, tools=chat.settings.tools)
            wire.queue(*replies)  # a summary round may take the first of them: just as random
            (last,) = [e for e in run(turn) if isinstance(e, Finished)]
            requests = wire.chats[first:]
            assert len(requests) == len(last.trace.calls)
            for call, request in zip(last.trace.calls, requests, strict=True):
                assert call.usage is not None
                check(call.assembly, request, call.usage.prompt)
            assert any(call.purpose == REPLY for call in last.trace.calls)


def test_the_model_of_a_session_can_be_changed(engine: Engine, wire) -> None:
    """A session goes on with another model, its messages counted by that model's encoding."""
    chat = open_chat(engine, wire, random.Random(1), "changing")
    wire.queue("One.")
    list(chat.stream("hello"))
    chat.use(ModelChoice())
    assert list(chat.stream("My code is 4417."))[-1].trace.calls[0].model == "offline"
    assert build_llm(ModelChoice()).metadata.model_name == "offline"
