"""The memory blocks of LlamaIndex's ``Memory``: what each put in the prompt, and what it was given.

Blocks are dropped whole when history and blocks together are over the limit: of those with a
priority above 0 the lowest number goes first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from memory_core.messages import Json, StoredMessage
from memory_core.prompt import Assembly, Omission, Part
from memory_core.trace import FLUSHED, WAITING, MemoryWrite, TurnTrace
from ui.view_models.buffer import SPEAKERS, shown_text
from ui.view_models.text import plural

KINDS = {"static": "fixed text", "facts": "facts read out", "vector": "searched by meaning"}


@dataclass(frozen=True)
class BlockRow:
    """One block: ``tokens`` of it are in the prompt, ``standing`` says whether and why not.

    ``text`` is what it returned, whether or not that went in.
    """

    name: str
    kind: str
    priority: int
    tokens: int
    inside: bool
    standing: str
    text: str


@dataclass(frozen=True)
class BatchRow:
    """Messages that left the queue together and were given to a block in a turn."""

    turn: int
    block: str
    count: int
    outcome: str
    waits: bool
    text: str


@dataclass(frozen=True)
class BlocksView:
    """All blocks in their order, and what they were given, newest first."""

    rows: tuple[BlockRow, ...]
    batches: tuple[BatchRow, ...]

    @property
    def label(self) -> str:
        """A few characters for the panel's tab."""
        inside = sum(row.inside for row in self.rows)
        out = len(self.rows) - inside
        return f"Blocks {inside}·{out} out"


def blocks_view(
    assembly: Assembly,
    blocks: Sequence[Mapping[str, Json]],
    traces: Iterable[TurnTrace] = (),
    stored: Mapping[str, StoredMessage] | None = None,
) -> BlocksView:
    """Return the blocks of a prompt; ``traces`` are the turns whose flushes are told.

    ``blocks`` are their knobs, in their order, ``stored`` the messages by id.
    """
    rows = tuple(_row(assembly, block) for block in blocks)
    batches = [
        _batch(trace.number, write, stored or {})
        for trace in traces
        for write in trace.memories
        if write.action in (FLUSHED, WAITING)
    ]
    return BlocksView(rows, tuple(reversed(batches)))


def _row(assembly: Assembly, block: Mapping[str, Json]) -> BlockRow:
    name, kind = str(block.get("name")), str(block.get("kind"))
    parts = [part for part in assembly.parts if part.note == name]
    out = next((o for o in assembly.omissions if f"block-{name}" in o.ids), None)
    text = _text(assembly, parts)
    return BlockRow(
        name=name,
        kind=_kind(block, len(parts) if kind == "facts" else 0),
        priority=int(block.get("priority") or 0),
        tokens=sum(part.tokens for part in parts),
        inside=bool(parts),
        standing="in the prompt" if parts else _why(kind, out),
        text=text or (out.text if out is not None else ""),
    )


def _text(assembly: Assembly, parts: Sequence[Part]) -> str:
    """Return a block as it stands in its message, with what stands between its pieces."""
    at = parts[0].message if parts else None
    if at is None:
        return ""
    own = [part for part in parts if part.message == at]
    return assembly.messages[at].text[min(p.start for p in own) : max(p.end for p in own)]


def _kind(block: Mapping[str, Json], facts: int) -> str:
    kind = KINDS.get(str(block.get("kind")), str(block.get("kind")))
    return f"{kind}, {facts} of {block.get('max_facts')}" if facts else kind


def _why(kind: str, out: Omission | None) -> str:
    if out is not None:
        return f"dropped whole: {out.reason}"
    return {
        "facts": "holds no fact yet: facts are read out of what the queue flushes",
        "vector": "found nothing: it holds what the queue flushed, and searches for each prompt",
    }.get(kind, "holds no text")


def _batch(turn: int, write: MemoryWrite, stored: Mapping[str, StoredMessage]) -> BatchRow:
    told = [stored[i] for i in write.message_ids if i in stored]
    lines = [f"turn {m.turn} {_speaker(m)}: {shown_text(m.message)}" for m in told]
    waits = write.action == WAITING
    outcome = f"waits: the block failed ({write.reason})" if waits else f"took them: {write.reason}"
    gone = len(write.message_ids) - len(told)
    if gone:
        lines.append(f"and {plural(gone, 'message')} superseded since")
    return BatchRow(turn, write.id, len(write.message_ids), outcome, waits, "\n".join(lines))


def _speaker(message: StoredMessage) -> str:
    return SPEAKERS.get(message.message.role, message.message.role)
