"""What is kept of one turn: everything that was assembled, called, written and measured.

A :class:`TurnTrace` is written once and never changed. Time travel is reading an earlier one,
comparison is reading two, a message's fate is folding over all of them. Its JSON form names
stored messages by id, so a trace stays small however long they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING

from memory_core.messages import Json, Message
from memory_core.prompt import Assembly, attach, detach
from memory_core.state import Change, KeyFact
from memory_core.summary import Summary

if TYPE_CHECKING:
    from pydantic import TypeAdapter

BLOCK_FACT = "block fact"  # the kind of a fact that a memory block holds
FLUSHED, WAITING = "flushed", "waiting"  # what became of a batch that a block was given

# Purposes of calls.
REPLY, SUMMARISE, EXTRACT_FACTS = "reply", "summarise", "extract facts"
CONDENSE = "condense the question"


@dataclass(frozen=True)
class Usage:
    """Tokens as the provider reports them."""

    prompt: int
    completion: int
    cached: int = 0


@dataclass(frozen=True)
class ModelCall:
    """One request to the chat model: exactly what was sent, what came back, what it cost.

    ``estimated`` is our own count of the reply; that of the prompt is ``assembly.tokens``.
    ``cost`` is in US dollars, ``None`` where no price is known. ``at`` and ``milliseconds`` say
    when the call began, counted from the start of the turn, and how long it took.
    """

    purpose: str
    model: str
    assembly: Assembly
    reply: Message | None = None
    usage: Usage | None = None
    estimated: int = 0
    cost: float | None = None
    at: float = 0.0
    milliseconds: float = 0.0
    streamed: bool = False
    error: str = ""


@dataclass(frozen=True)
class Ask:
    """One request of the agent to its memory for the prompt, and what it cost.

    ``query`` is the question it passed along, ``in_front`` the tokens it said stand before the
    messages; ``messages`` and ``tokens`` are what was returned, ``calls`` the model calls and
    ``embedded`` the texts embedded for it.
    """

    query: str = ""
    in_front: int = 0
    messages: int = 0
    tokens: int = 0
    calls: int = 0
    embedded: int = 0
    milliseconds: float = 0.0
    error: str = ""


@dataclass(frozen=True)
class ToolStep:
    """One tool run by the agent, with its arguments as JSON text and its result as text."""

    id: str
    name: str
    arguments: str
    result: str
    failed: bool = False
    at: float = 0.0
    milliseconds: float = 0.0


@dataclass(frozen=True)
class MemoryWrite:
    """What happened to one candidate for long-term memory.

    ``action`` is one of ``remembered``, ``skipped``, ``duplicate``, ``forgotten``,
    ``corrected``, and for a batch of messages that a memory block was given ``flushed`` (it took
    them) or ``waiting`` (it could not); ``reason`` says why in plain words. ``message_ids`` are the
    messages it was made from, where the writer knows them; ``replaces`` is the memory that a
    correction puts out of force.
    """

    action: str
    id: str
    text: str
    kind: str = "turn"
    reason: str = ""
    message_ids: tuple[str, ...] = ()
    replaces: str = ""


@dataclass(frozen=True)
class TurnTrace:
    """One turn of a session. ``number`` counts from 1; times are aware UTC.

    ``evicted`` are the ids of messages that this turn's prompt no longer held and the last one
    did. ``asked`` is how often the memory was asked for a prompt (``asks`` tells of each where a
    strategy of LlamaIndex's was watched), ``embedded`` how many texts were embedded, ``encoded``
    how many tokens were encoded. ``state_version`` is the version
    after the turn, ``changes`` what differs from the state after the last one (edits by hand in
    between included), ``facts`` the key facts that are new. ``supersedes`` is the turn that this
    one replaced (regenerate, edit), 0: none. ``origin`` names the session and turn
    this one was copied from, when it was not chatted here.
    """

    number: int
    session: str
    started: datetime
    ended: datetime
    strategy: str
    settings: Mapping[str, Json]
    query: str = ""
    calls: tuple[ModelCall, ...] = ()
    steps: tuple[ToolStep, ...] = ()
    appended: tuple[str, ...] = ()
    evicted: tuple[str, ...] = ()
    summary: Summary | None = None
    memories: tuple[MemoryWrite, ...] = ()
    state_version: int = 0
    changes: tuple[Change, ...] = ()
    facts: tuple[KeyFact, ...] = ()
    asked: int = 0
    embedded: int = 0
    encoded: int = 0
    milliseconds: Mapping[str, float] = field(default_factory=dict)
    degradations: tuple[str, ...] = ()
    error: str = ""
    supersedes: int = 0
    origin: str = ""
    asks: tuple[Ask, ...] = ()

    @property
    def replies(self) -> tuple[ModelCall, ...]:
        """The calls that asked for the answer (not for summaries or facts)."""
        return tuple(call for call in self.calls if call.purpose == REPLY)

    @property
    def assembly(self) -> Assembly | None:
        """The prompt of the last call for an answer."""
        return self.replies[-1].assembly if self.replies else None


def trace_to_json(trace: TurnTrace) -> str:
    """Return a trace as JSON text, stored messages by id."""
    calls = tuple(replace(call, assembly=detach(call.assembly)) for call in trace.calls)
    return _adapter().dump_json(replace(trace, calls=calls)).decode()


def trace_from_json(text: str, find: Callable[[Iterable[str]], Mapping[str, Message]]) -> TurnTrace:
    """Return the trace that :func:`trace_to_json` wrote; ``find`` looks up stored messages."""
    trace = _adapter().validate_json(text)
    wanted = {i for call in trace.calls for i in call.assembly.message_ids if i}
    stored = find(wanted) if wanted else {}
    calls = tuple(replace(call, assembly=attach(call.assembly, stored)) for call in trace.calls)
    return replace(trace, calls=calls)


@cache
def _adapter() -> TypeAdapter[TurnTrace]:
    from pydantic import TypeAdapter

    return TypeAdapter(TurnTrace)
