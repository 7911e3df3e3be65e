"""The memory patterns of the tutorials, as working LlamaIndex memories on today's API.

Most tutorials were written for classes that are gone; what they teach is three small ideas. Each
is a ``BaseMemory`` here that can be taken into other programs, keeps tool calls and their results
together, never loses a message to a failing model (it is tried again at the next request), and
can say what it did: ``state`` and ``load`` give and take everything it holds.

* :class:`SummarisingBuffer`: at ``every`` messages, all but the first and the last turn become
  one summary message.
* :class:`SummaryMemory`: the newest ``in_full`` messages in full; older ones fold, two by two,
  into a running summary with a cap on its tokens.
* :class:`HybridMemory`: a ``ChatMemoryBuffer``, and what the user said before it, searched by
  meaning into a system message.
"""

from __future__ import annotations

import logging
import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.indices.vector_store import VectorStoreIndex
from llama_index.core.llms import LLM
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.memory.types import BaseMemory
from llama_index.core.schema import NodeWithScore, TextNode

from memory_core.folding import clip
from memory_core.llama import from_chat, to_chat
from memory_core.messages import Json, Message
from memory_core.summary import summary_prompt
from memory_core.tokens import TokenCounter

log = logging.getLogger("memory_core.native")

SUMMARY_MESSAGE = "<summary>\n{text}\n</summary>"
FACTS_MESSAGE = "<key-facts>\n{lines}</key-facts>"
_OWN_TAGS = re.compile(r"</(summary|key-facts)>")


class Summarising(BaseMemory):
    """What both summarising patterns share: messages, a summary, and how one becomes the other."""

    summary_tokens: int = 160
    _llm: LLM | None = PrivateAttr(default=None)
    _counter: TokenCounter = PrivateAttr(default_factory=TokenCounter)
    _messages: list[ChatMessage] = PrivateAttr(default_factory=list)
    _summary: str = PrivateAttr(default="")
    _folded: int = PrivateAttr(default=0)
    _error: Exception | None = PrivateAttr(default=None)

    @property
    def summary(self) -> str:
        """The running summary, empty before there is one."""
        return self._summary

    @property
    def folded(self) -> int:
        """How many messages stand in the summary instead of in full."""
        return self._folded

    @property
    def error(self) -> Exception | None:
        """What kept the last request from summarising; it is tried again at the next."""
        return self._error

    def use(self, llm: LLM | None) -> None:
        """Have summaries written by this model; without one, nothing is folded."""
        self._llm = llm

    @abstractmethod
    def due(self) -> tuple[int, int]:
        """Return which messages (first, last, exclusive) are to be folded now; equal: none."""

    def get(self, input: str | None = None, **_: Any) -> list[ChatMessage]:  # noqa: A002, ARG002
        """Fold what is due, then return the messages with the summary in its place."""
        prompt = self._begin()
        if prompt is not None and self._llm is not None:
            try:
                self._take(str(self._llm.chat(prompt).message.content or ""))
            except Exception as exc:  # noqa: BLE001 - a failing model must not lose messages
                self._failed(exc)
        return self._window()

    async def aget(self, input: str | None = None, **_: Any) -> list[ChatMessage]:  # noqa: A002, ARG002
        """Fold what is due, then return the messages with the summary in its place."""
        prompt = self._begin()
        if prompt is not None and self._llm is not None:
            try:
                response = await self._llm.achat(prompt)
                self._take(str(response.message.content or ""))
            except Exception as exc:  # noqa: BLE001 - a failing model must not lose messages
                self._failed(exc)
        return self._window()

    def get_all(self) -> list[ChatMessage]:
        """Return the messages that are held in full."""
        return list(self._messages)

    def put(self, message: ChatMessage) -> None:
        """Add a message."""
        self._messages.append(message)

    def set(self, messages: list[ChatMessage]) -> None:
        """Start anew with these messages."""
        self.reset()
        self._messages = list(messages)

    def reset(self) -> None:
        """Forget everything."""
        self._messages, self._summary, self._folded = [], "", 0

    def state(self) -> dict[str, Json]:
        """Return everything it holds as a JSON object."""
        held = [from_chat(message).to_json() for message in self._messages]
        return {"messages": held, "summary": self._summary, "folded": self._folded}

    def load(self, state: Mapping[str, Json]) -> None:
        """Take over what :meth:`state` returned."""
        self._messages = [to_chat(Message.from_json(item)) for item in state["messages"]]
        self._summary, self._folded = str(state["summary"]), int(state["folded"])

    def _begin(self) -> list[ChatMessage] | None:
        """Return the prompt that folds what is due, ``None`` when nothing is."""
        self._error = None
        first, last = self.due()
        if first >= last:
            return None
        plain = [from_chat(message) for message in self._messages[first:last]]
        prompt = summary_prompt(self._summary, plain, (), max_tokens=self.summary_tokens)
        return [to_chat(message) for message in prompt]

    def _take(self, text: str) -> None:
        """Put a summary in the place of the messages it was made from."""
        if not text.strip():
            raise ValueError("the summary came back empty")
        first, last = self.due()
        self._summary = clip(text.strip(), self.summary_tokens, self._counter)
        self._folded += last - first
        del self._messages[first:last]

    def _failed(self, exc: Exception) -> None:
        log.warning("the summary is tried again at the next request: %s", exc)
        self._error = exc

    @abstractmethod
    def _window(self) -> list[ChatMessage]:
        """Return the prompt: the messages and, in its place, the summary."""

    def _summary_message(self) -> ChatMessage:
        text = SUMMARY_MESSAGE.format(text=fenced(self._summary))
        return ChatMessage(role=MessageRole.SYSTEM, content=text)


