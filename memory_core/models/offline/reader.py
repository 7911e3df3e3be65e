"""The best-supported sentence of a prompt for a question, and where it stood.

A sentence is supported by the words it shares with the question, each weighing what it is rare
in this prompt (inverse document frequency); a word met in the same message or in the one before
it counts in part, a word of the same concept (``text.py``) counts nearly whole. What kind of
answer the question wants (a number, a time, a place, a person) and who said the sentence move
the score a little. Under :data:`ENOUGH` the reader says that it finds nothing.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from memory_core.models.offline import text as words_of
from memory_core.models.offline.passages import (
    CLOSE_QUOTE,
    NOTHING,
    OPEN_QUOTE,
    Kind,
    Passage,
)

ENOUGH = 0.48
"""The share of a question's weight that a sentence must support to be quoted."""

_SAME_MESSAGE, _MESSAGE_BEFORE, _CONCEPT, _PREFIX = 0.5, 0.3, 0.8, 0.6
_TIE = 0.12
_SPEAKER = {"user": 1.0, "assistant": 0.8, "tool": 0.9, "": 0.95}
_PLACE = {Kind.SYSTEM: 0.6, Kind.SUMMARY: 0.95}

_DAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_MONTH = (
    r"(?:january|february|march|april|may|june|july|august|september|october|november|december)"
)
_CUES: Sequence[tuple[re.Pattern[str], re.Pattern[str]]] = (
    (
        re.compile(r"\b(?:when|what (?:time|day|date|year|month)|which (?:day|date|year|month))\b", re.I),
        re.compile(rf"\b(?:{_DAY}s?|{_MONTH}|\d{{1,2}}[:.]\d\d|\d{{1,2}} ?[ap]m|\d{{4}}|\d{{1,2}}(?:st|nd|rd|th)|today|tomorrow|yesterday|tonight|noon|midnight|week|weekend|month|year|morning|evening|o'clock|ago|last|next)\b", re.I),
    ),
    (
        re.compile(r"\b(?:how (?:many|much|old|long|far|big|often|high|tall|heavy)|what (?:number|price|percentage)|number of|budget|cost)\b", re.I),
        re.compile(r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|forty|fifty|hundred|thousand|once|twice|dozen|half)\b", re.I),
    ),
    (
        re.compile(r"\bwhere\b|\bwhich (?:city|town|country|place)\b|\bwhat (?:city|town|country|place)\b", re.I),
        re.compile(r"\b(?:[Ii]n|[Aa]t|[Oo]n|[Nn]ear|[Ff]rom|[Tt]o)\s+(?:the\s+|a\s+)?[A-ZÀ-Þ]|\b(?:street|road|office|home|shelf|floor|room)\b"),
    ),
    (
        re.compile(r"\bwho(?:se|m)?\b|\bnames?\b|\bcalled\b|\bcall (?:me|you|him|her)\b", re.I),
        re.compile(r"(?<=[\w,;:’'] )[A-ZÀ-Þ][\w’']+"),
    ),
    (re.compile(r"\bwhy\b", re.I), re.compile(r"\b(?:because|since|so that|due to|reason|as)\b", re.I)),
)  # fmt: skip
_CORRECTION = re.compile(
    r"\b(?:actually|instead|correction|no longer|any ?more|anymore|changed|switched|from now on|in fact|is now|are now|not [\w:.$€]+\.)",
    re.IGNORECASE,
)
_KIND_OF_ANSWER = re.compile(r"\b(?:which|what) (\w+)", re.IGNORECASE)
_LIGHT = frozenset(
    words_of.stem(w)
    for w in (
        "want need choose decide pick use plan take make go come give put find new good time day "
        "date year number kind type use ask tell people person place work"
    ).split()
)


@dataclass(frozen=True)
class Sentence:
    """A sentence of a passage, ready to be compared."""

    text: str
    passage: Passage
    number: int  # of its passage
    first: bool
    asks: bool
    context: frozenset[str] = frozenset()
    before: frozenset[str] = frozenset()
    following: str = ""  # the next sentence of the same passage

    @cached_property
    def stems(self) -> frozenset[str]:
        """Stems of its content words."""
        return frozenset(words_of.stems(self.text))

    @cached_property
    def concepts(self) -> frozenset[str]:
        """Concepts its words stand for."""
        return frozenset(words_of.concepts(self.text))


@dataclass(frozen=True)
class Support:
    """A sentence with how well it supports an answer, from 0 to about 1."""

    sentence: Sentence
    score: float
    met: frozenset[str]


@dataclass(frozen=True)
class Answer:
    """An answer in words and what it rests on; without sources it says that nothing was found."""

    text: str
    sources: tuple[Support, ...] = field(default=())


