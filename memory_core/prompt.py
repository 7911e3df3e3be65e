"""The Assembly: the one value that says what a prompt holds, what stayed out, and why.

Every time a memory is asked for a prompt it produces an :class:`Assembly`. Its ``messages`` are
the exact messages; its ``parts`` attribute every token of them to a source and sum to the
prompt's tokens; its ``omissions`` name the candidates that stayed out and the
:class:`Gate` that stopped each, with the two numbers that were compared. Panels, traces,
comparison, sweeps and tests read this value; nobody recomputes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from memory_core.budget import Allotment
from memory_core.buffer import WindowPlan
from memory_core.messages import Message


class Source(StrEnum):
    """Where a part of a prompt came from."""

    SYSTEM = "system"
    TOOLS = "tools"
    STATE = "state"
    FACTS = "facts"
    SUMMARY = "summary"
    RETRIEVED = "retrieved"
    BLOCK = "block"
    DOCUMENTS = "documents"
    BUFFER = "buffer"
    STEPS = "steps"
    FORMAT = "format"
    UNKNOWN = "unknown"


class Gate(StrEnum):
    """What can stop a candidate from entering a prompt."""

    TOKEN_LIMIT = "token limit"
    GROUP = "its group does not fit"
    ORPHAN = "tool result without its call"
    BUDGET = "budget"
    TOP_K = "top_k"
    THRESHOLD = "score threshold"
    DUPLICATE = "duplicate"
    IN_BUFFER = "already in the buffer"
    OTHER_SESSION = "other session"
    EXPIRED = "expired"
    SUPERSEDED = "superseded"
    RULE = "the strategy's own rule"
    NOT_EXPLAINED = "not explained by the class"


@dataclass(frozen=True)
class Part:
    """A piece of the prompt with one origin.

    ``message`` is the index in :attr:`Assembly.messages` and ``start``/``end`` the character
    span in that message's text; ``message`` is ``None`` for tokens that stand in no message
    (tool definitions, the priming of the reply). ``ids`` are message, node or fact ids.
    """

    source: Source
    tokens: int
    message: int | None = None
    start: int = 0
    end: int = 0
    ids: tuple[str, ...] = ()
    turn: int | None = None
    score: float | None = None
    note: str = ""


@dataclass(frozen=True)
class Omission:
    """A candidate that stayed out, the gate that stopped it and the numbers compared there.

    ``needed`` and ``available`` are in the gate's own unit: tokens, a similarity, a rank.
    ``reason`` is the same in plain words.
    """

    gate: Gate
    source: Source
    ids: tuple[str, ...]
    reason: str
    needed: float | None = None
    available: float | None = None
    text: str = ""
    tokens: int = 0
    turn: int | None = None
    score: float | None = None


@dataclass(frozen=True)
class Hit:
    """A memory that the search returned: ``similarity`` is the cosine, -1 to 1, computed by us.

    ``distance`` is the raw number of the index under ``Recall.metric``; ``signals`` takes the
    ranking score apart (dense, bm25, neighbours, recency) and sums to ``score``.
    """

    id: str
    text: str
    similarity: float
    distance: float
    score: float
    rank: int
    tokens: int
    turn: int | None = None
    session: str = ""
    kind: str = "turn"
    message_ids: tuple[str, ...] = ()
    created: str = ""
    signals: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Recall:
    """One search of long-term memory: what was searched for, what came back, what was stopped."""

    query: str
    hits: tuple[Hit, ...] = ()
    near: tuple[tuple[Hit, Omission], ...] = ()
    metric: str = "cosine"
    model: str = ""
    searched: int = 0
    skipped: str = ""
    disagreement: tuple[str, ...] = ()
    milliseconds: float = 0.0
    scope: str = ""


@dataclass(frozen=True)
class Assembly:
    """A prompt, fully explained.

    ``sum(p.tokens for p in parts) == tokens`` always holds. ``message_ids[i]`` is the stored id
    of ``messages[i]`` where it is a stored message, else an empty text. ``notes`` are sentences
    about collisions ("state and summary need 240 tokens, their share is 180"). ``documents`` is
    the search of a document index, where a chat engine has one.
    """

    messages: tuple[Message, ...]
    message_ids: tuple[str, ...]
    parts: tuple[Part, ...]
    omissions: tuple[Omission, ...] = ()
    window: WindowPlan | None = None
    allotment: Allotment | None = None
    recall: Recall | None = None
    notes: tuple[str, ...] = ()
    counter: str = ""
    documents: Recall | None = None

    @property
    def tokens(self) -> int:
        """All tokens of the prompt."""
        return sum(part.tokens for part in self.parts)

    def tokens_by_source(self) -> dict[Source, int]:
        """Return the tokens of each source that has any, in the order of :class:`Source`."""
        totals = dict.fromkeys(Source, 0)
        for part in self.parts:
            totals[part.source] += part.tokens
        return {source: n for source, n in totals.items() if n}

    def text_of(self, part: Part) -> str:
        """Return the text a part stands for (empty for tokens that stand in no message)."""
        if part.message is None:
            return ""
        return self.messages[part.message].text[part.start : part.end]

    def ids_in(self) -> frozenset[str]:
        """Return the ids of everything that is in the prompt."""
        return frozenset(i for part in self.parts for i in part.ids)


_ELSEWHERE = Message("")


def detach(assembly: Assembly) -> Assembly:
    """Return the assembly without the stored messages it refers to by id."""
    pairs = zip(assembly.message_ids, assembly.messages, strict=True)
    return replace(assembly, messages=tuple(_ELSEWHERE if i else m for i, m in pairs))


def attach(assembly: Assembly, stored: Mapping[str, Message]) -> Assembly:
    """Return a detached assembly with its stored messages put back in place."""
    pairs = zip(assembly.message_ids, assembly.messages, strict=True)
    return replace(assembly, messages=tuple(stored[i] if i else m for i, m in pairs))
