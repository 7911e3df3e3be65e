"""Takes out what should not be kept: e-mail addresses, phone and card numbers, IBANs, keys.

What was found is replaced by its kind in brackets and counted; the found text itself is in no
result. Card numbers must pass the Luhn check (ISO/IEC 7812) and account numbers the remainder 97
of ISO 13616 at their country's length, so that order numbers stay. Patterns of one's own are
regular expressions with a name; they run first.

Redaction is pure. Every rule looks at a text once from left to right, however hostile the text.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from memory_core.errors import InvalidInput
from memory_core.messages import Json, Message

EMAIL, PHONE, CARD, IBAN, KEY = "e-mail", "phone", "card", "IBAN", "key"
KINDS = (KEY, EMAIL, IBAN, CARD, PHONE)  # in the order in which they are looked for

MAX_PATTERN_CHARACTERS = 500

T = TypeVar("T")


@dataclass(frozen=True)
class Redacted:
    """A text without what was found in it, and how many of each kind there were."""

    text: str
    counts: Mapping[str, int] = field(default_factory=dict)


class Redactor:
    """Finds some kinds of text, and the patterns of one's own (name to regular expression)."""

    def __init__(
        self, kinds: Iterable[str] = KINDS, *, patterns: Mapping[str, str] | None = None
    ) -> None:
        chosen = frozenset(kinds)
        unknown = chosen - set(KINDS)
        if unknown:
            raise InvalidInput(f"No such kind to redact: {', '.join(sorted(unknown))}.")
        self._own = [_compile(name, pattern) for name, pattern in (patterns or {}).items()]
        self._kinds = [kind for kind in KINDS if kind in chosen]

    def text(self, text: str) -> Redacted:
        """Return a text redacted."""
        counts: Counter[str] = Counter()
        for name, pattern in self._own:
            text = _replace(pattern, text, name, counts)
        for kind in self._kinds:
            text = _RULES[kind](text, counts)
        return Redacted(text, dict(counts))

    def message(self, message: Message) -> tuple[Message, Mapping[str, int]]:
        """Return a message redacted: its texts, tool arguments and everything else it holds."""
        counts: Counter[str] = Counter()
        blocks = self.json([dict(b) for b in message.blocks], counts)
        kwargs = self.json(dict(message.kwargs), counts)
        if not counts:
            return message, {}
        return replace(message, blocks=tuple(blocks), kwargs=kwargs), dict(counts)

    def json(self, value: Json, counts: Counter[str]) -> Json:
        """Return a JSON value with every text in it redacted, ids apart; add to ``counts``."""
        if isinstance(value, str):
            found = self.text(value)
            counts.update(found.counts)
            return found.text
        if isinstance(value, Mapping):
            out: dict[Json, Json] = {}
            for key, item in value.items():
                name = self.json(key, counts)
                number = 2
                while name in out:  # two keys that are told apart only by what is taken out
                    name, number = f"{self.json(key, Counter())} {number}", number + 1
                is_id = isinstance(key, str) and _IS_ID.search(key)
                out[name] = item if is_id else self.json(item, counts)
            return out
        if isinstance(value, (list, tuple)):
            return [self.json(item, counts) for item in value]
        return value

    def json_text(self, text: str, counts: Counter[str]) -> str:
        """Return JSON text with every text in it redacted; other text is redacted as it is."""
        try:
            value = json.loads(text)
        except ValueError:
            found = self.text(text)
            counts.update(found.counts)
            return found.text
        return json.dumps(self.json(value, counts), ensure_ascii=False)


_IS_ID = re.compile(r"(^|_)ids?$|^(session|user|appended|evicted|folded|kept|lost)$")

_EMAIL = re.compile(
    r"(?<![\w.+-])[\w.+%-]{1,64}@(?:[^\W_](?:[\w-]{0,61}[^\W_])?\.){1,8}[^\W\d_]{2,24}(?![\w-])"
)
_IBAN = re.compile(r"(?<![A-Za-z0-9])([A-Za-z]{2})[ \u00a0]?\d{2}(?:[ \u00a0-]?[A-Za-z0-9]){11,30}")
_DIGITS = re.compile(r"(?<![\w.])\d{3,19}(?:[ \u00a0-]\d{3,19}){0,9}(?!\w)")
_PHONES = (
    re.compile(  # +49 (0) 171 123-4567, 0049 171 1234567
        r"(?<![\w.#])(?:\+|00)[1-9]\d{0,2}(?:[ \u00a0./-]?(?:\(\d{1,5}\)|\d{1,5})){1,7}(?![\w-])"
    ),
    re.compile(  # 0171 1234567, (030) 123 45 67
        r"(?<![\w.#-])(?:\(0\d{1,5}\)|0\d{1,5})(?:[ \u00a0/-]?\d{2,8}){1,5}(?![\w-])"
    ),
    re.compile(  # (415) 555-2671
        r"(?<![\w.#-])(?:1[ .-])?(?:\(\d{3}\) ?|\d{3}[ .-])\d{3}[ .-]\d{4}(?![\w-])"
    ),
)
_KEYS = (
    re.compile(
        r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----[\w+/=\s]{0,8000}-----END [A-Z ]{0,30}-----"
    ),
    re.compile(r"\beyJ[\w-]{8,2000}\.[\w-]{8,4000}\.[\w-]{8,1000}"),  # JSON web tokens
    re.compile(
        r"(?<!\w)(?:sk|pk|rk)[-_][\w-]{16,200}"  # OpenAI, Anthropic, Stripe
        r"|(?<!\w)(?:gh[pousr]|github_pat|glpat|hf|npm|xox[abprs]|dop_v1|shpat)[_-][\w-]{16,250}"
        r"|(?<!\w)(?:AKIA|ASIA)[A-Z0-9]{16}(?!\w)"  # Amazon
        r"|(?<!\w)AIza[\w-]{35}(?!\w)"  # Google
    ),
)
_NAMED_KEY = re.compile(
    r"(?i)\b((?:api[ _-]?key|secret(?:[ _-]?key)?|access[ _-]?token|auth[ _-]?token|password|passwd"
    r"|bearer)\b(?:\s{0,3}(?:is|[:=]))?\s{1,3}[\"']?|(?:api_?key|token|password|secret)[=:][\"']?)"
    r"([^\s\"',;]{8,300})"
)
_LENGTHS = dict(
    re.findall(
        r"([A-Z]{2})(\d\d)",
        "AD24AE23AL28AT20AZ28BA20BE16BG22BH22BR29BY28CH21CR22CY28CZ24DE22DK18DO28EE20EG29ES24FI18"
        "FO18FR27GB22GE22GI23GL18GR27GT28HR21HU28IE22IL23IQ23IS26IT27JO30KW30KZ20LB28LC32LI21LT20"
        "LU20LV21LY25MC27MD24ME22MK19MR27MT31MU30NL18NO15PK24PL28PS29PT25QA29RO24RS22SA24SC31SE24"
        "SI19SK24SM27ST25SV28TL23TN24TR26UA29VA22VG24XK20",
    )
)  # of an IBAN by country, from the registry of ISO 13616


