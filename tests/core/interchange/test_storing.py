"""A read conversation becomes a session that can be opened, fed on and noticed again."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memory_core.errors import InvalidInput, StoreUnavailable
from memory_core.interchange import Conversation
from memory_core.interchange.storing import IMPORTED, imported_before, store_conversation
from memory_core.llama import to_chat
from memory_core.longterm import LongTermMemory
from memory_core.memory import LayeredMemory
from memory_core.messages import Message
from memory_core.opening import create_session
from memory_core.session import Session
from memory_core.settings import MemorySettings
from memory_core.stores.opening import open_store
from memory_core.stores.protocols import SessionKey, Store, TurnRecord
from memory_core.stores.vectors.simple import SimpleDatabase
from memory_core.testing import FrozenClock, HashEmbedder
from memory_core.tokens import TokenCounter
from memory_core.trace import trace_from_json
from tests.core.interchange.making import TALK, claude, only, openai

COUNTER = TokenCounter()
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(params=["sqlite", "files"])
def store(request, tmp_path: Path) -> Iterator[Store]:
    """Yield an empty store of each kind that needs no server."""
    url = "" if request.param == "sqlite" else f"files://{tmp_path}/files"
    opened = open_store(url, folder=tmp_path)
    yield opened
    opened.close()


def key() -> SessionKey:
    """Return the key of a new session of one user."""
    return SessionKey("ann", uuid.uuid4().hex)


def test_a_turn_is_committed_for_each_question(store: Store):
    """Messages come back as they were read, each turn with a trace that sent nothing."""
    conversation, at = only(claude(TALK)), key()
    assert store_conversation(conversation, store=store, key=at, counter=COUNTER) == 2
    stored = store.messages(at)
    assert tuple(m.message for m in stored) == conversation.messages
    assert [(m.position, m.turn) for m in stored] == [(0, 1), (1, 1), (2, 2), (3, 2)]
    assert [m.tokens for m in stored] == [COUNTER.message(m.message) for m in stored]
    assert tuple(m.created for m in stored) == conversation.times
    traces = [trace_from_json(turn.trace, lambda _: {}) for turn in store.turns(at)]
    assert [(t.number, t.strategy, t.calls, t.query) for t in traces] == [
        (1, IMPORTED, (), TALK[0][1]),
        (2, IMPORTED, (), TALK[2][1]),
    ]
    assert [i for t in traces for i in t.appended] == [m.id for m in stored]
    info = store.session(at)
    assert (info.title, info.turns, info.messages) == ("Boats", 2, 4)


def test_a_session_goes_on_where_the_import_ended(store: Store):
    """The next turn follows the imported ones, as in any session."""
    at = key()
    store_conversation(only(openai(TALK)), store=store, key=at, counter=COUNTER)
    head = store.head(at)
    assert (head.turn, head.messages) == (2, 4)
    store.commit(at, TurnRecord(head.turn + 1, "{}", ()))
    assert store.head(at).turn == 3


def test_times_that_are_not_known_follow_those_that_are(store: Store):
    """A message without a time has that of the one before it; without any it is now."""
    at = key()
    told = datetime(2024, 5, 1, tzinfo=UTC)
    messages = tuple(Message.of("user", text) for text in "abc")
    conversation = Conversation("T", messages, times=(None, told, None))
    store_conversation(conversation, store=store, key=at, counter=COUNTER, now=NOW)
    assert [m.created for m in store.messages(at)] == [told, told, told]
    other = key()
    store_conversation(
        Conversation("T", messages), store=store, key=other, counter=COUNTER, now=NOW
    )
    assert {m.created for m in store.messages(other)} == {NOW}


def test_messages_before_the_first_question_belong_to_the_first_turn(store: Store):
    """A system prompt or a greeting opens the first turn; answers alone are one turn."""
    at = key()
    roles = ("system", "assistant", "user", "assistant", "tool", "assistant", "user")
    conversation = Conversation("T", tuple(Message.of(role, "x") for role in roles))
    assert store_conversation(conversation, store=store, key=at, counter=COUNTER) == 2
    assert [m.turn for m in store.messages(at)] == [1, 1, 1, 1, 1, 1, 2]
    alone = Conversation("T", (Message.of("assistant", "x"), Message.of("assistant", "y")))
    assert store_conversation(alone, store=store, key=key(), counter=COUNTER) == 1


def test_the_same_again_is_noticed(store: Store):
    """An equal conversation is found by its messages, a file by its bytes, nobody else's."""
    first, at = only(openai(TALK)), key()
    store_conversation(first, store=store, key=at, counter=COUNTER, file="f1")
    store_conversation(only(openai(TALK[:2])), store=store, key=key(), counter=COUNTER, file="f2")
    sessions = store.sessions("ann")
    same = only(openai(TALK), name="renamed.json")
    found = imported_before(sessions, conversation=same.fingerprint)
    assert [info.key for info in found] == [at]
    assert [info.key for info in imported_before(sessions, file="f1")] == [at]
    assert imported_before(sessions) == []
    assert imported_before(store.sessions("bob"), file="f1") == []


