r"""The same memory behind a web API: sessions with owners, no Streamlit anywhere.

Run it::

    CHAT_TOKENS="s3cret=ann,0ther=bob" uvicorn --factory examples.fastapi_chat:app_from_environment

    curl -H "Authorization: Bearer s3cret" -X POST localhost:8000/users/ann/sessions \
         -H "Content-Type: application/json" -d '{"title": "Bread"}'

Who you are comes from the token. Another user's path is 403; a session that is not yours does not
exist: 404. Each request opens its session from the store, so any number of these servers can
stand before one PostgreSQL or Redis and one Chroma server (``MEMORY_STORE_URL``, ``CHROMA_URL``).
Turns of one session are taken one at a time; when another server was faster, the turn is planned
anew on what is stored then.
"""

import os
import secrets
import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated
from weakref import WeakValueDictionary

from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from memory_core.agent import Failed, Finished
from memory_core.chat import Chat
from memory_core.config import read_config
from memory_core.engine import Engine, open_engine
from memory_core.errors import (
    InvalidInput,
    MemoryInspectorError,
    NotFound,
    StaleVersion,
    StoreUnavailable,
)
from memory_core.models.catalogue import ModelChoice
from memory_core.settings import MemorySettings
from memory_core.stores.protocols import SessionInfo, SessionKey
from memory_core.trace import TurnTrace

TRIES = 5  # of one turn, when other servers write to the same session
SETTINGS = MemorySettings()
STATUS: Mapping[type[MemoryInspectorError], int] = {
    NotFound: 404,
    InvalidInput: 422,
    StaleVersion: 409,
    StoreUnavailable: 503,
}


class NewSession(BaseModel):
    """What a session is made from."""

    title: str = Field(min_length=1, max_length=80)


class Said(BaseModel):
    """One message of the user."""

    text: str = Field(min_length=1, max_length=20_000)


class SessionOut(BaseModel):
    """A session as it is listed."""

    id: str
    title: str
    turns: int
    messages: int


class MessageOut(BaseModel):
    """One message of a session."""

    turn: int
    role: str
    text: str


class Answer(BaseModel):
    """An answer, and what the prompt was made of: tokens by source."""

    turn: int
    text: str
    prompt: dict[str, int]


class Turns:
    """Takes the turns of one session one at a time; a lock lives as long as somebody uses it."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._locks: WeakValueDictionary[SessionKey, threading.Lock] = WeakValueDictionary()

    def of(self, key: SessionKey) -> threading.Lock:
        """Return the lock of a session."""
        with self._guard:
            return self._locks.setdefault(key, threading.Lock())


def create_app(engine: Engine, tokens: Mapping[str, str]) -> FastAPI:
    """Return the API over an engine; ``tokens`` names the user of each token."""
    app = FastAPI(title="Chat with memory")
    app.state.engine, app.state.tokens, app.state.turns = engine, dict(tokens), Turns()
    app.add_exception_handler(MemoryInspectorError, _refuse)
    app.get("/users/{user}/sessions")(list_sessions)
    app.post("/users/{user}/sessions", status_code=201)(create_session)
    app.delete("/users/{user}/sessions/{session}", status_code=204)(delete_session)
    app.get("/users/{user}/sessions/{session}/messages")(list_messages)
    app.post("/users/{user}/sessions/{session}/messages", status_code=201)(say)
    return app


def app_from_environment() -> FastAPI:
    """Return the API as the environment configures it; ``CHAT_TOKENS`` are pairs token=user."""
    pairs = (pair.partition("=") for pair in os.environ.get("CHAT_TOKENS", "").split(","))
    tokens = {token.strip(): user.strip() for token, _, user in pairs if token.strip() and user}
    return create_app(open_engine(read_config(os.environ, {})), tokens)


def owner(request: Request, user: str) -> str:
    """Return the user of a path if the token is theirs: 401 without a token, 403 otherwise."""
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    found = ""
    for token, name in request.app.state.tokens.items():  # all of them: the time tells nothing
        if scheme.lower() == "bearer" and secrets.compare_digest(token.encode(), given.encode()):
            found = name
    if not found:
        raise HTTPException(401, "A valid token is needed.", {"WWW-Authenticate": "Bearer"})
    if found != user:
        raise HTTPException(403, "These are another user's sessions.")
    return found


Owner = Annotated[str, Depends(owner)]


def list_sessions(request: Request, user: Owner) -> list[SessionOut]:
    """Return the user's sessions, last used first."""
    engine: Engine = request.app.state.engine
    return [_listed(info) for info in engine.sessions(user)]


def create_session(request: Request, user: Owner, new: NewSession) -> SessionOut:
    """Add an empty session."""
    engine: Engine = request.app.state.engine
    return _listed(engine.create(user, new.title, settings=SETTINGS.to_json()))


def delete_session(request: Request, user: Owner, session: str) -> None:
    """Delete a session; whoever runs the store can bring it back."""
    engine: Engine = request.app.state.engine
    engine.store.update(replace(_own(engine, user, session), deleted=True))


def list_messages(request: Request, user: Owner, session: str) -> list[MessageOut]:
    """Return a session's messages, oldest first."""
    engine: Engine = request.app.state.engine
    info = _own(engine, user, session)
    return [
        MessageOut(turn=m.turn, role=m.message.role, text=m.message.text)
        for m in engine.store.messages(info.key)
    ]


def say(request: Request, user: Owner, session: str, said: Said) -> Answer:
    """Take a turn: the answer is stored before it is returned."""
    engine: Engine = request.app.state.engine
    turns: Turns = request.app.state.turns
    info = _own(engine, user, session)
    with turns.of(info.key):
        for tries_left in reversed(range(TRIES)):
            chat = engine.chat(info.key, settings=SETTINGS, model=ModelChoice())
            try:
                return _answer(_turn(chat, said.text))
            except StaleVersion:
                if not tries_left:
                    raise
    raise AssertionError("unreachable")


def _turn(chat: Chat, text: str) -> TurnTrace:
    last = list(chat.stream(text))[-1]
    if isinstance(last, Failed):
        raise last.error
    if not isinstance(last, Finished):
        raise TypeError("a turn ends in one way or the other")
    return last.trace


def _answer(trace: TurnTrace) -> Answer:
    reply = trace.replies[-1].reply if trace.replies else None
    prompt: dict[str, int] = {}
    for part in trace.assembly.parts if trace.assembly is not None else ():
        prompt[part.source.value] = prompt.get(part.source.value, 0) + part.tokens
    return Answer(turn=trace.number, text=reply.text if reply is not None else "", prompt=prompt)


def _own(engine: Engine, user: str, session: str) -> SessionInfo:
    """Return a session of this user; one of anybody else, or a deleted one, does not exist."""
    info = engine.store.session(SessionKey(user, session))
    if info.deleted:
        raise NotFound("There is no such session.")
    return info


def _listed(info: SessionInfo) -> SessionOut:
    return SessionOut(
        id=info.key.session, title=info.title, turns=info.turns, messages=info.messages
    )


async def _refuse(_request: Request, exc: Exception) -> JSONResponse:
    status = next((code for kind, code in STATUS.items() if isinstance(exc, kind)), 502)
    detail = {"detail": str(exc), "next_step": getattr(exc, "next_step", "")}
    return JSONResponse(detail, status_code=status)
