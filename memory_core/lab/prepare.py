"""Everything about a conversation that no knob changes, made once for the whole grid.

One tokenisation, one embedding a text and model (kept on disk by :mod:`.embedded`). A
:class:`Prepared` conversation is a plain value that can be sent to another process: it holds
neither a model nor a connection.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from memory_core.errors import InvalidInput
from memory_core.lab.cells import Evidence
from memory_core.lab.embedded import EmbeddingCache, Progress, Vectors
from memory_core.lab.inputs import APART, SweepInput
from memory_core.messages import Message, StoredMessage
from memory_core.tokens import TokenCounter

if TYPE_CHECKING:
    from memory_core.models.embeddings import Embedder


@dataclass(frozen=True, eq=False)
class Embedded:
    """The vectors of texts under one model: ``vectors[rows[text]]``, each of length 1."""

    rows: Mapping[str, int]
    vectors: Vectors

    def of(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of texts that were embedded, one row each."""
        return self.vectors[[self.rows[text] for text in texts]]


@dataclass(frozen=True, eq=False)
class Prepared:
    """A conversation ready to be swept: its texts embedded by each model, its messages counted.

    ``tool_tokens`` are those of the tool definitions that go with every prompt.
    """

    input: SweepInput
    counter: TokenCounter
    embedded: Mapping[str, Embedded] = field(default_factory=dict)
    tool_tokens: int = 0

    @cached_property
    def evidence(self) -> Evidence:
        """How the evidence of all questions is laid out in a cell."""
        return Evidence.of(self.input.questions)

    @cached_property
    def stored(self) -> tuple[StoredMessage, ...]:
        """The messages with their token counts."""
        return tuple(map(self.counted, self.input.said))

    def question(self, number: int) -> StoredMessage:
        """Return a question as the message it would have been, in a turn of its own."""
        asked = self.input.questions[number]
        before = self.input.said[asked.position - 1]
        return self.counted(
            StoredMessage(
                id=f"q{number}",
                position=asked.position,
                turn=before.turn + 1,
                created=before.created + APART,
                message=Message.of("user", asked.text),
            )
        )

    def counted(self, stored: StoredMessage) -> StoredMessage:
        """Return a message with its token count."""
        tokens = self.counter.message(stored.message)
        return replace(stored, tokens=tokens, counter=self.counter.id)

    def vectors(self, model: str) -> Embedded:
        """Return the vectors of one model; raise :class:`InvalidInput` if it was not prepared."""
        if model not in self.embedded:
            known = ", ".join(self.embedded) or "none"
            raise InvalidInput(
                f"Nothing was embedded by {model!r:.60}.",
                next_step=f"Choose a model that was prepared: {known}.",
            )
        return self.embedded[model]


def prepare(
    conversation: SweepInput,
    texts: Iterable[str],
    *,
    counter: TokenCounter,
    embedders: Sequence[Embedder],
    cache: EmbeddingCache,
    tool_tokens: int = 0,
    progress: Progress = lambda _done, _total: None,
) -> Prepared:
    """Embed these texts of a conversation by each model and return it ready to be swept."""
    distinct = [text for text in dict.fromkeys(texts) if text.strip()]
    embedded = {
        embedder.name: Embedded(
            {text: row for row, text in enumerate(distinct)},
            cache.embed(distinct, embedder, progress=progress),
        )
        for embedder in embedders
    }
    return Prepared(conversation, counter, embedded, tool_tokens)
