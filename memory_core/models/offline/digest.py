"""Extractive summaries and fact lists: sentences of the conversation, word for word, that fit.

Key facts come first and are never cut; then the sentences that look most like facts
(``notice.py``), as many as the token limit holds, in the order they were said.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memory_core.models.offline import notice
from memory_core.models.offline import text as words_of
from memory_core.models.offline.passages import NOTED, NOTHING, without_reasoning
from memory_core.tokens import TokenCounter

_TELLING = 0.6  # the weight under which a sentence is left out, unless there is no other
_SPEAKER = {"user": 1.0, "assistant": 0.45, "tool": 0.45}
_ENDS = (".", "!", "?", "…", "\u3002", "\uff01", "\uff1f", '"', "\u201d", "'", ")")


@dataclass(frozen=True)
class _Candidate:
    text: str
    weight: float
    place: int


def summary(
    previous: str,
    said: Sequence[tuple[str, str]],
    facts: Sequence[str],
    *,
    max_tokens: int,
    counter: TokenCounter,
) -> str:
    """Return a summary of at most ``max_tokens`` tokens: key facts, then the weightiest sentences.

    ``said`` are (role, text) pairs, oldest first; ``previous`` is the summary so far.
    """
    chosen: list[tuple[int, str]] = []
    known: set[str] = set()

    def fits(place: int, text: str) -> bool:
        # subtle: a text at the very start costs other tokens than after a space
        return counter.text(_joined([*chosen, (place, text)])) <= max_tokens

    for place, fact in enumerate(dict.fromkeys(" ".join(f.split()) for f in facts)):
        sentence = _ended(fact)
        if fact and fits(place - len(facts), sentence):
            chosen.append((place - len(facts), sentence))
            known.add(words_of.plain(fact))
    candidates = _candidates(previous, said)
    telling = [c for c in candidates if c.weight >= _TELLING] or ([] if chosen else candidates)
    for candidate in sorted(telling, key=lambda c: (-c.weight, c.place)):
        plain = words_of.plain(candidate.text)
        if not plain or any(plain in k or k in plain for k in known):
            continue
        if fits(candidate.place, candidate.text):
            chosen.append((candidate.place, candidate.text))
            known.add(plain)
    return _joined(chosen)


def _joined(chosen: Sequence[tuple[int, str]]) -> str:
    return " ".join(text for _, text in sorted(chosen))


def merge(facts: Sequence[str], most: int) -> list[str]:
    """Return at most ``most`` facts, each once: the weightiest, in their order."""
    kept: list[str] = []
    for fact in facts:
        plain = words_of.plain(fact)
        if plain and not any(plain in words_of.plain(other) for other in kept):
            kept = [other for other in kept if words_of.plain(other) not in plain]
            kept.append(fact)
    best = sorted(range(len(kept)), key=lambda i: (-notice.weight(kept[i]), -i))[: max(most, 0)]
    return [kept[i] for i in sorted(best)]


def _candidates(previous: str, said: Sequence[tuple[str, str]]) -> list[_Candidate]:
    out: list[_Candidate] = []
    for sentence in words_of.sentences(previous):
        out.append(_Candidate(_ended(sentence), _TELLING + notice.weight(sentence), len(out)))
    for role, whole in said:
        text = without_reasoning(whole)
        if role == "assistant" and text.startswith((NOTHING, NOTED)):
            continue
        for sentence in words_of.sentences(text):
            weight = _SPEAKER.get(role, 0.0) * (notice.weight(sentence) + 0.25)
            if not weight or notice.asks(sentence) or notice.small_talk(sentence):
                continue
            line = words_of.clip(notice.fact_of(sentence))
            line = f"The assistant said: {line}" if role == "assistant" else line
            out.append(_Candidate(_ended(line), weight, len(out)))
    return out


def _ended(sentence: str) -> str:
    line = " ".join(sentence.split())
    return line if line.endswith(_ENDS) else f"{line}."
