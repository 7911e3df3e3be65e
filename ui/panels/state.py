"""The structured state as JSON, what the turn changed, and a form to edit it."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from ui.scene import Scene
from ui.view_models.state import ADDED, REMOVED, ChangeRow, state_view


def draw(scene: Scene, edit: Callable[[], None] | None = None) -> None:
    """Draw the state; ``edit`` opens the form, without it there is nothing to edit."""
    changes = scene.trace.changes if scene.trace is not None else ()
    view = state_view(scene.state, changes=changes, turn=scene.turn)
    st.caption(f"version {view.version}" + (f" · {view.updated}" if view.updated else ""))
    if view.empty:
        st.caption(
            "Workflow, step, slots, preferences and key facts stand here once a tool sets them. "
            "Ask for it: “remember that I can't eat nuts”, or edit by hand."
        )
    st.json(view.value, expanded=2)
    if view.changes:
        st.markdown(f"**Changed in turn {view.turn}**")
        lines = [line for change in view.changes for line in _lines(change)]
        st.code("\n".join(lines), language="diff", wrap_lines=True)
    if edit is not None:
        st.button("Edit", key="state-edit", icon=":material/edit:", on_click=edit)


def _lines(change: ChangeRow) -> list[str]:
    before = [] if change.kind == ADDED else [f"- {change.path}: {change.before}"]
    after = [] if change.kind == REMOVED else [f"+ {change.path}: {change.after}"]
    return [*before, *after]
