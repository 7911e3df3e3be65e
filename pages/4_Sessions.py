"""Sessions: all of yours, searched, tidied, imported, exported and merged."""

import streamlit as st

from ui import nav, opening
from ui.state import mine

nav.begin("Sessions")
st.title("Sessions")
state = mine()
engine = opening.prepare(state)
if engine is None:
    st.caption("All your sessions, with search, import, export and everything to tidy them up.")
    opening.wait(state)
else:
    from ui.sessions_page import page

    page.draw(state, engine)
