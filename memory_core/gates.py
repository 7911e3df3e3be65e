"""The way of one thing into one prompt: every gate in order, passed or stopped, with numbers.

A message has two ways in: the buffer, word for word, and long-term memory, as part of a memory
made from it. So has a memory of the same session, whose messages may stand in the buffer. A key
fact and the summary go through the state's share. Gates behind the one that stopped it were not
reached and say nothing.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

from memory_core.buffer import EXACT, LLAMA_INDEX, History, WindowPlan
from memory_core.contents import Contents, searched
from memory_core.fate import FACT, MEMORY, MESSAGE, STATE, SUMMARY
from memory_core.prompt import Assembly, Gate, Hit, Omission, Source
from memory_core.settings import MemorySettings

BUFFER_ROUTE, MEMORY_ROUTE, STATE_ROUTE = "buffer", "long-term memory", "state and summary"
SEARCH, SAID = "search", "said by then"  # what comes before any gate

# The gates of long-term memory in the order in which a candidate meets them.
RECALL_GATES = (
    Gate.OTHER_SESSION,
    Gate.EXPIRED,
    Gate.SUPERSEDED,
    Gate.IN_BUFFER,
    Gate.DUPLICATE,
    Gate.THRESHOLD,
    Gate.TOP_K,
    Gate.BUDGET,
)


SearchResult = tuple[Hit, Omission | None]
"""A memory as a search turned it up, and what stopped it."""


@dataclass(frozen=True)
class Item:
    """What is asked about: a message, memory, key fact, summary or state key, by id.

    ``index`` is a message's place among the active messages of that turn; for a memory that of
    the newest message it was made from (``made_from``), if it was said in this session.
    ``made_into`` are the memories made of a message, where a search does not name its messages.
    """

    kind: str
    id: str
    index: int | None = None
    made_from: tuple[str, ...] = ()
    made_into: tuple[str, ...] = ()


@dataclass(frozen=True)
class Check:
    """One gate. ``passed`` is ``None`` when it was not reached or cannot be known.

    ``needed`` and ``available`` are the numbers compared, in the gate's own unit.
    """

    gate: str
    passed: bool | None
    reason: str = ""
    needed: float | None = None
    available: float | None = None


@dataclass(frozen=True)
class Route:
    """One way into the prompt: its gates in order."""

    name: str
    checks: tuple[Check, ...]

    @property
    def stopped(self) -> Check | None:
        """The first gate that stopped it, or whose outcome is not known."""
        return next((check for check in self.checks if not check.passed), None)


def place_of(item: Item, assembly: Assembly) -> str:
    """Say where in a prompt the thing stands, an empty text when it does not.

    A memory whose messages stand in the buffer counts as in: it is left out as a repetition.
    """
    held = Contents.of(assembly)
    if item.kind == MESSAGE:
        if item.id in held.messages:
            return "word for word in the buffer"
        again = item.id in held.carried or not set(item.made_into).isdisjoint(held.memories)
        return "in a memory that was retrieved" if again else ""
    if item.kind == MEMORY:
        if item.id in held.memories:
            return "among the retrieved memories"
        repeated = not set(item.made_from).isdisjoint(held.messages)
        return "word for word in the buffer" if repeated else ""
    if item.kind == FACT and item.id in held.retold:
        return "word for word in the summary"
    there, words = {
        SUMMARY: (item.id in held.summary_ids, "in its own section"),
        STATE: (held.state, "in the state's section"),  # one section for all of it
    }.get(item.kind, (item.id in held.facts, "among the key facts"))
    return words if there else ""


def routes_of(
    item: Item,
    assembly: Assembly,
    settings: MemorySettings,
    *,
    history: History | None = None,
    found: SearchResult | None = None,
) -> tuple[Route, ...]:
    """Return every way into this prompt that the thing has, gate by gate.

    ``found`` is what the search knows of it when the prompt's own near misses do not reach it.
    """
    found = found or found_for(item, assembly)
    if item.kind in (FACT, SUMMARY, STATE):
        return (Route(STATE_ROUTE, tuple(_state_checks(item, assembly))),)
    recall = Route(MEMORY_ROUTE, tuple(_recall_checks(found, assembly, settings)))
    if item.kind == MEMORY and item.index is None:
        return (recall,)
    buffer = Route(BUFFER_ROUTE, tuple(_buffer_checks(item, assembly, history)))
    return (buffer, recall) if item.kind == MESSAGE else (recall, buffer)


def found_for(item: Item, assembly: Assembly) -> SearchResult | None:
    """Return the search result a thing turned up as (the best memory of a message) and its stop."""
    for hit, out in searched(assembly):
        mine = item.id in hit.message_ids or hit.id in item.made_into
        if hit.id == item.id or (item.kind == MESSAGE and mine):
            return hit, out
    return None


def tokens_needed(history: History, index: int, rule: str) -> int:
    """Return the tokens of the smallest window that holds the message at this place."""
    if rule != LLAMA_INDEX:
        return history.needed(index)
    cuts = history.joined_cuts
    at = bisect_right(cuts, index)
    start = index if index == len(history) - 1 else (cuts[at - 1] if at else 0)
    return history.joined_tokens(start)


def _buffer_checks(item: Item, assembly: Assembly, history: History | None) -> Iterable[Check]:
    plan = assembly.window
    if plan is None or plan.rule not in (EXACT, LLAMA_INDEX):
        yield _as_the_class_tells(item, assembly)
        return
    if item.index is None or item.index >= plan.total:
        yield Check(SAID, passed=False, reason="it is not among the messages of that turn")
        return
    yield Check(SAID, passed=True, reason=f"message {item.index + 1:,} of {plan.total:,}")
    orphan = item.index in (history.orphans if history is not None else plan.orphans)
    if orphan and not plan.keeps(item.index):
        yield Check(Gate.ORPHAN, passed=False, reason="it is a tool result without its call")
        return
    yield Check(Gate.ORPHAN, passed=True, reason="no tool result without its call")
    yield _fits(item.index, plan, history)


def _as_the_class_tells(item: Item, assembly: Assembly) -> Check:
    """Say what a strategy with another window rule tells of a message, or that it does not."""
    if item.id in assembly.message_ids:
        return Check("in the messages returned", passed=True)
    for out in assembly.omissions:
        if item.id in out.ids and out.gate is not Gate.NOT_EXPLAINED:
            return _stop(out)
    return Check(Gate.NOT_EXPLAINED, passed=None, reason=Gate.NOT_EXPLAINED.value)


def _fits(index: int, plan: WindowPlan, history: History | None) -> Check:
    left = plan.limit - plan.initial
    if plan.keeps(index):
        reason = f"the window holds {plan.tokens:,} of {max(0, left):,} tokens"
        return Check(Gate.TOKEN_LIMIT, passed=True, reason=reason)
    if history is None or not (history.starts or plan.rule == LLAMA_INDEX):
        return Check(Gate.GROUP, passed=False, reason="no window starts at or before it")
    needed = tokens_needed(history, index, plan.rule)
    reason = (
        f"with everything newer it needs {needed:,} tokens, {max(0, left):,} of "
        f"{plan.limit:,} are left for the buffer"
    )
    return Check(Gate.TOKEN_LIMIT, passed=False, reason=reason, needed=needed, available=left)


def _recall_checks(
    found: SearchResult | None, assembly: Assembly, settings: MemorySettings
) -> Iterable[Check]:
    recall = assembly.recall
    if recall is None and assembly.allotment is None:
        yield Check(SEARCH, passed=False, reason="this strategy made no search for this prompt")
        return
    if recall is None:
        off = "recall is switched off" if not settings.recall else "nothing was searched"
        yield Check(SEARCH, passed=False if not settings.recall else None, reason=off)
        return
    if found is None:
        seen = len(recall.hits) + len(recall.near)
        best = f"best {seen:,} of " if seen < recall.searched else ""
        reason = f"no memory of it is among the {best}{recall.searched:,} searched"
        reason = recall.skipped or reason
        yield Check(SEARCH, passed=False, reason=reason)
        return
    hit, out = found
    ranked = f"rank {hit.rank:,} of" if hit.rank else "one of"
    yield Check(SEARCH, passed=True, reason=f"{ranked} {recall.searched:,} for this question")
    stopped = out.gate if out is not None else None
    if assembly.allotment is None:  # a class of its own: its gates are not those of our search
        yield (
            _stop(out)
            if out is not None
            else Check("in what the class returned", passed=place_of_hit(hit, assembly))
        )
        return
    for gate in RECALL_GATES:
        if gate is stopped and out is not None:
            yield _stop(out)
            return
        yield _passed(gate, hit, settings)


def place_of_hit(hit: Hit, assembly: Assembly) -> bool:
    """Return whether a memory that a search turned up stands in the prompt."""
    return hit.id in Contents.of(assembly).memories


def _stop(out: Omission) -> Check:
    reason = out.reason or out.gate.value
    return Check(out.gate, passed=False, reason=reason, needed=out.needed, available=out.available)


def _passed(gate: Gate, hit: Hit, settings: MemorySettings) -> Check:
    if gate is Gate.THRESHOLD:
        reason = f"score {hit.score:.2f}, threshold {settings.threshold:.2f}"
        return Check(gate, passed=True, reason=reason, needed=hit.score)
    if gate is Gate.TOP_K:
        return Check(gate, passed=True, reason=f"top_k is {settings.top_k:,}")
    if gate is Gate.BUDGET:
        return Check(gate, passed=True, reason=f"its {hit.tokens:,} tokens fit", needed=hit.tokens)
    return Check(gate, passed=True)


def _state_checks(item: Item, assembly: Assembly) -> Iterable[Check]:
    wanted = {FACT: Source.FACTS, SUMMARY: Source.SUMMARY, STATE: Source.STATE}[item.kind]
    for out in assembly.omissions:
        if out.source is wanted and (item.id in out.ids or item.kind == STATE):
            yield _stop(out)
            return
    if place_of(item, assembly):
        yield Check(Gate.BUDGET, passed=True, reason="its section fits in the state's share")
        return
    yield Check(SAID, passed=False, reason="it did not hold in that turn")
