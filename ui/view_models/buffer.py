"""The rolling window as a list: newest first, the limit as a line through it, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from memory_core.buffer import WindowPlan
from memory_core.messages import Message, StoredMessage
from memory_core.native.rules import PATTERN_RULE, QUEUE_RULE
from memory_core.prompt import Assembly, Omission
from memory_core.strategies import MEMORY_BLOCKS
from memory_core.trace import FLUSHED, WAITING, TurnTrace

PAGE = 50  # rows drawn at once, however long the history is
SPEAKERS = {"user": "you", "assistant": "bot", "tool": "tool", "system": "system"}


@dataclass(frozen=True)
class BufferRow:
    """One message of the history and where it stands; ``age`` is in turns."""

    id: str
    position: int
    turn: int
    role: str
    tokens: int
    age: int
    inside: bool
    reason: str
    text: str


@dataclass(frozen=True)
class BufferView:
    """One page of the history, newest first: rows above the limit line, rows below it.

    Counts are over the whole history, not the page. ``line`` is the sentence on the limit line.
    """

    inside: tuple[BufferRow, ...]
    outside: tuple[BufferRow, ...]
    line: str
    kept: int
    left_out: int
    page: int
    pages: int

    @property
    def label(self) -> str:
        """A few characters for the panel's tab."""
        return f"Buffer {self.kept}·{self.left_out} out"


@dataclass(frozen=True)
class Whereabouts:
    """Where messages that left the window went.

    ``summary`` is the version of the running summary that covers the oldest ``covers``
    messages; ``remembered`` the turns that stand in long-term memory. ``kept`` names by message
    id where a strategy of LlamaIndex's put it.
    """

    summary: int = 0
    covers: int = 0
    remembered: frozenset[int] = frozenset()
    kept: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


NOWHERE = Whereabouts()


def kept_by_class(traces: Iterable[TurnTrace]) -> dict[str, tuple[str, ...]]:
    """Return by message id into which blocks or records these turns put messages."""
    kept: dict[str, dict[str, None]] = {}
    for trace in traces:
        for write in trace.memories:
            if write.action in (FLUSHED, WAITING):
                waits = "waits for " if write.action == WAITING else ""
                place = f"{waits}block {write.id}"
            elif write.action == "remembered" and trace.strategy != MEMORY_BLOCKS:
                place = "memory"
            else:
                continue
            for item in write.message_ids:
                kept.setdefault(item, {})[place] = None
    return {item: tuple(places) for item, places in kept.items()}


