"""The sections of state, summary and key facts: their texts, and which of them fit.

Each section ends in line breaks and begins with none, so its tokens can be counted by itself.
State and summary stand whole or not at all; key facts come one by one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from memory_core.messages import StoredMessage
from memory_core.prompt import Gate, Omission, Source
from memory_core.state import AgentState, KeyFact, prompt_view
from memory_core.summary import Summary
from memory_core.tokens import TokenCounter

_OWN_TAGS = re.compile(r"</(state|key-facts|summary|memories)>")


@dataclass(frozen=True)
class Section:
    """One section as it would stand in the prompt."""

    source: Source
    text: str
    tokens: int
    ids: tuple[str, ...] = ()


def state_sections(
    state: AgentState,
    summary: Summary,
    messages: Sequence[StoredMessage],
    counter: TokenCounter,
    room: int,
) -> tuple[list[Section], list[Omission], int]:
    """Return the sections of state, summary and key facts that fit, what does not, all tokens.

    Facts that the summary holds word for word are not repeated. Of the others, those that were
    asked to be remembered come first, then the newest; a third of what the state leaves is
    spared for them, at least the first, the summary takes what it needs of the rest, and more
    facts fill up.
    """
    kept: list[Section] = []
    dropped: list[Omission] = []
    left, needs = room, 0

    def take(section: Section | None, spared: int) -> None:
        nonlocal left, needs
        if section is None:
            return
        needs += section.tokens
        if section.tokens <= left - spared:
            kept.append(section)
            left -= section.tokens
        else:
            dropped.append(_no_room(section, left - spared))

    facts = sorted(
        state.key_facts, key=lambda fact: (fact.source == "remember", fact.turn), reverse=True
    )
    lost = [fact for fact in facts if fact.id not in summary.kept]
    take(_state(state, counter), 0)
    spared = (
        _fitting_facts(lost, counter, left // 3)[0] or _fitting_facts(lost[:1], counter, left)[0]
    )
    take(_summary(summary, messages, counter), spared.tokens if spared is not None else 0)
    told = {i for section in kept for i in section.ids}
    untold = [fact for fact in facts if fact.id not in told]
    chosen, needed, waiting = _fitting_facts(untold, counter, left)
    dropped += waiting
    if chosen is not None:
        kept.append(chosen)
    return kept, dropped, needs + needed


def _state(state: AgentState, counter: TokenCounter) -> Section | None:
    view = prompt_view(state)
    if not view:
        return None
    text = _tagged("state", fence(json.dumps(view, ensure_ascii=False, default=str)))
    return Section(Source.STATE, text, counter.text(text))


def _summary(
    summary: Summary, messages: Sequence[StoredMessage], counter: TokenCounter
) -> Section | None:
    if not summary.text.strip():
        return None
    covers = _covered_turns(summary, messages)
    text = f'<summary covers="{covers}">\n{fence(summary.text.strip())}\n</summary>\n\n'
    ids = (f"summary-{summary.version}", *summary.kept)
    return Section(Source.SUMMARY, text, counter.text(text), ids)


def _fitting_facts(
    facts: Sequence[KeyFact], counter: TokenCounter, room: int
) -> tuple[Section | None, int, list[Omission]]:
    """Return the section of the facts that fit, the tokens all would need, and the others."""
    chosen: list[KeyFact] = []
    waiting: list[Omission] = []
    text, used, needed = "", 0, 0
    for fact in facts:
        longer = _facts_text([*chosen, fact])
        tokens = counter.text(longer)
        if tokens <= room:
            chosen.append(fact)
            needed += tokens - used
            text, used = longer, tokens
            continue
        needed += tokens - used
        own = Section(Source.FACTS, _fact_line(fact), tokens - used, (fact.id,))
        waiting.append(_no_room(own, room - used, turn=fact.turn))
    if not chosen:
        return None, needed, waiting
    ids = tuple(fact.id for fact in chosen)
    return Section(Source.FACTS, text, used, ids), needed, waiting


def _facts_text(facts: Sequence[KeyFact]) -> str:
    return _tagged("key-facts", "\n".join(map(_fact_line, facts)))


def _fact_line(fact: KeyFact) -> str:
    return f"- {fence(' '.join(fact.text.split()))}"


def _no_room(section: Section, room: int, *, turn: int | None = None) -> Omission:
    return Omission(
        gate=Gate.BUDGET,
        source=section.source,
        ids=section.ids,
        reason=f"needs {section.tokens:,} tokens, {room:,} left of the state share",
        needed=section.tokens,
        available=room,
        text=section.text.strip(),
        tokens=section.tokens,
        turn=turn,
    )


def _covered_turns(summary: Summary, messages: Sequence[StoredMessage]) -> str:
    if not summary.covers:
        return "nothing"
    last = messages[min(summary.covers, len(messages)) - 1].turn
    return f"turns 1-{last}" if last > 1 else f"turn {last}"


def _tagged(name: str, text: str) -> str:
    return f"<{name}>\n{text}\n</{name}>\n\n"


def block(text: str) -> str:
    """Return a text without blank ends, followed by an empty line; nothing for a blank one."""
    stripped = text.strip()
    return f"{stripped}\n\n" if stripped else ""


def fence(text: str) -> str:
    """Keep a text from closing the section it stands in."""
    return _OWN_TAGS.sub(r"<\\/\1>", text)