def answer(question: str, passages: Sequence[Passage]) -> Answer:
    """Answer a question by quoting the best-supported sentence, or say that there is none."""
    query = Query.of(question)
    ranked = rank(query, passages)
    if not ranked or ranked[0].score < ENOUGH:
        return Answer(_nothing(query, passages))
    best, older, others = _choose(ranked)
    text = quote(best.sentence, query, _also_in(best, ranked))
    for other in others:
        text += " " + quote(other.sentence, query, ())
    if older is not None:
        text += f" An older statement about it stands {_where(older.sentence.passage)}."
    return Answer(text, (best, *others))


@dataclass(frozen=True)
class Query:
    """A question, ready to be compared."""

    text: str
    stems: frozenset[str]
    concepts: frozenset[str]  # of phrases, that no stem stands for
    named: tuple[str, ...]  # content words as they were written
    wanted: frozenset[str] = frozenset()  # stems of the word that names the kind of answer

    @classmethod
    def of(cls, question: str) -> Query:
        """Take a question apart."""
        stems = frozenset(words_of.stems(question))
        by_stem = {words_of.concept_of(s) for s in stems}
        concepts = words_of.concepts(question) - {c for c in by_stem if c}
        if re.search(r"\bwho am i\b", question, re.IGNORECASE):
            concepts |= {"#name"}
        named = [w for w in re.findall(r"[\w’'.:-]*\w", question) if words_of.stems(w) & stems]
        kinds = " ".join(_KIND_OF_ANSWER.findall(question))
        wanted = frozenset(words_of.stems(kinds)) if len(stems) > 1 else frozenset()
        return cls(question, stems, frozenset(concepts), tuple(dict.fromkeys(named)), wanted)

    @cached_property
    def cues(self) -> tuple[re.Pattern[str], ...]:
        """What a sentence must show to be the kind of answer that is wanted."""
        return tuple(shown for asked, shown in _CUES if asked.search(self.text))

    def weight(self, stem: str) -> float:
        """Return how much less than usual a word says about what is asked."""
        return 0.5 if stem in self.wanted or stem in _LIGHT else 1.0


def rank(query: Query, passages: Sequence[Passage]) -> list[Support]:
    """Return the sentences that share anything with the question, best first."""
    found = sentences_of(passages)
    asked = {_plain(s) for s in words_of.sentences(query.text)}
    spread = Counter(stem for s in found for stem in s.stems)
    weights = {
        stem: query.weight(stem) * math.log(1 + (len(found) + 1) / (spread[stem] + 0.5))
        for stem in query.stems
    }
    usual = sum(weights.values()) / len(weights) if weights else 1.0
    weights |= dict.fromkeys(query.concepts, 0.8 * usual)
    total = sum(weights.values())
    if not total:
        return []
    ranked = []
    for sentence in found:
        if _plain(sentence.text) in asked:
            continue
        credits = {t: _credit(t, sentence) for t in weights}
        if not any(credits.values()):
            continue
        score = sum(weights[t] * c for t, c in credits.items()) / total
        met = frozenset(t for t, c in credits.items() if c >= _PREFIX)
        if met:
            ranked.append(Support(sentence, score * _manner(sentence, query.cues), met))
    ranked.sort(key=lambda s: (-round(s.score, 6), -s.sentence.passage.order, s.sentence.number))
    return ranked


def sentences_of(passages: Sequence[Passage]) -> list[Sentence]:
    """Return the sentences of all passages, each with the words around it."""
    out: list[Sentence] = []
    before: frozenset[str] = frozenset()
    previous: Passage | None = None
    for number, passage in enumerate(passages):
        if previous is None or previous.kind != passage.kind or not passage.said_by:
            before = frozenset()
        pieces = [p for p in words_of.sentences(passage.text) if any(map(str.isalnum, p))]
        around = words_of.terms(passage.text)
        for index, piece in enumerate(pieces):
            asks = piece.rstrip("\"'”’)]* ").endswith(("?", "？"))
            following = pieces[index + 1] if index + 1 < len(pieces) else ""
            out.append(
                Sentence(piece, passage, number, index == 0, asks, around, before, following)
            )
        before, previous = around, passage
    return out


def quote(sentence: Sentence, query: Query, also: Sequence[str]) -> str:
    """Return a sentence in quotes, after where it stood."""
    passage = sentence.passage
    extra = f" (also in {', '.join(also)})" if also else ""
    text = sentence.text
    if any(c.search(sentence.following) and not c.search(text) for c in query.cues):
        text = f"{text} {sentence.following}"
    clipped = words_of.clip(text, query.stems)
    return f"{_intro(sentence, passage)}{extra}: {OPEN_QUOTE}{clipped}{CLOSE_QUOTE}"


