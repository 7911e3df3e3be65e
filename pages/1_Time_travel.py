"""Time travel: any turn as it was, beside any other, and a fork from there."""

import streamlit as st

from ui import nav
from ui.state import mine
from ui.time_travel import begin, page

nav.begin("Time travel")
st.title("Time travel")
place = begin.begin(
    mine(),
    teaches=(
        "Every turn is kept as it was: buffer, retrieved memories, summary, state and the exact "
        "prompt. Here you slide through them, compare any two, and fork a new session from one."
    ),
)
if place is not None:
    page.draw(place)
