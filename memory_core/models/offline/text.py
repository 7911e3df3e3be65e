"""Sentences, words and stems: how the offline reader takes texts apart.

Words are compared by a light stem, so that "bakes" meets "baking". Scripts without spaces
between words are compared by pairs of characters.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_REMEMBERED = 8_192  # texts whose sentences, stems and words are kept

_ABBREVIATED = "mr mrs ms dr sr sra st prof no nr vs etc approx e.g i.e jr inc ltd fig ca dept"
_ABBREVIATIONS = frozenset(_ABBREVIATED.split())
_ENDS = re.compile(
    r"(?<=[.!?\u2026\u3002\uff01\uff1f])[\"'\u201d\u2019)\]*]*\s+|(?<=[\u3002\uff01\uff1f])|\n+"
)
_MARKER = re.compile(r"^\s*(?:[-*\u2022]\s+|\d{1,2}[.)]\s+|#{1,6}\s+|>\s+)")
_WORD = re.compile(r"\d+(?:[.,:/]\d+)*|[^\W\d_]+(?:['\u2019][^\W\d_]+)*")
_UNSPACED = re.compile("[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]")
_ASKING = re.compile("[什么吗呢谁哪何誰]")  # characters that ask, as English stop words do

_STOPPED = """
    a about after again all also am an and any are as at be been before being but by can could did
    do does doing done down else ever for from get got had has have having he hello her here hers hi
    him his how i if in into is it its itself just let may me might mine more most much my no not
    now of off ok okay on once only or other our ours out over please really said same say says she
    should so some such tell than thank thanks that the their them then there these they this those
    to too up us very was we were what when where which while who whom whose why will with would yes
    yet you your yours i'm i've i'd i'll it's that's what's don't didn't doesn't you're we're isn't
    there's let's who's where's remind remember know exactly currently thing things something
    anything one kind sort many long few own can't cannot couldn't won't wouldn't
    donde que quien cuando como cuanto el la los las un una wo wer wann wie der die das ein eine
    ou qui quand comment le les une onde quem quando o os uma
"""
STOP_WORDS = frozenset(_STOPPED.split())

_IRREGULAR_FORMS = """
    bought:buy went:go gone:go ran:run told:tell met:meet made:make took:take taken:take gave:give
    given:give came:come wrote:write written:write chose:choose chosen:choose saw:see seen:see
    left:leave began:begin begun:begin sold:sell drove:drive flew:fly ate:eat eaten:eat kept:keep
    grew:grow lost:lose won:win spoke:speak spent:spend broke:break broken:break thought:think
    found:find built:build sent:send slept:sleep taught:teach brought:bring paid:pay led:lead
    felt:feel meant:mean held:hold children:child people:person wives:wife women:woman men:man
    feet:foot teeth:tooth mice:mouse two:2 three:3 four:4 five:5 six:6 seven:7 eight:8 nine:9 ten:10
    eleven:11 twelve:12
"""
_IRREGULAR = dict(pair.split(":") for pair in _IRREGULAR_FORMS.split())


def fold(text: str) -> str:
    """Return a text in lower case, without accents, with plain apostrophes."""
    parts = unicodedata.normalize("NFKD", text.replace("\u2019", "'"))
    plain = "".join(c for c in parts if not unicodedata.combining(c))
    return unicodedata.normalize("NFC", plain).casefold()


@lru_cache(maxsize=4 * _REMEMBERED)
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
    for ending in ("ing", "ed"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            if word[-1] == word[-2] and word[-1] not in "lsz":
                word = word[:-1]
            break
    return word.removesuffix("e") if len(word) > 3 else word


@lru_cache(maxsize=_REMEMBERED)
def sentences(text: str) -> tuple[str, ...]:
    """Return the sentences of a text, word for word, without list markers."""
    found: list[str] = []
    start = 0
    for end in [*(m.end() for m in _ENDS.finditer(text)), len(text)]:
        piece = text[start:end]
        if end < len(text) and _ends_in_abbreviation(piece):
            continue
        start = end
        sentence = _MARKER.sub("", piece).strip()
        if sentence:
            found.append(sentence)
    return tuple(found)


def words(text: str) -> list[str]:
    """Return the folded words of a text, numbers whole, unspaced scripts as character pairs."""
    found: list[str] = []
    for word in _WORD.findall(fold(text)):
        if _UNSPACED.search(word) and len(word) > 1:
            pairs = (word[i : i + 2] for i in range(len(word) - 1))
            found.extend(pair for pair in pairs if not _ASKING.search(pair))
        else:
            found.append(word)
    return found


@lru_cache(maxsize=_REMEMBERED)
def stems(text: str) -> frozenset[str]:
    """Return the stems of the content words of a text."""
    return frozenset(stem(w) for w in words(text) if w not in STOP_WORDS)


@lru_cache(maxsize=_REMEMBERED)
def plain(text: str) -> str:
    """Return a text's words with a space on both sides, so that ``in`` compares whole words."""
    found = words(text)
    return f" {' '.join(found)} " if found else ""


def clip(text: str, around: frozenset[str] = frozenset(), *, most: int = 320) -> str:
    """Return a text in one line of at most ``most`` characters, cut around some stems."""
    line = " ".join(text.split())
    if len(line) <= most:
        return line
    hits = [m.start() for m in _WORD.finditer(line) if stem(fold(m.group())) in around]
    start = max(0, min((hits[0] if hits else 0) - most // 3, len(line) - most))
    cut = line[start : start + most].strip()
    return ("…" if start else "") + cut + ("…" if start + most < len(line) else "")


def one_of(alternatives: str, *, whole: bool = True) -> re.Pattern[str]:
    """Return a pattern that finds any alternative, as whole words, in any case.

    Alternatives are regular expressions, separated by `` | `` or line breaks.
    """
    parts = [part.strip() for part in re.split(r" \| |\n", alternatives)]
    joined = "|".join(part for part in parts if part)
    return re.compile(rf"\b(?:{joined})\b" if whole else f"(?:{joined})", re.IGNORECASE)


def _ends_in_abbreviation(piece: str) -> bool:
    last = piece.rstrip(" \t")
    if not last.endswith(".") or piece.endswith("\n"):
        return False
    before = last[:-1].rsplit(None, 1)
    bare = before[-1].lstrip("(\"'\u201c").casefold() if before else ""
    return bare in _ABBREVIATIONS or (len(bare) == 1 and bare.isalpha() and bare != "i")
