"""What one strategy must tell about its real object: an explanation, and its state to keep.

An :class:`Adapter` holds the LlamaIndex memory that does all the work. After each request it is
asked to explain what the memory *returned*; it may read the memory, never change it. Between
turns it gives up its state as a :class:`State` and takes it back after a restart or when a turn
is superseded. :class:`Given` is what the memory was given so far, with the ids under which our
own record of the session holds it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.memory.types import BaseMemory

from memory_core.buffer import LLAMA_INDEX, SYSTEM_ROLES, History, WindowPlan, plan_window
from memory_core.llama import to_chat
from memory_core.messages import Json, Message, StoredMessage
from memory_core.native.align import NOT_STORED, align
from memory_core.native.parts import Mark, parts_of
from memory_core.prompt import Assembly, Gate, Omission, Part, Source
from memory_core.recording import RecordingLLM
from memory_core.session import OpenTurn, Session
from memory_core.tokens import TokenCounter

Tokenizer = Callable[[str], list[Any]]
EXPLAINED_AT_ONCE = 12  # messages left out that are listed one by one, newest first


@dataclass(frozen=True)
class State:
    """A strategy's own state after a turn.

    ``data`` replaces what was before; ``added`` and ``removed`` are vector records since then.
    """

    data: Mapping[str, Json] = field(default_factory=dict)
    added: tuple[Json, ...] = ()
    removed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Asked:
    """One request for the prompt: what the memory was given with it, and what it returned.

    ``in_front`` are the tokens that the caller said it puts before the messages.
    """

    query: str
    in_front: int
    returned: tuple[Message, ...]


class Given:
    """The messages a memory was given, oldest first, counted as its own class counts them."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.count = lambda text: len(tokenizer(text))
        self.messages: list[StoredMessage] = []
        self.history = History(self.count)

    def append(self, stored: StoredMessage) -> None:
        """Note the next message."""
        self.messages.append(stored)
        self.history.append(stored.message, stored.tokens or 0)

    def replace(self, messages: Sequence[StoredMessage]) -> None:
        """Start anew with these messages."""
        self.messages = []
        self.history = History(self.count)
        for stored in messages:
            self.append(stored)

    def chats(self) -> list[ChatMessage]:
        """Return copies of all messages as LlamaIndex's class."""
        return [to_chat(stored.message) for stored in self.messages]


class Adapter(ABC):
    """One strategy: the real object, what it was given, and how its rule is told."""

    title = ""

    def __init__(self, memory: BaseMemory, *, session: Session, tokenizer: Tokenizer) -> None:
        self.memory = memory
        self.session = session
        self.given = Given(tokenizer)

    @property
    def counter(self) -> TokenCounter:
        """How tokens of the prompt are counted."""
        return self.session.counter

    @property
    def turn(self) -> OpenTurn | None:
        """The running turn."""
        return self.session.turn

    @abstractmethod
    def explain(self, asked: Asked) -> Assembly:
        """Return the Assembly of what was returned."""

    async def ask(self, query: str | ChatMessage | None, **kwargs: Any) -> list[ChatMessage]:
        """Ask the real object for the prompt."""
        if query is None:
            return await self.memory.aget(**kwargs)
        return await self.memory.aget(input=query, **kwargs)  # type: ignore[arg-type]

    def dump(self) -> State:
        """Return the state to keep; nothing where it is what the record holds."""
        return State()

    async def restore(self, state: State, messages: Sequence[StoredMessage]) -> None:  # noqa: ARG002
        """Make the real object what it was after these messages, with this state."""
        self.given.replace(messages)
        await self.memory.aset(self.given.chats())

    async def seed(self, messages: Sequence[StoredMessage]) -> None:
        """Give the real object a history that it has not seen, as LlamaIndex's users do."""
        await self.restore(State(), messages)

    def put(self, stored: Sequence[StoredMessage]) -> None:
        """Note messages that the real object was just given."""
        for message in stored:
            self.given.append(message)

    def use(self, llm: RecordingLLM | None) -> None:  # noqa: B027 - most ask no model
        """Use this model for what the real object itself asks a model."""

    async def begin(self) -> None:  # noqa: B027 - most have nothing to do
        """Do what is due when a turn begins."""

    async def intact(self) -> bool:
        """Return whether what the real object keeps outside of itself is what it left there."""
        return True

    def replaced(self, messages: Sequence[StoredMessage]) -> None:
        """Note that the real object's history was replaced by these messages."""
        self.given.replace(messages)


