"""What running a turn needs of a memory, ours or a watched one of LlamaIndex's.

Every :class:`TurnMemory` is a LlamaIndex ``BaseMemory`` with a session beside it: our own record
of what was said. :class:`TurnRecorder` keeps the model calls of its running turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from llama_index.core.base.llms.types import ChatMessage

from memory_core.messages import Json, Message
from memory_core.prompt import Assembly
from memory_core.recording import Recorder, RecordingLLM
from memory_core.session import Session
from memory_core.settings import MemorySettings
from memory_core.trace import ModelCall, TurnTrace


class TurnMemory(Protocol):
    """A LlamaIndex memory whose turns are recorded and explained."""

    @property
    def session(self) -> Session:
        """The session behind."""
        ...

    def recorder(self) -> Recorder:
        """Return who keeps the model calls of this memory's turns."""
        ...

    def watch(self, llm: RecordingLLM | None) -> None:
        """Use this model, watched by :meth:`recorder`, for what the memory itself asks."""
        ...

    def offer(self, tools: Sequence[Json]) -> None:
        """Say which tool definitions are sent beside the prompt."""
        ...

    def sent(self, purpose: str, sent: Sequence[Message], tools: Sequence[Json]) -> Assembly:
        """Return the Assembly of the messages of one model call."""
        ...

    def preview(self, settings: MemorySettings, query: str = "") -> Assembly:
        """Return what the next prompt would be, without a model call."""
        ...

    def close_turn(self, *, error: str = "") -> TurnTrace:
        """Commit the running turn and return its trace."""
        ...

    def note(self, message: ChatMessage) -> None:
        """Keep the question of a turn that failed before the agent gave it to the memory."""
        ...

    async def aput(self, message: ChatMessage) -> None:
        """Add a message."""
        ...

    async def aget(self, *args: Any, **kwargs: Any) -> list[ChatMessage]:
        """Return the prompt."""
        ...


class TurnRecorder:
    """Keeps model calls in the running turn of a memory."""

    def __init__(self, memory: TurnMemory) -> None:
        self._memory = memory

    def explain(self, purpose: str, sent: Sequence[Message], tools: Sequence[Json]) -> Assembly:
        """Return the Assembly of exactly these messages and tool definitions."""
        return self._memory.sent(purpose, sent, tools)

    def count(self, message: Message) -> int:
        """Return our own token count of a reply."""
        return self._memory.session.counter.message(message)

    def elapsed(self) -> float:
        """Return the milliseconds since the turn began."""
        turn = self._memory.session.turn
        return turn.elapsed() if turn is not None else 0.0

    def add(self, call: ModelCall) -> None:
        """Keep a finished or failed call."""
        turn = self._memory.session.turn
        if turn is not None:
            turn.calls.append(call)
            turn.spend("model", call.milliseconds)