class SummarisingBuffer(Summarising):
    """At ``every`` messages, all but the first and the last turn become one summary message."""

    every: int = 10

    @classmethod
    def class_name(cls) -> str:
        """Return the name LlamaIndex serialises the class under."""
        return "SummarisingBuffer"

    @classmethod
    def from_defaults(
        cls,
        *,
        llm: LLM | None = None,
        counter: TokenCounter | None = None,
        every: int = 10,
        summary_tokens: int = 160,
        **_: Any,
    ) -> SummarisingBuffer:
        """Return an empty buffer; ``llm`` writes its summaries, ``counter`` measures them."""
        memory = cls(every=every, summary_tokens=summary_tokens)
        memory._llm, memory._counter = llm, counter or memory._counter
        return memory

    def due(self) -> tuple[int, int]:
        """Return the messages between the first and the last turn once there are ``every``."""
        if len(self._messages) < self.every:
            return 1, 1
        return 1, max(1, _last_turn(self._messages))

    def _window(self) -> list[ChatMessage]:
        if not self._summary:
            return list(self._messages)
        return [*self._messages[:1], self._summary_message(), *self._messages[1:]]


class SummaryMemory(Summarising):
    """The newest ``in_full`` messages in full, older ones two by two in a running summary."""

    in_full: int = 6

    @classmethod
    def class_name(cls) -> str:
        """Return the name LlamaIndex serialises the class under."""
        return "SummaryMemory"

    @classmethod
    def from_defaults(
        cls,
        *,
        llm: LLM | None = None,
        counter: TokenCounter | None = None,
        in_full: int = 6,
        summary_tokens: int = 160,
        **_: Any,
    ) -> SummaryMemory:
        """Return an empty memory; ``llm`` writes its summaries, ``counter`` measures them."""
        memory = cls(in_full=in_full, summary_tokens=summary_tokens)
        memory._llm, memory._counter = llm, counter or memory._counter
        return memory

    def due(self) -> tuple[int, int]:
        """Return the oldest messages over ``in_full``, in pairs that split no tool call."""
        over = (len(self._messages) - self.in_full) // 2 * 2
        while 0 < over < len(self._messages) and self._messages[over].role == MessageRole.TOOL:
            over += 1
        return 0, max(0, min(over, _last_turn(self._messages)))

    def _window(self) -> list[ChatMessage]:
        return [self._summary_message(), *self._messages] if self._summary else self.get_all()


