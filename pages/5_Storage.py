"""Storage: what is stored where, how fast, how safe, and how to get it out or rid of it."""

import streamlit as st

from ui import nav, opening
from ui.state import mine

nav.begin("Storage")
st.title("Storage")
state = mine()
engine = opening.prepare(state)
if engine is None:
    st.caption("Where your sessions and memories are kept, how fast that is, and how to move it.")
    opening.wait(state)
else:
    from ui.storage import page

    page.draw(state, engine)
