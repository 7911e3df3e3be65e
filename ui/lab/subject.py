"""Which conversation is tuned for: the open session, a sample, or a file that is dropped in.

A file is previewed with all that was changed or left out; nothing of it is stored unless that is
asked for.
"""

from __future__ import annotations

from dataclasses import replace
from io import BytesIO
from typing import TYPE_CHECKING, Any

import streamlit as st

from memory_core.interchange import conversations
from memory_core.interchange.storing import imported_before, store_conversation
from memory_core.lab.inputs import from_sample
from memory_core.questions import RecallQuestion
from memory_core.stores.protocols import SessionKey
from memory_core.tokens import TokenCounter
from ui import problems, sessions
from ui.lab.dropping import nth, read
from ui.lab.place import (
    ALL,
    FILE,
    SAMPLE,
    SESSION,
    SOURCES,
    Dropped,
    LabPlace,
    Subject,
    place_of,
)
from ui.player import samples
from ui.progress import bar
from ui.sessions_page.actions import new_id
from ui.state import PageState, mine, seed, value_of
from ui.view_models.lab_questions import of_sample
from ui.view_models.sessions_page import incoming_file
from ui.view_models.text import excerpt, plural

if TYPE_CHECKING:
    from memory_core.engine import Engine

_SOURCE, _SAMPLE, _FILE, _NUMBER = "lab-source", "lab-sample", "lab-file", "lab-number"
_NOTICES = 50


def draw(page: PageState, engine: Engine, place: LabPlace) -> None:
    """Draw the choice and take the conversation that is chosen."""
    seed(_SOURCE, place.source)
    st.segmented_control(
        "Conversation",
        SOURCES,
        key=_SOURCE,
        required=True,
        label_visibility="collapsed",
        on_change=_to_source,
    )
    if place.source == SESSION:
        _session(page, place)
    elif place.source == SAMPLE:
        _sample(place)
    else:
        _file(page, engine, place)
    if place.subject is not None:
        st.text(excerpt(place.subject.title, 120))
        parts = place.subject.parts
        count = sum(len(p.messages) for p in parts) if parts else len(place.subject.messages)
        st.caption(plural(count, "message"))


def _session(page: PageState, place: LabPlace) -> None:
    info, chat = page.info, page.chat
    if info is None or chat is None or not chat.messages:
        place.leave()
        st.caption("The open session is empty. Say something in the Playground, or take a sample.")
        st.page_link("app.py", label="Open the Playground", icon=":material/play_arrow:")
        st.button(
            "Try it with a sample",
            key="lab-try",
            type="primary",
            icon=":material/science:",
            on_click=_try_sample,
        )
        return
    said = chat.messages
    sample = next((s for s in samples() if s.id == sessions.sample_of(info)), None)
    place.take(
        Subject(
            SESSION,
            info.key.session,
            info.title,
            tuple(stored.message for stored in said),
            tuple(stored.created for stored in said),
        ),
        of_sample(sample, said) if sample is not None else (),
    )


def _sample(place: LabPlace) -> None:
    known = {sample.id: sample for sample in samples()}
    place.sample = place.sample if place.sample in known else next(iter(known), "")
    seed(_SAMPLE, place.sample)
    st.selectbox(
        "Sample",
        list(known),
        key=_SAMPLE,
        format_func=lambda id_: known[id_].title,
        label_visibility="collapsed",
        on_change=_to_sample,
    )
    if not place.sample:
        return
    taken = from_sample(known[place.sample])
    questions = tuple(
        RecallQuestion(q.text, q.expected, q.evidence, q.category) for q in taken.questions
    )
    place.take(Subject(SAMPLE, place.sample, taken.title, taken.messages), questions)


