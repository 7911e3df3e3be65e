"""The running summary: what left the window, folded in rounds, with key facts kept verbatim.

:func:`plan_summary` decides, without a model, whether a round is due and which messages it folds:
all that left the window uncovered and, so that rounds are rare, the oldest half of everything
uncovered. The newest half stays verbatim only. :func:`check_facts` tells afterwards which key
facts the new text still holds. The model call between the two happens elsewhere; when it fails
nothing has changed and the next turn tries again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from memory_core.buffer import History
from memory_core.messages import Message


@dataclass(frozen=True)
class Summary:
    """One version of the running summary.

    ``covers`` is how many of the oldest active messages it stands for; ``folded`` are the ids
    this round added. ``kept`` and ``lost`` are the ids of key facts that its text does or does
    not hold.
    """

    version: int
    text: str
    tokens: int
    covers: int
    folded: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    turn: int = 0


NO_SUMMARY = Summary(version=0, text="", tokens=0, covers=0)


@dataclass(frozen=True)
class SummaryPlan:
    """Whether a round is due and which messages (``first`` to ``last``, exclusive) it folds.

    ``waiting`` is how many messages have left the window and are in no summary yet.
    """

    due: bool
    first: int
    last: int
    waiting: int
    reason: str


def plan_summary(
    history: History, *, covered: int, window_start: int, every: int, open_turn: int
) -> SummaryPlan:
    """Decide on the next summary round.

    ``covered`` messages are summarised, those before ``window_start`` are out of the window;
    ``open_turn`` is where the turn now running starts, which is never folded.
    """
    waiting = max(0, window_start - covered)
    if waiting < every:
        reason = f"{waiting} of {every} messages have left the window since the last round"
        return SummaryPlan(due=False, first=covered, last=covered, waiting=waiting, reason=reason)
    uncovered = open_turn - covered
    half = history.group_of(covered + uncovered // 2) if uncovered > 1 else covered
    last = min(max(window_start, half), open_turn)
    reason = f"{waiting} messages have left the window, a round is due at {every}"
    return SummaryPlan(last > covered, covered, last, waiting, reason)


SUMMARY_TASK = "summarise-conversation"
FACTS_TASK = "extract-key-facts"


def summary_prompt(
    previous: str, messages: Sequence[Message], facts: Sequence[str], *, max_tokens: int
) -> list[Message]:
    """Return the messages that ask a model to fold ``messages`` into ``previous``."""
    rules = (
        f"Task: {SUMMARY_TASK}. Write the running summary of a conversation anew, in at most "
        f"{max_tokens} tokens. Keep names, numbers, dates, preferences, decisions and open "
        "questions. Keep each key fact word for word. Write plain sentences only."
    )
    body = [
        _section("previous-summary", previous),
        _section("key-facts", "\n".join(facts)),
        _section("messages", _transcript(messages)),
    ]
    return [Message.of("system", rules), Message.of("user", "\n\n".join(filter(None, body)))]


def facts_prompt(
    messages: Sequence[Message], known: Sequence[str], *, max_facts: int
) -> list[Message]:
    """Return the messages that ask a model for key facts in ``messages`` that are not known."""
    rules = (
        f"Task: {FACTS_TASK}. List facts about the user that must never be lost: identity, "
        "preferences, allergies, constraints, decisions. Write one fact a line, starting with "
        f'"- ", at most {max_facts} lines, each in the user\'s own words. Write "none" if there '
        "is nothing new."
    )
    body = [_section("known-facts", "\n".join(known)), _section("messages", _transcript(messages))]
    return [Message.of("system", rules), Message.of("user", "\n\n".join(filter(None, body)))]


def read_facts(reply: str, *, max_facts: int) -> list[str]:
    """Return the facts in a reply to :func:`facts_prompt`: its lines that start with a dash."""
    lines = (line.strip() for line in reply.splitlines())
    facts = [line[1:].strip() for line in lines if line.startswith(("-", "*", "•"))]
    return [fact for fact in facts if fact][:max_facts]


def normalise(fact: str) -> str:
    """Return a fact without case, white space runs and end punctuation, to compare facts by."""
    return re.sub(r"\s+", " ", fact).strip().rstrip(".!;,").casefold()


def check_facts(text: str, facts: Sequence[tuple[str, str]]) -> tuple[list[str], list[str]]:
    """Return the ids of the facts that a summary's text holds and of those it lost."""
    haystack = normalise(text)
    kept = [i for i, fact in facts if normalise(fact) in haystack]
    return kept, [i for i, _ in facts if i not in set(kept)]


def _section(name: str, text: str) -> str:
    return f"<{name}>\n{text}\n</{name}>" if text else ""


def _transcript(messages: Sequence[Message]) -> str:
    return "\n".join(f"{m.role}: {m.text}" for m in messages if m.text)
