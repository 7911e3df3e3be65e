"""Which conversation is compared on: one of the user's sessions, a sample, or a file."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import streamlit as st

from memory_core.errors import InvalidInput, MemoryInspectorError
from memory_core.lab.comparison import Conversation, turns_of
from memory_core.lab.inputs import from_sample
from memory_core.messages import Message, repair
from memory_core.questions import RecallQuestion, propose_questions
from memory_core.stores.protocols import SessionInfo, SessionKey
from ui import sessions
from ui.compare.place import FILE, SAMPLE, SESSION, SOURCES, ComparePlace, place_of
from ui.lab.dropping import nth, read
from ui.player import samples
from ui.state import PageState, mine, seed, value_of
from ui.view_models.lab_questions import added, of_sample, written
from ui.view_models.sessions_page import incoming_file
from ui.view_models.text import excerpt, plural

if TYPE_CHECKING:
    from memory_core.engine import Engine

_SOURCE, _SESSION, _SAMPLE = "compare-source", "compare-session", "compare-sample"
_FILE, _NUMBER = "compare-file", "compare-number"
_QUESTION, _ANSWER, _EVIDENCE = "compare-question", "compare-answer", "compare-evidence"
_NOTICES, _MOST_TEXT, _MOST_CHOICES = 20, 2_000, 300


def draw(page: PageState, engine: Engine, place: ComparePlace) -> None:
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
        _session(page, engine, place)
    elif place.source == SAMPLE:
        _sample(place)
    else:
        _file(place)
    if place.conversation is not None:
        _told(place.conversation)
        with st.expander("Recall questions", key="compare-questions"):
            _questions(place, place.conversation)


def listed(page: PageState, engine: Engine) -> dict[str, SessionInfo]:
    """Return the user's sessions that hold a conversation, by id, last used first."""
    return {info.key.session: info for info in engine.sessions(page.user) if info.turns}


def _session(page: PageState, engine: Engine, place: ComparePlace) -> None:
    known = listed(page, engine)
    if not known:
        place.leave()
        st.caption("You have no session with a conversation yet.")
        st.page_link("app.py", label="Open the Playground", icon=":material/play_arrow:")
        return
    if place.session not in known:
        is_open = page.info is not None and page.info.key.session in known
        place.session = page.info.key.session if is_open and page.info else next(iter(known))
    seed(_SESSION, place.session)
    st.selectbox(
        "Session",
        list(known),
        key=_SESSION,
        format_func=lambda id_: _title(known[id_]),
        label_visibility="collapsed",
        on_change=_to_session,
    )
    info = known[place.session]
    key = (SESSION, place.session, info.turns, info.messages)
    if not place.at(key):
        place.take(key, _of_session(engine, info))


def _of_session(engine: Engine, info: SessionInfo) -> Conversation:
    said = engine.store.messages(info.key)
    sample = next((s for s in samples() if s.id == sessions.sample_of(info)), None)
    return Conversation(
        title=info.title,
        messages=tuple(stored.message for stored in said),
        turns=tuple(stored.turn for stored in said),
        questions=of_sample(sample, said) if sample is not None else (),
        times=tuple(stored.created for stored in said),
        key=SessionKey(info.key.user, info.key.session),
    )


def _sample(place: ComparePlace) -> None:
    known = {sample.id: sample for sample in samples()}
    place.sample = place.sample if place.sample in known else next(iter(known), "")
    if not place.sample:
        place.leave()
        st.caption("There are no samples.")
        return
    seed(_SAMPLE, place.sample)
    st.selectbox(
        "Sample",
        list(known),
        key=_SAMPLE,
        format_func=lambda id_: known[id_].title,
        label_visibility="collapsed",
        on_change=_to_sample,
    )
    key = (SAMPLE, place.sample)
    if not place.at(key):
        taken = from_sample(known[place.sample])
        questions = tuple(
            RecallQuestion(q.text, q.expected, q.evidence, q.category) for q in taken.questions
        )
        turns = turns_of(taken.messages)
        place.take(key, Conversation(taken.title, taken.messages, turns, questions))


