"""The chat column: a window of messages, the running turn, what can be done with the last one.

A message that was sent starts a :class:`~ui.live.LiveTurn`. A fast answer is there before the
page is drawn; for a slow one a fragment looks in a few times a second until it is done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from memory_core.errors import MemoryInspectorError, StaleVersion, StoreError
from ui import problems, resources, sessions, welcome
from ui.live import LiveTurn, Step
from ui.scene import last_trace
from ui.state import ALL, SENT, PageState, mine, seed, value_of
from ui.view_models.chat import ROOM, TEXT, WINDOW, Bubble, chat_view
from ui.view_models.turn import headline

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from memory_core.agent import Event
    from memory_core.chat import Chat
    from memory_core.messages import StoredMessage

BESIDE_ALL = 8  # messages drawn while all panels are: together they stay one screenful
HEIGHT = 560  # pixels of the message list
LOOK_IN = 0.25  # seconds between two looks at a running turn
_PATIENCE = 0.4  # seconds to wait for a fast answer before drawing
_MAX_CHARACTERS = 100_000  # of one message
_VIEW, _INPUT, _EDITOR = "chat-view", "chat-input", "chat-editor"
_AS_TEXT, _AS_CODE, _AS_RENDERED = "As stored", "To copy", "Rendered"


def draw(page: PageState) -> None:
    """Draw the message list, the actions below it, and the input."""
    talking = page.chat is not None and bool(page.chat.messages)
    box = st.container(height=HEIGHT, border=True, autoscroll=talking, key="chat-box")
    with box:
        _messages(page)
        if page.live is not None:
            _running()
        elif page.outbox and page.error is None:
            _waiting(page.outbox)
    busy = page.live is not None or page.player is not None
    if page.editing and not busy:
        _editor(page)
    elif page.chat is not None and page.chat.messages and not busy:
        _after_last(page)
    elif page.error is not None:
        problems.show(page.error)
        st.button("Retry", key="chat-retry", icon=":material/refresh:", on_click=_again)
    st.chat_input(
        "Say something",
        key=_INPUT,
        max_chars=_MAX_CHARACTERS,
        disabled=busy,
        on_submit=_submitted,
    )


def send(page: PageState, text: str) -> None:
    """Send a message, or keep it until the engine is there."""
    chat = page.chat
    if not text.strip() or page.live is not None:
        return
    page.outbox = text
    if chat is None:
        return
    with problems.caught(page.fail, "sending the message"):
        engine = resources.engine()
        if engine is None:
            return
        sessions.catch_up(page, engine)
        chat = page.chat or chat
        sessions.make_ready(page)
        sessions.name_after(page, engine, text)
        page.outbox = ""
        _start(page, lambda: chat.stream(text), question=text)


def settle(page: PageState) -> None:
    """Take in the running turn if it is over."""
    live = page.live
    if live is None or not live.done:
        return
    page.live, page.error = None, live.error
    page.showing, page.chat_ends = SENT, ()
    page.epoch += 1
    if live.error is not None and live.trace is None:
        page.outbox = live.question  # nothing of it was stored: keep it here
    if isinstance(live.error, StaleVersion):
        _take_in(page)
    if page.chat is not None:
        page.chat.configure(page.settings)


def _take_in(page: PageState) -> None:
    """Open the session as it is by now: another tab or program was faster with its turn."""
    engine = resources.engine()
    with problems.caught(page.fail, "opening the session"):
        if engine is not None and sessions.catch_up(page, engine):
            page.error = StoreError(
                "While this was answered, the session went on in another tab or program.",
                next_step="Your message is kept; press Retry.",
            )


def _start(page: PageState, run: Callable[[], Iterator[Event]], *, question: str) -> None:
    page.error, page.editing, page.chat_ends, page.probe = None, False, (), ""
    page.live = LiveTurn(run, question=question)
    page.live.join(_PATIENCE)
    settle(page)


def _messages(page: PageState) -> None:
    if page.chat is None or not page.chat.messages:
        if not page.outbox and page.live is None:
            welcome.draw(page)
        return
    end = page.chat_ends[-1] if page.chat_ends else None
    size, room = (WINDOW, ROOM) if page.panel != ALL else (BESIDE_ALL, ROOM // 3)
    view = chat_view(_settled(page, page.chat), end=end, size=size, room=room, opened=page.opened)
    if view.earlier:
        st.button(
            f"Earlier messages ({view.earlier:,})",
            key="chat-earlier",
            type="tertiary",
            icon=":material/expand_less:",
            on_click=_earlier,
            args=(view.earlier,),
        )
    how = str(value_of(_VIEW) or _AS_TEXT)
    for bubble in view.bubbles:
        _bubble(bubble, how)
    if view.later:
        st.button(
            f"Later messages ({view.later:,})",
            key="chat-later",
            type="tertiary",
            icon=":material/expand_more:",
            on_click=_later,
        )


def _settled(page: PageState, chat: Chat) -> Sequence[StoredMessage]:
    """Return the messages without what :func:`_running` draws of the running turn."""
    live = page.live
    if live is None:
        return chat.messages
    asked = "" if live.question else "user"  # a question answered again stands in the list
    return [m for m in chat.messages if m.turn <= chat.turns or m.message.role == asked]


def _bubble(bubble: Bubble, how: str) -> None:
    if bubble.kind != TEXT:
        st.code(f"🔧 {bubble.text}", language=None, wrap_lines=True)
        return
    with st.chat_message(bubble.role):
        if how == _AS_RENDERED:
            st.markdown(bubble.text)
        elif how == _AS_CODE:
            st.code(bubble.text, language=None, wrap_lines=True)
        else:
            st.text(bubble.text)
        if bubble.hidden:
            st.button(
                f"Show {bubble.hidden:,} more characters",
                key=f"open-{bubble.id}",
                type="tertiary",
                on_click=_open,
                args=(bubble.id,),
            )


@st.fragment(run_every=LOOK_IN, key="running")
def _running() -> None:
    """Draw the running turn as far as it is; when it is over, the whole page follows."""
    page = mine()
    live = page.live
    if live is None or live.done:
        settle(page)
        st.rerun()
    now = live.now()
    if live.question:
        with st.chat_message("user"):
            st.text(live.question)
    with st.chat_message("assistant"):
        for step in now.steps:
            _step(step)
        st.text(now.answer or "…")
    st.button("Stop", key="chat-stop", icon=":material/stop_circle:", on_click=live.stop)


def _step(step: Step) -> None:
    state = "running" if step.result is None else "error" if step.failed else "complete"
    with st.status(step.name, state=state, type="step"):  # type: ignore[arg-type]
        st.code(f"{step.arguments}\n→ {step.result or '…'}", language=None, wrap_lines=True)


def _after_last(page: PageState) -> None:
    """Draw the last turn's error, if any, and what can be done: again, edit, other views."""
    chat = page.chat
    trace = last_trace(chat) if chat is not None else None
    failed = page.error is not None or bool(trace and trace.error)
    if page.error is not None:
        problems.show(page.error)
    elif trace is not None and trace.error:
        problems.show(MemoryInspectorError(trace.error, next_step="Your message is kept."))
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            "Retry" if failed else "Regenerate",
            key="chat-retry" if failed else "chat-regenerate",
            icon=":material/refresh:",
            on_click=_again,
        )
        st.button("Edit and resend", key="chat-edit", icon=":material/edit:", on_click=_edit)
        st.segmented_control(
            "Show messages",
            [_AS_TEXT, _AS_CODE, _AS_RENDERED],
            key=_VIEW,
            default=_AS_TEXT,
            required=True,
            label_visibility="collapsed",
        )
    if trace is not None:
        st.caption(headline(trace))