def in_order(
    asked: Asked, given: Given, counter: TokenCounter, other: Mark
) -> tuple[list[Part], list[int]]:
    """Return the parts of the returned messages and the place of each in what was given.

    Messages that were never given get the source of ``other``.
    """
    places = align(asked.returned, given.messages)
    parts: list[Part] = []
    for index, (message, place) in enumerate(zip(asked.returned, places, strict=True)):
        rest = other if place == NOT_STORED else stored_mark(given.messages[place])
        parts += parts_of(message, index, rest, counter)
    return parts, places


def stored_mark(stored: StoredMessage) -> Mark:
    """Return how a stored message is marked where it stands word for word."""
    return Mark("", Source.BUFFER, ids=(stored.id,) if stored.id else (), turn=stored.turn)


def assembled(
    asked: Asked,
    given: Given,
    parts: Sequence[Part],
    places: Sequence[int],
    counter: TokenCounter,
    **about: Any,
) -> Assembly:
    """Return the Assembly of the returned messages."""
    ids = tuple("" if place == NOT_STORED else given.messages[place].id for place in places)
    return Assembly(asked.returned, ids, tuple(parts), counter=counter.id, **about)


def buffer_rule(
    asked: Asked, given: Given, places: Sequence[int], *, limit: int, name: str
) -> tuple[WindowPlan, list[Omission]]:
    """Return ``ChatMemoryBuffer``'s own plan, and why messages stayed out, if it explains them.

    The plan is checked against what was returned; where they differ, nothing is claimed.
    """
    plan = plan_window(given.history, limit, initial=asked.in_front, rule=LLAMA_INDEX)
    kept = [place for place in places if place != NOT_STORED]
    if kept != list(plan.kept()):
        return plan, not_explained(given, kept, name)
    gate = Gate.TOKEN_LIMIT if plan.next_start == plan.start - 1 else Gate.GROUP
    cut = f"needs {plan.next_needed:,} tokens by {name}'s count, {plan.next_left:,} left"
    older = f"older than what was cut off at {limit:,} tokens"
    out = []
    for index in newest(range(plan.start)):
        stored = given.messages[index]
        if index >= plan.next_start >= 0:
            out.append(left_out(stored, gate, cut, plan.next_needed, plan.next_left))
        else:
            out.append(left_out(stored, Gate.TOKEN_LIMIT, older))
    return plan, out


def not_explained(given: Given, kept: Sequence[int], name: str) -> list[Omission]:
    """Return that messages stayed out for a reason the class does not tell."""
    inside = frozenset(kept)
    outside = [i for i in range(len(given.messages)) if i not in inside]
    reason = f"{Gate.NOT_EXPLAINED.value}: {name} returned other messages than its rule gives"
    return [left_out(given.messages[i], Gate.NOT_EXPLAINED, reason) for i in newest(outside)]


def left_out(
    stored: StoredMessage,
    gate: Gate,
    reason: str,
    needed: float | None = None,
    available: float | None = None,
) -> Omission:
    """Return that a stored message stayed out; a system message under its own source."""
    rule = stored.message.role in SYSTEM_ROLES
    return Omission(
        gate=gate,
        source=Source.SYSTEM if rule else Source.BUFFER,
        ids=(stored.id,),
        reason=reason,
        needed=needed,
        available=available,
        text=stored.message.text if rule else "",
        tokens=stored.tokens or 0,
        turn=stored.turn,
    )


def newest(indexes: Sequence[int]) -> Sequence[int]:
    """Return the newest of ascending indexes, as many as are listed one by one."""
    return indexes[-EXPLAINED_AT_ONCE:]


def with_notes(assembly: Assembly, *notes: str) -> Assembly:
    """Return the Assembly with more notes."""
    return replace(assembly, notes=(*assembly.notes, *notes)) if notes else assembly