def luhn(digits: str) -> bool:
    """Return whether digits pass the check of ISO/IEC 7812.

    >>> luhn("4111111111111111"), luhn("4111111111111112")
    (True, False)
    """
    total = 0
    for place, digit in enumerate(reversed(digits)):
        number = int(digit) * (1 + place % 2)
        total += number - 9 * (number > 9)
    return total % 10 == 0


def remainder_97(iban: str) -> int:
    """Return the remainder of ISO 13616 for an account number without blanks; 1 is right.

    >>> remainder_97("DE89370400440532013000")
    1
    """
    moved = iban[4:] + iban[:4]
    return int("".join(str(int(c, 36)) for c in moved)) % 97


def _emails(text: str, counts: Counter[str]) -> str:
    return _replace(_EMAIL, text, EMAIL, counts) if "@" in text else text


def _ibans(text: str, counts: Counter[str]) -> str:
    def cut(match: re.Match[str]) -> str:
        found = match.group()
        length = int(_LENGTHS.get(match.group(1).upper(), 0))
        places = [i for i, c in enumerate(found) if c.isalnum()]
        if not length or len(places) < length:
            return found
        end = places[length - 1] + 1
        if found[end : end + 1].isalnum() or remainder_97(_bare(found[:end])) != 1:
            return found
        counts[IBAN] += 1
        return f"[{IBAN}]{found[end:]}"

    return _IBAN.sub(cut, text)


def _cards(text: str, counts: Counter[str]) -> str:
    def cut(match: re.Match[str]) -> str:
        found = match.group()
        groups = [m.span() for m in re.finditer(r"\d+", found)]
        for i, (start, _) in enumerate(groups):
            for _, end in [*groups[:i:-1], groups[i]]:
                digits = _bare(found[start:end])
                if 13 <= len(digits) <= 19 and digits[0] != "0" and luhn(digits):
                    counts[CARD] += 1
                    return f"{found[:start]}[{CARD}]{found[end:]}"
        return found

    return _DIGITS.sub(cut, text)


def _phones(text: str, counts: Counter[str]) -> str:
    def cut(match: re.Match[str]) -> str:
        found = match.group()
        if not 8 <= sum(c.isdigit() for c in found) <= 15:
            return found
        counts[PHONE] += 1
        return f"[{PHONE}]"

    for pattern in _PHONES:
        text = pattern.sub(cut, text)
    return text


def _keys(text: str, counts: Counter[str]) -> str:
    for pattern in _KEYS:
        text = _replace(pattern, text, KEY, counts)

    def cut(match: re.Match[str]) -> str:
        if match.group(2).startswith("["):
            return match.group()
        counts[KEY] += 1
        return f"{match.group(1)}[{KEY}]"

    return _NAMED_KEY.sub(cut, text)


_RULES: Mapping[str, Callable[[str, Counter[str]], str]] = {
    KEY: _keys,
    EMAIL: _emails,
    IBAN: _ibans,
    CARD: _cards,
    PHONE: _phones,
}


def _replace(pattern: re.Pattern[str], text: str, kind: str, counts: Counter[str]) -> str:
    text, found = pattern.subn(lambda _: f"[{kind}]", text)
    if found:
        counts[kind] += found
    return text


def _bare(text: str) -> str:
    return "".join(c for c in text if c.isalnum())


def _compile(name: str, pattern: str) -> tuple[str, re.Pattern[str]]:
    if not re.fullmatch(r"[\w -]{1,40}", name):
        raise InvalidInput("A pattern needs a name of 1 to 40 letters, digits, blanks or hyphens.")
    if len(pattern) > MAX_PATTERN_CHARACTERS:
        raise InvalidInput(
            f"The pattern {name} is longer than {MAX_PATTERN_CHARACTERS} characters."
        )
    try:
        compiled = re.compile(pattern)
    except re.error as exc:
        raise InvalidInput(f"The pattern {name} is no regular expression: {exc}.") from exc
    if compiled.match(""):
        raise InvalidInput(f"The pattern {name} matches the empty text.")
    return name, compiled
