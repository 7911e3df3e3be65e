"""The two controls: no memory at all, and all of it.

Both are LlamaIndex memories of a few lines, so that they run in the same agents as the others.
:class:`StatelessMemory` holds the running question and forgets it with the answer;
:class:`FullHistory` is LlamaIndex's own chat store without any limit.
"""

from __future__ import annotations

from typing import Any

from llama_index.core.base.llms.types import ChatMessage, MessageRole, ToolCallBlock
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.memory.types import BaseChatStoreMemory, BaseMemory

from memory_core.native.adapter import Adapter, Asked, assembled, in_order, left_out, newest
from memory_core.native.parts import Mark
from memory_core.prompt import Assembly, Gate, Source


class StatelessMemory(BaseMemory):
    """Holds the running question and forgets everything when it is answered."""

    _messages: list[ChatMessage] = PrivateAttr(default_factory=list)

    @classmethod
    def class_name(cls) -> str:
        """Return the name LlamaIndex serialises the class under."""
        return "StatelessMemory"

    @classmethod
    def from_defaults(cls, **_: Any) -> StatelessMemory:
        """Return an empty memory."""
        return cls()

    def get(self, input: str | None = None, **_: Any) -> list[ChatMessage]:  # noqa: A002, ARG002
        """Return the running question, if there is one."""
        return list(self._messages)

    def get_all(self) -> list[ChatMessage]:
        """Return what it holds."""
        return list(self._messages)

    def put(self, message: ChatMessage) -> None:
        """Keep a message until the next answer."""
        self._messages.append(message)
        if _is_answer(message):
            self._messages.clear()

    def set(self, messages: list[ChatMessage]) -> None:
        """Hold what is not answered of these messages."""
        self.reset()
        self.put_messages(messages)

    def reset(self) -> None:
        """Forget the question."""
        self._messages.clear()


class FullHistory(BaseChatStoreMemory):
    """Every message, in every prompt, whatever the context window is."""

    @classmethod
    def class_name(cls) -> str:
        """Return the name LlamaIndex serialises the class under."""
        return "FullHistory"

    @classmethod
    def from_defaults(cls, **_: Any) -> FullHistory:  # type: ignore[override]
        """Return an empty history."""
        return cls()

    def get(self, input: str | None = None, **_: Any) -> list[ChatMessage]:  # noqa: A002, ARG002
        """Return every message."""
        return list(self.get_all())

    async def aget(self, input: str | None = None, **_: Any) -> list[ChatMessage]:  # noqa: A002
        """Return every message."""
        return self.get(input)


class StatelessAdapter(Adapter):
    """Explains :class:`StatelessMemory`."""

    title = "StatelessMemory"

    def explain(self, asked: Asked) -> Assembly:
        """Everything but the running question is left out by design."""
        parts, places = in_order(asked, self.given, self.counter, Mark("", Source.UNKNOWN))
        kept = frozenset(places)
        outside = [i for i in range(len(self.given.messages)) if i not in kept]
        reason = "this strategy keeps nothing but the running question"
        out = [left_out(self.given.messages[i], Gate.RULE, reason) for i in newest(outside)]
        return assembled(asked, self.given, parts, places, self.counter, omissions=tuple(out))


class FullHistoryAdapter(Adapter):
    """Explains :class:`FullHistory`: nothing is ever left out."""

    title = "FullHistory"

    def explain(self, asked: Asked) -> Assembly:
        """Return the Assembly of all messages."""
        parts, places = in_order(asked, self.given, self.counter, Mark("", Source.UNKNOWN))
        return assembled(asked, self.given, parts, places, self.counter)


def _is_answer(message: ChatMessage) -> bool:
    asks_for_tools = message.additional_kwargs.get("tool_calls") or any(
        isinstance(block, ToolCallBlock) for block in message.blocks
    )
    return message.role == MessageRole.ASSISTANT and not asks_for_tools
