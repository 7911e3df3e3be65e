"""Runs a comparison: every configuration over the same conversation, then its questions.

A layered memory over a recorded session is planned from its record (:mod:`.planning`), everything
else is played in an engine apart (:mod:`.playing`). The user's own sessions and memories are only
read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from llama_index.core.llms import LLM

from memory_core.engine import Engine
from memory_core.errors import MemoryInspectorError
from memory_core.lab.apart import OnceEmbedder, engine_apart
from memory_core.lab.comparison import (
    ANSWERS,
    PLAYED,
    PROMPTS,
    Column,
    Comparison,
    Configuration,
    Conversation,
    Line,
    checked,
)
from memory_core.lab.planning import can_plan, planned, record_of
from memory_core.lab.playing import Playing, open_apart
from memory_core.lab.script import Said, script_of
from memory_core.messages import repair, repair_text
from memory_core.models.build import build_llm
from memory_core.models.catalogue import ModelChoice
from memory_core.models.embeddings import Embedder
from memory_core.questions import RecallQuestion
from memory_core.stores.encryption import cipher_from


@dataclass(frozen=True)
class Step:
    """How far a comparison is: turns and questions ``done`` of ``total`` in one of the columns."""

    column: int
    columns: int
    name: str
    done: int
    total: int

    @property
    def share(self) -> float:
        """How much of everything is done, 0 to 1."""
        own = self.done / self.total if self.total else 1.0
        return (self.column + min(1.0, own)) / self.columns


Look = Callable[[Step], None]
"""Told after every turn and question; what it raises ends the comparison and leaves nothing."""


def compare(
    conversation: Conversation,
    configurations: Sequence[Configuration],
    *,
    mode: str,
    engine: Engine,
    embedder: Embedder | None = None,
    keys: Mapping[str, str | None] | None = None,
    look: Look = lambda _: None,
) -> Comparison:
    """Run every configuration over the conversation and return what came of it.

    ``engine`` holds the user's sessions; ``embedder`` is that of the session, ``keys`` are those
    of model kinds. What keeps one column from going on is told in it, the others go on. Raises
    :class:`InvalidInput` for configurations that cannot stand side by side, :class:`NotFound`
    for a session that is not there, and what ``look`` raises.
    """
    chosen = checked(configurations)
    conversation = replace(
        conversation, messages=tuple(repair(message)[0] for message in conversation.messages)
    )
    said, notices = script_of(conversation)
    questions = tuple(
        replace(q, question=repair_text(q.question)[0], answer=repair_text(q.answer)[0])
        for q in conversation.questions
        if q.accepted and q.question.strip()
    )
    run = _Run(
        conversation,
        said,
        questions,
        mode=mode,
        engine=engine,
        embedder=OnceEmbedder(embedder or engine.embedder),
        keys=keys or {},
    )

    def column(number: int, one: Configuration) -> Column:
        def tell(done: int) -> None:
            look(Step(number, len(chosen), one.name, done, len(said) + len(questions)))

        return run.column(one, tell)

    return Comparison(
        title=conversation.title,
        mode=mode,
        lines=tuple(
            Line(turn, message.role, message.text)
            for turn, message in zip(conversation.turns, conversation.messages, strict=True)
        ),
        questions=questions,
        columns=tuple(column(number, one) for number, one in enumerate(chosen)),
        made=datetime.now(UTC),
        session=conversation.key.session if conversation.key is not None else "",
        notices=notices,
    )


@dataclass(frozen=True, eq=False)
class _Run:
    """What all columns share."""

    conversation: Conversation
    said: Sequence[Said]
    questions: Sequence[RecallQuestion]
    mode: str
    engine: Engine
    embedder: OnceEmbedder
    keys: Mapping[str, str | None]

    def column(self, one: Configuration, tell: Callable[[int], None]) -> Column:
        """Return one column, however far it came."""
        began = time.perf_counter()
        tell(0)
        try:
            column = self._planned(one, tell) or self._played(one, tell)
        except MemoryInspectorError as exc:
            column = Column(one, PLAYED, (), error=str(exc))
        return replace(column, spent=replace(column.spent, seconds=time.perf_counter() - began))

    def _planned(self, one: Configuration, tell: Callable[[int], None]) -> Column | None:
        key, store = self.conversation.key, self.engine.store
        if key is None or not can_plan(one, self.conversation, self.mode):
            return None
        replay = record_of(
            self.conversation,
            self.said,
            store=store,
            one=one,
            embed=self.embedder.embed,
            model=self.embedder.name,
        )
        if replay is None:
            return None
        return planned(
            one,
            replay,
            self.conversation,
            self.said,
            self.questions,
            places={stored.id: at for at, stored in enumerate(store.messages(key))},
            llm=self._answers(one),
            tell=tell,
        )

    def _played(self, one: Configuration, tell: Callable[[int], None]) -> Column:
        opened, config = self.engine.opened, self.engine.config
        cipher = cipher_from(config.encryption_key) if config is not None else None
        redactor = opened.redactor if opened is not None else None
        model = ModelChoice() if self.mode == PROMPTS else one.model
        with engine_apart(self.embedder, cipher=cipher, redactor=redactor) as (apart, user):
            chat = open_apart(apart, user, one, model=model, keys=self.keys)
            playing = Playing(
                one,
                chat,
                self.conversation,
                mode=self.mode,
                llm=self._answers(one),
                tell=tell,
            )
            return playing.column(self.said, self.questions)

    def _answers(self, one: Configuration) -> LLM | None:
        """Return the model that answers questions, ``None`` where nothing but the prompt counts."""
        if self.mode != ANSWERS or not self.questions:
            return None
        return build_llm(one.model, key=self.keys.get(one.model.kind))
