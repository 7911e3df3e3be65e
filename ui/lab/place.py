"""What a visitor has open in the Tuning lab; kept with the page state."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from memory_core.errors import MemoryInspectorError
from memory_core.interchange.values import Conversation, ImportPreview
from memory_core.lab.axes import TOKEN_LIMIT, TOP_K
from memory_core.lab.cells import Measure
from memory_core.lab.choosing import KEEP
from memory_core.lab.prepare import Prepared
from memory_core.lab.sweep import LAYERED
from memory_core.lab.table import SweepResult
from memory_core.messages import Message
from memory_core.questions import RULE, RecallQuestion
from memory_core.whynot import WhyNot
from ui.state import PageState
from ui.view_models.lab import Findings, findings
from ui.view_models.lab_questions import added

if TYPE_CHECKING:
    from ui.lab.proposing import Proposing
    from ui.lab.running import Running

ALL = -1  # all conversations of a file at once
Named = tuple[str, SweepResult]
"""A sweep and what it is called."""

SESSION, SAMPLE, FILE = "This session", "A sample", "A file"
SOURCES = (SESSION, SAMPLE, FILE)


@dataclass(frozen=True)
class Subject:
    """The conversation that is tuned for. ``id`` tells it from every other one of its source.

    ``parts`` are the conversations of a whole file that is tuned for at once; it has no messages
    of its own then.
    """

    source: str
    id: str
    title: str
    messages: tuple[Message, ...]
    times: tuple[datetime | None, ...] = ()
    parts: tuple[Conversation, ...] = ()


@dataclass(frozen=True)
class Dropped:
    """A file that was dropped in: what it holds, and the conversation of it that was chosen.

    ``every`` are all its conversations where all are chosen at once.
    """

    file: str
    preview: ImportPreview
    number: int
    conversation: Conversation
    every: tuple[Conversation, ...] = ()

    @property
    def chosen(self) -> int:
        """The place of the conversation that was chosen, from 0, or :data:`ALL`."""
        return ALL if self.every else self.number


@dataclass
class LabPlace:
    """Where a visitor stands in the lab.

    ``table`` are the questions as the table on the page was given them, ``questions`` as edited
    there; ``version`` grows with every new table. ``number`` is the conversation of a dropped file
    that is wanted. ``values`` are an axis's values as written.
    ``chosen`` is the cell that is looked at; ``asked``, the miss whose reason is shown, is a
    question by its number and a message by its index.
    ``prepared`` are the conversations of the sweep of ``result``, in the order of its questions;
    none when it was opened again. ``jobs`` is the number of processes (0: what suits), ``address``
    a Dask scheduler's.
    """

    source: str = SESSION
    sample: str = ""
    dropped: Dropped | None = None
    number: int = 0
    subject: Subject | None = None
    questions: tuple[RecallQuestion, ...] = ()
    table: tuple[RecallQuestion, ...] = ()
    version: int = 0
    x: str = TOKEN_LIMIT
    y: str = TOP_K
    values: dict[str, str] = field(default_factory=dict)
    mode: str = LAYERED
    measure: Measure = Measure.SHARE
    keep: float = KEEP
    propose_by: str = RULE
    proposing: Proposing | None = None
    running: Running | None = None
    result: SweepResult | None = None
    prepared: tuple[Prepared, ...] = ()
    jobs: int = 0
    address: str = ""
    chosen: tuple[int, int] | None = None
    asked: tuple[int, int] | None = None
    why: tuple[object, WhyNot] | None = None
    name: str = ""
    compared: tuple[Named, Named] | None = None
    told: str = ""
    error: MemoryInspectorError | None = None
    _kept: dict[tuple[str, str], tuple[RecallQuestion, ...]] = field(default_factory=dict)
    _found: tuple[object, Findings] | None = None

    def ask(self, questions: tuple[RecallQuestion, ...]) -> None:
        """Put these questions into a new table."""
        self.table = questions
        self.version += 1
        self.edit(questions)

    def edit(self, questions: tuple[RecallQuestion, ...]) -> None:
        """Take in what was edited in the table; it is kept while other conversations are seen."""
        self.questions = questions
        if self.subject is not None:
            self._kept[self.subject.source, self.subject.id] = questions

    def take(self, subject: Subject, questions: tuple[RecallQuestion, ...]) -> None:
        """Tune for this conversation; the first time with the questions that it brings."""
        key = (subject.source, subject.id)
        before = self.subject
        self.subject = subject
        if before is None or (before.source, before.id) != key:
            self.ask(self._kept.get(key, questions))

    def propose(self, subject: Subject, questions: tuple[RecallQuestion, ...]) -> int:
        """Add proposed questions to those of a conversation; return how many are new."""
        key = (subject.source, subject.id)
        at_hand = self.subject is not None and key == (self.subject.source, self.subject.id)
        before = self.questions if at_hand else self._kept.get(key, ())
        after = added(before, questions)
        if at_hand:
            self.ask(after)
        else:
            self._kept[key] = after
        return len(after) - len(before)

    def leave(self) -> None:
        """Tune for no conversation until one is taken."""
        self.subject = None

    @property
    def to_ask(self) -> int:
        """How many questions a sweep would ask."""
        parts = self.subject.parts if self.subject is not None else ()
        questions = [q for part in parts for q in part.questions] if parts else self.questions
        return sum(question.accepted for question in questions)

    def asked_of(self, number: int) -> tuple[Prepared, int] | None:
        """Return the conversation that a question of the sweep is about, and its number there.

        ``None`` when the conversation is not at hand.
        """
        for prepared in self.prepared:
            count = len(prepared.input.questions)
            if number < count:
                return prepared, number
            number -= count
        return None

    def said(self, number: int) -> tuple[Message, ...]:
        """Return the conversation that a question is about, empty when it is not at hand."""
        found = self.asked_of(number)
        return found[0].input.messages if found is not None else ()

    def show(self, result: SweepResult | None, prepared: tuple[Prepared, ...] = ()) -> None:
        """Look at a sweep, at first at the cell it recommends."""
        self.result, self.prepared = result, prepared
        self.asked = self.why = self.compared = self._found = None
        self.chosen = None
        if result is not None and result.cells:
            cell = self.found(result).choice.cell
            self.chosen = (cell.x, cell.y)

    def found(self, result: SweepResult) -> Findings:
        """Return what the sweep says by the measure at hand; worked out once."""
        key = (id(result), len(result.cells), self.measure, self.keep)
        if self._found is None or self._found[0] != key:
            self._found = (key, findings(result, self.measure, self.keep))
        return self._found[1]


def place_of(page: PageState) -> LabPlace:
    """Return a visitor's place, made at the first call."""
    if page.lab is None:
        page.lab = LabPlace()
    return page.lab
