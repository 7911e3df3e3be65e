"""What is asked on the page Why?, and the answers, each worked out once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from memory_core.errors import InvalidInput, NotFound
from memory_core.fate import IN_PROMPT, MEMORY, MESSAGE, STATE, Fate
from memory_core.gates import SAID, STATE_ROUTE, Check, Item, Route
from memory_core.lab.past import PastMemories
from memory_core.lab.replay import Replay
from memory_core.lab.without import Counterfactual, Edit, counterfactual
from memory_core.messages import Json, StoredMessage
from memory_core.native.as_if import AsIf, as_if, limit_for
from memory_core.native.observed import ObservedMemory
from memory_core.prompt import Gate
from memory_core.settings import MemorySettings
from memory_core.stores.vectors.base import Vectors
from memory_core.strategies import LAYERED
from memory_core.trace import TurnTrace
from memory_core.whynot import WhyNot, why_not
from ui.scene import settings_of
from ui.time_travel.chronicle import Chronicle
from ui.time_travel.place import Asked

if TYPE_CHECKING:
    from memory_core.models.embeddings import Embedder
    from ui.state import PageState

_KEPT = 64  # answers


@dataclass(frozen=True)
class Tried:
    """A counterfactual that was planned, with both answers where they were asked for."""

    turn: int
    found: Counterfactual | AsIf
    answers: tuple[str, str] | None = None


@dataclass
class Asking:
    """Which thing of which kind is looked at, and the part of the matrix that is drawn.

    ``rows`` and ``columns`` count from 1, both ends inclusive; ``None`` is all of them.
    ``question`` asks about the next prompt instead of a turn's, ``changed`` are settings that hold
    there instead of the session's.
    """

    chronicle: Chronicle
    kind: str = MESSAGE
    item: str = ""
    question: str = ""
    changed: dict[str, Json] = field(default_factory=dict)
    rows: tuple[int, int] | None = None
    columns: tuple[int, int] | None = None
    tried: Tried | None = None
    _followed: Asked = field(default_factory=Asked)
    _vectors: dict[str, Vectors] = field(default_factory=dict)
    _replay: tuple[int, Replay] | None = None
    _answers: dict[object, WhyNot] = field(default_factory=dict)

    def choose(self, kind: str, item: str = "") -> None:
        """Look at another thing; another kind is seen whole at first."""
        if kind != self.kind:
            self.rows = None
        self.kind, self.item, self.tried = kind, item, None

    def follow(self, asked: Asked) -> None:
        """Ask what a link asks about.

        Raises :class:`NotFound` for a message that is not in the session and
        :class:`InvalidInput` for settings that are none.
        """
        if asked == self._followed:  # what was changed on the page since holds
            return
        self._followed = asked
        if asked in (Asked(), self.asked):
            return
        if asked.message:
            if self.chronicle.ledger.tracks[MESSAGE].row(asked.message) is None:
                raise NotFound(
                    "The link's message is not in this session.",
                    next_step="Choose a message in the matrix.",
                )
            self.choose(MESSAGE, asked.message)
        self.question = asked.question
        self.changed = _changed(asked.knobs)

    @property
    def asked(self) -> Asked:
        """What a link to this question says; empty when a turn's prompt is asked about."""
        if not self.question:
            return Asked()
        message = self.item if self.kind == MESSAGE else ""
        return Asked(message, self.question, json.dumps(self.changed) if self.changed else "")

    def settings(self, own: MemorySettings) -> MemorySettings:
        """Return the settings of the prompt that is asked about; ``own`` are the session's."""
        return own.with_(**self.changed) if self.question and self.changed else own

    def why(self, turn: int, *, settings: MemorySettings, embedder: Embedder) -> WhyNot:
        """Return why the thing is or is not in the prompt that is asked about."""
        chat = self.chronicle.chat
        key = (self.kind, self.item, turn, self.question, settings, chat.turns)
        if key not in self._answers:
            if len(self._answers) >= _KEPT:
                self._answers.clear()
            found = self._next(settings) if self.question else self._at(turn, settings, embedder)
            self._answers[key] = found
        return self._answers[key]

    def apart(self, turn: int, found: WhyNot) -> str:
        """Say why the answer for a turn and the cell of the matrix differ, empty if they agree.

        The matrix tells where anything of a thing stood, the answer where its own words did.
        """
        if self.question:
            return ""
        fate = self.chronicle.ledger.fate(self.kind, self.item, turn)
        if not found.place and fate in IN_PROMPT:
            return f"Something of it was there ({fate.words}), which is what the matrix shows."
        if found.place and fate not in IN_PROMPT and self.kind == MEMORY:
            return (
                "The message it was made from stood there; the memory itself was "
                f"{fate.words}, which is what the matrix shows."
            )
        return ""

    def without(self, turn: int, edit: Edit, embedder: Embedder) -> Counterfactual | AsIf:
        """Plan a turn without the thing, or with other words in its place."""
        session = self.chronicle.chat.session
        trace = self.chronicle.trace(turn)
        if trace.strategy != LAYERED:
            return self._class_without(trace, edit)
        if session.store is None:
            raise NotFound("This session is kept in memory only and cannot be replayed.")
        return counterfactual(
            session.store,
            session.key,
            turn,
            edit,
            embed=lambda texts: self._embed(texts, embedder),
            model=embedder.name,
        )

    def _class_without(self, trace: TurnTrace, edit: Edit) -> AsIf:
        """Ask the real object of a strategy of LlamaIndex's."""
        memory = self.chronicle.chat.memory
        if not isinstance(memory, ObservedMemory) or edit.kind != MESSAGE:
            raise InvalidInput(
                f"{Gate.NOT_EXPLAINED.value.capitalize()}: what the strategy made by itself "
                "cannot be left out.",
                next_step="Leave out the message that it was made from.",
            )
        earlier = [m for m in self.chronicle.messages_at(trace.number) if m.turn < trace.number]
        return as_if(memory, trace, earlier, edit.id, text=edit.text)

    def _next(self, settings: MemorySettings) -> WhyNot:
        chat = self.chronicle.chat
        if isinstance(chat.memory, ObservedMemory):
            return self._next_of_class(chat.memory, settings)
        plan, history = chat.memory.if_asked(self.question)
        return why_not(self._item(chat.messages), settings=settings, plan=plan, history=history)

    def _next_of_class(self, memory: ObservedMemory, settings: MemorySettings) -> WhyNot:
        """Ask the real object of a strategy of LlamaIndex's for the next prompt."""
        chat = self.chronicle.chat
        item = self._item(chat.messages)
        assembly = memory.preview(settings, self.question)
        found = why_not(item, settings=settings, assembly=assembly, history=chat.session.history)
        if found.place or item.kind != MESSAGE:
            return found
        change = limit_for(
            memory, chat.setup.knobs, item.id, settings=settings, query=self.question
        )
        return replace(found, changes=(change,)) if change is not None else found

    def _at(self, turn: int, settings: MemorySettings, embedder: Embedder) -> WhyNot:
        trace = self.chronicle.trace(turn)
        if self.kind == STATE:
            fate = self.chronicle.ledger.fate(STATE, self.item, turn)
            if fate not in (Fate.PROMPT, Fate.UNSENT):
                check = Check(SAID, passed=False, reason=f"in turn {turn}: {fate.words}")
                routes = (Route(STATE_ROUTE, (check,)),)
                return WhyNot(self._item(()), "", routes, sentence=f"Stopped. {fate.words}.")
        try:
            replayed = self._replayed(embedder).at(turn)
        except InvalidInput:  # the strategy plans its prompts itself
            if trace.assembly is None:
                raise NotFound(
                    f"Turn {turn} sent no prompt.", next_step="Choose another turn."
                ) from None
            item = self._item(self.chronicle.messages_at(turn))
            return why_not(item, settings=settings_of(trace, settings), assembly=trace.assembly)
        return why_not(
            self._item(replayed.layers.messages),
            settings=replayed.settings,
            plan=replayed.plan,
            history=replayed.layers.history,
        )

    def _item(self, messages: Sequence[StoredMessage]) -> Item:
        made_from = (
            self.chronicle.ledger.notes.made_from.get(self.item, ()) if self.kind == MEMORY else ()
        )
        wanted = {self.item} if self.kind == MESSAGE else set(made_from)
        places = [at for at, m in enumerate(messages) if m.id in wanted] if wanted else []
        notes = self.chronicle.ledger.notes
        made_into: tuple[str, ...] = ()
        if self.kind == MESSAGE and isinstance(self.chronicle.chat.memory, ObservedMemory):
            made_into = tuple(notes.memories_of.get(self.item, ()))  # its hits name no messages
        return Item(
            self.kind,
            self.item,
            places[-1] if places else None,
            tuple(made_from),
            made_into,
        )

    def _replayed(self, embedder: Embedder) -> Replay:
        chat = self.chronicle.chat
        if self._replay is None or self._replay[0] != chat.turns:
            store = chat.session.store
            if store is None:
                raise InvalidInput("This session is kept in memory only.")
            memories = PastMemories(
                store.records(chat.key.user),
                embed=lambda texts: self._embed(texts, embedder),
                model=embedder.name,
                sees=chat.session.sees,
            )
            self._replay = (chat.turns, Replay.read(store, chat.key, memories=memories))
        return self._replay[1]

    def _embed(self, texts: Sequence[str], embedder: Embedder) -> Vectors:
        missing = [t for t in dict.fromkeys(texts) if t not in self._vectors]
        if missing:
            self._vectors |= dict(zip(missing, embedder.embed(missing), strict=True))
        return np.stack([self._vectors[text] for text in texts])


def _changed(knobs: str) -> dict[str, Json]:
    if not knobs:
        return {}
    try:
        given = json.loads(knobs)
    except (ValueError, RecursionError) as exc:
        raise InvalidInput("The link's settings cannot be read.") from exc
    known = MemorySettings().to_json()
    if not isinstance(given, dict) or not given.keys() <= known.keys():
        raise InvalidInput("The link's settings are none that this program has.")
    MemorySettings().with_(**given)
    return given


def asking_of(page: PageState, chronicle: Chronicle) -> Asking:
    """Return what is asked about the open session."""
    kept = page.asking
    if kept is None or kept.chronicle is not chronicle:
        kept = page.asking = Asking(chronicle)
    track = chronicle.ledger.tracks[kept.kind]
    if track.row(kept.item) is None and track.ids:
        kept.item = track.ids[0]
    return kept
