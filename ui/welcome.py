"""What an empty chat shows: what this is, and the one button that gets it going."""

from __future__ import annotations

import streamlit as st

from memory_core.errors import MemoryInspectorError
from memory_core.samples import Sample
from ui import problems, resources, sessions
from ui.player import Player, samples
from ui.state import PageState, mine
from ui.view_models.text import plural


def draw(page: PageState) -> None:
    """Draw the empty state."""
    st.markdown(
        "**See what an agent remembers.** Say something below, for example *Hi, I'm Dana, I run a "
        "bakery in Porto and I can't eat nuts*, or play a conversation in. After every turn the "
        "panels show what was sent to the model, what stayed out, and why."
    )
    if page.model.kind == "offline":
        st.caption(
            "The built-in model `offline` is a reader, not a language model: it quotes the best "
            "sentence it was given and says where it stood, so its answers show what memory "
            "delivered. Choose another model in the sidebar."
        )
    if page.chat is None or page.player is not None:
        return
    try:
        offered = samples()
    except MemoryInspectorError as exc:
        problems.show(exc)
        return
    for sample in offered:
        _offer(sample)


def _offer(sample: Sample) -> None:
    st.button(
        f"Play “{sample.title}” ({plural(len(sample.turns), 'turn')})",
        key=f"play-{sample.id}",
        icon=":material/play_arrow:",
        help=f"{sample.description} {sample.teaches}",
        on_click=play,
        args=(sample.id,),
    )


def play(sample_id: str) -> None:
    """Start playing a sample into a session of its own."""
    page, engine = mine(), resources.engine()
    sample = next((s for s in samples() if s.id == sample_id), None)
    if engine is None or sample is None or page.live is not None:
        return
    with problems.caught(page.fail, "playing the sample"):
        sessions.open_new(page, engine, sample=sample.id)
        sessions.name_after(page, engine, sample.title)
        page.player = Player(sample)
