"""One conversation under several configurations, side by side: the values of a comparison.

A :class:`Column` is what one :class:`Configuration` made of the conversation: for every turn what
its prompt held (:class:`Kept`), for every recall question whether the evidence stood in the
prompt (:class:`Asked`), and what it cost. Everything is read from exact prompts. Two columns
*differ* in a turn when their prompts held other messages of before, or other texts beside them;
system prompts, tools and token counts are settings and not what is remembered, so they are shown
and do not count.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from memory_core.errors import InvalidInput
from memory_core.messages import Message
from memory_core.models.catalogue import ModelChoice
from memory_core.questions import RecallQuestion
from memory_core.settings import MemorySettings
from memory_core.stores.protocols import SessionKey
from memory_core.strategies import Setup

FEWEST, MOST = 2, 6  # configurations side by side

PROMPTS, ANSWERS, TURNS = "prompts", "answers", "turns"  # what a model is asked for
MODES: Mapping[str, str] = {
    PROMPTS: "Prompts only",
    ANSWERS: "Answers to the questions",
    TURNS: "Every turn anew",
}
ABOUT: Mapping[str, str] = {
    PROMPTS: "The conversation's own answers go in and no language model is asked; what a memory "
    "itself has written (summaries, facts) is written by the built-in offline reader.",
    ANSWERS: "The conversation's own answers go in; each configuration's model writes what its "
    "memory needs and answers the recall questions.",
    TURNS: "Each configuration's model answers every turn anew, tools included, and then the "
    "recall questions.",
}

PLANNED, PLAYED = "planned", "played"  # from the session's record, or through the engine

# Where a piece of evidence stands. What is only told in a summary's words is not in the prompt.
NOWHERE, SUMMARISED, BUFFER, RETRIEVED, ELSEWHERE = (
    "out",
    "summary",
    "buffer",
    "retrieved",
    "elsewhere",
)
IN = frozenset({BUFFER, RETRIEVED, ELSEWHERE})

Run = tuple[int, int]
"""Messages by their index in the conversation, from the first to before the second."""


@dataclass(frozen=True)
class Configuration:
    """One column to be: a strategy in its agent with its knobs, the settings, a chat model."""

    name: str
    setup: Setup = field(default_factory=Setup)
    settings: MemorySettings = field(default_factory=MemorySettings)
    model: ModelChoice = field(default_factory=ModelChoice)


@dataclass(frozen=True)
class Conversation:
    """What is compared on: messages with their turns, and questions about them.

    ``turns`` is the turn of each message and ``times`` empty or one aware UTC time a message.
    ``key`` names the recorded session that this is, ``None`` for samples and files.
    """

    title: str
    messages: tuple[Message, ...]
    turns: tuple[int, ...]
    questions: tuple[RecallQuestion, ...] = ()
    times: tuple[datetime | None, ...] = ()
    key: SessionKey | None = None


@dataclass(frozen=True)
class Line:
    """A message as it is shown: who said it, in which turn."""

    turn: int
    role: str
    text: str


@dataclass(frozen=True)
class Kept:
    """What the prompt of one turn held. ``tokens`` are by source, ``limit`` is that of the prompt.

    ``runs`` are the messages of before that stood in it word for word; ``texts`` are all other
    texts that come from memory, each with its source; ``left_out`` says of some that stayed out
    why. ``digest`` tells exact prompts apart. ``answer`` is the model's where it was asked, and
    ``error`` what kept the turn from its prompt.
    """

    turn: int
    tokens: Mapping[str, int] = field(default_factory=dict)
    limit: int = 0
    runs: tuple[Run, ...] = ()
    texts: tuple[tuple[str, str], ...] = ()
    left_out: tuple[str, ...] = ()
    digest: str = ""
    answer: str = ""
    error: str = ""

    @property
    def total(self) -> int:
        """All tokens of the prompt."""
        return sum(self.tokens.values())

    @cached_property
    def messages(self) -> frozenset[int]:
        """The messages of before in it, by index."""
        return frozenset(i for first, end in self.runs for i in range(first, end))

    @property
    def remembered(self) -> tuple[object, ...]:
        """What two columns are compared by."""
        return self.runs, self.texts, self.error


@dataclass(frozen=True)
class Asked:
    """One recall question asked at the end of the conversation.

    ``where`` tells of each piece of evidence where it stood in the exact prompt; ``told`` whether
    the expected text stood there, in whatever words around it. ``answer`` is empty where no model
    was asked, ``right`` is ``None`` then and where no text is expected.
    """

    where: tuple[str, ...]
    tokens: int = 0
    told: bool = False
    answer: str = ""
    right: bool | None = None
    error: str = ""

    @property
    def held(self) -> int:
        """How many pieces of evidence stood in the prompt, word for word."""
        return sum(place in IN for place in self.where)


@dataclass(frozen=True)
class Spent:
    """What a column cost: requests to a model, their tokens, US dollars, seconds.

    ``cost`` is ``None`` where no price is known. ``own`` are the calls of ``calls`` that the
    memory itself made, for summaries and the like.
    """

    calls: int = 0
    own: int = 0
    prompt: int = 0
    completion: int = 0
    cost: float | None = 0.0
    seconds: float = 0.0


@dataclass(frozen=True)
class Column:
    """What one configuration made of the conversation. ``error`` is what ended it early."""

    configuration: Configuration
    how: str
    turns: tuple[Kept, ...]
    asked: tuple[Asked, ...] = ()
    spent: Spent = field(default_factory=Spent)
    notices: tuple[str, ...] = ()
    error: str = ""

    @property
    def name(self) -> str:
        """The name people gave it."""
        return self.configuration.name

    @property
    def held(self) -> int:
        """How many pieces of evidence stood in the prompts of the questions."""
        return sum(asked.held for asked in self.asked)

    @property
    def pieces(self) -> int:
        """How many pieces of evidence there are."""
        return sum(len(asked.where) for asked in self.asked)

    @property
    def prompts(self) -> int:
        """The tokens of all turns' prompts together."""
        return sum(kept.total for kept in self.turns)


