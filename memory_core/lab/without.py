"""Counterfactuals: one turn planned again as if one thing had never been said, or otherwise.

The turn is planned twice by the same planner from the same session, once as it was and once with
the change, so what differs between the two prompts is what the one thing did. A message that is
left out takes along what was made from it (memories, key facts); summaries stay as they were
written, since writing them again needs a model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from llama_index.core.llms import LLM

from memory_core.buffer import History
from memory_core.errors import InvalidInput
from memory_core.fate import FACT, MEMORY, MESSAGE, SUMMARY
from memory_core.forking import visible
from memory_core.lab.past import Embed, PastMemories
from memory_core.lab.replay import Replay, ReplayedTurn
from memory_core.llama import to_chat
from memory_core.messages import TEXT, Message, StoredMessage, repair_text
from memory_core.models.catalogue import ModelChoice
from memory_core.models.failures import explain
from memory_core.prompt import Assembly
from memory_core.stores.protocols import MemoryRecord, SessionKey, Store
from memory_core.summary import NO_SUMMARY

KINDS = (MESSAGE, MEMORY, FACT, SUMMARY)
MAX_TEXT = 100_000  # characters of a text put in the place of another


@dataclass(frozen=True)
class Edit:
    """One thing to leave out, or (with ``text``) to put other words in the place of."""

    kind: str
    id: str
    text: str | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InvalidInput(
                f"A {self.kind} cannot be left out.",
                next_step=f"Choose one of: {', '.join(KINDS)}.",
            )
        if self.text is not None and not self.text.strip():
            raise InvalidInput("The other text is empty.", next_step="Leave the thing out instead.")
        if self.text is not None and len(self.text) > MAX_TEXT:
            raise InvalidInput(f"The other text is longer than {MAX_TEXT:,} characters.")


@dataclass(frozen=True)
class Counterfactual:
    """A turn planned as it was and as it would have been."""

    edit: Edit
    before: ReplayedTurn
    after: ReplayedTurn


def counterfactual(
    store: Store, key: SessionKey, number: int, edit: Edit, *, embed: Embed, model: str = ""
) -> Counterfactual:
    """Plan a turn with and without a change.

    Raises :class:`NotFound` for a turn or thing that is not there and :class:`InvalidInput` for
    a turn of a strategy that cannot be asked again, or when the turn's own question is changed.
    """
    said = store.messages(key, superseded=True)
    records = store.records(key.user)
    turns = store.turns(key)
    sees = visible(store.sessions(key.user), key.session)
    states = {stored.state.version: stored.state for stored in store.states(key)}

    def plan(memories: Sequence[MemoryRecord]) -> ReplayedTurn:
        past = PastMemories(memories, embed=embed, model=model, sees=sees)
        replay = Replay(turns=turns, messages=said, states=states, memories=past)
        return replay.at(number)

    before = plan(records)
    original = next((m for m in said if m.id == edit.id), None)
    return Counterfactual(edit, before, _as_if(plan(_remembered(records, edit, original)), edit))


def answer(llm: LLM, prompt: Assembly, choice: ModelChoice | None = None) -> str:
    """Return what the model answers to a prompt; nothing of it is stored."""
    try:
        reply = llm.chat([to_chat(message) for message in prompt.messages])
    except Exception as exc:
        raise explain(exc, choice) from exc
    return repair_text(reply.message.content or "")[0]


def _as_if(turn: ReplayedTurn, edit: Edit) -> ReplayedTurn:
    layers = turn.layers
    state = layers.state
    if edit.kind == SUMMARY:
        text = edit.text or ""
        changed = replace(layers.summary, text=text) if text else NO_SUMMARY
        return replace(turn, layers=replace(layers, summary=changed))
    if edit.kind == FACT:
        told = ((f, f.id == edit.id) for f in state.key_facts)
        facts = tuple(
            replace(f, text=edit.text) if hit and edit.text else f
            for f, hit in told
            if not hit or edit.text
        )
        return replace(turn, layers=replace(layers, state=replace(state, key_facts=facts)))
    if edit.kind == MEMORY:
        return turn
    facts = tuple(f for f in state.key_facts if f.message_id != edit.id)
    messages = [m for m in (_message(m, edit, turn) for m in layers.messages) if m is not None]
    history = History(turn.counter.text)
    for stored in messages:
        history.append(stored.message, stored.tokens or 0)
    opened = layers.open_turn
    gone = sum(m.id == edit.id for m in layers.messages[:opened]) if not edit.text else 0
    covers = layers.summary.covers
    before = sum(m.id == edit.id for m in layers.messages[:covers]) if not edit.text else 0
    return replace(
        turn,
        layers=replace(
            layers,
            messages=tuple(messages),
            history=history,
            state=replace(state, key_facts=facts),
            summary=replace(layers.summary, covers=covers - before),
            open_turn=opened - gone if opened is not None else None,
        ),
    )


def _message(stored: StoredMessage, edit: Edit, turn: ReplayedTurn) -> StoredMessage | None:
    counter = turn.counter
    if stored.id != edit.id:
        known = stored.tokens is not None and stored.counter == counter.id
        return stored if known else replace(stored, tokens=counter.message(stored.message))
    if stored.turn == turn.trace.number:
        raise InvalidInput(
            "This is the question of the turn itself.", next_step="Choose a later turn."
        )
    if edit.text is None:
        return None
    others = [b for b in stored.message.blocks if b.get("block_type") != TEXT]
    block = {"block_type": TEXT, "text": repair_text(edit.text)[0]}
    message = Message(stored.message.role, (block, *others), stored.message.kwargs)
    return replace(stored, message=message, tokens=counter.message(message), counter=counter.id)


def _remembered(
    records: Sequence[MemoryRecord], edit: Edit, original: StoredMessage | None
) -> list[MemoryRecord]:
    """Return long-term memory as it would be; what was made from a message goes with it."""
    out = []
    for record in records:
        touched = (
            record.id == edit.id
            if edit.kind == MEMORY
            else edit.kind == MESSAGE and edit.id in record.message_ids
        )
        if not touched:
            out.append(record)
        elif edit.text is not None and edit.kind == MEMORY:
            out.append(replace(record, text=repair_text(edit.text)[0]))
        elif edit.text is not None and original is not None:
            text = record.text.replace(original.message.text, repair_text(edit.text)[0])
            out.append(replace(record, text=text))
    return out
