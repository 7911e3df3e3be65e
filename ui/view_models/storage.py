"""What the Storage page says of backends, latency, strain and long-term memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from memory_core.listing import Strain
from memory_core.metrics import Meter, percentile
from memory_core.stores.protocols import StoreFacts
from memory_core.stores.vectors.base import Description
from ui.view_models.sessions_page import size_text
from ui.view_models.text import plural


@dataclass(frozen=True)
class Line:
    """One fact: its name and what it is."""

    name: str
    value: str


@dataclass(frozen=True)
class Numbers:
    """The tiles: latencies in milliseconds with how many calls, messages, shares in percent."""

    load: str
    persist: str
    messages: str
    capped: str
    degraded: str


def store_lines(facts: StoreFacts, *, operator: bool) -> tuple[Line, ...]:
    """Return what a store is and holds; where and how much only for an operator."""
    lines = [Line("Backend", facts.backend), Line("Schema version", str(facts.version))]
    if operator:
        rows = ", ".join(
            plural(count, kind.removesuffix("s")) for kind, count in facts.rows.items() if count
        )
        lines += [
            Line("Where", facts.where),
            Line("Rows", rows or "none"),
            Line("Size", size_text(facts.size)),
        ]
    return tuple(lines)


def numbers(meter: Meter, user: str, strains: Sequence[Strain], messages: Sequence[int]) -> Numbers:
    """Return the tiles of one user; latencies are those of the whole process."""

    def latency(name: str) -> str:
        one = meter.load if name == "load" else meter.persist
        if not one.count:
            return "none yet"
        return f"{one.percentile(0.5):.1f} / {one.percentile(0.95):.1f} ms"

    turned = [s for s in strains if s.turns]
    seen = meter.seen(user)
    at_cap = {s.info.key for s in turned if s.capped} | {
        key for key, use in seen.sessions.items() if use.capped
    }
    capped = len(at_cap & {s.info.key for s in turned})
    return Numbers(
        load=latency("load"),
        persist=latency("persist"),
        messages=f"{percentile(messages, 0.5):,.0f} / {max(messages, default=0):,}",
        capped=f"{capped / len(turned):.0%}" if turned else "none yet",
        degraded=f"{sum(s.degraded for s in turned):,}",
    )


def warnings(strains: Iterable[Strain]) -> tuple[str, ...]:
    """Return a sentence for each session that hits its cap at every turn."""
    return tuple(
        f"“{s.info.title}” hit its token limit in each of its last {plural(s.turns, 'turn')}: "
        "older messages are left out of every prompt. Raise the token limit, or let the summary "
        "and long-term memory carry more."
        for s in strains
        if s.always
    )


def collection_row(found: Description, *, current: bool) -> Mapping[str, object]:
    """Return a collection as it really is, one row of the table."""
    return {
        "collection": found.title,
        "used now": "yes" if current else "",
        "model": found.model or "unknown",
        "dimension": found.dimension,
        "metric": found.metric,
        "records": found.count,
        "searchable": found.searchable,
        "backend": found.backend,
    }
