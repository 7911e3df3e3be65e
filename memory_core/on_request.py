"""Memory on the model's request: what the tools ``remember``, ``recall`` and ``forget`` do.

They act within the running turn: what they write is committed with it, what they read is the
long-term memory as it was when the turn began plus the key facts.
"""

from __future__ import annotations

import uuid

from memory_core.assemble import memory_tokens
from memory_core.session import Session
from memory_core.state import KeyFact, add_fact, drop_facts
from memory_core.summary import normalise
from memory_core.trace import MemoryWrite


class OnRequest:
    """The three memory tools of one session."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def remember(self, text: str) -> str:
        """Keep a fact word for word, in the state and for the long term."""
        session, turn = self._session, self._session.turn
        fact = KeyFact(
            id=uuid.uuid4().hex,
            text=" ".join(text.split()),
            turn=turn.number if turn is not None else session.last_turn,
            message_id=turn.messages[0].id if turn is not None and turn.messages else "",
            source="remember",
        )
        before = session.state
        if session.change_state(lambda state: add_fact(state, fact)) is before:
            return f"Already known: {fact.text}" if fact.text else "There was nothing to remember."
        if session.longterm is not None and turn is not None:
            records, writes = session.longterm.plan_fact(
                fact.text,
                user=session.key.user,
                session=session.key.session,
                turn=fact.turn,
                now=turn.started,
                message_ids=(fact.message_id,) if fact.message_id else (),
                planned=turn.records,
            )
            turn.records += records
            turn.memories += writes
        return f"Remembered: {fact.text}"

    def recall(self, query: str) -> str:
        """Search long-term memory and the key facts; return what was found, one line each."""
        session = self._session
        facts = [f.text for f in session.state.key_facts if _shares_a_word(query, f.text)]
        lines = [f"- {text} (key fact)" for text in facts]
        if session.longterm is not None:
            found = session.longterm.recall(
                query,
                user=session.key.user,
                session=session.key.session,
                settings=session.settings,
                count=lambda hit: memory_tokens(hit, session.counter),
                sees=session.sees,
            )
            lines += [f"- {hit.text} (memory, score {hit.score:.2f})" for hit in found.hits]
            if session.turn is not None:
                session.turn.embedded += 1
        return "\n".join(lines) or f"Nothing was found for {query!r}."

    def forget(self, text: str) -> str:
        """Forget the key facts and memories of this user that hold the text."""
        session, turn = self._session, self._session.turn
        wanted = normalise(text)
        if not wanted:
            return "Say which words the memories to forget hold."
        facts = [f for f in session.state.key_facts if wanted in normalise(f.text)]
        ids = frozenset(f.id for f in facts)
        session.change_state(lambda state: drop_facts(state, ids))
        forgotten = [MemoryWrite("forgotten", f.id, f.text, "fact", "on request") for f in facts]
        if session.longterm is not None and turn is not None:
            records, writes = session.longterm.plan_forget(user=session.key.user, text=text)
            turn.records += records
            forgotten += [w for w in writes if w.id not in ids]
        if turn is not None:
            turn.memories += forgotten
        told = f"Forgot {len(forgotten)} of your memories that hold {text!r}."
        if wanted in normalise(session.summary.text):
            told += " The running summary of this session still says it until it is written anew."
        return told


def _shares_a_word(query: str, text: str) -> bool:
    words = {w for w in normalise(query).split() if len(w) > 3}
    return bool(words & set(normalise(text).split()))
