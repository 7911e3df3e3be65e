"""Sentences, words and their stems: how the offline reader compares texts.

Words are compared by a light stem, so that "bakes" meets "baking", and by a small hand-written
table of concepts, so that "allergic" meets "can't eat". Scripts without spaces between words are
compared by pairs of characters.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_ABBREVIATIONS = (
    "mr", "mrs", "ms", "dr", "sr", "sra", "st", "prof", "no", "nr", "vs", "etc", "approx", "e.g",
    "i.e", "jr", "inc", "ltd", "fig", "ca", "dept",
)  # fmt: skip
_ENDS = re.compile(r"(?<=[.!?…。！？])[\"'”’)\]*]*\s+|(?<=[。！？])|\n+")
_MARKER = re.compile(r"^\s*(?:[-*•]\s+|\d{1,2}[.)]\s+|#{1,6}\s+|>\s+)")
_WORD = re.compile(r"\d+(?:[.,:/]\d+)*|[^\W\d_]+(?:['’][^\W\d_]+)*")
_UNSPACED = re.compile("[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]")

STOP_WORDS = frozenset(
    """a about after again all also am an and any are as at be been before being but by can could
    did do does doing done down else ever for from get got had has have having he hello her here hers hi
    him his how i if in into is it its itself just let may me might mine more most much my no not
    now of off ok okay on once only or other our ours out over please really said same say says she should
    so some such tell than thank thanks that the their them then there these they this those to too
    up us very was we were what when where which while who whom whose why will with would yes yet
    you your yours i'm i've i'd i'll it's that's what's don't didn't doesn't you're we're isn't
    there's let's who's where's remind remember know exactly currently again thing things something
    anything one kind sort many long few own""".split()
)

# One line a concept: words (compared by stem) that may stand for each other in a question.
_CONCEPTS = """
allergy: allergy allergic allergies intolerant intolerance sensitive
food: food eat meal dish
diet: diet dietary vegetarian vegan pescatarian
home: live lives home reside based located address settled
city: city town
job: job work profession occupation career employed living run employer
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
mail: email e-mail mail
meet: meet meeting appointment
study: study degree university college major
move: move relocate
broken: broken broke defective faulty died crash
database: database postgres postgresql sqlite mysql
colour: colour color
"""

# Phrases that stand for a concept, looked for in the folded text.
_PHRASES = (
    (re.compile(r"\b(?:can'?t|cannot|can not|mustn'?t|not allowed to|unable to) (?:i |he |she |they |we )?eat\b"), "allergy"),
    (re.compile(r"\b(?:can'?t|cannot|mustn'?t)\b(?: \w+){0,2} eat\b"), "allergy"),
    (re.compile(r"\bfor a living\b"), "job"),
    (re.compile(r"\b(?:can'?t stand|don'?t like|not a fan)\b"), "dislike"),
    (re.compile(r"\bhow much\b"), "price"),
    (re.compile(r"[$€£¥]\s?\d|\d\s?(?:[$€£¥]|euros?\b|dollars?\b|pounds?\b)"), "price"),
    (re.compile(r"\bhow old\b|\byears? old\b|\bturn(?:s|ed|ing)? (?:\d|[a-z]+teen|five|six|seven|eight|nine|ten)"), "age"),
)  # fmt: skip

_INTRODUCTION = re.compile(
    r"\b(?:I am|I['’]m|[Mm]y name (?:is|['’]s)|[Cc]all me|[Tt]his is)\s+[A-ZÀ-Þ]"
)

_IRREGULAR = {
    "bought": "buy", "went": "go", "gone": "go", "ran": "run", "told": "tell", "met": "meet",
    "made": "make", "took": "take", "taken": "take", "gave": "give", "given": "give",
    "came": "come", "wrote": "write", "written": "write", "chose": "choose", "chosen": "choose",
    "saw": "see", "seen": "see", "left": "leave", "began": "begin", "begun": "begin",
    "sold": "sell", "drove": "drive", "flew": "fly", "ate": "eat", "eaten": "eat", "kept": "keep",
    "grew": "grow", "lost": "lose", "won": "win", "spoke": "speak", "spent": "spend",
    "broke": "broken", "thought": "think", "found": "find", "built": "build", "sent": "send",
    "slept": "sleep", "taught": "teach", "brought": "bring", "paid": "pay", "led": "lead",
    "felt": "feel", "meant": "mean", "held": "hold", "children": "child", "people": "person",
    "wives": "wife", "women": "woman", "men": "man", "feet": "foot", "teeth": "tooth",
    "mice": "mouse", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6",
    "seven": "7", "eight": "8", "nine": "9", "ten": "10", "eleven": "11", "twelve": "12",
}  # fmt: skip


def fold(text: str) -> str:
    """Return a text in lower case, without accents, with plain apostrophes."""
    parts = unicodedata.normalize("NFKD", text.replace("’", "'"))
    plain = "".join(c for c in parts if not unicodedata.combining(c))
    return unicodedata.normalize("NFC", plain).casefold()


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """Return the stem of a folded word.

    >>> [stem(w) for w in ("bakeries", "baking", "bakes", "stopped", "bought")]
    ['bakery', 'bak', 'bak', 'stop', 'buy']
    """
    word = word.removesuffix("'s").removesuffix("'")
    word = _IRREGULAR.get(word, word)
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending, shortest in (("ing", 3), ("ed", 3)):
        if word.endswith(ending) and len(word) - len(ending) >= shortest:
            word = word[: -len(ending)]
            if word[-1] == word[-2] and word[-1] not in "lsz":
                word = word[:-1]
            break
    return word.removesuffix("e") if len(word) > 3 else word


_BY_STEM: dict[str, str] = {
    stem(fold(word)): f"#{name}"
    for name, words in (line.split(":") for line in _CONCEPTS.strip().splitlines())
    for word in words.split()
}


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, word for word, without list markers."""
    found: list[str] = []
    start = 0
    for end in [m.end() for m in _ENDS.finditer(text)] + [len(text)]:
        piece = text[start:end]
        if _ends_in_abbreviation(piece):
            continue
        start = end
        sentence = _MARKER.sub("", piece).strip()
        if sentence:
            found.append(sentence)
    return found