def _editor(page: PageState) -> None:
    """Draw the last question for editing."""
    trace = last_trace(page.chat) if page.chat is not None else None
    seed(_EDITOR, value_of(_EDITOR) or (trace.query if trace is not None else ""))
    with st.form("edit-last", border=True):
        st.text_area("Your last message", key=_EDITOR, max_chars=_MAX_CHARACTERS)
        with st.container(horizontal=True):
            st.form_submit_button("Send again", type="primary", on_click=_resend)
            st.form_submit_button("Cancel", on_click=_leave_editor)
    st.caption("The turn is replaced by a new one; the old one stays in the store, superseded.")


def _waiting(text: str) -> None:
    with st.chat_message("user"):
        st.text(text)
    st.caption(":material/hourglass_top: Kept; it is answered as soon as the engine is ready.")


def _submitted() -> None:
    send(mine(), str(value_of(_INPUT) or ""))


def _again() -> None:
    """Send what is kept, else answer the last message again."""
    page = mine()
    page.error = None
    if page.outbox:
        send(page, page.outbox)
        return
    _replace(page, lambda chat: chat.regenerate())


def _resend() -> None:
    page, text = mine(), str(value_of(_EDITOR) or "")
    if text.strip():
        _replace(page, lambda chat: chat.edit_last(text), question=text)


def _replace(
    page: PageState, run: Callable[[Chat], Iterator[Event]], *, question: str = ""
) -> None:
    chat = page.chat
    if chat is None or page.live is not None:
        return
    engine = resources.engine()
    with problems.caught(page.fail, "sending the message"):
        if engine is not None and sessions.catch_up(page, engine):
            page.editing = bool(question)
            page.notice += " Look at it first: your message is not the last one any more."
            return
        sessions.make_ready(page)
        _start(page, lambda: run(chat), question=question)


def _edit() -> None:
    mine().editing = True


def _leave_editor() -> None:
    mine().editing = False


def _earlier(end: int) -> None:
    mine().chat_ends += (end,)


def _later() -> None:
    page = mine()
    page.chat_ends = page.chat_ends[:-1]


def _open(bubble: str) -> None:
    page = mine()
    page.opened |= {bubble}
