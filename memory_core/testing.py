"""Fakes for tests of code that uses the core: a scripted model, a hash embedder, a frozen clock.

They ship with the package and are tested like it. None of them touches disk, network or time.
"""

from __future__ import annotations

import hashlib
import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, ToolCallBlock
from pydantic import PrivateAttr

from memory_core.llama import from_chat
from memory_core.messages import Json, Message
from memory_core.models.pieces import PiecewiseLLM, in_pieces


@dataclass(frozen=True)
class Call:
    """A reply that asks for one tool; several in a row of a script's tuple are one reply."""

    name: str
    arguments: Mapping[str, Json]
    id: str = ""


@dataclass(frozen=True)
class Prompted:
    """One prompt that a :class:`ScriptedLLM` was given, with the tool definitions."""

    messages: tuple[Message, ...]
    tools: tuple[Json, ...] = ()


Scripted = str | Call | tuple[Call, ...] | Exception


class ScriptedLLM(PiecewiseLLM):
    """A model that replies from a script, in order, and keeps the prompts it was given.

    A text is a reply, a :class:`Call` (or a tuple of them) asks for tools, an exception is
    raised. ``usage`` is reported with every reply, as OpenAI does. Running out of script is an
    ``AssertionError``.
    """

    model_name: str = "scripted"
    usage: dict[str, int] | None = None
    _script: deque[Scripted] = PrivateAttr(default_factory=deque)
    _prompts: list[Prompted] = PrivateAttr(default_factory=list)

    def __init__(self, *script: Scripted, **fields: Any) -> None:
        """Queue a script."""
        super().__init__(**fields)
        self._script.extend(script)

    @property
    def prompts(self) -> list[Prompted]:
        """The prompts so far, oldest first."""
        return self._prompts

    def queue(self, *script: Scripted) -> None:
        """Add to the script."""
        self._script.extend(script)

    @classmethod
    def class_name(cls) -> str:
        """Return the name under which LlamaIndex serialises this class."""
        return "ScriptedLLM"

    def _pieces(
        self, messages: Sequence[ChatMessage], kwargs: Mapping[str, Any]
    ) -> Iterator[ChatResponse]:
        plain = tuple(from_chat(message) for message in messages)
        self._prompts.append(Prompted(plain, tuple(kwargs.get("tools") or ())))
        if not self._script:
            raise AssertionError(f"the script is over; asked for reply {len(self._prompts)}")
        reply = self._script.popleft()
        if isinstance(reply, Exception):
            raise reply
        raw = {"usage": self.usage} if self.usage else None
        if isinstance(reply, str):
            yield from in_pieces(reply, raw=raw)
            return
        calls = (reply,) if isinstance(reply, Call) else reply
        turn = len(self._prompts)
        blocks = [
            ToolCallBlock(
                tool_call_id=call.id or f"call-{turn}-{index}",
                tool_name=call.name,
                tool_kwargs=dict(call.arguments),
            )
            for index, call in enumerate(calls)
        ]
        yield from in_pieces("", blocks, raw)


class HashEmbedder:
    """An embedder without a model: each word adds a direction that its hash decides.

    Texts with words in common are near each other, equal texts are equal, the same everywhere.
    """

    def __init__(self, dimension: int = 64, *, name: str = "") -> None:
        """Embed into ``dimension`` numbers."""
        self.dimension = dimension
        self.name = name or f"hash-{dimension}"
        self.embedded = 0

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return vectors of length 1, float32 of shape ``(len(texts), dimension)``.

        Raises ``ValueError`` for blank text.
        """
        out = np.zeros((len(texts), self.dimension), np.float32)
        for index, text in enumerate(texts):
            if not text.strip():
                raise ValueError("blank text has no embedding")
            words = re.findall(r"\w+", text.casefold()) or [text]
            total = np.sum([self._direction(word) for word in words], axis=0)
            out[index] = total / np.linalg.norm(total)
        self.embedded += len(texts)
        return out

    def _direction(self, word: str) -> npt.NDArray[np.float32]:
        seed = hashlib.sha256(word.encode("utf-8", "replace")).digest()[:8]
        generator = np.random.Generator(np.random.PCG64(int.from_bytes(seed)))
        return generator.standard_normal(self.dimension).astype(np.float32)


class FrozenClock:
    """A clock that stands still until it is moved. Calling it gives an aware UTC time."""

    def __init__(self, now: datetime = datetime(2026, 1, 1, 12, tzinfo=UTC)) -> None:
        """Stand still at a time."""
        if now.tzinfo is None:
            raise ValueError("a clock needs an aware time")
        self._now = now.astimezone(UTC)

    def __call__(self) -> datetime:
        """Return the time it stands at."""
        return self._now

    def advance(self, **spans: float) -> datetime:
        """Move the clock by ``timedelta`` arguments (``hours=2``) and return the new time."""
        self._now += timedelta(**spans)
        return self._now
