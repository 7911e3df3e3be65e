"""Why?: what happened to each message and memory, why it stayed out, what it changed."""

import streamlit as st

from ui import nav
from ui.state import mine
from ui.time_travel import begin

nav.begin("Why?")
st.title("Why?")
place = begin.begin(
    mine(),
    teaches=(
        "Every message, fact, summary and memory has a life: in the prompt, in the summary, only "
        "in long-term memory, gone. Here you see it turn by turn, ask why something stayed out, "
        "and try what would have let it in."
    ),
)
if place is not None:
    from ui.why import page

    page.draw(mine())
