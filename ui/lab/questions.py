"""The recall questions: those that came along, proposed ones to accept, and one's own."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import streamlit as st

from memory_core.errors import InvalidInput, MemoryInspectorError
from memory_core.questions import MODEL, RULE, propose_questions
from ui import sessions
from ui.lab.place import LabPlace, place_of
from ui.lab.proposing import Ask, Proposing
from ui.state import PageState, mine, seed, value_of
from ui.view_models.lab import model_name
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
from ui.view_models.text import excerpt, plural

if TYPE_CHECKING:
    from memory_core.proposing import Proposed

LOOK_IN = 0.5  # seconds between two looks at a model that reads
_TEXT, _ANSWER, _FIND, _EVIDENCE = "lab-text", "lab-answer", "lab-find", "lab-evidence"
_BY = "lab-propose-by"
_WAYS = {RULE: "by a rule", MODEL: "by the chosen model"}
_REASONS = 3  # of what a model's reply could not be used for
_HEIGHT = 260  # pixels


def settle(place: LabPlace) -> None:
    """Take over what a model proposed, or why it did not."""
    proposing = place.proposing
    if proposing is None or not proposing.done:
        return
    place.proposing = None
    place.error = proposing.error
    found = proposing.proposed
    if found is not None:
        place.error = found.error
        new = place.propose(proposing.subject, found.questions)
        place.told = _outcome(found, new) if new or found.error is None else ""


def draw(page: PageState, place: LabPlace) -> None:
    """Draw the table, what proposes questions, and the form for one's own."""
    st.markdown("**Recall questions**")
    if place.subject is not None and place.subject.parts:
        st.caption(
            f"{plural(place.to_ask, 'question')} of "
            f"{plural(len(place.subject.parts), 'conversation')}, as they came along. Choose one "
            "conversation to edit its questions."
        )
        return
    if place.questions:
        st.caption(tally(place.questions))
        _table(place)
    else:
        st.caption(
            "None came along. Let rules find the facts that are stated and ask for them, "
            "or write your own."
        )
    if place.proposing is not None:
        draw_proposing()
        return
    seed(_BY, place.propose_by)
    st.segmented_control(
        "Propose questions",
        list(_WAYS),
        key=_BY,
        required=True,
        format_func=_WAYS.__getitem__,
        on_change=_to_way,
        help="Facts that the conversation states become questions. They count once you accept "
        "them.",
    )
    if place.propose_by == MODEL:
        st.text(f"{model_name(page.model)} is sent the conversation, part by part.")
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


@st.fragment(run_every=LOOK_IN, key="lab-proposing")
def draw_proposing() -> None:
    """Draw how far the model has read; when it is over the page follows."""
    proposing = place_of(mine()).proposing
    if proposing is None or proposing.done:
        st.rerun()
    st.progress(proposing.share, proposing.words)
    st.button(
        "Stop", key="lab-propose-stop", icon=":material/stop_circle:", on_click=proposing.stop
    )


def _to_way() -> None:
    place_of(mine()).propose_by = str(value_of(_BY) or RULE)


def _propose() -> None:
    page = mine()
    place = place_of(page)
    if place.subject is None or place.proposing is not None:
        return
    if place.propose_by == MODEL:
        try:
            place.proposing = Proposing(place.subject, _asks(page, place))
        except MemoryInspectorError as exc:
            place.error = exc
        return
    found = tuple(propose_questions(place.subject.messages))
    if not place.propose(place.subject, found):
        place.told = "The rules found no further stated fact. They read English; write your own."


def _asks(page: PageState, place: LabPlace) -> Ask:
    """Return what asks the chosen model; raise what keeps the model from being used."""
    from memory_core.models.build import build_llm
    from memory_core.proposing import propose_by_model
    from memory_core.tokens import TokenCounter, encoding_for

    choice = page.model
    llm = build_llm(choice, key=sessions.key_for(choice, page.api_key))
    said = place.subject.messages if place.subject is not None else ()
    counter = TokenCounter(encoding_for(choice.model))
    return lambda progress, stopped: propose_by_model(
        said, llm, choice=choice, counter=counter, progress=progress, stopped=stopped
    )


def _outcome(found: Proposed, new: int) -> str:
    """Say what a model's proposals came to, and why not all of them could be used."""
    told = f"The model proposed {plural(new, 'new question')}; accept those you want to ask."
    if found.asked < found.stretches:
        told += f" It read {found.asked:,} of {plural(found.stretches, 'part')}."
    if found.rejected:
        shown = "; ".join(excerpt(reason, 160) for reason in found.rejected[:_REASONS])
        told += f" Not used: {len(found.rejected):,} ({shown})."
    return told


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
