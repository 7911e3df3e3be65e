"""What is not worth remembering: blank text and pleasantries.

A turn is small talk when what the *user* said consists of nothing but greetings, thanks and the
like ("Hello there!", "ok, thanks a lot"). One other word makes it worth keeping, and so does a
bare "yes" or "no": it may answer a question.
"""

from __future__ import annotations

import re
import unicodedata

LONGEST = 6  # words; a longer text is never small talk

_PHRASES = (
    "hello|hi|hey|hey there|hi there|hello there|hello again|hiya|howdy|yo",
    "good morning|good afternoon|good evening|good night|good day|morning|evening",
    "how are you|how are you today|how are you doing|how is it going|hows it going|whats up",
    "nice to meet you|nice to see you|good to see you|pleased to meet you|im fine|im good",
    "bye|bye bye|goodbye|good bye|see you|see you later|see you soon|see ya|later|take care",
    "have a nice day|have a good day|have a great day|talk soon|talk to you later|cheers",
    "thanks|thanks a lot|thanks so much|thanks again|fine thanks|thx|ty|many thanks|appreciated",
    "thank you|thank you so much|thank you very much|much appreciated|youre welcome|welcome",
    "ok|okay|k|kk|alright|all right|cool|nice|great|perfect|awesome|excellent|wonderful",
    "lovely|super|got it|i see|understood|makes sense|sounds good|that is all|thats all",
    "that helps|great work|good job|well done|very good|no worries|no problem|please|again",
    "wow|haha|hahaha|lol|hmm|hm|oh|ah|hola|gracias|muchas gracias|adios|vale|buenos dias",
    "buenas tardes|buenas noches|bonjour|salut|merci|merci beaucoup|au revoir|bonsoir",
    "hallo|danke|danke schon|vielen dank|tschuss|guten morgen|guten tag|guten abend",
    "ola|obrigado|obrigada|muito obrigado|bom dia|boa tarde|boa noite|tchau",
    "ciao|grazie|grazie mille|buongiorno|buonasera|hej|tack|dank je|bedankt|namaste|salaam",
    "你好|谢谢|再见|好的|こんにちは|ありがとう|おはよう|さようなら|안녕하세요|감사합니다",
    "привет|спасибо|пока",
)
_KNOWN = frozenset(phrase for line in _PHRASES for phrase in line.split("|"))
_WORDS = re.compile(r"\w+")


def reason_to_skip(text: str) -> str:
    """Return why a text is not remembered, or an empty text when it is worth it."""
    if not text.strip():
        return "no text to remember"
    words = _WORDS.findall(_plain(text))
    if not words:
        return "no words to remember"
    if len(words) <= LONGEST and _only_phrases(tuple(words)):
        return "small talk"
    return ""


def _only_phrases(words: tuple[str, ...]) -> bool:
    """Return whether the words are known phrases, one after the other."""
    return not words or any(
        " ".join(words[:n]) in _KNOWN and _only_phrases(words[n:]) for n in range(1, len(words) + 1)
    )


def _plain(text: str) -> str:
    """Return the text in lower case without apostrophes, accents of Latin letters and emoji."""
    apart = unicodedata.normalize("NFKD", text.casefold().replace("'", "").replace("\u2019", ""))
    bare = "".join(c for c in apart if not "\u0300" <= c <= "\u036f")
    return unicodedata.normalize("NFKC", bare)