class HybridMemory(BaseMemory):
    """A ``ChatMemoryBuffer``, and facts the user stated before it, searched by meaning.

    Every statement of the user becomes a record. A request without the question searches for the
    newest user message, since agents ask without it.
    """

    top_k: int = 3
    cutoff: float = 0.25
    _buffer: ChatMemoryBuffer = PrivateAttr()
    _index: VectorStoreIndex = PrivateAttr()
    _kept: list[NodeWithScore] = PrivateAttr(default_factory=list)

    def __init__(self, *, buffer: ChatMemoryBuffer, index: VectorStoreIndex, **fields: Any) -> None:
        super().__init__(**fields)
        self._buffer, self._index = buffer, index

    @classmethod
    def class_name(cls) -> str:
        """Return the name LlamaIndex serialises the class under."""
        return "HybridMemory"

    @classmethod
    def from_defaults(cls, **fields: Any) -> HybridMemory:
        """Return an empty memory."""
        return cls(**fields)

    @property
    def buffer(self) -> ChatMemoryBuffer:
        """The buffer."""
        return self._buffer

    @property
    def kept(self) -> Sequence[NodeWithScore]:
        """The records that the last request put in the prompt."""
        return self._kept

    @property
    def index(self) -> VectorStoreIndex:
        """Where the records are searched."""
        return self._index

    @index.setter
    def index(self, index: VectorStoreIndex) -> None:
        self._index = index

    def get(
        self,
        input: str | None = None,  # noqa: A002 - LlamaIndex's name
        initial_token_count: int = 0,
        **_: Any,
    ) -> list[ChatMessage]:
        """Return the buffer, with a system message in front when facts were found."""
        window = self._buffer.get(initial_token_count=initial_token_count)
        query = str(input or _newest_question(self.get_all()))
        said = {str(message.content) for message in window}
        found = (
            self._index.as_retriever(similarity_top_k=self.top_k).retrieve(query)
            if query.strip()
            else []
        )
        self._kept = [
            node
            for node in found
            if (node.score or 0.0) >= self.cutoff and node.get_content() not in said
        ]
        if not self._kept:
            return window
        text = FACTS_MESSAGE.format(lines="".join(fact_line(n.get_content()) for n in self._kept))
        return [ChatMessage(role=MessageRole.SYSTEM, content=text), *window]

    def get_all(self) -> list[ChatMessage]:
        """Return every message."""
        return self._buffer.get_all()

    def put(self, message: ChatMessage) -> None:
        """Add a message; a statement of the user becomes a record too."""
        self._buffer.put(message)
        self._remember([message])

    def set(self, messages: list[ChatMessage]) -> None:
        """Start anew with these messages."""
        self.reset()
        self._buffer.set(list(messages))
        self._remember(messages)

    def _remember(self, messages: Sequence[ChatMessage]) -> None:
        """Make records of what the user states in these messages."""
        texts = [str(m.content or "").strip() for m in messages if m.role == MessageRole.USER]
        nodes = [TextNode(text=text) for text in texts if text and not text.endswith("?")]
        if nodes:
            self._index.insert_nodes(nodes)

    def reset(self) -> None:
        """Forget everything."""
        self._buffer.reset()
        self._index.vector_store.clear()


def fenced(text: str) -> str:
    """Keep a text from closing the section it stands in."""
    return _OWN_TAGS.sub(r"<\\/\1>", text)


def fact_line(text: str) -> str:
    """Return a statement as it stands among the facts of the system message."""
    return f"- {fenced(text)}\n"


def _last_turn(messages: Sequence[ChatMessage]) -> int:
    """Return where the newest turn begins: at the newest user message."""
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].role == MessageRole.USER:
            return index
    return 0


def _newest_question(messages: Sequence[ChatMessage]) -> str:
    place = _last_turn(messages)
    newest = messages[place] if messages else None
    if newest is None or newest.role != MessageRole.USER:
        return ""
    return str(newest.content or "")
