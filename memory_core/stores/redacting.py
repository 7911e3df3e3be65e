"""A store that redacts whatever is written, before anything is stored.

Messages, traces, states, summaries, titles and long-term records pass through a
:class:`~memory_core.redaction.Redactor`. What was found is reported by kind and number to
``told``, to be shown; it is kept nowhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace

from memory_core.redaction import Redactor
from memory_core.state import AgentState
from memory_core.state import from_json as state_from_json
from memory_core.state import to_json as state_to_json
from memory_core.stores.encoding import summary_from_json
from memory_core.stores.in_front import StoreInFront
from memory_core.stores.protocols import (
    MemoryRecord,
    SessionInfo,
    SessionKey,
    Store,
    TurnRecord,
)

Told = Callable[[SessionKey, Mapping[str, int]], None]


class RedactingStore(StoreInFront):
    """A :class:`~memory_core.stores.protocols.Store` in front of another that never sees it all."""

    def __init__(
        self, inner: Store, *, redactor: Redactor, told: Told = lambda _key, _counts: None
    ) -> None:
        super().__init__(inner)
        self._redactor = redactor
        self._told = told

    def commit(self, key: SessionKey, record: TurnRecord) -> None:
        """Write a turn, redacted, whole or not at all."""
        record, counts = redact_turn(record, self._redactor)
        self.inner.commit(key, record)
        if counts:
            self._told(key, counts)

    def save_state(self, key: SessionKey, state: AgentState, *, base: int | None = None) -> None:
        """Save a state, redacted, as the next version."""
        self.inner.save_state(key, redact_state(state, self._redactor, Counter()), base=base)

    def create(self, info: SessionInfo) -> None:
        """Add an empty session with a redacted title."""
        self.inner.create(replace(info, title=self._redactor.text(info.title).text))

    def update(self, info: SessionInfo) -> None:
        """Change a session; its title is redacted."""
        self.inner.update(replace(info, title=self._redactor.text(info.title).text))

    def put_records(self, records: Sequence[MemoryRecord]) -> None:
        """Add or replace records, redacted."""
        self.inner.put_records([replace(r, text=self._redactor.text(r.text).text) for r in records])


def redact_turn(record: TurnRecord, redactor: Redactor) -> tuple[TurnRecord, Mapping[str, int]]:
    """Return a turn redacted, and how often each kind was found in its messages."""
    told: Counter[str] = Counter()
    rest: Counter[str] = Counter()  # the same again in trace, state and records: not told twice
    messages = []
    for stored in record.messages:
        message, counts = redactor.message(stored.message)
        told.update(counts)
        messages.append(replace(stored, message=message) if counts else stored)
    summary = record.summary
    if summary is not None:
        summary = summary_from_json(redactor.json(asdict(summary), rest))
    state = record.state
    redacted = replace(
        record,
        messages=tuple(messages),
        trace=redactor.json_text(record.trace, rest),
        summary=summary,
        state=None if state is None else redact_state(state, redactor, rest),
        title=redactor.text(record.title).text,
        records=tuple(replace(r, text=redactor.text(r.text).text) for r in record.records),
    )
    return redacted, dict(told)


def redact_state(state: AgentState, redactor: Redactor, counts: Counter[str]) -> AgentState:
    """Return a state redacted; whose it is stays."""
    return state_from_json(redactor.json(state_to_json(state), counts))
