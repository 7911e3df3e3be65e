"""The fate matrix as cells, the gates as marks, and what a thing is called and comes from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from memory_core.fate import FACT, KINDS, MEMORY, MESSAGE, STATE, SUMMARY, Fate
from memory_core.gates import Check, Route
from memory_core.ledger import Ledger
from memory_core.messages import StoredMessage
from ui.palette import (
    BLUE,
    DARK_GREY,
    GREEN,
    GREY,
    LIGHT_GREY,
    ORANGE,
    PINK,
    SKY,
    YELLOW,
    translucent,
)
from ui.view_models.buffer import SPEAKERS, shown_text
from ui.view_models.text import plural

ROWS, COLUMNS = 60, 60  # cells drawn at once; beyond, every so many-th row and column
LABEL = 24  # characters of a row's name
_LINKED = 8  # related things that are offered

NAMES = {
    MESSAGE: "Messages",
    FACT: "Key facts",
    SUMMARY: "Summaries",
    MEMORY: "Memories",
    STATE: "State keys",
}


@dataclass(frozen=True)
class Look:
    """How a fate is drawn: colour, letter, a few words."""

    colour: str
    letter: str
    words: str


LOOKS: Mapping[Fate, Look] = {
    Fate.NOT_YET: Look("rgba(0,0,0,0)", "", "not there yet"),
    Fate.PROMPT: Look(BLUE, "B", "in, word for word"),
    Fate.SUMMARY: Look(GREEN, "Σ", "in the summary"),
    Fate.LONG_TERM: Look(translucent(PINK, 0.3), "·", "long-term memory only"),
    Fate.RETRIEVED: Look(PINK, "R", "retrieved again"),
    Fate.KEY_FACT: Look(ORANGE, "K", "in as a key fact"),
    Fate.SUPERSEDED: Look(DARK_GREY, "x", "superseded"),
    Fate.GONE: Look(translucent(GREY, 0.25), "-", "gone"),
    Fate.SAID: Look(SKY, "+", "said after the prompt"),
    Fate.UNSENT: Look(translucent(GREEN, 0.25), "u", "kept, not sent"),
    Fate.NO_PROMPT: Look(LIGHT_GREY, "n", "no prompt sent"),
}


def look(fate: Fate, kind: str) -> Look:
    """Return how a fate is drawn; a state key in the prompt has the state's own colour."""
    if kind == STATE and fate is Fate.PROMPT:
        return Look(YELLOW, "J", "in, with the state")
    if fate is Fate.SAID and kind != MESSAGE:
        return Look(SKY, "+", "new after the prompt")
    return LOOKS[fate]


@dataclass(frozen=True)
class MatrixView:
    """The cells drawn: ``codes[r][c]`` is the fate of ``ids[r]`` (newest first) in ``turns[c]``.

    ``every`` is how many rows and columns one drawn cell stands for.
    """

    kind: str
    ids: tuple[str, ...]
    labels: tuple[str, ...]
    turns: tuple[int, ...]
    codes: tuple[tuple[int, ...], ...]
    every: tuple[int, int]

    @property
    def fates(self) -> tuple[Fate, ...]:
        """The fates that occur, in the order of their codes."""
        return tuple(Fate(c) for c in sorted({c for row in self.codes for c in row}) if c)

    @property
    def alt(self) -> str:
        """The matrix in words."""
        if not self.ids or not self.turns:
            return "Nothing of this kind yet."
        now = [row[-1] for row in self.codes]
        counts = ", ".join(
            f"{now.count(fate)} {look(fate, self.kind).words}"
            for fate in self.fates
            if now.count(fate)
        )
        return (
            f"{NAMES[self.kind]} by turn, {plural(len(self.ids), 'row')}, turns "
            f"{self.turns[0]:,} to {self.turns[-1]:,}. In turn {self.turns[-1]:,}: {counts}."
        )


