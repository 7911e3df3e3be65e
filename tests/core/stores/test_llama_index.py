"""LlamaIndex's own memories on our stores: nothing lost, nothing half replaced, nobody else's."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor

import pytest
from llama_index.core.base.llms.types import (
    ChatMessage,
    ImageBlock,
    MessageRole,
    TextBlock,
    ToolCallBlock,
)
from llama_index.core.memory import ChatMemoryBuffer, Memory
from llama_index.core.storage.chat_store.base_db import MessageStatus

from memory_core.errors import InvalidInput
from memory_core.stores.chat_log import STRATEGY
from memory_core.stores.llama_index import AsyncSessionChatStore, SessionChatStore
from memory_core.stores.opening import open_store
from memory_core.trace import trace_from_json

USER = "dana"


def said(text: str, role: str = "user") -> ChatMessage:
    """Return a message."""
    return ChatMessage(role=role, content=text)


def contents(messages) -> list[str]:
    """Return the texts of messages."""
    return [m.content for m in messages]


def test_a_buffer_keeps_its_messages(store, backend):
    """ChatMemoryBuffer finds its chat again in another program, tools and odd text included."""
    chats = SessionChatStore.of(store, user=USER)
    buffer = ChatMemoryBuffer.from_defaults(chat_store=chats, chat_store_key="s1", token_limit=1000)
    call = ChatMessage(
        role=MessageRole.ASSISTANT,
        blocks=[
            TextBlock(text="سلام 日本語 😀"),
            ToolCallBlock(tool_call_id="c1", tool_name="f", tool_kwargs={"a": [1]}),
        ],
        additional_kwargs={"n": 1.5},
    )
    answer = ChatMessage(
        role=MessageRole.TOOL, content="7", additional_kwargs={"tool_call_id": "c1"}
    )
    for message in (said("hello"), call, answer):
        buffer.put(message)
    again = ChatMemoryBuffer.from_defaults(
        chat_store=SessionChatStore.of(backend.open(), user=USER), chat_store_key="s1"
    )
    assert again.get_all() == [said("hello"), call, answer]
    assert again.get() == buffer.get()


def test_a_buffer_can_do_all_it_does(store):
    """Setting, deleting by place, deleting the last and resetting work as with SimpleChatStore."""
    chats = SessionChatStore.of(store, user=USER)
    assert chats.get_messages("s1") == []
    assert chats.delete_messages("s1") is None
    assert chats.delete_last_message("s1") is None
    assert chats.get_keys() == []
    for n in range(5):
        chats.add_message("s1", said(f"m{n}"))
    assert chats.delete_message("s1", 1).content == "m1"
    assert chats.delete_message("s1", 9) is None
    assert chats.delete_message("s1", -1) is None
    assert chats.delete_last_message("s1").content == "m4"
    assert contents(chats.get_messages("s1")) == ["m0", "m2", "m3"]
    chats.set_messages("s1", [said("a"), said("b")])
    chats.add_message("s1", said("c"))
    assert chats.delete_message("s1", 0).content == "a"
    assert contents(chats.get_messages("s1")) == ["b", "c"]
    chats.set_messages("s1", [])
    assert chats.get_messages("s1") == []
    assert chats.get_keys() == []
    chats.add_message("s1", said("d"))
    assert chats.get_keys() == ["s1"]
    buffer = ChatMemoryBuffer.from_defaults(chat_store=chats, chat_store_key="s1")
    buffer.reset()
    assert store.sessions(USER) == []


def test_the_app_can_look_into_such_a_session(store):
    """Each change is a turn with a trace that the inspector reads, superseded ones included."""
    chats = SessionChatStore.of(store, user=USER)
    chats.add_message("s1", said("hello"))
    chats.set_messages("s1", [said("other")])
    [info] = store.sessions(USER)
    assert info.strategy == STRATEGY
    first, second = (trace_from_json(t.trace, lambda _: {}) for t in store.turns(info.key))
    assert (first.query, second.query) == ("hello", "other")
    old = store.messages(info.key, superseded=True)[0]
    assert first.appended == (old.id,)


def test_a_failed_replacement_changes_nothing(store, case, tmp_path):
    """Both old messages are still there; an empty batch does nothing and raises nothing."""
    given = case("C15")
    chats = SessionChatStore.of(store, user=USER)
    before = [said(m["content"], m["role"]) for m in given["input"]["before"]]
    chats.set_messages("s1", before)
    picture = tmp_path / "picture.png"
    picture.write_bytes(b"png")
    unreadable = ChatMessage(role="user", blocks=[ImageBlock(path=picture)])
    picture.unlink()
    with pytest.raises(InvalidInput):
        chats.set_messages("s1", [said("new"), unreadable])
    wanted = given["expected"]["check"]["after_failed_replace"]
    assert contents(chats.get_messages("s1")) == wanted
    log = AsyncSessionChatStore.of(store, user=USER)
    asyncio.run(log.add_messages("s1", []))
    assert contents(chats.get_messages("s1")) == wanted


def test_keys_are_sessions_of_one_user(store):
    """The same key of another user is another chat; a hostile key is refused."""
    mine, hers = (SessionChatStore.of(store, user=u) for u in (USER, "eve"))
    mine.add_message("s1", said("mine"))
    assert hers.get_messages("s1") == []
    hers.delete_messages("s1")
    assert contents(mine.get_messages("s1")) == ["mine"]
    for bad in ("../up", "", "a\0"):
        with pytest.raises(InvalidInput):
            mine.add_message(bad, said("x"))
    with pytest.raises(InvalidInput):
        SessionChatStore.of(store, user="..")


async def test_memory_archives_and_finds_again(store, backend):
    """Memory flushes to the archive on our store as on its own, and a new program sees both."""
    chats = AsyncSessionChatStore.of(store, user=USER)

    def memory(log) -> Memory:
        return Memory.from_defaults(
            session_id="s1", chat_store=log, token_limit=60, token_flush_size=20,
            chat_history_token_ratio=0.7,
        )  # fmt: skip

    first = memory(chats)
    for n in range(12):
        await first.aput(said(f"question number {n}"))
        await first.aput(said(f"answer number {n}", "assistant"))
    everything = await first.aget_all(status=None)
    active = await first.aget_all(status=MessageStatus.ACTIVE)
    archived = await first.aget_all(status=MessageStatus.ARCHIVED)
    assert len(everything) == 24
    assert 0 < len(active) < 24
    assert archived + active == everything
    again = memory(AsyncSessionChatStore.of(backend.open(), user=USER))
    assert await again.aget_all(status=MessageStatus.ACTIVE) == active
    assert await again.aget() == await first.aget()
    await again.areset()
    assert await first.aget_all(status=None) == []


async def test_an_async_store_can_do_all_it_must(store):
    """Counting, paging, statuses, deleting by position and the oldest, replacing, keys."""
    log = AsyncSessionChatStore.of(store, user=USER)
    assert await log.get_messages("s1") == []
    assert await log.archive_oldest_messages("s1", 3) == []
    assert await log.delete_oldest_messages("s1", 3) == []
    await log.add_messages("s1", [said(f"m{n}") for n in range(6)])
    assert contents(await log.archive_oldest_messages("s1", 2)) == ["m0", "m1"]
    await log.add_message("s1", said("old"), status=MessageStatus.ARCHIVED)
    assert await log.count_messages("s1") == 4
    assert await log.count_messages("s1", MessageStatus.ARCHIVED) == 3
    assert await log.count_messages("s1", None) == 7
    assert contents(await log.get_messages("s1", limit=2, offset=1)) == ["m3", "m4"]
    assert (await log.delete_message("s1", 3)).content == "m3"
    assert await log.delete_message("s1", 999) is None
    assert contents(await log.get_messages("s1", MessageStatus.ARCHIVED)) == ["m0", "m1", "old"]
    assert contents(await log.delete_oldest_messages("s1", 1)) == ["m2"]
    assert contents(await log.get_messages("s1")) == ["m4", "m5"]
    await log.delete_messages("s1", MessageStatus.ARCHIVED)
    assert contents(await log.get_messages("s1", None)) == ["m4", "m5"]
    await log.set_messages("s1", [said("a"), said("b")], status=MessageStatus.ARCHIVED)
    assert await log.count_messages("s1", MessageStatus.ARCHIVED) == 2
    assert await log.get_keys() == ["s1"]
    await log.delete_messages("s1")
    assert await log.get_keys() == []


async def test_messages_put_at_the_same_time_are_all_kept(tmp_path, case):
    """Fifty parallel puts, two sessions at once, and puts from four threads: each once."""
    given = case("C05")["input"]
    store = open_store(None, folder=tmp_path)
    log = AsyncSessionChatStore.of(store, user=USER)
    memory = Memory.from_defaults(session_id="p", chat_store=log, token_limit=100_000)
    wanted = given["parallel_messages"]
    await asyncio.gather(*(memory.aput(said(text)) for text in wanted))
    assert sorted(contents(await memory.aget_all())) == sorted(wanted)
    sizes = given["two_sessions_one_store"]
    memories = {
        name: Memory.from_defaults(session_id=name, chat_store=log, token_limit=100_000)
        for name in sizes
    }
    await asyncio.gather(
        *(
            memories[name].aput(said(f"{name}{n}"))
            for name, size in sizes.items()
            for n in range(size)
        )
    )
    for name, size in sizes.items():
        got = contents(await memories[name].aget_all())
        assert sorted(got) == sorted(f"{name}{n}" for n in range(size))
    chats = SessionChatStore.of(store, user=USER)
    threads, each = given["threads"]["count"], given["threads"]["messages_each"]
    with ThreadPoolExecutor(threads) as pool:
        list(
            pool.map(
                lambda t: [chats.add_message("t", said(f"{t}.{n}")) for n in range(each)],
                range(threads),
            )
        )
    assert len(set(contents(chats.get_messages("t")))) == threads * each
    store.close()


def test_a_script_with_a_memory_ends_by_itself(tmp_path):
    """Making a Memory on our store, adding one message and ending leaves no thread behind."""
    script = f"""
        import asyncio
        from pathlib import Path
        from llama_index.core.base.llms.types import ChatMessage
        from llama_index.core.memory import Memory
        from memory_core.stores.llama_index import AsyncSessionChatStore
        from memory_core.stores.opening import open_store
        log = AsyncSessionChatStore.of(open_store(None, folder=Path({str(tmp_path)!r})), user="u")
        memory = Memory.from_defaults(session_id="s", chat_store=log)
        asyncio.run(memory.aput(ChatMessage(role="user", content="kept")))
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=True, timeout=60)
    store = open_store(None, folder=tmp_path)
    assert contents(SessionChatStore.of(store, user="u").get_messages("s")) == ["kept"]
    store.close()


def test_appending_writes_only_the_new_message(store, monkeypatch):
    """One more message is one commit of one message, however long the chat is."""
    chats = SessionChatStore.of(store, user=USER)
    sizes = []
    commit = store.commit

    def counted(key, record):
        sizes.append((len(record.messages), len(json.dumps(record.trace))))
        commit(key, record)

    monkeypatch.setattr(store, "commit", counted)
    for n in range(20):
        chats.add_message("s1", said(f"m{n:02}"))
    assert [count for count, _ in sizes] == [1] * 20
    assert sizes[-1][1] - sizes[0][1] < 10
    chats.delete_last_message("s1")
    assert sizes[-1][0] == 0