def _intro(sentence: Sentence, passage: Passage) -> str:
    if passage.kind == Kind.CONVERSATION:
        who = "You" if passage.said_by == "user" else "I"
        opening = "" if sentence.first else f" (in the message “{_opening(passage.text)}”)"
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
    prefix = "" if passage.place.startswith(("turn", "long-term")) else "the "
    return f"in {prefix}{passage.place}"


def _opening(text: str) -> str:
    start = " ".join(text.split()[:5])
    return f"{start}…" if len(start) < len(text) else start


def _choose(ranked: Sequence[Support]) -> tuple[Support, Support | None, list[Support]]:
    """Return the sentence to quote, an older one that it replaces, and others worth quoting."""
    best = ranked[0]
    close = [s for s in ranked[:8] if s.score >= best.score - _TIE]
    for other in ranked[1:8]:
        if other.sentence.passage.said_by != "user" or other.sentence.asks:
            continue
        newer = other.sentence.passage.order > best.sentence.passage.order
        corrects = bool(_CORRECTION.search(other.sentence.text))
        near = other.score >= (ranked[0].score * 0.75 if corrects else ranked[0].score - _TIE)
        if newer and near and (corrects or other.met >= best.met) and _differs(other, best):
            best = other
    replaced = bool(_CORRECTION.search(best.sentence.text))
    older = None
    others: list[Support] = []
    for other in close:
        if other is best or other.sentence.asks or not _differs(other, best):
            continue
        before = other.sentence.passage.order < best.sentence.passage.order
        if before and (replaced or other.met == best.met):
            older = older or other
        elif other.met - best.met and not others and other.score >= ENOUGH:
            others.append(other)
    return best, older, others


def _also_in(best: Support, ranked: Sequence[Support]) -> list[str]:
    """Return the other places where the same sentence stands."""
    own = _plain(best.sentence.text)
    places = []
    for other in ranked:
        text = _plain(other.sentence.text)
        if other.sentence.passage is not best.sentence.passage and (own in text or text in own):
            place = _where(other.sentence.passage).removeprefix("in ")
            if place not in places:
                places.append(place)
    here = _where(best.sentence.passage).removeprefix("in ")
    return [p for p in places if p not in (here, "earlier in this conversation")][:3]


def _differs(one: Support, other: Support) -> bool:
    a, b = _plain(one.sentence.text), _plain(other.sentence.text)
    return a not in b and b not in a


def _credit(term: str, sentence: Sentence) -> float:
    """Return how far a sentence meets one term of the question, from 0 to 1."""
    if term.startswith("#"):
        if term in sentence.concepts:
            return 1.0
        return _SAME_MESSAGE if term in sentence.context else 0.0
    if term in sentence.stems:
        return 1.0
    concept = words_of.concept_of(term)
    if concept and concept in sentence.concepts:
        return _CONCEPT
    if len(term) >= 5 and any(_akin(term, other) for other in sentence.stems):
        return _PREFIX
    if term in sentence.context or (concept and concept in sentence.context):
        return _SAME_MESSAGE
    if term in sentence.before:
        return _MESSAGE_BEFORE
    return 0.0


def _akin(one: str, other: str) -> bool:
    shared = min(len(one), len(other))
    return (
        shared >= 5 and one[: shared - 1] == other[: shared - 1] and abs(len(one) - len(other)) <= 3
    )


def _manner(sentence: Sentence, cues: Sequence[re.Pattern[str]]) -> float:
    passage = sentence.passage
    factor = _SPEAKER.get(passage.said_by, 0.9) * _PLACE.get(passage.kind, 1.0)
    if passage.quoted:
        factor *= 0.9
    if sentence.asks:
        factor *= 0.5
    if _CORRECTION.search(sentence.text):
        factor *= 1.05
    for wanted in cues:
        factor *= 1.1 if wanted.search(sentence.text) else 0.8
    return factor


def _nothing(query: Query, passages: Sequence[Passage]) -> str:
    about = ", ".join(f"{OPEN_QUOTE}{w}{CLOSE_QUOTE}" for w in query.named[:4])
    places = dict.fromkeys(_read_place(p) for p in passages if p.kind != Kind.SYSTEM)
    read = f"I read {', '.join(places)}." if places else "I was given nothing but the question."
    return f"{NOTHING} {about or 'that'} in what I was given. {read}"


def _read_place(passage: Passage) -> str:
    if passage.kind == Kind.CONVERSATION:
        return "this conversation"
    return _where(passage).removeprefix("in ")


def _plain(text: str) -> str:
    return " ".join(words_of.words(text))
