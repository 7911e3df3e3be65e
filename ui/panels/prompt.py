"""The exact messages in order, each span in the colour of its source."""

from __future__ import annotations

import streamlit as st

from ui.scene import Scene
from ui.spans_html import prompt_html
from ui.state import value_of
from ui.view_models.prompt import ROOM, SHOWN, prompt_json, prompt_view

_WHOLE = "prompt-whole"


def draw(scene: Scene, *, brief: bool) -> None:
    """Draw the prompt; its JSON on demand, with a copy button."""
    whole = bool(value_of(_WHOLE))
    part = 3 if brief else 1
    view = prompt_view(scene.assembly, whole=whole, shown=SHOWN // part, room=ROOM // part)
    st.caption(f"{view.tokens:,} tokens, counted by {view.counter or 'nobody'}")
    st.html(prompt_html(view))
    if view.partial or whole:
        st.toggle("Show every character", key=_WHOLE)
    as_json = st.expander("As JSON, to copy", key="prompt-json", on_change="rerun")
    if as_json.open:
        as_json.code(prompt_json(scene.assembly), language="json", wrap_lines=True, height=300)
