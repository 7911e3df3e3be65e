"""The token budget: where every token of a prompt comes from, against limit and window."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from memory_core.buffer import WindowPlan
from memory_core.prompt import Assembly, Source
from memory_core.trace import TurnTrace
from ui.palette import swatch


@dataclass(frozen=True)
class Segment:
    """One source's tokens in a prompt; ``share`` is a fraction of the prompt."""

    source: Source
    tokens: int
    share: float

    @property
    def label(self) -> str:
        """The letter and the name of the source."""
        look = swatch(self.source)
        return f"{look.letter} {look.label}"


@dataclass(frozen=True)
class BudgetBar:
    """One stacked bar; all figures in tokens.

    ``segments`` sum to ``tokens``. ``limit`` is what the prompt may hold (the smaller of the
    token limit and the window less the reserve), ``free`` what is left of it, ``over`` by how
    much the prompt exceeds it. A strategy of LlamaIndex's sets no limit to the whole prompt:
    ``limit`` and ``window`` are 0, and ``history`` tells what its own rule says of the history.
    """

    segments: tuple[Segment, ...]
    tokens: int
    limit: int
    window: int
    reserve: int
    free: int
    over: int
    notes: tuple[str, ...]
    history: str = ""

    @property
    def headline(self) -> str:
        """Tokens against limit and window, in one line."""
        if self.history:
            return f"{self.tokens:,} tokens · {self.history}"
        state = f"{self.over:,} over the limit" if self.over else f"{self.free:,} free"
        return (
            f"{self.tokens:,} of {self.limit:,} tokens · {state} · "
            f"window {self.window:,}, {self.reserve:,} kept for the reply"
        )

    @property
    def alt(self) -> str:
        """The bar in words, for people who do not see it."""
        parts = ", ".join(
            f"{swatch(s.source).label} {s.tokens:,} ({s.share:.0%})" for s in self.segments
        )
        return f"Token budget of the prompt. {self.headline}. By source: {parts or 'nothing'}."


@dataclass(frozen=True)
class TurnBar:
    """The prompt of one past turn by source, in tokens."""

    turn: int
    tokens: Mapping[Source, int]


def budget_bar(assembly: Assembly) -> BudgetBar:
    """Return the bar of one prompt."""
    total = assembly.tokens
    segments = tuple(
        Segment(source, n, n / total if total else 0.0)
        for source, n in assembly.tokens_by_source().items()
    )
    allotment = assembly.allotment
    if allotment is not None:
        limit, window, reserve = allotment.limit, allotment.window, allotment.reserve
    else:
        limit, window, reserve = 0, 0, 0
    return BudgetBar(
        segments=segments,
        tokens=total,
        limit=limit,
        window=window,
        reserve=reserve,
        free=max(0, limit - total),
        over=max(0, total - limit) if allotment is not None else 0,
        notes=assembly.notes,
        history=_history(assembly.window) if allotment is None else "",
    )


def _history(plan: WindowPlan | None) -> str:
    """Say what a class's own rule allows the history, by its own count of tokens."""
    if plan is None:
        return "no limit of its own"
    if not plan.limit:
        return f"history {plan.tokens:,}, limited in messages"
    counted = plan.initial + plan.tokens
    state = f", {counted - plan.limit:,} over" if counted > plan.limit else ""
    return f"history {counted:,} of {plan.limit:,} by the class's own count{state}"


def turn_bars(traces: Iterable[TurnTrace]) -> tuple[TurnBar, ...]:
    """Return a bar for each turn that sent a prompt, in the order given."""
    return tuple(
        TurnBar(trace.number, trace.assembly.tokens_by_source())
        for trace in traces
        if trace.assembly is not None
    )
