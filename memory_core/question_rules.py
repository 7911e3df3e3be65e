"""The rules by which a sentence that states a fact becomes a question.

A rule is a pattern of English and a question with a gap. :func:`facts_in` tries them in order on
every sentence; the answer always stands word for word in the text. Rules are strict rather than
many: a person looks through what is proposed, and would rather miss one than read ten bad ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

MAX_ANSWER = 120  # characters
_MAX_SENTENCE = 1_000  # characters


@dataclass(frozen=True)
class Fact:
    """A fact that a text tells: the rule that found it, the question it answers, its words.

    ``many``: other facts may answer the same question beside it (likes, decisions).
    """

    rule: str
    question: str
    answer: str
    many: bool


@dataclass(frozen=True)
class _Rule:
    """A sentence that states a fact, the question it answers, and whether it may hold often."""

    name: str
    pattern: re.Pattern[str]
    question: str
    many: bool = False


_ADVERB = (
    r"(?: (?:also|now|currently|still|already|really|just|always|actually|usually|very|severely))?"
)
_MARKS = ".!,\"'\u201c\u201d"  # that may stand around an answer without being part of it
# Up to five words that name one thing; a verb, a pronoun or "and" among them would be another.
_WORD = (
    r"(?:(?!(?:and|or|but|is|are|was|were|has|have|I|my|our|it|you|we|he|she|they|that|which|who"
    r"|when|if|because|so|not)\b)[\w'-]+)"
)
_THING = rf"(?P<thing>{_WORD}(?: {_WORD}){{0,4}}?)"
_TOLD = r"(?P<answer>.+)"
_NAME = r"(?P<answer>(?-i:[^\W\d_a-z]).*)"  # begins with a capital letter
_DATED = (
    r"(?:starts|begins|opens|leaves|(?P<plural>are|were|have been)|is|was|has been)"
    + _ADVERB
    + r"(?: (?:scheduled|booked|due|moved|planned|set)(?: back| forward)? (?:on|at|for|to|by)"
    r"| (?:on|at|in))"
)
_WHEN = re.compile(
    r"\d|\b(?:mon|tues|wednes|thurs|fri|satur|sun)day|\b(?:january|february|march|april|may|june"
    r"|july|august|september|october|november|december|today|tomorrow|tonight|noon|midnight"
    r"|morning|afternoon|evening|week|weekend|month|spring|summer|autumn|winter)\b",
    re.IGNORECASE,
)


def _rule(name: str, pattern: str, question: str, *, many: bool = False) -> _Rule:
    return _Rule(name, re.compile(rf"\b{pattern}", re.IGNORECASE), question, many)


# In questions, {my}, {do}, {am}, {did} and {was} name the speaker: "my" or "Ada's", "do I" or
# "does Ada". Tried in this order; the first that matches a sentence is taken.
_RULES = (
    _rule("name", rf"(?:my name is|call me) {_NAME}", "What is {my} name?"),
    _rule(
        "health",
        rf"I(?: am|'m){_ADVERB} (?P<thing>allergic|intolerant) to {_TOLD}",
        "What {am} {thing} to?",
        many=True,
    ),
    _rule("home", rf"I{_ADVERB} live{_ADVERB} (?:in|at|near|on) {_TOLD}", "Where {do} live?"),
    _rule("home", rf"I(?:'ve| have)?{_ADVERB} moved to {_TOLD}", "Where {did} move to?"),
    _rule("work", rf"I{_ADVERB} work{_ADVERB} as {_TOLD}", "What {do} work as?"),
    _rule("work", rf"I{_ADVERB} work{_ADVERB} (?:at|for|in) {_TOLD}", "Where {do} work?"),
    _rule("birth", rf"I was born (?:on|in) {_TOLD}", "{when} {was} born?"),
    _rule(
        "called",
        rf"(?:my|our|I have an?|we have an?) {_THING}(?: is| are)? (?:called|named) {_TOLD}",
        "What is {my} {thing} called?",
    ),
    _rule(
        "date", rf"(?P<whose>my|our|the) {_THING} {_DATED} {_TOLD}", "{when} {be} {whose} {thing}?"
    ),
    _rule(
        "value",
        r"the (?P<thing>(?:[\w'-]+ ){0,3}(?:password|code|pin|budget|deadline|price|address|number"
        r"|combination|limit|total|version|port|date|name|colou?r|size|owner|winner)"
        rf"(?: (?:of|for|to) [\w' -]{{2,40}}?)?) (?:is|was|are){_ADVERB} {_TOLD}",
        "What is the {thing}?",
    ),
    _rule(
        "fact",
        rf"(?:my|our) {_THING} (?P<verb>is|are|was|were){_ADVERB} {_TOLD}",
        "What {verb} {my} {thing}?",
    ),
    _rule(
        "taste",
        rf"I{_ADVERB} (?P<thing>prefer|hate|love|collect|play|speak|drive|study|teach|own) {_TOLD}",
        "What {do} {thing}?",
        many=True,
    ),
    _rule(
        "decision",
        rf"we(?:'ve| have)? (?:decided|agreed) (?:to|on|that) {_TOLD}",
        "What did we decide?",
        many=True,
    ),
)

_SENTENCE = re.compile(r"(?<=[.!?])(?<!Mr\.)(?<!Mrs\.)(?<!Ms\.)(?<!Dr\.)(?<!St\.)\s+|\n+")
# Where the fact ends and the sentence goes on. A comma before a small letter ends it, as the
# capital in "Lisbon, Portugal" does not.
_GOES_ON = re.compile(
    r"""\s*(?:[;(\u2013\u2014]|:\s|\s-\s|,\s+(?-i:[a-zß-ÿ])
    |,?\ (?:but|because|since|so|which|who|although|though|while|if|when|instead|rather)\b
    |,?\ and\ (?:I|we|you|he|she|it|they|my|our|the|that|says|has|is|was)\b
    |,\ I\b).*""",
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
# What cannot be an answer: a pronoun, or the rest of a sentence that states no fact.
_NO_ANSWER = re.compile(
    r"(?:it|that|this|these|those|them|him|her|you|me|us|to|not|no|so|too|very|just|really|like"
    r"|about|what|how|why|when|if|there|here|also|always|never|in|on|at|for|from|with|of|past|as"
    r"|more|such|quite|pretty|\w+ing)\b",
    re.IGNORECASE,
)
# One small word is a fact about these; of other things it is a passing state ("my bike is dead").
_KINDS = re.compile(
    r"favou?rite|colou?r|size|name|team|job|hobby|diet|sport|food|drink", re.IGNORECASE
)


def facts_in(text: str, *, speaker: str = "") -> Iterator[Fact]:
    """Yield the facts that a text tells about its speaker, at most one a sentence.

    Questions are put in the first person, or about the ``speaker`` where one is named.
    """
    for sentence in _SENTENCE.split(text):
        if sentence.rstrip().endswith("?") or len(sentence) > _MAX_SENTENCE:
            continue
        plain = sentence.replace("\u2019", "'")  # subtle: same length, so that spans agree
        for rule in _RULES:
            match = rule.pattern.search(plain)
            answer = _answer(sentence[slice(*match.span("answer"))]) if match else ""
            if match and answer and _lasts(rule, match, answer):
                yield Fact(rule.name, _question(rule, match, answer, speaker), answer, rule.many)
                break


def _answer(rest: str) -> str:
    answer = _GOES_ON.sub("", rest).strip().strip(_MARKS).strip()
    if not answer or len(answer) > MAX_ANSWER or _NO_ANSWER.match(answer):
        return ""
    return answer


def _lasts(rule: _Rule, match: re.Match[str], answer: str) -> bool:
    """Tell whether an answer is more than an adjective for a passing state."""
    if rule.name != "fact" or not answer.islower() or " " in answer:
        return True
    return _KINDS.search(match["thing"]) is not None


def _question(rule: _Rule, match: re.Match[str], answer: str, speaker: str) -> str:
    told = {k: v for k, v in match.groupdict().items() if k != "answer"}
    words = {
        "my": f"{speaker}'s" if speaker else "my",
        "do": f"does {speaker}" if speaker else "do I",
        "am": f"is {speaker}" if speaker else "am I",
        "did": f"did {speaker}" if speaker else "did I",
        "was": f"was {speaker}" if speaker else "was I",
        "be": "are" if told.pop("plural", None) else "is",
        "when": "When" if _WHEN.search(answer) else "Where",
    }
    words["whose"] = "the" if (told.pop("whose", None) or "").lower() == "the" else words["my"]
    return rule.question.format(**words, **told)
