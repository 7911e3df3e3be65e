"""The example web API: sessions have owners, and many requests at once lose nothing."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from memory_core.config import EngineConfig
from memory_core.engine import open_engine

httpx = pytest.importorskip("httpx")
uvicorn = pytest.importorskip("uvicorn")
pytest.importorskip("fastapi")

ROOT = Path(__file__).resolve().parents[2]
ANN, BOB = "a-token", "b-token"
TOKENS = {ANN: "ann", BOB: "bob"}
PATIENCE = 120  # seconds; a busy machine may be slow, nothing is timed

Client = Callable[..., "httpx.Client"]


@contextmanager
def served(folder: Path) -> Iterator[Client]:
    """Run the API on a real server, and give clients by token."""
    from examples.fastapi_chat import create_app

    engine = open_engine(EngineConfig(folder=folder))
    config = uvicorn.Config(create_app(engine, TOKENS), port=0, log_level="error", lifespan="off")
    server = uvicorn.Server(config)
    ready = threading.Event()
    startup = server.startup

    async def started(*args, **kwargs):
        await startup(*args, **kwargs)
        ready.set()

    server.startup = started
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    assert ready.wait(PATIENCE)
    port = server.servers[0].sockets[0].getsockname()[1]
    clients = []

    def client(token: str = ANN) -> httpx.Client:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        url = f"http://127.0.0.1:{port}"
        clients.append(httpx.Client(base_url=url, headers=headers, timeout=PATIENCE))
        return clients[-1]

    try:
        yield client
    finally:
        for one in clients:
            one.close()
        server.should_exit = True
        thread.join(PATIENCE)
        engine.close()


@pytest.fixture(scope="module")
def api(tmp_path_factory) -> Iterator[Client]:
    """One server for the tests of this file."""
    with served(tmp_path_factory.mktemp("api")) as client:
        yield client


def begin(client, user: str, title: str = "Bread") -> str:
    """Add a session and return its address."""
    made = client.post(f"/users/{user}/sessions", json={"title": title})
    assert made.status_code == 201
    return f"/users/{user}/sessions/{made.json()['id']}"


def test_many_requests_at_once_lose_nothing_and_mix_nothing(api):
    """Two users, three sessions, 15 turns in 8 threads: each session has its turns in order."""
    ann, bob = api(), api(BOB)
    places = [(ann, begin(ann, "ann")), (ann, begin(ann, "ann", "Tea")), (bob, begin(bob, "bob"))]
    work = [(c, where, f"note {n} for {where[-6:]}") for n in range(5) for c, where in places]

    def say(job):
        client, where, text = job
        return client.post(f"{where}/messages", json={"text": text})

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(say, work))
    assert {a.status_code for a in answers} == {201}
    for client, where in places:
        turns = [a.json()["turn"] for a, (_, w, _) in zip(answers, work, strict=True) if w == where]
        assert sorted(turns) == list(range(1, 6))
        stored = client.get(f"{where}/messages").json()
        said = [m["text"] for m in stored if m["role"] == "user"]
        assert sorted(said) == sorted(text for _, w, text in work if w == where)
        assert [m["turn"] for m in stored] == sorted(m["turn"] for m in stored)


def test_who_you_are_comes_from_the_token(api):
    """No token or a wrong one: 401. Another user's path: 403. Their session under yours: 404."""
    ann, bob = api(), api(BOB)
    where = begin(ann, "ann")
    id_ = where.rpartition("/")[2]
    nobody = api("")
    assert nobody.get("/users/ann/sessions").status_code == 401
    for token in ("wrong", "ä"):
        headers = {"Authorization": f"Bearer {token}".encode()}
        assert nobody.get("/users/ann/sessions", headers=headers).status_code == 401
    for method, path in (("GET", "messages"), ("POST", "messages")):
        body = {"text": "hello"} if method == "POST" else None
        assert bob.request(method, f"{where}/{path}", json=body).status_code == 403
        foreign = f"/users/bob/sessions/{id_}/{path}"
        assert bob.request(method, foreign, json=body).status_code == 404
    assert bob.delete(f"/users/bob/sessions/{id_}").status_code == 404
    assert id_ not in bob.get("/users/bob/sessions").text
    assert ann.get(f"{where}/messages").json() == []


def test_a_deleted_session_is_gone_for_its_owner(api):
    """After DELETE it is in no list, and reading or writing it is 404."""
    ann = api()
    where = begin(ann, "ann", "Going")
    assert ann.delete(where).status_code == 204
    assert ann.get(f"{where}/messages").status_code == 404
    assert ann.post(f"{where}/messages", json={"text": "hi"}).status_code == 404
    assert "Going" not in ann.get("/users/ann/sessions").text


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/users/ann/sessions", {"title": ""}, 422),
        ("/users/ann/sessions", {}, 422),
        ("/users/ann/sessions/x%00y/messages", {"text": "hi"}, 422),
        ("/users/ann/sessions/" + "x" * 10_000 + "/messages", {"text": "hi"}, 422),
        ("/users/ann/sessions/nothing/messages", {"text": "hi"}, 404),
    ],
)
def test_bad_input_is_a_clear_refusal(api, path, body, status):
    """Empty titles, control characters and 10 kB ids are refused, never a server error."""
    assert api().post(path, json=body).status_code == status


def test_what_was_told_is_recalled_by_another_server(tmp_path):
    """A favourite told to one server is answered from memory by the next, in another session."""
    with served(tmp_path) as client:
        ann = client()
        where = begin(ann, "ann")
        told = ann.post(f"{where}/messages", json={"text": "My favourite colour is teal."})
        assert told.status_code == 201
    with served(tmp_path) as client:
        ann = client()
        other = begin(ann, "ann", "Later")
        question = {"text": "What is my favourite colour?"}
        answer = ann.post(f"{other}/messages", json=question).json()
        assert "teal" in answer["text"].lower()
        assert answer["prompt"]["retrieved"] > 0


def test_the_example_needs_no_streamlit():
    """Importing it, and with it the whole engine, loads no Streamlit."""
    code = "import sys, examples.fastapi_chat; print('streamlit' in sys.modules)"
    out = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert out.stdout.strip() == "False"
