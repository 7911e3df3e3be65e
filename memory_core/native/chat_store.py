"""The SQL table of one ``Memory``: a file of its own, watched, and never half replaced.

``Memory`` loses messages when its default in-memory database is written from several tasks, so
each session has a file, and every connection is closed after use, whatever loop it was opened
in. :class:`WatchedChatStore` passes every call on and notes which messages were archived when
the queue held what. ``set`` is all or nothing (LlamaIndex deletes first, and then finds that a
message cannot be written), and an empty batch is nothing to write.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.storage.chat_store.base_db import AsyncDBChatStore, MessageStatus
from llama_index.core.storage.chat_store.sql import SQLAlchemyChatStore
from sqlalchemy import delete, insert
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool, StaticPool

from memory_core.errors import InvalidInput, StoreUnavailable
from memory_core.llama import from_chat, to_chat
from memory_core.messages import Message

TABLE = "llama_index_memory"  # LlamaIndex's own default, so that its programs can open the file


@dataclass(frozen=True)
class Archived:
    """Messages left the queue: how many, and the queue as it was read just before."""

    count: int
    queue: tuple[ChatMessage, ...]


@dataclass
class QueueJournal:
    """What happened to one queue since the journal was last emptied."""

    archived: list[Archived] = field(default_factory=list)


def open_file(path: Path) -> SQLAlchemyChatStore:
    """Return LlamaIndex's SQL chat store over a file that is made when it is first used."""
    engine = create_async_engine(f"sqlite+aiosqlite:///{path}", poolclass=NullPool)
    return SQLAlchemyChatStore(table_name=TABLE, async_engine=engine)


def in_memory() -> SQLAlchemyChatStore:
    """Return LlamaIndex's SQL chat store in memory, for one task after the other."""
    engine = create_async_engine("sqlite+aiosqlite://", poolclass=StaticPool)
    return SQLAlchemyChatStore(table_name=TABLE, async_engine=engine)


class WatchedChatStore(AsyncDBChatStore):
    """Passes every call on to LlamaIndex's SQL chat store."""

    _inner: SQLAlchemyChatStore = PrivateAttr()
    _journal: QueueJournal = PrivateAttr()
    _queue: tuple[ChatMessage, ...] = PrivateAttr(default=())

    def __init__(self, inner: SQLAlchemyChatStore, *, journal: QueueJournal) -> None:
        super().__init__()
        self._inner, self._journal = inner, journal

    @classmethod
    def class_name(cls) -> str:
        """Return the name LlamaIndex serialises the class under."""
        return "WatchedChatStore"

    async def close(self) -> None:
        """Let go of the connection."""
        engine = self._inner._async_engine  # noqa: SLF001
        if engine is not None:
            await engine.dispose()

    async def get_messages(
        self,
        key: str,
        status: MessageStatus | None = MessageStatus.ACTIVE,
        limit: int | None = None,
        offset: int | None = None,
    ) -> list[ChatMessage]:
        """Pass the call on."""
        found = await self._inner.get_messages(key, status=status, limit=limit, offset=offset)
        if status is MessageStatus.ACTIVE:
            self._queue = tuple(found)
        return found

    async def count_messages(
        self, key: str, status: MessageStatus | None = MessageStatus.ACTIVE
    ) -> int:
        """Pass the call on."""
        return await self._inner.count_messages(key, status=status)

    async def add_message(
        self, key: str, message: ChatMessage, status: MessageStatus = MessageStatus.ACTIVE
    ) -> None:
        """Pass the call on."""
        await self._inner.add_message(key, message, status=status)

    async def add_messages(
        self, key: str, messages: list[ChatMessage], status: MessageStatus = MessageStatus.ACTIVE
    ) -> None:
        """Pass the call on; an empty batch is nothing to write."""
        if messages:
            await self._inner.add_messages(key, messages, status=status)

    async def set_messages(
        self, key: str, messages: list[ChatMessage], status: MessageStatus = MessageStatus.ACTIVE
    ) -> None:
        """Replace the messages, or change nothing when one of them cannot be written.

        Raises :class:`InvalidInput` for such a message.
        """
        for place, message in enumerate(messages):
            try:
                message.model_dump(mode="json")
            except Exception as exc:
                raise InvalidInput(
                    f"Message {place} cannot be written: {exc}. Nothing was replaced."
                ) from exc
        await self._inner.set_messages(key, messages, status=status)

    async def delete_message(self, key: str, idx: int) -> ChatMessage | None:
        """Pass the call on."""
        return await self._inner.delete_message(key, idx)

    async def delete_messages(self, key: str, status: MessageStatus | None = None) -> None:
        """Pass the call on."""
        await self._inner.delete_messages(key, status=status)

    async def delete_oldest_messages(self, key: str, n: int) -> list[ChatMessage]:
        """Pass the call on."""
        return await self._inner.delete_oldest_messages(key, n)

    async def archive_oldest_messages(self, key: str, n: int) -> list[ChatMessage]:
        """Pass the call on and note it."""
        archived = await self._inner.archive_oldest_messages(key, n)
        self._journal.archived.append(Archived(len(archived), self._queue))
        self._queue = self._queue[len(archived) :]
        return archived

    async def get_keys(self) -> list[str]:
        """Pass the call on."""
        return await self._inner.get_keys()

    async def counts(self, key: str) -> tuple[int, int]:
        """Return how many messages the table holds, and how many of them are in the queue."""
        active = await self._inner.count_messages(key, status=MessageStatus.ACTIVE)
        return await self._inner.count_messages(key, status=None), active

    async def _holds(self, key: str, messages: Sequence[Message], archived: int) -> bool:
        if await self.counts(key) != (len(messages), len(messages) - archived):
            return False
        rows = await self._inner.get_messages(key, status=None)
        return [from_chat(message) for message in rows] == list(messages)

    async def hold(self, key: str, messages: Sequence[Message], *, archived: int) -> None:
        """Make the table hold exactly these messages, the first ``archived`` of them archived.

        A table that does already is not written. Raises :class:`StoreUnavailable` when the file
        cannot be read or written.
        """
        try:
            if await self._holds(key, messages, archived):
                return
            sessions, table = await self._inner._initialize()  # noqa: SLF001
            async with sessions() as session:
                await session.execute(delete(table).where(table.c.key == key))
                if messages:
                    await session.execute(insert(table), _rows(key, messages, archived))
                await session.commit()
        except (OSError, SQLAlchemyError) as exc:
            raise StoreUnavailable(f"The queue's file cannot be used: {exc}.") from exc


def _rows(key: str, messages: Sequence[Message], archived: int) -> list[dict[str, Any]]:
    now = time.time_ns()
    return [
        {
            "key": key,
            "timestamp": now + place,
            "role": message.role,
            "status": (MessageStatus.ARCHIVED if place < archived else MessageStatus.ACTIVE).value,
            "data": to_chat(message).model_dump(mode="json"),
        }
        for place, message in enumerate(messages)
    ]
