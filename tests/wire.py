"""A scripted OpenAI-compatible server for tests, over real HTTP on a loopback port.

It records the exact request bodies, replies from a queue (streaming when asked to), fails on
demand, and counts tokens by itself: the rule of OpenAI's cookbook, with tiktoken alone.
"""

from __future__ import annotations

import base64
import importlib.util
import json
import os
import struct
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


def encoding(name: str = "o200k_base") -> Any:
    """Return tiktoken's encoding from the files inside llama-index-core."""
    spec = importlib.util.find_spec("llama_index.core")
    assert spec is not None
    assert spec.origin is not None
    folder = Path(spec.origin).parent / "_static" / "tiktoken_cache"
    os.environ["TIKTOKEN_CACHE_DIR"] = str(folder)
    import tiktoken

    return tiktoken.get_encoding(name)


def count_prompt(messages: list[dict[str, Any]], tools: list[Any] | None = None) -> int:
    """Count a request's tokens: 3 a message, 1 more for a name, 3 for the reply, and all texts."""

    def tokens(text: str) -> int:
        return len(encoding().encode(text, disallowed_special=()))

    total = 3
    for message in messages:
        total += 3 + tokens(_text(message.get("content")))
        if message.get("name"):
            total += 1 + tokens(message["name"])
        for call in message.get("tool_calls") or []:
            function = call["function"]
            total += 3 + tokens(function["name"]) + tokens(function["arguments"])
    for tool in tools or []:
        total += tokens(json.dumps(tool, ensure_ascii=False, separators=(",", ":")))
    return total


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(part.get("text", "") for part in content if part["type"] == "text")
    return content or ""


@dataclass
class Fail:
    """A reply that fails: with an HTTP status, or by dropping the connection."""

    status: int = 500
    message: str = "scripted failure"
    code: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    drop: bool = False
    body: str | None = None


@dataclass
class Tools:
    """A reply that asks for tools: (name, arguments) pairs."""

    calls: list[tuple[str, dict[str, Any]]]


@dataclass
class Slow:
    """A reply that comes only when ``release`` is set (or the test ends)."""

    text: str = "late"
    release: threading.Event = field(default_factory=threading.Event)


@dataclass
class Broken:
    """A streamed reply that breaks off after its first word, with an error event or without."""

    text: str = "One two three"
    error: dict[str, Any] | None = None


Reply = str | Fail | Tools | Slow | Broken


class Wire:
    """The server's script and its records."""

    def __init__(self) -> None:
        self.replies: deque[Reply] = deque()
        self.requests: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.usages: list[dict[str, Any]] = []
        self.models = ["wire-model"]
        self.default: Reply = "Fine."
        self.dimension = 8
        self.url = ""
        self._slow: list[Slow] = []

    def queue(self, *replies: Reply) -> None:
        """Add replies to the script; when it is over, ``default`` is replied."""
        self.replies.extend(replies)

    @property
    def chats(self) -> list[dict[str, Any]]:
        """The bodies of the chat requests, oldest first."""
        pairs = zip(self.paths, self.requests, strict=True)
        return [body for path, body in pairs if path.endswith("/chat/completions")]

    def next_reply(self) -> Reply:
        """Take the next reply from the script."""
        reply = self.replies.popleft() if self.replies else self.default
        if isinstance(reply, Slow):
            self._slow.append(reply)
        return reply

    def release(self) -> None:
        """Let slow replies go, so that the server can stop."""
        for slow in self._slow:
            slow.release.set()


class _QuietServer(ThreadingHTTPServer):
    """Does not print what clients that hang up do to it."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Stay silent."""


@contextmanager
def serve() -> Iterator[Wire]:
    """Run a server for the time of a ``with`` block."""
    wire = Wire()
    server = _QuietServer(("127.0.0.1", 0), _handler(wire))
    wire.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield wire
    finally:
        wire.release()
        server.shutdown()
        server.server_close()
        thread.join(5)