def _ends_in_abbreviation(piece: str) -> bool:
    last = piece.rstrip(" \t")
    if not last.endswith(".") or piece.endswith("\n"):
        return False
    word = last[:-1].rsplit(None, 1)[-1] if last[:-1].strip() else ""
    bare = word.lstrip("(\"'“").casefold()
    return bare in _ABBREVIATIONS or (len(bare) == 1 and bare.isalpha() and bare != "i")


def words(text: str) -> list[str]:
    """Return the folded words of a text, numbers whole, unspaced scripts as character pairs."""
    found: list[str] = []
    for word in _WORD.findall(fold(text)):
        if _UNSPACED.search(word) and len(word) > 1:
            found.extend(word[i : i + 2] for i in range(len(word) - 1))
        else:
            found.append(word)
    return found


def terms(text: str) -> frozenset[str]:
    """Return what a text is compared by: stems of its content words and ``#concepts``."""
    return frozenset(stems(text) | concepts(text))


def stems(text: str) -> set[str]:
    """Return the stems of the content words of a text."""
    return {stem(w) for w in words(text) if w not in STOP_WORDS and w.strip("'")}


def concepts(text: str) -> set[str]:
    """Return the ``#concepts`` that a text's words and phrases stand for."""
    folded = fold(text)
    found = {f"#{name}" for pattern, name in _PHRASES if pattern.search(folded)}
    if _INTRODUCTION.search(text):
        found.add("#name")
    return found | {_BY_STEM[s] for s in map(stem, words(text)) if s in _BY_STEM}


def concept_of(word_stem: str) -> str | None:
    """Return the concept a stem belongs to."""
    return _BY_STEM.get(word_stem)


def clip(text: str, around: frozenset[str] = frozenset(), *, most: int = 320) -> str:
    """Return a text in one line of at most ``most`` characters, cut around some terms."""
    line = " ".join(text.split())
    if len(line) <= most:
        return line
    hits = [m.start() for m in _WORD.finditer(line) if stem(fold(m.group())) in around]
    start = max(0, min((hits[0] if hits else 0) - most // 3, len(line) - most))
    cut = line[start : start + most].strip()
    return ("…" if start else "") + cut + ("…" if start + most < len(line) else "")
