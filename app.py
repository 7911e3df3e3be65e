"""The Playground: chat on the left, what the agent remembers on the right."""

import streamlit as st

from ui import conversation, dialogs, inspector, nav, opening, playing, problems, sidebar
from ui.state import mine

nav.begin("Playground")
page = mine()
engine = opening.prepare(page)

with st.sidebar, problems.guarded("the sidebar"):
    sidebar.draw(page, engine)

chat_column, panel_column = st.columns([5, 6], gap="medium")

with panel_column, problems.guarded("the panels"):
    inspector.draw()

with chat_column, problems.guarded("the chat"):
    if page.notice:
        st.info(problems.plain(page.notice))
        page.notice = ""
    if page.player is not None:
        playing.draw_progress()
    conversation.draw(page)
    if engine is None:
        opening.wait(page)
    else:
        playing.draw_questions(page)

dialogs.draw(page)