def _handler(wire: Wire) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args: Any) -> None:
            """Stay silent."""

        def do_GET(self) -> None:
            """List the models."""
            self._json(200, {"object": "list", "data": [{"id": m} for m in wire.models]})

        def do_POST(self) -> None:
            """Take a request down and reply from the script."""
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            wire.paths.append(self.path)
            wire.requests.append(body)
            wire.headers.append({k.lower(): v for k, v in self.headers.items()})
            if self.path.endswith("/embeddings"):
                self._embed(body)
            elif self.path.endswith("/chat/completions"):
                self._chat(body)
            else:
                self._json(404, {"error": {"message": f"no such path {self.path}"}})

        def _chat(self, body: dict[str, Any]) -> None:
            reply = wire.next_reply()
            if isinstance(reply, Fail):
                self._fail(reply)
                return
            if isinstance(reply, Slow):
                reply.release.wait(30)
            message = _message(reply)
            usage = _usage(body, message)
            wire.usages.append(usage)
            if body.get("stream"):
                self._stream(body, reply, message, usage)
                return
            reason = "tool_calls" if message.get("tool_calls") else "stop"
            choice = {"index": 0, "message": message, "finish_reason": reason}
            self._json(200, _envelope(body, "chat.completion", [choice], usage))

        def _stream(
            self, body: dict[str, Any], reply: Reply, message: dict[str, Any], usage: dict[str, Any]
        ) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            deltas = list(_deltas(message))
            if isinstance(reply, Broken):
                for delta in deltas[:2]:
                    self._event(_chunk(body, delta))
                if reply.error is not None:
                    self._event({"error": reply.error})
                self.close_connection = True
                self.connection.close()
                return
            for delta in deltas:
                self._event(_chunk(body, delta))
            reason = "tool_calls" if message.get("tool_calls") else "stop"
            self._event(_chunk(body, {}, reason))
            if (body.get("stream_options") or {}).get("include_usage"):
                self._event(_envelope(body, "chat.completion.chunk", [], usage))
            self._write(b"data: [DONE]\n\n")
            self.wfile.write(b"0\r\n\r\n")

        def _event(self, value: dict[str, Any]) -> None:
            self._write(f"data: {json.dumps(value)}\n\n".encode())

        def _write(self, data: bytes) -> None:
            self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
            self.wfile.flush()

        def _embed(self, body: dict[str, Any]) -> None:
            reply = wire.next_reply() if wire.replies else ""
            if isinstance(reply, Fail):
                self._fail(reply)
                return
            texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
            data = [
                {"object": "embedding", "index": i, "embedding": self._vector(body, text)}
                for i, text in enumerate(texts)
            ]
            usage = {"prompt_tokens": 1, "total_tokens": 1}
            self._json(
                200, {"object": "list", "data": data, "model": body["model"], "usage": usage}
            )

        def _vector(self, body: dict[str, Any], text: str) -> Any:
            numbers = [float(len(text) + 1)] + [
                float(ord(c) % 7) for c in text[: wire.dimension - 1]
            ]
            numbers += [0.0] * (wire.dimension - len(numbers))
            if body.get("encoding_format") == "base64":
                return base64.b64encode(struct.pack(f"<{len(numbers)}f", *numbers)).decode()
            return numbers

        def _fail(self, fail: Fail) -> None:
            if fail.drop:
                self.close_connection = True
                self.connection.close()
                return
            if fail.body is not None:
                self._bytes(fail.status, fail.body.encode(), "text/html", fail.headers)
                return
            error = {"message": fail.message, "type": "scripted", "code": fail.code}
            self._json(fail.status, {"error": error}, fail.headers)

        def _json(self, status: int, value: Any, headers: dict[str, str] | None = None) -> None:
            self._bytes(status, json.dumps(value).encode(), "application/json", headers or {})

        def _bytes(self, status: int, data: bytes, kind: str, headers: dict[str, str]) -> None:
            self.send_response(status)
            for name, value in {**headers, "Content-Type": kind}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    return Handler


def _message(reply: Reply) -> dict[str, Any]:
    if isinstance(reply, Tools):
        calls = [
            {
                "id": f"call_{index}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments)},
            }
            for index, (name, arguments) in enumerate(reply.calls)
        ]
        return {"role": "assistant", "content": None, "tool_calls": calls}
    return {"role": "assistant", "content": reply if isinstance(reply, str) else reply.text}  # type: ignore[union-attr]


def _usage(body: dict[str, Any], message: dict[str, Any]) -> dict[str, Any]:
    prompt = count_prompt(body["messages"], body.get("tools"))
    completion = count_prompt([message]) - 6
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": 0},
    }


def _deltas(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield {"role": "assistant", "content": message["content"] and ""}
    words = (message["content"] or "").split(" ")
    for index, word in enumerate(words if message["content"] else []):
        yield {"content": word if index == 0 else f" {word}"}
    for index, call in enumerate(message.get("tool_calls") or []):
        yield {"tool_calls": [{**call, "index": index}]}


def _chunk(
    body: dict[str, Any], delta: dict[str, Any], reason: str | None = None
) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    return _envelope(body, "chat.completion.chunk", [choice], None)


def _envelope(
    body: dict[str, Any], kind: str, choices: list[Any], usage: dict[str, Any] | None
) -> dict[str, Any]:
    return {
        "id": "chatcmpl-wire",
        "object": kind,
        "created": 0,
        "model": body["model"],
        "choices": choices,
        "usage": usage,
    }