def _file(place: ComparePlace) -> None:
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
    dropped = place.dropped
    if dropped is None:
        place.leave()
        st.caption("The file is read and shown to you first; nothing is stored.")
        return
    view = incoming_file(dropped.preview)
    st.text(view.headline)
    if view.notices:
        with st.expander(f"Changed or left out: {len(view.notices):,}"):
            for notice in view.notices[:_NOTICES]:
                st.text(notice)
            if len(view.notices) > _NOTICES:
                st.caption(f"and {len(view.notices) - _NOTICES:,} more")
    rows = dropped.preview.conversations
    if file is not None and len(rows) > 1:
        seed(_NUMBER, dropped.number)
        st.selectbox(
            "Which conversation",
            list(range(len(rows))),
            key=_NUMBER,
            format_func=lambda n: (
                f"{n + 1}. {excerpt(rows[n].title, 60)} · {rows[n].messages:,} messages"
            ),
            on_change=_to_number,
        )
    key = (FILE, dropped.preview.fingerprint, dropped.number)
    if not place.at(key):
        one = dropped.conversation
        messages = tuple(repair(message)[0] for message in one.messages)
        place.take(
            key,
            Conversation(
                one.title, messages, turns_of(messages), tuple(one.questions), tuple(one.times)
            ),
        )


def _told(one: Conversation) -> None:
    asked = sum(question.accepted for question in one.questions)
    turns = len(set(one.turns))
    st.caption(
        f"{plural(turns, 'turn')}, {plural(len(one.messages), 'message')}, "
        f"{plural(asked, 'recall question')}"
    )


def _questions(place: ComparePlace, one: Conversation) -> None:
    """Draw the questions with what proposes some, and the form for one's own."""
    for number, question in enumerate(one.questions):
        st.checkbox(
            excerpt(" ".join(question.question.split()), 120).replace("$", "\\$"),
            question.accepted,
            key=f"compare-use-{place.version}-{number}",
            on_change=_use,
            args=(number, f"compare-use-{place.version}-{number}"),
        )
    if not one.questions:
        st.caption("None came along. Let rules find stated facts and ask for them, or write one.")
    st.button("Propose", key="compare-propose", icon=":material/lightbulb:", on_click=_propose)
    st.text_input("Your own question", key=_QUESTION, max_chars=_MOST_TEXT)
    st.text_input("Expected in the answer", key=_ANSWER, max_chars=_MOST_TEXT)
    said = [i for i, m in enumerate(one.messages) if m.text.strip()][-_MOST_CHOICES:]
    st.multiselect(
        "Messages that tell it",
        said,
        key=_EVIDENCE,
        format_func=lambda at: _choice(one.messages[at], one.turns[at]),
        placeholder="Type to find them",
    )
    st.button("Add the question", key="compare-ask", icon=":material/add:", on_click=_add)


def _choice(message: Message, turn: int) -> str:
    line = " ".join(message.text.split())
    return f"turn {turn} {message.name or message.role}: {excerpt(line, 80)}"


def _title(info: SessionInfo) -> str:
    return f"{info.title} · {plural(info.turns, 'turn')} · {info.key.session[:6]}"


def _use(number: int, key: str) -> None:
    place = place_of(mine())
    one = place.conversation
    if one is not None and number < len(one.questions):
        questions = list(one.questions)
        questions[number] = replace(questions[number], accepted=bool(value_of(key)))
        place.ask(tuple(questions))


def _propose() -> None:
    place = place_of(mine())
    one = place.conversation
    if one is None:
        return
    found = [replace(q, accepted=True) for q in propose_questions(one.messages)]
    questions = added(one.questions, found)
    if len(questions) == len(one.questions):
        place.told = "The rules found no further stated fact. They read English; write your own."
    place.version += 1
    place.ask(questions)


def _add() -> None:
    place = place_of(mine())
    one = place.conversation
    if one is None:
        return
    try:
        question = written(
            str(value_of(_QUESTION) or ""), str(value_of(_ANSWER) or ""), value_of(_EVIDENCE, [])
        )
    except InvalidInput as exc:
        place.error = exc
        return
    place.version += 1
    place.ask(added(one.questions, [question]))
    for key, empty in ((_QUESTION, ""), (_ANSWER, ""), (_EVIDENCE, [])):
        seed(key, empty)


def _to_source() -> None:
    place_of(mine()).source = str(value_of(_SOURCE) or SESSION)


def _to_session() -> None:
    place_of(mine()).session = str(value_of(_SESSION) or "")


def _to_sample() -> None:
    place_of(mine()).sample = str(value_of(_SAMPLE) or "")


def _to_number() -> None:
    place, file, number = place_of(mine()), value_of(_FILE), int(value_of(_NUMBER))
    if place.dropped is None or file is None:
        return
    try:
        one = nth(file.getvalue(), file.name, number)
    except MemoryInspectorError as exc:
        place.error = exc
    else:
        place.dropped = replace(place.dropped, number=number, conversation=one)
