"""A sample while it is played in, and afterwards the questions that ask for its facts."""

from __future__ import annotations

import streamlit as st

from memory_core.samples import ABSENT, Question
from ui import conversation, sessions
from ui.player import samples
from ui.problems import caught
from ui.state import SENT, PageState, keyed, mine, value_of

_QUESTIONS = "sample-question"
LOOK_IN = 0.1  # seconds between two slices of playing


@st.fragment(run_every=LOOK_IN, key="playing")
def draw_progress() -> None:
    """Play some turns and draw how far it is; when it is over, the whole page follows."""
    page = mine()
    player, chat = page.player, page.chat
    if player is None or chat is None:
        st.rerun()
    with caught(page.fail, "playing the sample"):
        player.play(chat)
    if player.done or page.error is not None:
        _finish(page)
        st.rerun()
    said = player.sample.turns[player.played - 1].user
    st.progress(player.played / player.total, f"Turn {player.played} of {player.total}")
    st.text(said if len(said) <= 160 else f"{said[:160]}…")
    st.button("Stop", key="play-stop", icon=":material/stop_circle:", on_click=stop)


def stop() -> None:
    """Stop playing; what is in stays in."""
    _finish(mine())


def draw_questions(page: PageState) -> None:
    """Draw the recall questions of the sample this session was played from."""
    sample_id = sessions.sample_of(page.info)
    sample = next((s for s in samples() if s.id == sample_id), None) if sample_id else None
    if sample is None or not sample.questions:
        return
    by_text = {question.question: question for question in sample.questions}
    st.selectbox(
        "Ask for a planted fact",
        list(by_text),
        index=None,
        key=keyed(page, _QUESTIONS),
        format_func=lambda text: f"{text}  ({_evidence(by_text[text])})",
        placeholder=f"{len(by_text)} recall questions with their evidence",
        label_visibility="collapsed",
        on_change=_ask,
    )


def _evidence(question: Question) -> str:
    if question.kind == ABSENT:
        return "never said"
    turns = ", ".join(map(str, question.evidence))
    return f"turn {turns}: {question.answer}"


def _ask() -> None:
    page = mine()
    text = value_of(keyed(page, _QUESTIONS))
    if text:
        conversation.send(page, str(text))


def _finish(page: PageState) -> None:
    page.player, page.scene, page.showing = None, None, SENT
    page.epoch += 1
