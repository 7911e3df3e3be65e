"""Where each thing lived, turn by turn: the codes of the matrix and one kind's rows in it.

A :class:`Track` holds the rows of one kind (messages, facts, summaries, memories, state keys) in
the order they were first seen. What happened to them is kept as :class:`~memory_core.spans.Spans`
in layers, weakest first, so a turn costs what it changed and a picture costs its own cells.

Every code says what is true of *that turn's exact prompt*: the codes in :data:`IN_PROMPT` mean
that something of it stood there, all others that nothing did.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import TYPE_CHECKING

from memory_core.spans import Spans

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MESSAGE, FACT, SUMMARY, MEMORY, STATE = "message", "fact", "summary", "memory", "state"
KINDS = (MESSAGE, FACT, SUMMARY, MEMORY, STATE)


class Fate(IntEnum):
    """Where a thing lived in one turn; the number is its code in the matrix."""

    NOT_YET = 0
    PROMPT = 1
    SUMMARY = 2
    LONG_TERM = 3
    RETRIEVED = 4
    KEY_FACT = 5
    SUPERSEDED = 6
    GONE = 7
    SAID = 8
    UNSENT = 9
    NO_PROMPT = 10

    @property
    def words(self) -> str:
        """The code in plain words."""
        return _WORDS[self]


_WORDS = {
    Fate.NOT_YET: "not there yet",
    Fate.PROMPT: "in the prompt, word for word",
    Fate.SUMMARY: "in the summary that was sent",
    Fate.LONG_TERM: "in long-term memory only",
    Fate.RETRIEVED: "retrieved again from long-term memory",
    Fate.KEY_FACT: "in a key fact that was sent",
    Fate.SUPERSEDED: "superseded",
    Fate.GONE: "gone",
    Fate.SAID: "said in this turn, after its prompt",
    Fate.UNSENT: "kept in a summary, a key fact or the state that was not sent",
    Fate.NO_PROMPT: "no prompt was sent in this turn",
}

IN_PROMPT = frozenset({Fate.PROMPT, Fate.SUMMARY, Fate.RETRIEVED, Fate.KEY_FACT})


class Track:
    """The rows of one kind and the layers of their fates.

    Where no layer says more, a row is :attr:`Fate.SAID` in the column it is first seen in and
    :attr:`Fate.GONE` afterwards.
    """

    def __init__(self, *layers: Fate) -> None:
        self.ids: list[str] = []
        self.texts: list[str] = []
        self.born: list[int] = []
        self.layers = {fate: Spans() for fate in layers}
        self._rows: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self.ids)

    def row(self, item: str) -> int | None:
        """Return the row of an id, ``None`` when it was never seen."""
        return self._rows.get(item)

    def add(self, item: str, column: int, text: str = "") -> int:
        """Return the row of an id, made in this column when it is new; a new text replaces."""
        row = self._rows.get(item)
        if row is None:
            row = self._rows[item] = len(self.ids)
            self.ids.append(item)
            self.texts.append(text)
            self.born.append(column)
        elif text:
            self.texts[row] = text
        return row

    def blank(self, rows: range, columns: range) -> NDArray[np.uint8]:
        """Return the codes of these cells as if no layer held anything."""
        import numpy as np

        born = np.asarray(self.born[rows.start : rows.stop], dtype=np.int32)[:, None]
        at = np.arange(columns.start, columns.stop, dtype=np.int32)[None, :]
        out = np.full((len(rows), len(columns)), Fate.GONE, dtype=np.uint8)
        out[at < born] = Fate.NOT_YET
        out[at == born] = Fate.SAID
        return out

    def paint(
        self, out: NDArray[np.uint8], rows: range, columns: range, fates: Iterable[Fate]
    ) -> None:
        """Paint layers over the cells, in the order given."""
        for fate in fates:
            if fate in self.layers:
                self.layers[fate].paint(out, rows.start, columns.start, fate)
