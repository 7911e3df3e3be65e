"""Structured state of a session: versioned, changed only through functions that return a new one.

Every change makes a new :class:`AgentState` with the next version; a store saves it only when
the version it is based on is still the newest (optimistic locking). :func:`diff` says what a
turn changed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from memory_core.errors import InvalidInput
from memory_core.messages import Json
from memory_core.summary import normalise

MAX_STATE_CHARACTERS = 100_000


@dataclass(frozen=True)
class KeyFact:
    """A fact that is kept word for word. ``turn`` and ``message_id`` say where it was told."""

    id: str
    text: str
    turn: int
    message_id: str = ""
    source: str = "extracted"


@dataclass(frozen=True)
class AgentState:
    """What the agent keeps in fields rather than text."""

    user: str
    session: str
    workflow: str = ""
    step: str = ""
    slots: Mapping[str, Json] = field(default_factory=dict)
    preferences: Mapping[str, str] = field(default_factory=dict)
    key_facts: tuple[KeyFact, ...] = ()
    version: int = 0
    updated: datetime | None = None


@dataclass(frozen=True)
class Change:
    """One difference between two states: where, before and after (``None``: not there)."""

    path: str
    before: Json
    after: Json


def prompt_view(state: AgentState) -> dict[str, Json]:
    """Return what of the state is told to the model; empty when there is nothing to tell."""
    view: dict[str, Json] = {}
    if state.workflow:
        view["workflow"] = state.workflow
    if state.step:
        view["step"] = state.step
    if state.slots:
        view["slots"] = dict(state.slots)
    if state.preferences:
        view["preferences"] = dict(state.preferences)
    return view


def to_json(state: AgentState) -> dict[str, Json]:
    """Return the whole state as a JSON object."""
    return {
        "user": state.user,
        "session": state.session,
        "workflow": state.workflow,
        "step": state.step,
        "slots": dict(state.slots),
        "preferences": dict(state.preferences),
        "key_facts": [
            {
                "id": f.id,
                "text": f.text,
                "turn": f.turn,
                "message_id": f.message_id,
                "source": f.source,
            }
            for f in state.key_facts
        ],
        "version": state.version,
        "updated": state.updated.isoformat() if state.updated else None,
    }


def from_json(value: Mapping[str, Json]) -> AgentState:
    """Return the state that :func:`to_json` wrote; raise :class:`InvalidInput` for other shapes."""
    try:
        updated = value.get("updated")
        slots, preferences = dict(value["slots"]), dict(value["preferences"])
        state = AgentState(
            user=str(value["user"]),
            session=str(value["session"]),
            workflow=str(value["workflow"]),
            step=str(value["step"]),
            slots=slots,
            preferences={str(k): str(v) for k, v in preferences.items()},
            key_facts=tuple(KeyFact(**f) for f in value["key_facts"]),
            version=int(value["version"]),
            updated=datetime.fromisoformat(updated) if updated else None,
        )
    except (KeyError, TypeError, ValueError, AttributeError) as exc:
        raise InvalidInput(f"This is no state of a session: {exc}.") from exc
    return state


def update_workflow(
    state: AgentState, *, workflow: str | None, step: str | None, slots: Mapping[str, Json]
) -> AgentState:
    """Return the state with workflow, step or slots changed; a slot of ``None`` is removed."""
    merged = {k: v for k, v in {**state.slots, **slots}.items() if v is not None}
    changed = replace(
        state,
        workflow=state.workflow if workflow is None else workflow,
        step=state.step if step is None else step,
        slots=merged,
    )
    return _next(state, changed)


def set_preference(state: AgentState, name: str, value: str) -> AgentState:
    """Return the state with one preference set; an empty value removes it."""
    if not name.strip():
        raise InvalidInput("A preference needs a name.")
    merged = {**state.preferences, name.strip(): value}
    return _next(state, replace(state, preferences={k: v for k, v in merged.items() if v}))


def add_fact(state: AgentState, fact: KeyFact) -> AgentState:
    """Return the state with a key fact added; unchanged when an equal one is there."""
    if not fact.text.strip() or any(
        normalise(f.text) == normalise(fact.text) for f in state.key_facts
    ):
        return state
    return _next(state, replace(state, key_facts=(*state.key_facts, fact)))


def drop_facts(state: AgentState, ids: frozenset[str]) -> AgentState:
    """Return the state without the key facts of these ids."""
    return _next(
        state, replace(state, key_facts=tuple(f for f in state.key_facts if f.id not in ids))
    )


def diff(before: AgentState, after: AgentState) -> tuple[Change, ...]:
    """Return what changed, one entry a field, slot, preference or key fact."""
    old, new = _flat(before), _flat(after)
    paths = [*old, *(p for p in new if p not in old)]
    return tuple(
        Change(path, old.get(path), new.get(path))
        for path in paths
        if old.get(path) != new.get(path)
    )


def _flat(state: AgentState) -> dict[str, Json]:
    flat: dict[str, Json] = {"workflow": state.workflow or None, "step": state.step or None}
    flat |= {f"slots.{k}": v for k, v in state.slots.items()}
    flat |= {f"preferences.{k}": v for k, v in state.preferences.items()}
    flat |= {f"key_facts.{f.id}": f.text for f in state.key_facts}
    return flat


def _next(before: AgentState, after: AgentState) -> AgentState:
    if after == before:
        return before
    size = len(json.dumps(to_json(after), default=str))
    if size > MAX_STATE_CHARACTERS:
        raise InvalidInput(
            f"The state would be {size:,} characters long; at most {MAX_STATE_CHARACTERS:,} fit."
        )
    return replace(after, version=before.version + 1)