@dataclass(frozen=True)
class Comparison:
    """Two to six columns over one conversation.

    ``session`` is the id of the session it is about, empty for samples and files. ``counter``
    names how tokens were counted, ``made`` is when.
    """

    title: str
    mode: str
    lines: tuple[Line, ...]
    questions: tuple[RecallQuestion, ...]
    columns: tuple[Column, ...]
    made: datetime
    session: str = ""
    notices: tuple[str, ...] = ()

    @cached_property
    def turns(self) -> tuple[int, ...]:
        """The numbers of the turns, in order."""
        return tuple(dict.fromkeys(line.turn for line in self.lines))

    @cached_property
    def differing(self) -> tuple[int, ...]:
        """The turns in which not all columns remember the same."""
        return differing(self.columns)

    @property
    def first(self) -> int | None:
        """The turn in which the columns part, ``None``: they never do."""
        return self.differing[0] if self.differing else None

    def kept(self, column: Column, turn: int) -> Kept:
        """Return what a column held in a turn; an empty prompt where it did not get there."""
        return self._by_turn[id(column)].get(turn, Kept(turn, error=column.error or "not reached"))

    @cached_property
    def _by_turn(self) -> Mapping[int, Mapping[int, Kept]]:
        return {id(c): {kept.turn: kept for kept in c.turns} for c in self.columns}


def differing(columns: Sequence[Column]) -> tuple[int, ...]:
    """Return the turns in which these columns do not all remember the same, in order."""
    by_turn: dict[int, list[Kept]] = {}
    for column in columns:
        for kept in column.turns:
            by_turn.setdefault(kept.turn, []).append(kept)
    return tuple(
        turn
        for turn, kept in sorted(by_turn.items())
        if len(kept) < len(columns) or any(k.remembered != kept[0].remembered for k in kept)
    )


def runs(indexes: Iterable[int]) -> tuple[Run, ...]:
    """Return indexes as runs of neighbours.

    >>> runs([4, 5, 1, 6])
    ((1, 2), (4, 7))
    """
    out: list[Run] = []
    for index in sorted(set(indexes)):
        if out and out[-1][1] == index:
            out[-1] = (out[-1][0], index + 1)
        else:
            out.append((index, index + 1))
    return tuple(out)


def turns_of(messages: Iterable[Message]) -> tuple[int, ...]:
    """Return the turn of each message, from 1: every user message begins one, as in a chat."""
    numbers, turn, asked = [], 1, False
    for message in messages:
        if message.role == "user":
            turn += asked
            asked = True
        numbers.append(turn)
    return tuple(numbers)


def checked(configurations: Sequence[Configuration]) -> tuple[Configuration, ...]:
    """Return configurations that can stand side by side, their names without blank ends.

    Raises :class:`InvalidInput` for too few, too many, or names that do not tell them apart.
    """
    if not FEWEST <= len(configurations) <= MOST:
        raise InvalidInput(
            f"{FEWEST} to {MOST} configurations can be compared, not {len(configurations)}.",
            next_step="Add a configuration or remove one.",
        )
    names = [" ".join(one.name.split()) for one in configurations]
    if not all(names):
        raise InvalidInput("A configuration has no name.", next_step="Name each of them.")
    if twice := [name for n, name in enumerate(names) if name in names[:n]]:
        raise InvalidInput(
            f"Two configurations are named {twice[0][:60]!r}.", next_step="Name them differently."
        )
    return tuple(
        Configuration(name, one.setup, one.settings, one.model)
        for name, one in zip(names, configurations, strict=True)
    )
