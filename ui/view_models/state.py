"""The structured state as JSON, its version, and what one turn changed in it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from memory_core.messages import Json
from memory_core.state import AgentState, Change, to_json

ADDED, REMOVED, CHANGED = "added", "removed", "changed"


@dataclass(frozen=True)
class ChangeRow:
    """One changed field; values as JSON text, empty where there is none."""

    path: str
    kind: str
    before: str
    after: str


@dataclass(frozen=True)
class StateView:
    """A version of the state; ``changes`` are those of the turn looked at."""

    version: int
    updated: str
    value: dict[str, Json]
    changes: tuple[ChangeRow, ...]
    turn: int

    @property
    def label(self) -> str:
        """A few characters for the panel's tab."""
        return f"State v{self.version}"

    @property
    def empty(self) -> bool:
        """Whether nothing was ever noted."""
        return not any(self.value[k] for k in ("workflow", "step", "slots", "preferences")) and (
            not self.value["key_facts"]
        )

    @property
    def editable(self) -> str:
        """The fields a person may edit, as JSON text."""
        fields = {k: self.value[k] for k in EDITABLE}
        return json.dumps(fields, ensure_ascii=False, indent=2)


EDITABLE = ("workflow", "step", "slots", "preferences", "key_facts")


def state_view(state: AgentState, *, changes: Sequence[Change] = (), turn: int = 0) -> StateView:
    """Return what there is to see of a state after ``turn``."""
    updated = state.updated.strftime("%Y-%m-%d %H:%M:%S UTC") if state.updated else ""
    return StateView(
        version=state.version,
        updated=updated,
        value=to_json(state),
        changes=tuple(_row(change) for change in changes),
        turn=turn,
    )


def _row(change: Change) -> ChangeRow:
    kind = CHANGED
    if change.before is None:
        kind = ADDED
    elif change.after is None:
        kind = REMOVED
    return ChangeRow(change.path, kind, _json(change.before), _json(change.after))


def _json(value: Json) -> str:
    return "" if value is None else json.dumps(value, ensure_ascii=False, default=str)
