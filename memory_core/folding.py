"""One round of summarising: key facts are pulled out first, then the messages are folded.

The order matters: the summariser is told the facts it must keep. Each step changes the session
only when its model call came back, so a failed round loses nothing.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Sequence

from memory_core.messages import Message, StoredMessage
from memory_core.session import OpenTurn, Session
from memory_core.state import KeyFact, add_fact
from memory_core.summary import (
    Summary,
    check_facts,
    facts_prompt,
    normalise,
    read_facts,
    summary_prompt,
)
from memory_core.tokens import TokenCounter
from memory_core.trace import EXTRACT_FACTS, SUMMARISE

Ask = Callable[[str, Sequence[Message]], str]
"""Sends a prompt to the model under a purpose and returns its text; raises ModelError."""

MAX_FACTS = 40
FACTS_A_ROUND = 5


def extract_facts(
    session: Session, turn: OpenTurn, folded: Sequence[StoredMessage], ask: Ask
) -> None:
    """Add the key facts that the model finds in ``folded`` to the state."""
    known = [fact.text for fact in session.state.key_facts]
    prompt = facts_prompt([m.message for m in folded], known, max_facts=FACTS_A_ROUND)
    for text in read_facts(ask(EXTRACT_FACTS, prompt), max_facts=FACTS_A_ROUND):
        if len(session.state.key_facts) >= MAX_FACTS:
            turn.degrade(f"The list of key facts is full ({MAX_FACTS}); not added: {text}")
            continue
        origin = _origin(text, folded)
        fact = KeyFact(id=uuid.uuid4().hex, text=text, turn=origin.turn, message_id=origin.id)
        session.change_state(lambda state, fact=fact: add_fact(state, fact))  # type: ignore[misc]


def fold(
    session: Session,
    turn: OpenTurn,
    folded: Sequence[StoredMessage],
    ask: Ask,
    *,
    covers: int,
) -> None:
    """Write the next version of the summary, which then covers the first ``covers`` messages."""
    old, facts = session.summary, session.state.key_facts
    limit = session.settings.summary_tokens
    prompt = summary_prompt(
        old.text, [m.message for m in folded], [f.text for f in facts], max_tokens=limit
    )
    text = ask(SUMMARISE, prompt).strip()
    if not text:
        turn.degrade("The summary came back empty and is tried again next turn.")
        return
    clipped = clip(text, limit, session.counter)
    if clipped != text:
        tokens = session.counter.text(text)
        turn.degrade(f"The summary was {tokens:,} tokens long and was cut at {limit:,}.")
    kept, lost = check_facts(clipped, [(fact.id, fact.text) for fact in facts])
    session.summary = turn.summary = Summary(
        version=old.version + 1,
        text=clipped,
        tokens=session.counter.text(clipped),
        covers=covers,
        folded=tuple(m.id for m in folded),
        kept=tuple(kept),
        lost=tuple(lost),
        turn=turn.number,
    )


def clip(text: str, max_tokens: int, counter: TokenCounter) -> str:
    """Return the text cut after its last whole sentence (or word) within ``max_tokens``."""
    if counter.text(text) <= max_tokens:
        return text
    pieces = re.split(r"(?<=[.!?])\s+|\n+", text)
    kept = ""
    for piece in pieces:
        longer = f"{kept} {piece}".strip()
        if counter.text(longer) > max_tokens:
            break
        kept = longer
    if kept:
        return kept
    words = text.split(" ")
    while words and counter.text(" ".join(words)) > max_tokens:
        words = words[: max(0, len(words) * 3 // 4)]
    return " ".join(words)


def _origin(fact: str, messages: Sequence[StoredMessage]) -> StoredMessage:
    """Return the message that shares most words with a fact; user messages win ties."""
    words = set(re.findall(r"\w+", normalise(fact)))

    def shared(stored: StoredMessage) -> tuple[int, bool]:
        have = set(re.findall(r"\w+", normalise(stored.message.text)))
        return len(words & have), stored.message.role == "user"

    return max(messages, key=shared)
