"""The recall questions: those that came along, proposed ones to accept, and one's own."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from memory_core.errors import InvalidInput
from memory_core.questions import propose_questions
from ui.lab.place import LabPlace, place_of
from ui.state import mine, seed, value_of
from ui.view_models.lab_questions import (
    EXPECTED,
    FROM,
    MESSAGES,
    MOST_TEXT,
    QUESTION,
    USE,
    added,
    edited,
    found,
    label,
    question_rows,
    tally,
    written,
)

_TEXT, _ANSWER, _FIND, _EVIDENCE = "lab-text", "lab-answer", "lab-find", "lab-evidence"
_HEIGHT = 260  # pixels


def draw(place: LabPlace) -> None:
    """Draw the table, what proposes questions, and the form for one's own."""
    st.markdown("**Recall questions**")
    if place.questions:
        st.caption(tally(place.questions))
        _table(place)
    else:
        st.caption(
            "None came along. Let rules find the facts that are stated and ask for them, "
            "or write your own."
        )
    with st.container(horizontal=True):
        st.button("Propose", key="lab-propose", icon=":material/lightbulb:", on_click=_propose)
        if any(not question.accepted for question in place.questions):
            st.button(
                "Accept all",
                key="lab-accept",
                type="primary",
                icon=":material/done_all:",
                on_click=_accept,
            )
    with st.expander("Write a question", key="lab-write"):
        _write(place)


def _table(place: LabPlace) -> None:
    key = f"lab-table-{place.version}"
    if value_of(key) is None and place.table != place.questions:
        place.ask(place.questions)  # the page was left and its widgets with it
        key = f"lab-table-{place.version}"
    st.data_editor(
        question_rows(place.table),
        key=key,
        hide_index=True,
        height=min(_HEIGHT, 38 + 35 * len(place.table)),
        disabled=[FROM],
        on_change=_edited,
        args=(key,),
        column_config={
            USE: st.column_config.CheckboxColumn(USE, width=62),
            QUESTION: st.column_config.TextColumn(QUESTION, width="medium", max_chars=MOST_TEXT),
            EXPECTED: st.column_config.TextColumn(EXPECTED, width="small", max_chars=MOST_TEXT),
            MESSAGES: st.column_config.TextColumn(
                MESSAGES, width="small", help="The messages that tell it, counted from 1."
            ),
        },
        alt="Recall questions with the messages that hold their answers",
    )


def _edited(key: str) -> None:
    place, state = place_of(mine()), value_of(key)
    if state is None or place.subject is None:
        return
    edits = state["edited_rows"]
    questions, wrong = edited(place.table, edits, len(place.subject.messages))
    place.edit(questions)
    if wrong:
        place.error = InvalidInput(" ".join(wrong), next_step="The row is as it was.")
        place.ask(questions)


def _propose() -> None:
    place = place_of(mine())
    if place.subject is None:
        return
    before = len(place.questions)
    place.ask(added(place.questions, propose_questions(place.subject.messages)))
    if len(place.questions) == before:
        place.told = "The rules found no further stated fact. They read English; write your own."


def _accept() -> None:
    place = place_of(mine())
    place.ask(tuple(replace(question, accepted=True) for question in place.questions))


def _write(place: LabPlace) -> None:
    if place.subject is None:
        return
    messages = place.subject.messages
    st.text_input("Question", key=_TEXT, max_chars=MOST_TEXT, placeholder="What can't I eat?")
    st.text_input("Expected in the answer", key=_ANSWER, max_chars=MOST_TEXT, placeholder="nuts")
    st.text_input("Find the messages that tell it", key=_FIND, placeholder="nuts")
    chosen = [i for i in value_of(_EVIDENCE, []) if i < len(messages)]
    seed(_EVIDENCE, chosen)
    st.multiselect(
        "Evidence",
        found(messages, str(value_of(_FIND) or ""), chosen),
        key=_EVIDENCE,
        format_func=lambda index: label(messages, index),
        placeholder="Click the messages",
    )
    st.button("Add the question", key="lab-add", icon=":material/add:", on_click=_add)


def _add() -> None:
    place = place_of(mine())
    try:
        question = written(
            str(value_of(_TEXT) or ""), str(value_of(_ANSWER) or ""), value_of(_EVIDENCE, [])
        )
    except InvalidInput as exc:
        place.error = exc
        return
    place.ask(added(place.questions, [question]))
    for key, empty in ((_TEXT, ""), (_ANSWER, ""), (_FIND, ""), (_EVIDENCE, [])):
        seed(key, empty)
