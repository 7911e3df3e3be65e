"""When summary rounds would have run, without running them.

A round is due when enough messages have left the window, and the window depends on the settings;
so the conversation is gone through turn by turn for each of them, at every prompt a chat would
have made. The text of a summary is not known without a model. It counts as long as it may be
(``summary_tokens``), and retrieved memories as all of their share: rounds and tokens are upper
bounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache

from memory_core.assemble import Layers, plan_prompt
from memory_core.budget import allocate_budget
from memory_core.buffer import History, plan_window
from memory_core.lab.prepare import Prepared
from memory_core.messages import StoredMessage
from memory_core.settings import MemorySettings
from memory_core.state import AgentState
from memory_core.summary import NO_SUMMARY, Summary, plan_summary

CALLS_A_ROUND = 2  # one for the key facts, one for the summary
NOBODY = AgentState(user="", session="")

Key = tuple[object, ...]


@dataclass
class Rounds:
    """The summary rounds under one setting: how many, and what they cover at each question.

    ``covered[n]`` is how many of the oldest messages the summary stands for when question ``n``
    is asked.
    """

    settings: MemorySettings
    rounds: int = 0
    covers: int = 0
    covered: dict[int, int] = field(default_factory=dict)

    def step(self, prepared: Prepared, history: History, open_turn: int) -> int:
        """Run a round if one is due where the history ends; return what is covered then."""
        planned = plan_summary(
            history,
            covered=self.covers,
            window_start=self._window_start(prepared, history),
            every=self.settings.summary_every,
            open_turn=open_turn,
        )
        return planned.last if planned.due else self.covers

    def _window_start(self, prepared: Prepared, history: History) -> int:
        settings = self.settings
        layers = Layers(
            messages=prepared.stored,
            history=history,
            state=NOBODY,
            summary=standing_in(settings, self.covers),
            tool_tokens=prepared.tool_tokens if settings.tools else 0,
        )
        planned = plan_prompt(layers, settings, prepared.counter)
        if not settings.recall:
            return planned.window.start
        given = planned.allotment
        share = allocate_budget(
            window=given.window,
            reserve=given.reserve,
            token_limit=settings.token_limit,
            fixed=given.fixed,
            shares=settings.shares,
            state_needs=0,
            retrieved_needs=given.limit,
        ).retrieved
        initial = planned.window.initial + share
        return plan_window(
            history, planned.window.limit, initial=initial, rule=settings.window_rule
        ).start


def schedule(
    prepared: Prepared, settings: Iterable[MemorySettings], *, only: int | None = None
) -> Mapping[Key, Rounds]:
    """Return the rounds under each of these settings, by :func:`key_of`.

    With ``only`` that question alone is asked, and the conversation is gone through up to it.
    """
    found = {key_of(one): Rounds(one) for one in settings}
    if not any(rounds.settings.summarise for rounds in found.values()):
        return found
    live = [rounds for rounds in found.values() if rounds.settings.summarise]
    asked = prepared.input.questions
    numbers = range(len(asked)) if only is None else [only]
    end = len(prepared.stored) if only is None else asked[only].position
    waiting = sorted(numbers, key=lambda n: asked[n].position)
    history = History(prepared.counter.text)
    for stored in (*prepared.stored[:end], None):
        while waiting and asked[waiting[0]].position == len(history):
            _ask(prepared, history, waiting.pop(0), live)
        if stored is None:
            break
        _append(history, stored)
        if stored.message.role == "user":
            for rounds in live:
                before = rounds.covers
                rounds.covers = rounds.step(prepared, history, stored.position)
                rounds.rounds += rounds.covers != before
    return found


def key_of(settings: MemorySettings) -> Key:
    """Return what a schedule depends on."""
    return (
        settings.summarise,
        settings.summary_every,
        settings.summary_tokens,
        settings.token_limit,
        settings.context_window,
        settings.reply_reserve,
        settings.shares,
        settings.window_rule,
        settings.system_prompt,
        settings.recall,
        settings.tools,
    )


def standing_in(settings: MemorySettings, covers: int) -> Summary:
    """Return a summary as long as one may be, for one whose text is not known."""
    if not settings.summarise or not covers:
        return NO_SUMMARY
    tokens = settings.summary_tokens
    return Summary(version=1, text=_filler(tokens), tokens=tokens, covers=covers)


def _ask(prepared: Prepared, history: History, number: int, live: Iterable[Rounds]) -> None:
    own = history.copy()
    open_turn = len(own)
    _append(own, prepared.question(number))
    for rounds in live:
        rounds.covered[number] = rounds.step(prepared, own, open_turn)


def _append(history: History, stored: StoredMessage) -> None:
    history.append(stored.message, stored.tokens or 0)


@cache
def _filler(tokens: int) -> str:
    return "a" + " a" * (tokens - 1)
