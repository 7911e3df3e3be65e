"""Plain transcripts: lines of "Name: text", what follows without a name belongs to the last one.

A time in front of the name, in brackets or not, and Markdown's bold are understood. A name that
stands only once among speakers who come back ("Note: …") is read as part of the text, and told.
Less than two turns are no conversation.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from memory_core.errors import InvalidInput
from memory_core.interchange.document import Document
from memory_core.interchange.draft import Draft
from memory_core.interchange.roles import role_of_name, roles_of_speakers
from memory_core.interchange.sample import Sample
from memory_core.interchange.tabular import message_of
from memory_core.interchange.values import Conversation

_PREAMBLE = 20  # lines before the first speaker at which a text is still taken for a transcript

_TURN = re.compile(
    r"""[\s\u200e]{0,8}
    (?:[\[(]?(?P<time>\d[\d./:,\ T-]{3,24}(?:\ ?[AaPp]\.?[Mm]\.?)?)[\])]?\s{0,4}(?:[-\u2013]\s+)?)?
    (?:\*\*|\#{1,4}\ )?
    (?P<name>[^\W\d_][\w.'&@-]{0,39}(?:\ [\w.'&@-]{1,40}){0,2})
    (?:\*\*)?\ ?:(?:\*\*)?
    (?:[ \t]+(?P<text>.*)|\s*)""",
    re.VERBOSE | re.DOTALL,
)


@dataclass
class _Turn:
    name: str
    time: str
    line: int
    raw: str
    texts: list[str] = field(default_factory=list)


def recognises(sample: Sample) -> bool:
    """Tell whether a text begins like a transcript."""
    if re.match(r'\s*(?:<|\{|\[\s*[\[{"])', sample.head):
        return False
    preamble, turns = _turns(sample.head.splitlines())
    names = [turn.name for turn in turns]
    if len(names) < 2 or len(preamble) > _PREAMBLE:
        return False
    different = len(set(names))
    return different == 2 or different < len(names) or any(map(role_of_name, names))


def read(document: Document) -> Iterator[Conversation]:
    """Yield the one conversation of a transcript."""
    preamble, turns = _turns(document.lines())
    if not turns:
        raise InvalidInput('No line of the text reads like "Name: text".')
    draft = Draft(document.title)
    if any(line.strip() for line in preamble):
        draft.notes.add("line 1", "lines before the first speaker left out", len(preamble))
    turns = _joined(turns, draft)
    roles = roles_of_speakers(list(dict.fromkeys(t.name for t in turns)), notes=draft.notes)
    for turn in turns:
        place = f"line {turn.line:,}"
        text = "\n".join(turn.texts).rstrip()
        draft.add(
            message_of(turn.name, text, roles, place, draft.notes), place=place, time=turn.time
        )
    yield draft.finish()


def _turns(lines: Iterable[str]) -> tuple[list[str], list[_Turn]]:
    """Return the lines before the first speaker, and the turns."""
    preamble: list[str] = []
    turns: list[_Turn] = []
    for number, raw in enumerate(lines, start=1):
        line = raw.rstrip("\r\n")
        match = _TURN.fullmatch(line)
        if match:
            time = (match["time"] or "").strip(" -")
            turns.append(_Turn(match["name"], time, number, line, [match["text"] or ""]))
        elif turns:
            turns[-1].texts.append(line)
        else:
            preamble.append(line)
    return preamble, turns


def _joined(turns: list[_Turn], draft: Draft) -> list[_Turn]:
    """Return the turns with those whose name is none made part of the turn before."""
    counts = Counter(turn.name for turn in turns)
    speakers = {name for name, n in counts.items() if n > 1 or role_of_name(name)}
    if len(speakers) < 2:
        return turns
    joined: list[_Turn] = []
    for turn in turns:
        if turn.name in speakers or not joined:
            joined.append(turn)
        else:
            draft.notes.add(f"line {turn.line:,}", "a name that stands only once was read as text")
            joined[-1].texts += [turn.raw, *turn.texts[1:]]
    return joined