def matrix_view(
    ledger: Ledger, kind: str, rows: range, columns: range, name: Callable[[str], str]
) -> MatrixView:
    """Return the cells of these rows and columns, sampled down to what can be drawn."""
    track = ledger.tracks[kind]
    every = (max(1, -(-len(rows) // ROWS)), max(1, -(-len(columns) // COLUMNS)))
    drawn, shown = rows[:: every[0]], columns[:: every[1]]
    offsets = [c - columns.start for c in shown]
    if every[0] == 1:
        cells = ledger.view(kind, rows, columns)
        codes = [tuple(int(row[at]) for at in offsets) for row in cells]
    else:
        codes = []
        for row in drawn:
            line = ledger.view(kind, range(row, row + 1), columns)[0]
            codes.append(tuple(int(line[at]) for at in offsets))
    ids = [track.ids[row] for row in drawn]
    return MatrixView(
        kind=kind,
        ids=tuple(reversed(ids)),
        labels=tuple(name(item) for item in reversed(ids)),
        turns=tuple(ledger.columns[c].turn for c in shown),
        codes=tuple(reversed(codes)),
        every=every,
    )


def called(
    ledger: Ledger,
    kind: str,
    item: str,
    stored: Mapping[str, StoredMessage],
    *,
    length: int = LABEL,
) -> str:
    """Return what a thing is called in a list: its turn and the beginning of its text."""
    text, where = "", ""
    if kind == MESSAGE:
        message = stored.get(item)
        if message is None:
            return item[:length]
        who = SPEAKERS.get(message.message.role, message.message.role)
        text, where = shown_text(message.message), f"{message.turn} {who}: "
    elif kind == FACT:
        told = ledger.notes.told.get(item)
        text, where = (told.text, f"{told.turn}: ") if told is not None else (item, "")
    elif kind == SUMMARY:
        summary = ledger.notes.summaries.get(item)
        version = f"v{summary.version}: " if summary is not None else ""
        text, where = (summary.text if summary is not None else item), version
    elif kind == MEMORY:
        row = ledger.tracks[MEMORY].row(item)
        text = ledger.tracks[MEMORY].texts[row] if row is not None else ""
    line = where + " ".join((text or item).split())
    return line if len(line) <= length else f"{line[: length - 1]}…"


def whole(ledger: Ledger, kind: str, item: str, stored: Mapping[str, StoredMessage]) -> str:
    """Return all of a thing's text."""
    if kind == MESSAGE:
        message = stored.get(item)
        return shown_text(message.message) if message is not None else ""
    if kind == FACT:
        told = ledger.notes.told.get(item)
        return told.text if told is not None else ""
    if kind == SUMMARY:
        summary = ledger.notes.summaries.get(item)
        return summary.text if summary is not None else ""
    row = ledger.tracks[kind].row(item)
    return ledger.tracks[kind].texts[row] if row is not None else ""


def related(ledger: Ledger, kind: str, item: str) -> list[tuple[str, str]]:
    """Return where a thing came from and what was made of it, as kind and id."""
    notes = ledger.notes
    found: list[tuple[str, str]] = []
    if kind == MESSAGE:
        found += [(MEMORY, i) for i in notes.memories_of.get(item, ())]
        found += [(FACT, i) for i in notes.facts_of.get(item, ())]
        found += [(SUMMARY, i) for i in notes.folded_in.get(item, ())]
    elif kind == FACT and item in notes.told:
        found += [(MESSAGE, notes.told[item].message_id)]
    elif kind == MEMORY:
        found += [(MESSAGE, i) for i in notes.made_from.get(item, ())]
    elif kind == SUMMARY and item in notes.summaries:
        found += [(MESSAGE, i) for i in notes.summaries[item].folded]
        found += [(FACT, i) for i in notes.summaries[item].kept]
    known = [(k, i) for k, i in found if ledger.tracks[k].row(i) is not None]
    return known[:_LINKED]


def matching(
    ledger: Ledger, kind: str, wanted: str, stored: Mapping[str, StoredMessage], *, most: int = 50
) -> list[str]:
    """Return the newest things whose text holds the words, all of them for an empty text."""
    needle = wanted.casefold().strip()
    out: list[str] = []
    for item in reversed(ledger.tracks[kind].ids):
        if not needle or needle in whole(ledger, kind, item, stored).casefold():
            out.append(item)
        if len(out) >= most:
            break
    return out


def counts(ledger: Ledger) -> dict[str, int]:
    """Return how many things of each kind there are."""
    return {kind: len(ledger.tracks[kind]) for kind in KINDS}


def mark(check: Check) -> str:
    """Return ✓ for passed, ✗ for stopped, ? where it cannot be known."""
    return {True: "✓", False: "✗", None: "?"}[check.passed]


def gates(route: Route) -> Sequence[tuple[str, str, str]]:
    """Return a route's gates as mark, name and numbers."""
    return [(mark(c), str(c.gate), c.reason) for c in route.checks]
