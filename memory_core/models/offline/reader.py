"""An answer: the best-supported sentence of a prompt, word for word, and where it stood.

Under :data:`ENOUGH` the reader says that it finds nothing. A newer statement that corrects an
older one is preferred to it; that there is an older one is said.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memory_core.models.offline import text as words_of
from memory_core.models.offline.passages import (
    CLOSE_QUOTE,
    NOTHING,
    OPEN_QUOTE,
    Kind,
    Passage,
)
from memory_core.models.offline.scoring import Query, Sentence, Support, rank

ENOUGH = 0.48
"""The share of a question's weight that a sentence must support to be quoted."""

_TIE = 0.12
_LOOKED_AT = 8
_CORRECTED = 0.75  # how near a newer correction must come to what it corrects


@dataclass(frozen=True)
class Answer:
    """An answer in words and what it rests on; without sources it says that nothing was found."""

    text: str
    sources: tuple[Support, ...] = ()


def answer(question: str, passages: Sequence[Passage], *, enough: float = ENOUGH) -> Answer:
    """Answer a question by quoting the best-supported sentence, or say that there is none."""
    query = Query.of(question)
    ranked = rank(query, passages)
    if not ranked or ranked[0].score < enough:
        return Answer(_nothing(query, passages))
    best, older, others = _choose(ranked)
    text = quote(best.sentence, query, _also_in(best, ranked))
    for other in others:
        text += " " + quote(other.sentence, query, ())
    if older is not None:
        text += f" An older statement about it stands {_where(older.sentence.passage)}."
    return Answer(text, (best, *others))


def quote(sentence: Sentence, query: Query, also: Sequence[str]) -> str:
    """Return a sentence in quotes, after where it stood."""
    passage = sentence.passage
    extra = f" (also in {', '.join(also)})" if also else ""
    text = sentence.text
    if any(c.search(sentence.following) and not c.search(text) for c in query.cues):
        text = f"{text} {sentence.following}"
    clipped = words_of.clip(text, query.stems)
    return f"{_intro(sentence, passage)}{extra}: {_quoted(clipped)}"


def _quoted(text: str) -> str:
    return f"{OPEN_QUOTE}{text}{CLOSE_QUOTE}"


def _intro(sentence: Sentence, passage: Passage) -> str:
    if passage.kind == Kind.CONVERSATION:
        who = "You" if passage.said_by == "user" else "I"
        opening = "" if sentence.first else f" (in the message {_quoted(_opening(passage.text))})"
        if passage.quoted:
            return "I quoted earlier in this conversation"
        return f"{who} said earlier in this conversation{opening}"
    if passage.kind == Kind.MEMORY and passage.said_by:
        who = "You said" if passage.said_by == "user" else "I said"
        who = "I quoted" if passage.quoted else who
        return f"{who} in {passage.place}"
    if passage.kind == Kind.MEMORY:
        return f"The memory of {passage.place} says"
    verb = "say" if passage.kind in (Kind.FACTS, Kind.DOCUMENTS) else "says"
    prefix = {Kind.BLOCK: "memory block ", Kind.TOOL: "tool "}.get(passage.kind, "")
    return f"The {prefix}{passage.place} {verb}"


def _where(passage: Passage) -> str:
    if passage.kind == Kind.CONVERSATION:
        return "earlier in this conversation"
    if passage.kind == Kind.TOOL:
        return f"in the result of {passage.place}"
    prefix = "" if passage.place.startswith(("turn", "long-term")) else "the "
    return f"in {prefix}{passage.place}"


def _opening(text: str) -> str:
    start = " ".join(text.split()[:5])
    return f"{start}…" if len(start) < len(text) else start


def _choose(ranked: Sequence[Support]) -> tuple[Support, Support | None, list[Support]]:
    """Return the sentence to quote, an older one that it replaces, and others worth quoting."""
    top = ranked[0].score
    best = ranked[0]
    for other in ranked[1:_LOOKED_AT]:
        told = other.sentence.passage.said_by in ("user", "") and not other.sentence.asks
        if not told or not _newer(other, best) or not _differs(other, best):
            continue
        as_good = other.score >= top - _TIE and other.met >= best.met
        corrected = other.sentence.corrects and other.fits and other.score >= top * _CORRECTED
        if as_good or corrected:
            best = other
    older = None
    others: list[Support] = []
    for other in ranked[:_LOOKED_AT]:
        if other.score < top - _TIE or other.sentence.asks or not _differs(other, best):
            continue
        if _newer(best, other) and (best.sentence.corrects or other.met == best.met):
            older = older or other
        elif other.met - best.met and not others and other.score >= ENOUGH:
            others.append(other)
    return best, older, others


def _newer(one: Support, other: Support) -> bool:
    return one.sentence.passage.order > other.sentence.passage.order


def _also_in(best: Support, ranked: Sequence[Support]) -> list[str]:
    """Return the other places where the same sentence stands."""
    own = words_of.plain(best.sentence.text)
    places = []
    for other in ranked:
        text = words_of.plain(other.sentence.text)
        if other.sentence.passage is not best.sentence.passage and (own in text or text in own):
            place = _where(other.sentence.passage).removeprefix("in ")
            if place not in places:
                places.append(place)
    here = _where(best.sentence.passage).removeprefix("in ")
    return [p for p in places if p not in (here, "earlier in this conversation")][:3]


def _differs(one: Support, other: Support) -> bool:
    a, b = words_of.plain(one.sentence.text), words_of.plain(other.sentence.text)
    return a not in b and b not in a


def _nothing(query: Query, passages: Sequence[Passage]) -> str:
    about = ", ".join(map(_quoted, query.named[:4]))
    places = dict.fromkeys(_read_place(p) for p in passages if p.kind != Kind.SYSTEM)
    read = f"I read {', '.join(places)}." if places else "I was given nothing but the question."
    return f"{NOTHING} {about or 'that'} in what I was given. {read}"


def _read_place(passage: Passage) -> str:
    if passage.kind == Kind.CONVERSATION:
        return "this conversation"
    return _where(passage).removeprefix("in ")
