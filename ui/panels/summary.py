"""The running summary: text, what it covers, key facts kept or lost, how it changed."""

from __future__ import annotations

import streamlit as st

from ui.past import Past
from ui.scene import Scene
from ui.view_models.summary import FactRow, SummaryView, summary_view


def draw(scene: Scene, past: Past) -> None:
    """Draw the newest summary, or an earlier version, beside the key facts."""
    versions = {s.version: s for s in past.summaries()}
    newest = scene.summary
    options = sorted({*versions, newest.version} - {0}, reverse=True)
    shown = newest
    if len(options) > 1:
        picked = st.selectbox("Version", options, key="summary-version", format_func=_version)
        shown = versions.get(picked, newest)
    view = summary_view(
        shown,
        facts=scene.state.key_facts,
        messages=scene.messages,
        earlier=tuple(versions.values()),
        notes=scene.assembly.notes,
    )
    _text(view)
    if view.facts:
        st.markdown("**Key facts**, kept word for word")
        st.code("\n".join(map(_fact, view.facts)), language=None, wrap_lines=True)
        if view.lost:
            st.caption(f"✗ {view.lost} are not in the summary's text; they are sent all the same.")
    if view.diff:
        st.markdown("**Changed** since the version before")
        lines = [f"{line.mark} {line.text}" for line in view.diff]
        st.code("\n".join(lines), language="diff", wrap_lines=True)
    for note in view.notes:
        st.caption(note)


def _text(view: SummaryView) -> None:
    if not view.version:
        st.caption(
            "When messages leave the buffer, the oldest are folded into a running summary. "
            "It will stand here with the turns it covers and the key facts it must keep."
        )
        return
    st.caption(f"v{view.version} · {view.covers} · {view.tokens:,} tokens")
    st.code(view.text, language=None, wrap_lines=True)


def _version(version: int) -> str:
    return f"v{version}"


def _fact(fact: FactRow) -> str:
    where = f"turn {fact.turn}" if fact.turn else fact.source
    return f"{fact.mark} {' '.join(fact.text.split())}  ({where}, {fact.standing})"
