"""Concepts: words and phrases that may stand for each other in a question and its answer.

A small table written by hand, so that "allergic" meets "can't eat" and "job" meets "run". It is
no thesaurus; what it does not hold, the reader does not connect.
"""

from __future__ import annotations

import re
from functools import lru_cache

from memory_core.models.offline.text import fold, one_of, stem, words

_TABLE = """
allergy: allergy allergic allergies intolerant intolerance sensitive
food: food eat meal dish
diet: diet dietary vegetarian vegan pescatarian
home: live lives home reside based located address settled
city: city town
job: job work profession occupation career employed run employer
name: name named call called
price: price cost costs pay paid charge fee expensive spend bill invoice
budget: budget afford spend
partner: husband wife spouse partner married fiance fiancee
child: kid kids child children son daughter baby
sibling: brother sister sibling
parent: mother father mum mom dad parents
friend: friend buddy
pet: pet dog cat puppy kitten hamster rabbit parrot
buy: buy purchase order ordered
like: like love enjoy prefer favourite favorite preference
dislike: dislike hate avoid
doctor: doctor physician gp surgeon
medicine: medicine medication drug pill tablet dose prescription
begin: begin start open launch
finish: finish end close complete
trip: trip travel journey vacation holiday
flight: flight fly plane airline
hotel: hotel hostel accommodation lodging stay
car: car vehicle
deadline: deadline due
birthday: birthday born birth
age: age old
deliver: deliver supplier supply ship delivery
illness: illness disease condition diagnosed diagnosis
pain: pain hurt ache
phone: phone telephone mobile
mail: email mail
meet: meet meeting appointment
study: study degree university college major
move: move relocate
broken: break defective faulty died crash
database: database postgres postgresql sqlite mysql
colour: colour color
"""

_PHRASES = (
    (
        one_of(
            r"""
            (?:can't|cant|cannot|can not|mustn't|not allowed to|unable to)(?: i| he| she| they)? eat
            (?:can't|cannot|mustn't)(?: \w+){0,2} eat
            """
        ),
        "#allergy",
    ),
    (one_of("for a living"), "#job"),
    (one_of("can't stand | don't like | not a fan"), "#dislike"),
    (one_of("how much"), "#price"),
    (re.compile(r"[$€£¥]\s?\d|\d\s?(?:[$€£¥]|euros?\b|dollars?\b|pounds?\b)"), "#price"),
    (
        one_of(
            r"""
            how old | years? old
            (?:is|am|are|i'm|he's|she's) \d{1,3}\b(?![-:%,/]|\.\d| ?[$€£\w])
            turn(?:s|ed|ing)? (?:\d+|[a-z]+teen|five|six|seven|eight|nine|ten)
            """
        ),
        "#age",
    ),
)
# Looked for in the text as it is written: a name has a capital letter.
_INTRODUCTION = re.compile(
    r"\b(?:I am|I['\u2019]m|[Mm]y name (?:is|['\u2019]s)|[Cc]all me|[Tt]his is)\s+[A-ZÀ-Þ]"
)

_BY_STEM = {
    stem(fold(word)): f"#{name}"
    for name, listed in (line.split(":") for line in _TABLE.strip().splitlines())
    for word in listed.split()
}


_WHOLE = ("#allergy", "#job", "#dislike")  # of these phrases no single word says what is meant


def without_phrases(text: str) -> str:
    """Return a folded text without the phrases that mean something only as a whole."""
    folded = fold(text)
    for pattern, concept in _PHRASES:
        if concept in _WHOLE:
            folded = pattern.sub(" ", folded)
    return folded


def concept_of(word_stem: str) -> str | None:
    """Return the concept a stem belongs to."""
    return _BY_STEM.get(word_stem)


@lru_cache(maxsize=8_192)
def concepts_in(text: str) -> frozenset[str]:
    """Return the concepts that a text's words and phrases stand for, each after a ``#``."""
    folded = fold(text)
    found = {concept for pattern, concept in _PHRASES if pattern.search(folded)}
    if _INTRODUCTION.search(text):
        found.add("#name")
    return frozenset(found | {_BY_STEM[s] for s in map(stem, words(text)) if s in _BY_STEM})
