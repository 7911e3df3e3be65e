"""Chat stores for LlamaIndex on any backend: message by message, atomically, for one user.

``ChatMemoryBuffer(chat_store=SessionChatStore.of(store, user="dana"), chat_store_key="s1")`` and
``Memory.from_defaults(session_id="s1", async_database_uri=None,
chat_store=AsyncSessionChatStore.of(store, user="dana"))`` keep their messages in the same place
and form as the app: a key is a session of that user.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Self

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.storage.chat_store.base import BaseChatStore
from llama_index.core.storage.chat_store.base_db import AsyncDBChatStore, MessageStatus

from memory_core.llama import from_chat, to_chat
from memory_core.stores.chat_log import ChatLog, Line
from memory_core.stores.ids import check_id
from memory_core.stores.protocols import Store


class SessionChatStore(BaseChatStore):
    """A ``BaseChatStore`` whose keys are sessions of one user."""

    user: str
    _log: ChatLog = PrivateAttr()

    @classmethod
    def of(cls, store: Store, *, user: str) -> Self:
        """Return the chat store of a user on a store; raise :class:`InvalidInput` for a bad id."""
        found = cls(user=check_id(user, "user id"))
        found._log = ChatLog(store, user=user)
        return found

    @classmethod
    def class_name(cls) -> str:
        """Return the name LlamaIndex knows this class by."""
        return "SessionChatStore"

    def set_messages(self, key: str, messages: list[ChatMessage]) -> None:
        """Put messages in the place of all under a key, or change nothing."""
        self._log.set(key, [from_chat(m) for m in messages])

    def get_messages(self, key: str) -> list[ChatMessage]:
        """Return the messages under a key, none where there is no such key."""
        return _chats(self._log.lines(key))

    def add_message(self, key: str, message: ChatMessage) -> None:
        """Append a message."""
        self._log.add(key, [from_chat(message)])

    def delete_messages(self, key: str) -> list[ChatMessage] | None:
        """Erase everything under a key and return it, ``None`` where there was nothing."""
        gone = self.get_messages(key)
        self._log.erase(key)
        return gone or None

    def delete_message(self, key: str, idx: int) -> ChatMessage | None:
        """Delete the message at an index and return it, ``None`` where there is none."""
        return _first(self._log.drop(key, lambda lines: lines[idx : idx + 1] if idx >= 0 else []))

    def delete_last_message(self, key: str) -> ChatMessage | None:
        """Delete the newest message and return it, ``None`` where there is none."""
        return _first(self._log.drop(key, lambda lines: lines[-1:]))

    def get_keys(self) -> list[str]:
        """Return all keys with messages."""
        return self._log.ids()


class AsyncSessionChatStore(AsyncDBChatStore):
    """An ``AsyncDBChatStore`` whose keys are sessions of one user; ids are positions."""

    user: str
    _log: ChatLog = PrivateAttr()

    @classmethod
    def of(cls, store: Store, *, user: str) -> Self:
        """Return the chat store of a user on a store; raise :class:`InvalidInput` for a bad id."""
        found = cls(user=check_id(user, "user id"))
        found._log = ChatLog(store, user=user)
        return found

    @classmethod
    def class_name(cls) -> str:
        """Return the name LlamaIndex knows this class by."""
        return "AsyncSessionChatStore"

    async def get_messages(
        self,
        key: str,
        status: MessageStatus | None = MessageStatus.ACTIVE,
        limit: int | None = None,
        offset: int | None = None,
    ) -> list[ChatMessage]:
        """Return the messages under a key, those of one status or all."""
        lines = await asyncio.to_thread(self._log.lines, key)
        first = offset or 0
        return _chats(_of(lines, status)[first : None if limit is None else first + limit])

    async def count_messages(
        self, key: str, status: MessageStatus | None = MessageStatus.ACTIVE
    ) -> int:
        """Count the messages under a key."""
        return len(_of(await asyncio.to_thread(self._log.lines, key), status))

    async def add_message(
        self, key: str, message: ChatMessage, status: MessageStatus = MessageStatus.ACTIVE
    ) -> None:
        """Append a message."""
        await self.add_messages(key, [message], status)

    async def add_messages(
        self, key: str, messages: list[ChatMessage], status: MessageStatus = MessageStatus.ACTIVE
    ) -> None:
        """Append messages together; no messages change nothing."""
        plain = [from_chat(m) for m in messages]
        await asyncio.to_thread(self._log.add, key, plain, archived=_is_archived(status))

    async def set_messages(
        self, key: str, messages: list[ChatMessage], status: MessageStatus = MessageStatus.ACTIVE
    ) -> None:
        """Put messages in the place of all under a key, or change nothing."""
        plain = [from_chat(m) for m in messages]
        await asyncio.to_thread(self._log.set, key, plain, archived=_is_archived(status))

    async def delete_message(self, key: str, idx: int) -> ChatMessage | None:
        """Delete the message at a position and return it, ``None`` where there is none."""

        def at(lines: list[Line]) -> list[Line]:
            return [line for line in lines if line.stored.position == idx]

        return _first(await asyncio.to_thread(self._log.drop, key, at))

    async def delete_messages(self, key: str, status: MessageStatus | None = None) -> None:
        """Delete the messages of one status; without one erase everything under the key."""
        if status is None:
            await asyncio.to_thread(self._log.erase, key)
            return
        await asyncio.to_thread(self._log.drop, key, lambda lines: _of(lines, status))

    async def delete_oldest_messages(self, key: str, n: int) -> list[ChatMessage]:
        """Delete the oldest active messages and return them."""

        def oldest(lines: list[Line]) -> list[Line]:
            return _of(lines, MessageStatus.ACTIVE)[: max(n, 0)]

        return _chats(await asyncio.to_thread(self._log.drop, key, oldest))

    async def archive_oldest_messages(self, key: str, n: int) -> list[ChatMessage]:
        """Archive the oldest active messages and return them."""
        return _chats(await asyncio.to_thread(self._log.archive, key, n))

    async def get_keys(self) -> list[str]:
        """Return all keys with messages."""
        return await asyncio.to_thread(self._log.ids)


def _chats(lines: Sequence[Line]) -> list[ChatMessage]:
    return [to_chat(line.stored.message) for line in lines]


def _first(lines: Sequence[Line]) -> ChatMessage | None:
    return to_chat(lines[0].stored.message) if lines else None


def _is_archived(status: MessageStatus | None) -> bool:
    return status is MessageStatus.ARCHIVED


def _of(lines: Sequence[Line], status: MessageStatus | None) -> list[Line]:
    return [li for li in lines if status is None or li.archived == _is_archived(status)]
