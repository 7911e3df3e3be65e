"""Long-term memory as it was: what a search in an earlier turn had before it.

:class:`PastMemories` shelves a user's records in the order they were told, up to the turn that
asks, so that scores which depend on all memories (how rare a word is, what an average memory
scores) come out as they did. Texts are embedded once, by the function it is given. A memory that
was forgotten since is not there, one that was corrected since counts as corrected.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

import numpy as np

from memory_core.forking import told_in
from memory_core.messages import repair_text
from memory_core.ranking import Candidates
from memory_core.records import FORGOTTEN, REMEMBERED, Sees, vector_id
from memory_core.shelf import Shelf
from memory_core.stores.protocols import MemoryRecord
from memory_core.stores.vectors.base import Vectors
from memory_core.trace import TurnTrace

Embed = Callable[[Sequence[str]], Vectors]
"""Returns one vector per text, as rows; texts are never blank."""


class PastMemories:
    """A user's records, searched as of one turn after another (an earlier one starts anew).

    ``records`` are all of the user's, oldest first; ``model`` names the embedding model and
    ``sees`` tells which of them the session sees (see :mod:`memory_core.forking`).
    """

    def __init__(
        self,
        records: Sequence[MemoryRecord],
        *,
        embed: Embed,
        model: str = "",
        sees: Sees | None = None,
    ) -> None:
        self._records = [r for r in records if r.status != FORGOTTEN and (not sees or sees(r))]
        self._embed = embed
        self._model = model
        self._vectors: dict[str, Vectors] = {}
        self._shelf = Shelf()
        self._shelved: set[tuple[str, int]] = set()  # a text told anew has its old id

    def search(
        self, trace: TurnTrace, known: AbstractSet[str], replaced: TurnTrace | None = None
    ) -> Candidates:
        """Return what a search in this turn found.

        ``known`` are the messages said before it, ``replaced`` is the turn that it replaces:
        what that had told was forgotten only at the end of this one.
        """
        there = [r for r in self._records if _written_before(r, trace)]
        if replaced is not None:
            held = {record.id for record in there}
            there += [record for record in told_in(replaced) if record.id not in held]
        if not self._shelved.issubset((r.id, r.turn) for r in there):
            self._shelf, self._shelved = Shelf(), set()
        new = [r for r in there if (r.id, r.turn) not in self._shelved]
        self._learn(new, trace, known)
        for record in there:
            if record.count > 1:  # told again by now, perhaps: other messages stand for it
                self._shelf.learn(_as_told(record, trace, known))
        query = repair_text(trace.query)[0]
        words = self._shelf.lexicon.shares(query, self._shelf.rows)
        vector = np.nan_to_num(self._embed([query])[0])
        found = self._shelf.look(words, vector)
        if trace.supersedes:
            found = found.without(trace.session, trace.supersedes)
        return Candidates(query, found, model=self._model)

    def _learn(
        self, records: Sequence[MemoryRecord], trace: TurnTrace, known: AbstractSet[str]
    ) -> None:
        missing = {vector_id(r.id): r.text for r in records if vector_id(r.id) not in self._vectors}
        if missing:
            made = self._embed(list(missing.values()))
            self._vectors |= dict(zip(missing, made, strict=True))
        for record in records:
            self._shelf.learn(_as_told(record, trace, known))
            self._shelved.add((record.id, record.turn))
        names = {vector_id(record.id) for record in records}
        self._shelf.take({name: self._vectors[name] for name in names})


def _written_before(record: MemoryRecord, trace: TurnTrace) -> bool:
    """Return whether a memory had been written when a turn began.

    A fact may be written long after the turn that told it; a turn's memories bear the time at
    which it began.
    """
    if record.created != trace.started or record.session != trace.session:
        return record.created <= trace.started
    own = {write.id for write in trace.memories if write.action == REMEMBERED}
    return record.turn < trace.number and record.id not in own


def _as_told(record: MemoryRecord, trace: TurnTrace, known: AbstractSet[str]) -> MemoryRecord:
    """Return a record without the messages that told it again later."""
    if record.session != trace.session:
        return record
    return replace(record, message_ids=tuple(i for i in record.message_ids if i in known))
