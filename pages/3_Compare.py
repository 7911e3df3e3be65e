"""Compare: one conversation through two to six memories, side by side."""

import streamlit as st

from ui import nav, opening
from ui.state import mine

nav.begin("Compare")
st.title("Compare")
state = mine()
engine = opening.prepare(state)
if engine is None:
    st.caption("One conversation through two to six memories: what each holds, where they part.")
    opening.wait(state)
else:
    from ui.compare import page

    page.draw(state, engine)
