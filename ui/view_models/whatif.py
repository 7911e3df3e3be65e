"""What a change of settings would do to the next prompt: newly in, newly out, by how much."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memory_core.messages import StoredMessage
from memory_core.prompt import Assembly, Part, Source
from ui.palette import swatch
from ui.view_models.buffer import SPEAKERS, shown_text
from ui.view_models.text import excerpt


@dataclass(frozen=True)
class Moved:
    """A part that enters or leaves the prompt, or changes in what it stands for."""

    id: str
    source: Source
    tokens: int
    turn: int | None
    text: str
    who: str = ""

    @property
    def label(self) -> str:
        """Letter, turn and speaker, to stand before the text."""
        turn = f"turn {self.turn}" if self.turn else swatch(self.source).label
        return " ".join(filter(None, (swatch(self.source).letter, turn, self.who)))


@dataclass(frozen=True)
class WhatIf:
    """The difference between two prompts; ``tokens`` is after less before."""

    newly_in: tuple[Moved, ...]
    newly_out: tuple[Moved, ...]
    tokens: int

    @property
    def changed(self) -> bool:
        """Whether there is any difference to tell."""
        return bool(self.newly_in or self.newly_out or self.tokens)

    @property
    def headline(self) -> str:
        """The difference in a few characters."""
        return f"+{len(self.newly_in)} in  -{len(self.newly_out)} out  {self.tokens:+,} tokens"


def what_if(
    before: Assembly, after: Assembly, stored: Mapping[str, StoredMessage] | None = None
) -> WhatIf:
    """Compare two prompts by the ids of what they hold."""
    known = stored or {}
    return WhatIf(
        newly_in=tuple(_moved(after, after.ids_in() - before.ids_in(), known)),
        newly_out=tuple(_moved(before, before.ids_in() - after.ids_in(), known)),
        tokens=after.tokens - before.tokens,
    )


def _moved(
    assembly: Assembly, ids: frozenset[str], stored: Mapping[str, StoredMessage]
) -> Sequence[Moved]:
    groups: dict[tuple[Source, tuple[str, ...]], list[Part]] = {}
    for part in assembly.parts:
        own = tuple(id_ for id_ in part.ids if id_ in ids)
        if own:
            groups.setdefault((part.source, own), []).append(part)
    rows = []
    for (source, own), parts in groups.items():
        message = stored.get(own[0]) if source is Source.BUFFER else None
        if message is not None:
            text = shown_text(message.message)
        else:
            text = max((assembly.text_of(part) for part in parts), key=len).strip()
        rows.append(
            Moved(
                id=own[0],
                source=source,
                tokens=sum(part.tokens for part in parts),
                turn=parts[0].turn,
                text=excerpt(text, 80),
                who=SPEAKERS.get(message.message.role, "") if message else "",
            )
        )
    return rows
