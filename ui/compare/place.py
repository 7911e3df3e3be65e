"""What a visitor has open on the Compare page; kept with the page state."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from memory_core.errors import MemoryInspectorError
from memory_core.lab.comparison import PROMPTS, Comparison, Configuration, Conversation
from memory_core.questions import RecallQuestion
from ui.lab.place import Dropped
from ui.state import PageState

if TYPE_CHECKING:
    from ui.compare.running import Running

SESSION, SAMPLE, FILE = "A session", "A sample", "A file"
SOURCES = (SESSION, SAMPLE, FILE)


@dataclass(frozen=True)
class Draft:
    """A configuration on the page. ``uid`` is in the keys of its widgets and never used again."""

    uid: int
    configuration: Configuration


@dataclass
class ComparePlace:
    """Where a visitor stands.

    ``session`` is the id of the one that is chosen, ``conversation`` what is compared on and
    ``key`` tells it from every other one. ``drafts`` are the configurations as they stand on the
    page, ``version`` grows when the page itself changes their values. ``turn`` and ``question``
    are those looked at; ``saved`` and ``name`` are of the saved comparison that is open and
    ``link`` is the part of the page's address that was followed.
    """

    source: str = SESSION
    session: str = ""
    sample: str = ""
    dropped: Dropped | None = None
    key: object = None
    conversation: Conversation | None = None
    drafts: tuple[Draft, ...] = ()
    version: int = 0
    mode: str = PROMPTS
    running: Running | None = None
    result: Comparison | None = None
    saved: str = ""
    name: str = ""
    turn: int = 0
    question: int = 0
    link: str = ""
    told: str = ""
    error: MemoryInspectorError | None = None
    _uid: int = 0
    _edited: dict[object, tuple[RecallQuestion, ...]] = field(default_factory=dict)

    def add(self, one: Configuration) -> None:
        """Put one more configuration on the page."""
        self._uid += 1
        self.drafts = (*self.drafts, Draft(self._uid, one))

    def remove(self, uid: int) -> None:
        """Take a configuration off the page."""
        self.drafts = tuple(draft for draft in self.drafts if draft.uid != uid)

    def change(self, uid: int, one: Configuration) -> None:
        """Put another configuration in the place of one."""
        self.drafts = tuple(
            replace(draft, configuration=one) if draft.uid == uid else draft
            for draft in self.drafts
        )

    def draft(self, uid: int) -> Configuration | None:
        """Return a configuration on the page."""
        return next((d.configuration for d in self.drafts if d.uid == uid), None)

    def show(self, result: Comparison | None, *, saved: str = "", name: str = "") -> None:
        """Look at a comparison, at first where its columns part."""
        self.result, self.saved, self.name = result, saved, name
        self.question = 0
        if result is not None and result.turns:
            self.turn = result.first or result.turns[-1]

    def at(self, key: object) -> bool:
        """Return whether the conversation of this key is the one at hand; else there is none."""
        if self.key != key:
            self.key, self.conversation = key, None
        return self.conversation is not None

    def take(self, key: object, conversation: Conversation) -> None:
        """Compare on this conversation, with its questions as they were edited before."""
        questions = self._edited.get(key, conversation.questions)
        self.key, self.conversation = key, replace(conversation, questions=questions)

    def leave(self) -> None:
        """Compare on no conversation until one is taken."""
        self.key = self.conversation = None

    def ask(self, questions: tuple[RecallQuestion, ...]) -> None:
        """Ask these questions about the conversation at hand."""
        if self.conversation is not None:
            self._edited[self.key] = questions
            self.conversation = replace(self.conversation, questions=questions)


def place_of(page: PageState) -> ComparePlace:
    """Return a visitor's place, made at the first call."""
    if page.compare is None:
        page.compare = ComparePlace()
    return page.compare
