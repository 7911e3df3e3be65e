"""Plays a sample conversation through the real engine, a few turns per look of the page.

Every turn goes through memory as a chatted one would: prompt, eviction, summary, long-term
memory, trace. The answers are the ones written in the sample, or the model's own. Between two
looks of the page nothing runs, so a stop takes effect at once and never cuts a turn in two.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from memory_core.samples import Sample, load_samples

if TYPE_CHECKING:
    from memory_core.chat import Chat

SLICE = 0.4  # seconds of playing per look


@dataclass
class Player:
    """A sample on its way in: ``played`` turns of it are stored."""

    sample: Sample
    own_answers: bool = False
    played: int = 0

    @property
    def total(self) -> int:
        """How many turns the sample has."""
        return len(self.sample.turns)

    @property
    def done(self) -> bool:
        """Whether every turn is in."""
        return self.played >= self.total

    def play(self, chat: Chat, *, seconds: float = SLICE) -> None:
        """Play turns until the time is used up, at least one; raise what a turn raises."""
        until = time.monotonic() + seconds
        while not self.done:
            self._play_one(chat)
            if time.monotonic() >= until:
                return

    def _play_one(self, chat: Chat) -> None:
        turn = self.sample.turns[self.played]
        if self.own_answers:
            _run(chat, turn.user)
        else:
            chat.play(turn.user, turn.assistant)
        self.played += 1


def _run(chat: Chat, text: str) -> None:
    from memory_core.agent import Failed

    for event in chat.stream(text):
        if isinstance(event, Failed):
            raise event.error


@lru_cache(maxsize=1)
def samples() -> tuple[Sample, ...]:
    """Return all samples; read once, they are part of the program."""
    return tuple(load_samples())
