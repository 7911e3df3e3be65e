"""The Doctor: faults that changed what the agent saw, with the numbers and what avoids each."""

from __future__ import annotations

import streamlit as st

from ui.past import Past
from ui.problems import plain
from ui.scene import Scene


def draw(scene: Scene, past: Past) -> None:
    """Draw the notes on the last turn."""
    trace = scene.trace
    if trace is None:
        st.caption("After the first turn: what went wrong in it, if anything, and what avoids it.")
        return
    view = past.doctor(trace)
    if not view.notes:
        st.caption(f"Turn {trace.number}: none of the {view.checks} checks has anything to say.")
        return
    for note in view.notes:
        with st.container(border=True):
            st.markdown(f":material/stethoscope: **{plain(note.title)}**")
            st.markdown(plain(note.text))
            st.caption(plain(note.advice))