def buffer_view(
    messages: Sequence[StoredMessage],
    assembly: Assembly,
    *,
    turn: int,
    went: Whereabouts = NOWHERE,
    page: int = 1,
    size: int = PAGE,
) -> BufferView:
    """Return one page of the history as ``assembly`` saw it.

    ``messages`` is the active history, oldest first; ``turn`` is the turn ages are counted from.
    """
    plan = assembly.window
    total = min(len(messages), plan.total) if plan is not None else len(messages)
    pages = max(1, -(-total // size))
    page = min(max(1, page), pages)
    last = total - (page - 1) * size
    first = max(0, last - size)
    if plan is None:
        sent = set(assembly.message_ids)
        kept = sum(1 for m in messages if m.id in sent)
        told = [(i, messages[i].id in sent, "") for i in range(first, last)]
    else:
        reasons = _Reasons(messages, assembly, plan, went)
        kept = len(plan.pinned) + plan.total - plan.start - len(plan.orphans)
        told = [(i, plan.keeps(i), reasons.of(i)) for i in range(first, last)]
    rows = [_row(messages[i], turn, reason, inside=inside) for i, inside, reason in reversed(told)]
    return BufferView(
        inside=tuple(row for row in rows if row.inside),
        outside=tuple(row for row in rows if not row.inside),
        line=_line(plan) if plan is not None and first <= plan.start <= last else "",
        kept=kept,
        left_out=total - kept,
        page=page,
        pages=pages,
    )


def shown_text(message: Message) -> str:
    """Return what there is to read in a message: its text, else its tool calls."""
    if message.text:
        return message.text
    return "\n".join(f"{call.name}({call.arguments})" for call in message.tool_calls)


class _Reasons:
    """Puts the numbers of the window plan into words, message by message."""

    def __init__(
        self,
        messages: Sequence[StoredMessage],
        assembly: Assembly,
        plan: WindowPlan,
        went: Whereabouts,
    ) -> None:
        self._messages = messages
        self._plan = plan
        self._went = went
        self._pinned = frozenset(plan.pinned)
        self._unanswered = frozenset(plan.unanswered)
        self._omissions: dict[str, Omission] = {
            id_: omission for omission in assembly.omissions for id_ in omission.ids
        }
        recall = assembly.recall
        self._back: Mapping[str, float] = (
            {id_: hit.score for hit in recall.hits for id_ in hit.message_ids} if recall else {}
        )
        self._sums: dict[int, int] = {plan.start: 0}
        self._lowest = plan.start

    def of(self, index: int) -> str:
        plan = self._plan
        if plan.keeps(index):
            if index in self._pinned:
                return "pinned: system messages stay"
            if index in self._unanswered:
                return "calls a tool; no result is stored"
            return "over the limit, sent all the same: newest" if plan.over_limit else ""
        why, where = self._why(index), ", ".join(self._where(index))
        return f"{why} → {where}" if where else why

    def _why(self, index: int) -> str:
        message = self._messages[index]
        omission = self._omissions.get(message.id)
        if omission is not None:
            return f"{omission.gate.value}: {omission.reason}"
        plan = self._plan
        if plan.initial > plan.limit:
            return f"no room: {plan.initial:,} tokens stand in front, the limit is {plan.limit:,}"
        if index >= plan.start:
            return ""
        needed = self._needed(index)
        return f"needs {needed:,} with all newer, {plan.next_left:,} left"

    def _needed(self, index: int) -> int:
        """Return the tokens between a message and the window's start, summed once."""
        while self._lowest > index:
            below = self._lowest - 1
            tokens = 0 if below in self._pinned else self._messages[below].tokens or 0
            self._sums[below] = self._sums[self._lowest] + tokens
            self._lowest = below
        return self._sums[index]

    def _where(self, index: int) -> list[str]:
        message, went = self._messages[index], self._went
        places = []
        if message.id in self._back:
            places.append(f"back as a memory, score {self._back[message.id]:.2f}")
        elif message.turn in went.remembered:
            places.append("memory")
        places += went.kept.get(message.id, ())
        if index < went.covers:
            places.append(f"summary {went.summary}")
        return places


def _row(stored: StoredMessage, turn: int, reason: str, *, inside: bool) -> BufferRow:
    return BufferRow(
        id=stored.id,
        position=stored.position,
        turn=stored.turn,
        role=SPEAKERS.get(stored.message.role, stored.message.role),
        tokens=stored.tokens or 0,
        age=max(0, turn - stored.turn),
        inside=inside,
        reason=reason,
        text=shown_text(stored.message),
    )


def _line(plan: WindowPlan) -> str:
    """Say what the limit is and how the window came to end where it does."""
    if plan.rule == PATTERN_RULE:
        return f"in full {plan.tokens:,} tokens; the limit of this pattern counts messages"
    if plan.rule == QUEUE_RULE:
        line = f"the queue may hold {plan.limit:,} tokens, by the class's count it has"
        line += f" {plan.tokens:,}"
        return f"{line}; {plan.next_needed:,} were archived last" if plan.start else line
    if plan.initial > plan.limit:
        return f"limit {plan.limit:,} tokens: what stands in front needs {plan.initial:,}, no room"
    room = plan.limit - plan.initial
    line = f"limit {plan.limit:,} less {plan.initial:,} in front leaves {room:,} for the buffer"
    if plan.over_limit:
        return f"{line}; the newest group alone needs {plan.tokens:,}"
    line += f"; {plan.tokens:,} used"
    if plan.next_start >= 0:
        return f"{line}, the next group needs {plan.next_needed:,}, {plan.next_left:,} left"
    return line if plan.start else f"{line}, every message fits"
