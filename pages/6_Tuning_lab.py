"""Tuning lab: sweep two knobs over a conversation and see which setting keeps the evidence."""

import streamlit as st

from ui import nav, opening
from ui.state import mine

nav.begin("Tuning lab")
st.title("Tuning lab")
state = mine()
engine = opening.prepare(state)
if engine is None:
    st.caption("Measured on your own conversation: which token limit and top_k keep the evidence.")
    opening.wait(state)
else:
    from ui.lab import page

    page.draw(state, engine)