def test_progress_is_told_in_messages(store: Store):
    """A long import can be followed turn by turn."""
    calls: list[tuple[int, int]] = []
    store_conversation(
        only(openai(TALK)),
        store=store,
        key=key(),
        counter=COUNTER,
        progress=lambda done, total: calls.append((done, total)),
    )
    assert calls == [(2, 4), (4, 4)]


def test_a_failure_on_the_way_leaves_nothing(store: Store):
    """A conversation is imported whole or not at all."""
    commit, at = store.commit, key()

    def failing(where: SessionKey, record: TurnRecord) -> None:
        if record.number == 2:
            raise StoreUnavailable("The disk is full.")
        commit(where, record)

    store.commit = failing  # type: ignore[method-assign]
    with pytest.raises(StoreUnavailable):
        store_conversation(only(openai(TALK)), store=store, key=at, counter=COUNTER)
    assert store.sessions("ann") == []


def test_a_session_that_is_there_is_not_touched(store: Store):
    """An id in use is refused, and what it names stays as it is."""
    at = key()
    store_conversation(only(openai(TALK)), store=store, key=at, counter=COUNTER)
    with pytest.raises(InvalidInput):
        store_conversation(only(openai(TALK[:1])), store=store, key=at, counter=COUNTER)
    assert len(store.messages(at)) == 4


def test_turns_become_the_memories_that_a_chat_would_have_made(store: Store, tmp_path: Path):
    """Played as a chat or imported, a conversation leaves the same long-term memories."""
    at, lived = key(), key()
    talk = [*TALK, ("user", "Thanks!"), ("assistant", "Welcome."), *TALK[:2]]
    conversation = only(openai(talk))
    store_conversation(conversation, store=store, key=at, counter=COUNTER)
    create_session(store, lived, settings=MemorySettings())
    longterm = LongTermMemory(
        vectors=SimpleDatabase(tmp_path / "vectors"),
        embedder=HashEmbedder(),
        store=store,
        clock=FrozenClock(),
    )
    memory = LayeredMemory(
        Session.open(
            store=store, key=lived, counter=COUNTER, settings=MemorySettings(), longterm=longterm
        )
    )
    for message in conversation.messages:
        memory.put(to_chat(message))
    made, wanted = (
        [(r.text, r.kind, r.turn, r.count) for r in store.records("ann") if r.session == k.session]
        for k in (at, lived)
    )
    assert made == wanted
    assert made
    trace = trace_from_json(store.turns(at)[0].trace, lambda _: {})
    assert [m.action for m in trace.memories] == ["remembered"]


def test_what_was_imported_is_found_once_the_outbox_is_worked_off(store: Store, tmp_path: Path):
    """Imported memories wait as records and are recalled in other sessions after catching up."""
    at = key()
    store_conversation(only(openai(TALK)), store=store, key=at, counter=COUNTER)
    assert store.records("ann", pending=True)
    longterm = LongTermMemory(
        vectors=SimpleDatabase(tmp_path / "vectors"),
        embedder=HashEmbedder(),
        store=store,
        clock=FrozenClock(),
    )
    assert longterm.catch_up("ann").embedded == len(store.records("ann"))
    assert store.records("ann", pending=True) == []
    found = longterm.recall(
        TALK[0][1], user="ann", session="another", settings=MemorySettings(threshold=-1.0)
    )
    assert found.hits[0].session == at.session


def test_an_import_can_leave_no_memories(store: Store):
    """Where that is wished the conversation is kept and nothing is made of it."""
    at = key()
    store_conversation(only(openai(TALK)), store=store, key=at, counter=COUNTER, remember=False)
    assert store.records("ann") == []
    assert len(store.messages(at)) == 4
