"""One turn as it happened: what ran when, what was written, what it cost, what went wrong."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from memory_core.trace import FLUSHED, WAITING, Ask, ModelCall, TurnTrace
from ui.view_models.text import excerpt, plural


@dataclass(frozen=True)
class Event:
    """One thing that happened; times in milliseconds from the start of the turn."""

    at: float
    milliseconds: float
    kind: str
    what: str
    failed: bool = False


@dataclass(frozen=True)
class UsageRow:
    """One model call: our own count beside the provider's, ``None`` where it reports none."""

    purpose: str
    model: str
    ours_prompt: int
    theirs_prompt: int | None
    ours_reply: int
    theirs_reply: int | None
    cost: float | None

    @property
    def off(self) -> float | None:
        """By which fraction our count of the prompt differs from the provider's."""
        if not self.theirs_prompt:
            return None
        return (self.ours_prompt - self.theirs_prompt) / self.theirs_prompt


@dataclass(frozen=True)
class AskRow:
    """One request of the agent to its memory for the prompt: what it passed, got and cost."""

    number: int
    question: str
    messages: int
    tokens: int
    calls: int
    embedded: int
    milliseconds: float
    error: str


@dataclass(frozen=True)
class TurnView:
    """What one turn did. ``spent`` are the turn's own timings, longest first."""

    number: int
    query: str
    headline: str
    events: tuple[Event, ...]
    usage: tuple[UsageRow, ...]
    writes: tuple[str, ...]
    spent: tuple[tuple[str, float], ...]
    degradations: tuple[str, ...]
    error: str
    started: str
    asks: tuple[AskRow, ...] = ()


def turn_view(trace: TurnTrace) -> TurnView:
    """Return what there is to see of one turn."""
    return TurnView(
        number=trace.number,
        query=trace.query,
        headline=headline(trace),
        events=tuple(sorted(_events(trace), key=lambda event: event.at)),
        usage=tuple(_usage(call) for call in trace.calls),
        writes=tuple(_writes(trace)),
        spent=tuple(sorted(trace.milliseconds.items(), key=lambda item: -item[1])),
        degradations=trace.degradations,
        error=trace.error,
        started=trace.started.strftime("%Y-%m-%d %H:%M:%S UTC"),
        asks=tuple(_ask(number, ask) for number, ask in enumerate(trace.asks, 1)),
    )


def headline(trace: TurnTrace) -> str:
    """Return one line on a turn: messages in the prompt, memories, tools, time."""
    parts = [f"turn {trace.number}"]
    assembly = trace.assembly
    if assembly is not None:
        parts.append(f"{assembly.tokens:,} tokens sent")
        hits = len(assembly.recall.hits) if assembly.recall else 0
        if hits:
            parts.append("1 memory" if hits == 1 else f"{hits} memories")
    if trace.steps:
        parts.append(plural(len(trace.steps), "tool call"))
    total = trace.milliseconds.get("total", (trace.ended - trace.started).total_seconds() * 1000)
    parts.append(f"{total:,.0f} ms")
    if trace.supersedes:
        parts.append(f"replaces turn {trace.supersedes}")
    return " · ".join(parts)


def _ask(number: int, ask: Ask) -> AskRow:
    question = excerpt(" ".join(ask.query.split()), 60) if ask.query else "none"
    if ask.in_front:
        question += f", {ask.in_front:,} tokens in front"
    return AskRow(
        number,
        question,
        ask.messages,
        ask.tokens,
        ask.calls,
        ask.embedded,
        ask.milliseconds,
        ask.error,
    )


def _events(trace: TurnTrace) -> Iterable[Event]:
    for call in trace.calls:
        what = f"{call.model}: {call.assembly.tokens:,} tokens in, {call.estimated:,} out"
        if call.streamed:
            what += ", streamed"
        if call.error:
            what += f" · {call.error}"
        yield Event(call.at, call.milliseconds, call.purpose, what, bool(call.error))
    for step in trace.steps:
        what = f"{step.name}({step.arguments}) → {step.result}"
        yield Event(step.at, step.milliseconds, "tool", excerpt(what, 400), step.failed)


def _usage(call: ModelCall) -> UsageRow:
    usage = call.usage
    return UsageRow(
        purpose=call.purpose,
        model=call.model,
        ours_prompt=call.assembly.tokens,
        theirs_prompt=usage.prompt if usage else None,
        ours_reply=call.estimated,
        theirs_reply=usage.completion if usage else None,
        cost=call.cost,
    )


def _writes(trace: TurnTrace) -> Iterable[str]:
    if trace.appended:
        yield f"{plural(len(trace.appended), 'message')} stored"
    if trace.evicted:
        yield f"{plural(len(trace.evicted), 'message')} left the buffer"
    if trace.summary is not None:
        folded = plural(len(trace.summary.folded), "message")
        yield f"summary v{trace.summary.version}: {folded} folded in"
    for write in trace.memories:
        if write.action in (FLUSHED, WAITING):
            batch = plural(len(write.message_ids), "message")
            told = "flushed into" if write.action == FLUSHED else "waiting for"
            yield f"{batch} {told} the block {write.id}: {write.reason}"
            continue
        reason = f" ({write.reason})" if write.reason else ""
        yield f"{write.kind} {write.action}{reason}: {excerpt(write.text)}"
    for change in trace.changes:
        yield f"state {change.path}: {change.before!r} → {change.after!r}"
    counts = []
    if trace.asked:
        times = "once" if trace.asked == 1 else f"{trace.asked} times"
        counts.append(f"prompt asked for {times}")
    if trace.embedded:
        counts.append(f"{plural(trace.embedded, 'text')} embedded")
    if trace.encoded:
        counts.append(f"{trace.encoded:,} tokens encoded")
    if counts:
        yield " · ".join(counts)
