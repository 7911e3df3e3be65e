"""What of each kind one prompt holds: an Assembly read once, by ids.

The fate ledger, the difference between turns and the search for the smallest change all ask the
same question of a prompt (is this in it?); they ask it here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from memory_core.prompt import Assembly, Gate, Hit, Omission, Source
from memory_core.summary import Summary

_SUMMARY = "summary-"


@dataclass(frozen=True)
class Contents:
    """Ids in a prompt, by kind.

    ``messages`` stand in it word for word; ``memories`` and ``facts`` stand in the system
    message; ``retold`` are the facts that stand word for word in its summary instead of among the
    key facts. ``refused`` are key facts that were left out and ``group`` the newest messages that
    were. ``carried`` names for each memory in the prompt the messages it was made from.
    """

    messages: tuple[str, ...] = ()
    memories: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    group: frozenset[str] = frozenset()
    carried: tuple[str, ...] = ()
    state: bool = False
    summary: bool = False
    summary_ids: frozenset[str] = frozenset()
    retold: tuple[str, ...] = ()

    @classmethod
    def of(cls, assembly: Assembly | None) -> Contents:
        """Return what this prompt holds; nothing when there was none."""
        if assembly is None:
            return cls()
        ids: dict[Source, dict[str, None]] = {}
        for part in assembly.parts:
            ids.setdefault(part.source, {}).update(dict.fromkeys(part.ids))
        memories = tuple(ids.get(Source.RETRIEVED, ()))
        carried = {
            message: None
            for hit in (assembly.recall.hits if assembly.recall is not None else ())
            if hit.id in ids.get(Source.RETRIEVED, ())
            for message in hit.message_ids
        }
        summary = ids.get(Source.SUMMARY, {})
        return cls(
            messages=tuple(i for i in assembly.message_ids if i),
            memories=memories,
            facts=tuple(ids.get(Source.FACTS, ())),
            refused=_left_out(assembly.omissions, Source.FACTS),
            group=frozenset(_left_out(assembly.omissions, Source.BUFFER)),
            carried=tuple(carried),
            state=Source.STATE in ids,
            summary=Source.SUMMARY in ids,
            summary_ids=frozenset(i for i in summary if i.startswith(_SUMMARY)),
            retold=tuple(i for i in summary if not i.startswith(_SUMMARY)),
        )

    def holds(self, summary: Summary) -> bool:
        """Return whether this version of the summary stands in the prompt."""
        if not self.summary or not summary.version:
            return False
        return not self.summary_ids or summary_id(summary.version) in self.summary_ids


def summary_id(version: int) -> str:
    """Return the id under which a version of the summary stands in parts."""
    return f"{_SUMMARY}{version}"


def searched(assembly: Assembly | None) -> Iterable[tuple[Hit, Omission | None]]:
    """Yield every memory the search turned up, best first, with what stopped it if anything."""
    recall = assembly.recall if assembly is not None else None
    if recall is None:
        return
    for hit in recall.hits:
        yield hit, None
    yield from recall.near


def _left_out(omissions: Iterable[Omission], source: Source) -> tuple[str, ...]:
    gates = (Gate.TOKEN_LIMIT, Gate.GROUP, Gate.BUDGET)
    return tuple(i for o in omissions if o.source is source and o.gate in gates for i in o.ids)
