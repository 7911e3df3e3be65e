"""How far each sentence of a prompt supports an answer to a question.

A sentence is supported by the words it shares with the question, each weighing what it is rare
in this prompt (inverse document frequency). A word met in the same message, or in the one
before, counts in part; a word of the same concept (``concepts.py``) nearly whole. What kind of
answer is wanted (a number, a time, a place, a person) and who says the sentence move the score a
little.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from memory_core.models.offline import text as words_of
from memory_core.models.offline.concepts import concept_of, concepts_in, without_phrases
from memory_core.models.offline.passages import Kind, Passage
from memory_core.models.offline.text import one_of

_SAME_MESSAGE, _MESSAGE_BEFORE, _CONCEPT, _AKIN = 0.5, 0.3, 0.8, 0.6
_SPEAKER = {"user": 1.0, "assistant": 0.8, "tool": 0.9, "": 0.95}
_PLACE = {Kind.SYSTEM: 0.75, Kind.SUMMARY: 0.95}
_QUESTION_ENDS = ("?", "\uff1f")

# What a question asks for, and what shows it in a sentence.
_CUES: Sequence[tuple[re.Pattern[str], re.Pattern[str]]] = (
    (
        one_of("when | what (?:time|day|date|year|month) | which (?:day|date|year|month)"),
        one_of(
            r"""
            (?:mon|tues|wednes|thurs|fri|satur|sun)days?
            january | february | march | april | may | june | july | august | september
            october | november | december | spring | summer | autumn | winter
            \d{1,2}[:.]\d\d | \d{1,2} ?[ap]m | \d{4} | \d{1,2}(?:st|nd|rd|th) | o'clock
            today | tomorrow | yesterday | tonight | noon | midnight
            mornings? | afternoons? | evenings? | week | weekend | month | year | ago | last | next
            """
        ),
    ),
    (
        one_of(
            """
            how (?:many|much|old|long|far|big|often|high|tall|heavy|deep)
            what (?:number|price|percentage) | number of | budget | cost
            """
        ),
        one_of(
            r"""
            \d+\w* | one | two | three | four | five | six | seven | eight | nine | ten | eleven
            twelve | twenty | thirty | forty | fifty | hundred | thousand | once | twice | half
            """
        ),
    ),
    (
        one_of("where | (?:which|what) (?:city|town|country|place)"),
        re.compile(
            r"\b(?:[Ii]n|[Aa]t|[Oo]n|[Nn]ear|[Ff]rom|[Tt]o)\s+(?:the\s+|a\s+)?[A-ZÀ-Þ]"
            r"|\b(?:street|road|office|home|shelf|floor|room)\b"
        ),
    ),
    (
        one_of("who | whose | whom | names? | called | call (?:me|you|him|her)"),
        re.compile(r"(?<=[\w,;:\u2019'] )[A-ZÀ-Þ][\w\u2019']+"),
    ),
    (one_of("why"), one_of("because | since | so that | due to | reason | as")),
)
_CORRECTION = one_of(
    r"""
    actually | instead | correction | no longer | any ?more | changed | switched | from now on
    in fact | is now | are now | not \d[\w:.,]*
    """
)
_KIND_OF_ANSWER = one_of(r"(?:which|what) (\w+)")
_WHO_AM_I = one_of("who am i")
_NAMED = re.compile(r"[\w\u2019'.:-]*\w")
_LIGHT_WORDS = """
want need choose decide pick use plan take make go come give put find new good time day date year
number type ask person place work
"""
_LIGHT = frozenset(words_of.stem(word) for word in _LIGHT_WORDS.split())
_ASKS_ABOUT_ME = re.compile(r"\b(?:I|me|my|we|us|our)\b")
_TELLS_OF_ME = re.compile(r"\b(?:I|me|we|us)\b")
_ABOUT_RELATIVE = re.compile(
    r"^(?:\w+,? ){0,2}(?:my|our|his|her|their) (?P<who>sister|brother|mother|father|mum|mom|dad|"
    r"husband|wife|partner|son|daughter|friend|colleague|boss|neighbou?r|aunt|uncle|cousin|"
    r"grand\w+|niece|nephew|apprentice)\b",
    re.IGNORECASE,
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
    following: str = ""  # the next sentence of the passage, unless it asks

    @cached_property
    def stems(self) -> frozenset[str]:
        """Stems of its content words."""
        return words_of.stems(self.text)

    @cached_property
    def concepts(self) -> frozenset[str]:
        """Concepts its words stand for."""
        return concepts_in(self.text)

    @cached_property
    def corrects(self) -> bool:
        """Whether it says that something is not as it was."""
        return bool(_CORRECTION.search(self.text))


@dataclass(frozen=True)
class Support:
    """A sentence with how well it supports an answer, from 0 to about 1."""

    sentence: Sentence
    score: float
    met: frozenset[str]  # terms of the question that the sentence itself holds
    fits: bool  # whether it shows the kind of answer that is wanted


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
        stems = words_of.stems(without_phrases(question))
        phrases = concepts_in(question) - {concept_of(s) for s in stems}
        if _WHO_AM_I.search(question):
            phrases |= {"#name"}
        kinds = " ".join(_KIND_OF_ANSWER.findall(question))
        return cls(
            text=question,
            stems=stems,
            concepts=phrases,
            named=tuple(dict.fromkeys(w for w in _NAMED.findall(question) if words_of.stems(w))),
            wanted=words_of.stems(kinds) if len(stems | phrases) > 1 else frozenset(),
        )

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
    asked = {words_of.plain(s) for s in words_of.sentences(query.text)}
    spread = Counter(stem for s in found for stem in s.stems)
    rarity = {t: math.log(1 + (len(found) + 1) / (spread[t] + 0.5)) for t in query.stems}
    usual = sum(rarity.values()) / len(rarity) if rarity else 1.0
    weights = {t: query.weight(t) * value for t, value in rarity.items()}
    weights |= dict.fromkeys(query.concepts, 0.8 * usual)
    total = sum(weights.values())
    if not total:
        return []
    ranked = []
    for sentence in found:
        if words_of.plain(sentence.text) in asked:
            continue
        met_by = {t: _credit(t, sentence) for t in weights}
        if not any(met_by.values()):
            continue
        score = sum(weights[t] * c for t, c in met_by.items()) / total
        met = frozenset(t for t, c in met_by.items() if c >= _AKIN)
        if met:
            fits = all(cue.search(sentence.text) for cue in query.cues)
            ranked.append(Support(sentence, score * _manner(sentence, query), met, fits))
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
        around = words_of.stems(passage.text) | concepts_in(passage.text)
        for index, piece in enumerate(pieces):
            following = pieces[index + 1] if index + 1 < len(pieces) else ""
            out.append(
                Sentence(
                    text=piece,
                    passage=passage,
                    number=number,
                    first=index == 0,
                    asks=_is_question(piece),
                    context=around,
                    before=before,
                    following="" if _is_question(following) else following,
                )
            )
        before, previous = around, passage
    return out


def _is_question(sentence: str) -> bool:
    return sentence.rstrip("\"'\u201d\u2019)]* ").endswith(_QUESTION_ENDS)


def _credit(term: str, sentence: Sentence) -> float:
    """Return how far a sentence meets one term of the question, from 0 to 1."""
    concept = term if term.startswith("#") else concept_of(term)
    if term in sentence.stems or term in sentence.concepts:
        return 1.0
    if concept in sentence.concepts:
        return _CONCEPT
    if any(_akin(term, other) for other in sentence.stems):
        return _AKIN
    if term in sentence.context or concept in sentence.context:
        return _SAME_MESSAGE
    return _MESSAGE_BEFORE if term in sentence.before else 0.0


def _akin(one: str, other: str) -> bool:
    """Return whether two stems are as "bakery" and "baker"."""
    shared = min(len(one), len(other)) - 1
    return shared >= 4 and one[:shared] == other[:shared] and abs(len(one) - len(other)) <= 3


def _about_another(sentence: Sentence, query: Query) -> bool:
    """Return whether it tells of a relative where the question is about oneself."""
    relative = _ABOUT_RELATIVE.search(sentence.text)
    if relative is None or _TELLS_OF_ME.search(sentence.text):
        return False
    who = words_of.stem(words_of.fold(relative["who"]))
    meant = query.stems | concepts_in(query.text)
    return (
        bool(_ASKS_ABOUT_ME.search(query.text))
        and who not in meant
        and concept_of(who) not in meant
    )


def _manner(sentence: Sentence, query: Query) -> float:
    """Return what kind of sentence it is, and who says it, as a factor around 1."""
    passage = sentence.passage
    factor = _SPEAKER.get(passage.said_by, 0.9) * _PLACE.get(passage.kind, 1.0)
    if passage.quoted:
        factor *= 0.9
    if sentence.asks:
        factor *= 0.5
    if sentence.corrects:
        factor *= 1.05
    if _about_another(sentence, query):
        factor *= 0.4
    for wanted in query.cues:
        factor *= 1.1 if wanted.search(sentence.text) else 0.8
    return factor
