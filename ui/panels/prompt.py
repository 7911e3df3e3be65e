"""The exact messages in order, each span in the colour of its source."""

from __future__ import annotations

import streamlit as st

from ui.scene import Scene
from ui.spans_html import prompt_html
from ui.view_models.prompt import prompt_json, prompt_view


def draw(scene: Scene) -> None:
    """Draw the prompt; its JSON on demand, with a copy button."""
    view = prompt_view(scene.assembly)
    st.caption(f"{view.tokens:,} tokens, counted by {view.counter or 'nobody'}")
    st.html(prompt_html(view))
    as_json = st.expander("As JSON, to copy", key="prompt-json", on_change="rerun")
    if as_json.open:
        as_json.code(prompt_json(scene.assembly), language="json", wrap_lines=True, height=300)