def _file(page: PageState, engine: Engine, place: LabPlace) -> None:
    file = st.file_uploader(
        "Drop a conversation file",
        key=_FILE,
        help="LlamaIndex, OpenAI, LangChain, ChatGPT, Claude, ShareGPT, LoCoMo, LongMemEval, "
        'CSV, or lines of "Name: text". It is read, not stored.',
    )
    if file is not None and (place.dropped is None or place.dropped.file != file.file_id):
        place.dropped = None
        place.leave()
        place.dropped = read(file)
        place.number = place.dropped.chosen
    if place.dropped is not None and file is not None and place.number != place.dropped.chosen:
        place.dropped = _turned(place.dropped, file, place.number)
    dropped = place.dropped
    if dropped is None:
        place.leave()
        st.caption("The file is read and shown to you first; nothing is stored.")
        return
    _told(dropped)
    if file is not None and len(dropped.preview.conversations) > 1:
        _which(dropped)
    if dropped.every:
        told = dropped.preview
        place.take(Subject(FILE, f"{told.fingerprint}-all", told.name, (), parts=dropped.every), ())
        return
    one = dropped.conversation
    place.take(
        Subject(
            FILE,
            f"{dropped.preview.fingerprint}-{dropped.number}",
            one.title,
            one.messages,
            one.times,
        ),
        one.questions,
    )
    before = imported_before(engine.sessions(page.user), conversation=one.fingerprint)
    if before:
        st.caption(problems.plain(f"Kept already as the session “{before[0].title}”."))
    elif st.button("Keep it as a session too", key="lab-store"):
        _store(page, engine, place, dropped)


def _turned(dropped: Dropped, file: Any, number: int) -> Dropped:
    """Read another conversation of a file, or all that have questions."""
    data = file.getvalue()
    if number != ALL:
        one = nth(data, file.name, number)
        return replace(dropped, number=number, conversation=one, every=())
    with bar("Reading the conversations") as move:
        every = conversations(BytesIO(data), name=file.name, progress=move)
        return replace(dropped, every=tuple(one for one in every if one.questions))


def _told(dropped: Dropped) -> None:
    view = incoming_file(dropped.preview)
    asked = dropped.preview.questions
    st.text(f"{view.headline}, {plural(asked, 'recall question')}")
    if view.notices:
        with st.expander(f"Changed or left out: {len(view.notices):,}"):
            for notice in view.notices[:_NOTICES]:
                st.text(notice)
            if len(view.notices) > _NOTICES:
                st.caption(f"and {len(view.notices) - _NOTICES:,} more")


def _which(dropped: Dropped) -> None:
    rows = dropped.preview.conversations
    several = sum(row.questions > 0 for row in rows) > 1
    seed(_NUMBER, dropped.chosen)
    st.selectbox(
        "Which conversation",
        [*([ALL] if several else []), *range(len(rows))],
        key=_NUMBER,
        format_func=lambda n: (
            f"All that have questions, together · {dropped.preview.questions:,} questions"
            if n == ALL
            else f"{n + 1}. {excerpt(rows[n].title, 60)} · {rows[n].messages:,} messages · "
            f"{rows[n].questions:,} questions"
        ),
        on_change=_to_number,
    )


def _store(page: PageState, engine: Engine, place: LabPlace, dropped: Dropped) -> None:
    """Store the conversation and open it, so that a setting can be applied to it."""
    key = SessionKey(page.user, new_id())
    with bar("Keeping it as a session") as move:
        store_conversation(
            dropped.conversation,
            store=engine.store,
            key=key,
            counter=TokenCounter(),
            file=dropped.preview.fingerprint,
            progress=move,
        )
    engine.index_soon(page.user)
    sessions.open_session(page, engine, engine.store.session(key))
    place.told = "Kept as a session and opened; what you apply goes to it."
    st.rerun()


def _to_source() -> None:
    place_of(mine()).source = str(value_of(_SOURCE) or SESSION)


def _to_sample() -> None:
    place_of(mine()).sample = str(value_of(_SAMPLE) or "")


def _to_number() -> None:
    place_of(mine()).number = int(value_of(_NUMBER))


def _try_sample() -> None:
    place_of(mine()).source = SAMPLE
