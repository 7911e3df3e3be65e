"""From the layers' contents to one Assembly: pure planning, no model, no disk, no clock.

All layers but the buffer stand in one system message, in sections; the buffer follows as the
messages it holds. Each section ends in line breaks and the next begins with none, where no token
of the encodings in use runs across, so sections are counted one by one (and cached) and their
counts sum to the message's.

What retrieved memories leave unused flows to the buffer, and a memory whose turn stands in the
buffer is not repeated. Each depends on the other, so :func:`assemble` looks for the fixed point;
when there is none it gives retrieval its whole share, which always is one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from memory_core.budget import Allotment, allocate_budget, collisions
from memory_core.buffer import EXACT, History, WindowPlan, plan_window
from memory_core.messages import Message, StoredMessage
from memory_core.prompt import Assembly, Gate, Hit, Omission, Part, Recall, Source
from memory_core.sections import Section, block, fence, state_sections
from memory_core.settings import MemorySettings
from memory_core.state import AgentState
from memory_core.summary import Summary, plan_summary
from memory_core.tokens import PER_MESSAGE, PRIMING, TokenCounter

Rank = Callable[[frozenset[str], int], Recall]
"""Ranks memories, given the ids of messages in the buffer and the tokens there are for hits.

The tokens of each hit are those that :func:`memory_tokens` counts, or 0: not counted yet.
"""

_TRIES = 8
_ID = attrgetter("id")
_ALL = 10**12  # tokens; more than any layer needs


@dataclass(frozen=True)
class Layers:
    """What a prompt is made of. ``history`` holds the same messages as ``messages``.

    ``tool_tokens`` are the tokens of the tool definitions, ``in_front`` those of a prefix that
    the caller adds itself. ``open_turn`` is where the turn now running starts.
    """

    messages: Sequence[StoredMessage]
    history: History
    state: AgentState
    summary: Summary
    rank: Rank | None = None
    tool_tokens: int = 0
    in_front: int = 0
    open_turn: int | None = None


@dataclass
class _Writer:
    """Builds the system message section by section, noting which span came from where."""

    counter: TokenCounter
    chunks: list[str] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    length: int = 0

    def add(self, text: str, source: Source, **about: object) -> None:
        extra = PER_MESSAGE if not self.parts else 0
        self.parts.append(
            Part(
                source=source,
                tokens=self.counter.text(text) + extra,
                message=0,
                start=self.length,
                end=self.length + len(text),
                **about,  # type: ignore[arg-type]
            )
        )
        self.chunks.append(text)
        self.length += len(text)


@dataclass(frozen=True)
class PromptPlan:
    """What goes into a prompt, before a word of it is written.

    ``sections`` of state and summary are in, ``dropped`` did not fit; ``state_needs`` and
    ``retrieved`` are tokens; ``most`` is what each layer may use, ``allotment`` what it got.
    Sweeps plan without writing: it is the larger part of the work.
    """

    rules: str
    sections: tuple[Section, ...]
    dropped: tuple[Omission, ...]
    state_needs: int
    recall: Recall | None
    retrieved: int
    window: WindowPlan
    allotment: Allotment
    most: Allotment


def plan_prompt(layers: Layers, settings: MemorySettings, counter: TokenCounter) -> PromptPlan:
    """Decide what goes into the prompt: which sections, which memories, which messages."""
    rules = block(settings.system_prompt)
    in_system = counter.text(rules) + PER_MESSAGE
    fixed = in_system + layers.tool_tokens + layers.in_front + PRIMING
    shares = settings.shares

    def allot(retrieved: int, state_needs: int) -> Allotment:
        return allocate_budget(
            window=settings.context_window,
            reserve=settings.reply_reserve,
            token_limit=settings.token_limit,
            fixed=fixed,
            shares=shares,
            state_needs=state_needs,
            retrieved_needs=retrieved,
        )

    most = allot(_ALL, _ALL)
    kept, dropped, state_needs = state_sections(
        layers.state, layers.summary, layers.messages, counter, most.state
    )
    state_used = sum(section.tokens for section in kept)

    def window(retrieved: int) -> WindowPlan:
        initial = fixed + state_used + retrieved
        return plan_window(layers.history, most.limit, initial=initial, rule=settings.window_rule)

    recall, plan, used = _settle(layers, counter, most.retrieved, window)
    return PromptPlan(
        rules=rules,
        sections=tuple(kept),
        dropped=tuple(dropped),
        state_needs=state_needs,
        recall=recall,
        retrieved=used,
        window=plan,
        allotment=allot(used, state_used),
        most=most,
    )


def assemble(layers: Layers, settings: MemorySettings, counter: TokenCounter) -> Assembly:
    """Return the prompt these layers give under these settings, fully explained."""
    planned = plan_prompt(layers, settings, counter)
    recall, plan, used = planned.recall, planned.window, planned.retrieved
    needs = used if recall is None else used + _refused_by_budget(recall)
    notes = [
        *collisions(planned.most, state_needs=planned.state_needs, retrieved_needs=needs),
        *_summary_notes(layers, settings, plan),
    ]
    if plan.over_limit and plan.total > plan.start:
        notes.append(
            f"The newest group of messages alone needs {plan.tokens:,} tokens, "
            f"{max(0, plan.limit - plan.initial):,} are left; it is sent over the limit."
        )
    notes += _unanswered_notes(plan)

    writer = _Writer(counter)
    writer.add(planned.rules, Source.SYSTEM)
    for section in planned.sections:
        writer.add(section.text, section.source, ids=section.ids)
    if recall is not None and recall.hits:
        _write_memories(writer, recall.hits)
    first = (Message.of("system", "".join(writer.chunks)),) if writer.length else ()
    kept_messages = [layers.messages[i] for i in plan.kept()]
    parts = list(writer.parts) if first else []
    parts += [
        Part(
            source=Source.BUFFER,
            tokens=_tokens_of(stored, counter),
            message=index,
            end=len(stored.message.text),
            ids=(stored.id,),
            turn=stored.turn,
        )
        for index, stored in enumerate(kept_messages, start=len(first))
    ]
    if layers.tool_tokens:
        parts.append(Part(Source.TOOLS, layers.tool_tokens))
    parts.append(Part(Source.FORMAT, PRIMING, note="primes the reply"))
    return Assembly(
        messages=(*first, *(stored.message for stored in kept_messages)),
        message_ids=(*("" for _ in first), *(stored.id for stored in kept_messages)),
        parts=tuple(parts),
        omissions=(*planned.dropped, *_left_out(layers, plan)),
        window=plan,
        allotment=planned.allotment,
        recall=recall,
        notes=tuple(notes),
        counter=counter.id,
    )


def render_memory(hit: Hit) -> tuple[str, str]:
    """Return the two pieces a memory stands as in the prompt: its heading and its text."""
    turn = f"turn {hit.turn}, " if hit.turn else ""
    heading, body = f"[{turn}score {hit.score:.2f}]\n", block(fence(hit.text))
    # subtle: a slash is the one character that shares a token with the line break before it
    return ("", heading + body) if body.startswith("/") else (heading, body)


def memory_tokens(hit: Hit, counter: TokenCounter) -> int:
    """Return the tokens a memory takes in the prompt, heading included."""
    return sum(map(counter.text, render_memory(hit)))


MEMORIES_OPEN, MEMORIES_CLOSE = "<memories>\n", "</memories>\n\n"


def _settle(
    layers: Layers,
    counter: TokenCounter,
    share: int,
    window: Callable[[int], WindowPlan],
) -> tuple[Recall | None, WindowPlan, int]:
    """Return hits and window that agree with each other, and the tokens the hits use."""
    if layers.rank is None:
        return None, window(0), 0
    frame = counter.text(MEMORIES_OPEN) + counter.text(MEMORIES_CLOSE)
    used = 0
    for attempt in range(_TRIES + 1):
        reserved = share if attempt == _TRIES else used
        plan = window(reserved)
        in_buffer = _ids_in(plan, layers.messages)
        recall = layers.rank(in_buffer, max(0, share - frame))
        hits = sum(hit.tokens or memory_tokens(hit, counter) for hit in recall.hits)
        used = hits + frame if hits else 0
        if used == reserved:
            break
    return recall, plan, used


def _ids_in(plan: WindowPlan, messages: Sequence[StoredMessage]) -> frozenset[str]:
    """Return the ids of the messages in the window."""
    if plan.pinned or plan.orphans:
        return frozenset(messages[i].id for i in plan.kept())
    return frozenset(map(_ID, messages[plan.start : plan.total]))


def _refused_by_budget(recall: Recall) -> int:
    return sum(hit.tokens for hit, out in recall.near if out.gate is Gate.BUDGET)


def _write_memories(writer: _Writer, hits: Sequence[Hit]) -> None:
    writer.add(MEMORIES_OPEN, Source.RETRIEVED)
    for hit in hits:
        heading, body = render_memory(hit)
        about = {"ids": (hit.id,), "turn": hit.turn, "score": hit.score}
        if heading:
            writer.add(heading, Source.RETRIEVED, **about)
        writer.add(body, Source.RETRIEVED, **about)
    writer.add(MEMORIES_CLOSE, Source.RETRIEVED)


def _tokens_of(stored: StoredMessage, counter: TokenCounter) -> int:
    if stored.tokens is not None and stored.counter == counter.id:
        return stored.tokens
    return counter.message(stored.message)


def _left_out(layers: Layers, plan: WindowPlan) -> list[Omission]:
    """Return an omission for each orphan in the window and for the newest group left out."""
    out = [_orphan(layers.messages[i], i) for i in plan.orphans]
    if plan.next_start < 0:
        if plan.rule == EXACT and plan.start > 0:
            out += _before_first_start(layers, plan)
        return out
    group = range(plan.next_start, plan.start)
    gate = Gate.TOKEN_LIMIT if len(group) == 1 else Gate.GROUP
    for i in group:
        if i in layers.history.orphans or plan.keeps(i):
            continue
        stored = layers.messages[i]
        out.append(
            Omission(
                gate=gate,
                source=Source.BUFFER,
                ids=(stored.id,),
                reason=(
                    f"needs {plan.next_needed:,} tokens with its turn, {plan.next_left:,} left"
                ),
                needed=plan.next_needed,
                available=plan.next_left,
                tokens=stored.tokens or 0,
                turn=stored.turn,
            )
        )
    return out


def _before_first_start(layers: Layers, plan: WindowPlan) -> list[Omission]:
    """Explain messages in front of the first user message, newest 50 of them."""
    out = []
    orphans = frozenset(layers.history.orphans)
    for i in range(max(0, plan.start - 50), plan.start):
        stored = layers.messages[i]
        if plan.keeps(i):
            continue
        if i in orphans:
            out.append(_orphan(stored, i))
        elif plan.initial <= plan.limit:
            out.append(
                Omission(
                    gate=Gate.GROUP,
                    source=Source.BUFFER,
                    ids=(stored.id,),
                    reason="stands before the first user message; a window starts with one",
                    turn=stored.turn,
                    tokens=stored.tokens or 0,
                )
            )
    return out


def _orphan(stored: StoredMessage, index: int) -> Omission:
    return Omission(
        gate=Gate.ORPHAN,
        source=Source.BUFFER,
        ids=(stored.id,),
        reason=f"message {index} is a tool result whose call is not in the history",
        turn=stored.turn,
        tokens=stored.tokens or 0,
    )


def _summary_notes(layers: Layers, settings: MemorySettings, plan: WindowPlan) -> list[str]:
    open_turn = len(layers.messages) if layers.open_turn is None else layers.open_turn
    covered = layers.summary.covers
    if not settings.summarise:
        waiting = max(0, plan.start - covered)
        return [f"{waiting:,} messages are in no summary: summaries are off."] if waiting else []
    due = plan_summary(
        layers.history,
        covered=covered,
        window_start=plan.start,
        every=settings.summary_every,
        open_turn=open_turn,
    )
    return [f"Summary: {due.reason}."] if due.waiting else []


def _unanswered_notes(plan: WindowPlan) -> list[str]:
    return [
        f"Message {i} calls a tool and no result is stored; some providers refuse such a prompt."
        for i in plan.unanswered
    ]
