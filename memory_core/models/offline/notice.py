"""What is asked, what is told, and which of it is a fact worth keeping.

A fact is a sentence that a person states about themselves or their plans. It is recognised by its
form: who it speaks of (I, we, my, our), what it does (be, have, live, need, prefer, decide, …), and
concrete things in it (names, numbers, amounts, dates, must and never). Each sign adds to a weight;
two thresholds separate what is acknowledged from what becomes a key fact.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from memory_core.models.offline import text as words_of
from memory_core.models.offline.text import one_of

NOTABLE = 1.0
"""The weight from which a sentence is acknowledged as a fact."""
KEY = 1.75
"""The weight from which a sentence is a key fact."""

_QUESTION_MARKS = ("?", "\uff1f", "\u061f")
_AFTER_MARKS = "\"'\u201d\u2019)]* \n"
_QUESTION_WORDS = re.compile(
    r"^(?:(?:and|so|but|ok|hi|hello|please),? )*(?:who|whom|whose|what|when|where|which|why|how|"
    r"do|does|did|is|are|am|was|were|can|could|will|would|shall|should|may|has|have|had|"
    r"(?:tell|remind|show) me|list|any idea)\b"
)
_GREETING = re.compile(
    r"^(?:hi|hello|hey|good (?:morning|evening|afternoon|day)|ola|hola|hallo|salut|bonjour|ciao)\b"
)
_BYE = re.compile(r"^(?:bye|goodbye|good night|see you|ciao|boa noite|take care|until then)\b")
_ASSENT = re.compile(
    r"^(?:ok|okay|yes|yeah|no|sure|fine|good|great|right|alright|got it|understood|nice)\W*$"
)
_THANKS = one_of(
    """
    thanks | thank you | thx | cheers | great job | perfect | lovely | you're a gem
    gracias | obrigad[ao] | danke | merci
    """
)
_LEAD_IN = re.compile(
    r"^(?:(?:hi|hello|hey|oh|ok|okay|well|so|yes|no|yeah|ah|thanks|thank you|sorry|great|perfect|"
    r"and|but|also|by the way)(?: there)?[,!.:]+\s+)+",
    re.IGNORECASE,
)

_ABOUT_SELF = one_of("i | i'm | we | we're | my | our | mine | ours | me | us")
_OPENS_WITH_SELF = re.compile(r"^(?:i|i'm|we|we're|my|our)\b")
_ABOUT_SELF_ELSEWHERE = re.compile(
    r"\b(?:soy|vivo|tengo|trabajo|me llamo|mi|je|j'\w+|mon|ma|mes|ich|mein\w*|eu|sou|moro|tenho|"
    r"meu|minha|sono|abito|ik|mijn)\b|[我私僕]|저는|나는"
)
_STATES = one_of(
    r"""
    i'm | i am | we are | we're | i've | we've
    (?:my|our) [\w' -]{1,40} (?:is|are|was|has|lives|works|wants|needs|likes)
    (?:i|we) (?:\w+ )?(?:live|work|run|own|have|had|need|want|prefer|like|love|hate|use|take|study)
    (?:i|we) (?:\w+ )?(?:teach|play|moved|bought|paid|drive|speak|come from|was born|decided|chose)
    (?:i|we) (?:\w+ )?(?:ordered|booked|plan|keep|owe|earn)
    """
)
_NAMED_AS = one_of("called | named | name is | name's | call me")
_MUST = one_of(
    r"""
    can't | cant | cannot | must | mustn't | never | always | only | no longer
    any ?more | instead | not allowed
    deadline | budget | important | at most | at least
    """
)
_VITAL = one_of(
    r"""
    allergic | allergy | intolerant | vegetarian | vegan | diabetic | pregnant
    (?:can't|cannot|can not|mustn't|don't) (?:eat|drink|take|have)
    """
)
_DECIDES = one_of(
    r"""
    decided | let's | we'll | i'll | will be | is now | are now | changed | moved to | settled on
    agreed | from now on | actually
    the (?:price|date|deadline|budget|address|name|code|number)
    """
)
_NUMBER = re.compile(r"\d")
_PROPER = re.compile(r"(?<=[\w,:;] )[A-ZÀ-Þ](?!\s)[\w'\u2019-]*[a-zß-ÿ]")
_VAGUE = one_of(
    r"""
    maybe | perhaps | i think | i guess | i don't know | not sure | haha | lol | sounds good
    i see | got it | no idea | joking
    i'm (?:not )?(?:sure|fine|ok|back|here|afraid|sorry|ready|happy|glad)
    """
)
_UNDONE = one_of("if (?:i|we|you|it|the)")


def asks(sentence: str) -> bool:
    """Return whether a sentence is a question, by its mark or its first words."""
    bare = sentence.rstrip(_AFTER_MARKS)
    if bare.endswith(_QUESTION_MARKS) or bare.endswith("!"):
        return not bare.endswith("!")
    return bool(_QUESTION_WORDS.match(words_of.fold(bare.lstrip("¿\"'\u201c "))))


def questions(text: str) -> list[str]:
    """Return the sentences of a text that ask."""
    return [s for s in words_of.sentences(text) if asks(s)]


def weight(sentence: str) -> float:
    """Return how much a sentence looks like a fact worth keeping; 0 for questions."""
    folded = words_of.fold(sentence)
    count = len(folded.split())
    unspaced = len(words_of.words(sentence)) > 2 * count
    if asks(sentence) or (count < 3 and not unspaced):
        return 0.0
    total = 1.0 * bool(_ABOUT_SELF_ELSEWHERE.search(folded)) + 0.5 * unspaced
    total += 0.5 * bool(_ABOUT_SELF.search(folded)) + 0.25 * bool(_OPENS_WITH_SELF.search(folded))
    total += 1.0 * bool(_STATES.search(folded)) + 0.75 * bool(_NAMED_AS.search(folded))
    total += 0.75 * bool(_MUST.search(folded)) + 1.0 * bool(_VITAL.search(folded))
    total += 0.5 * bool(_DECIDES.search(folded))
    total += 0.75 * bool(_NUMBER.search(folded)) + 0.5 * bool(_PROPER.search(sentence))
    total -= 1.0 * bool(_VAGUE.search(folded)) + 0.5 * bool(_UNDONE.search(folded))
    if not words_of.stems(sentence):
        return 0.0
    return max(0.0, total - (0.5 if count > 45 else 0.0))


def fact_of(sentence: str) -> str:
    """Return a sentence without its lead-in ("Hi, ", "Oh, "), otherwise word for word."""
    return _LEAD_IN.sub("", sentence).strip() or sentence


def facts(
    texts: Sequence[str], *, at_least: float, most: int, known: Sequence[str] = ()
) -> list[str]:
    """Return up to ``most`` facts told in some texts, in order, without those that are known."""
    seen = {words_of.plain(k) for k in known}
    found: list[tuple[float, int, str]] = []
    for text in texts:
        for sentence in words_of.sentences(text):
            value = weight(sentence)
            fact = words_of.clip(fact_of(sentence))
            plain = words_of.plain(fact)
            if value < at_least or not plain or any(plain in k or k == plain for k in seen):
                continue
            seen.add(plain)
            found.append((value, len(found), fact))
    best = sorted(found, key=lambda f: (-f[0], f[1]))[:most]
    return [fact for _, _, fact in sorted(best, key=lambda f: f[1])]


def small_talk(text: str) -> str:
    """Return a fitting reply to a greeting, thanks or goodbye, empty for anything else."""
    folded = words_of.fold(text.strip())
    if len(folded.split()) > 12:
        return ""
    if _BYE.match(folded):
        return "Goodbye. What you told me is kept."
    if _THANKS.search(folded):
        return "You're welcome."
    if _ASSENT.match(folded):
        return "All right."
    if _GREETING.match(folded):
        return "Hello. Tell me something about yourself, then ask me about it later."
    return ""
