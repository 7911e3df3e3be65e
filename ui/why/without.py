"""The counterfactual: leave the chosen thing out, or change its words, and plan the turn again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from memory_core.errors import MemoryInspectorError
from memory_core.fate import MESSAGE
from memory_core.lab.without import KINDS, Edit, answer
from memory_core.models.build import build_llm
from memory_core.native.as_if import AsIf
from ui import problems, resources, sessions
from ui.spans_html import prompt_html
from ui.state import PageState
from ui.time_travel.place import Place
from ui.view_models.prompt import prompt_view
from ui.view_models.whatif import what_if
from ui.view_models.why import whole
from ui.why.asking import Asking, Tried

if TYPE_CHECKING:
    from memory_core.lab.without import Counterfactual

_OUT, _OTHER = "leave it out", "other words"
_ROOM = 2_500  # characters of each prompt that are drawn
_NAMED = 6  # moves named


def draw(page: PageState, asking: Asking, place: Place) -> None:
    """Draw the form and, once it was sent, both prompts and both answers."""
    st.subheader("What if it had not been there?")
    if asking.kind not in KINDS:
        st.caption("A message, a memory, a key fact or a summary can be left out; choose one.")
        return
    st.caption(
        f"Turn {place.turn} is planned again without this {asking.kind}, then answered by the "
        "session's model. Nothing of it is stored."
    )
    with st.form("why-without", border=False):
        how = st.segmented_control(
            "How", [_OUT, _OTHER], default=_OUT, required=True, key="without-how"
        )
        text = st.text_area(
            "Other words",
            value=whole(
                asking.chronicle.ledger, asking.kind, asking.item, asking.chronicle.message
            ),
            key=f"without-text-{asking.kind}-{asking.item}",
            help="Used when “other words” is chosen.",
        )
        sent = st.form_submit_button("Replay the turn", icon=":material/replay:")
    engine = resources.engine()
    if sent and engine is not None:
        asking.tried = None
        with problems.guarded("the counterfactual"), st.spinner("Replaying the turn"):
            edit = Edit(asking.kind, asking.item, text if how == _OTHER else None)
            found = asking.without(place.turn, edit, engine.embedder)
            asking.tried = Tried(place.turn, found)
            asking.tried = Tried(place.turn, found, _answers(page, found))
    tried = asking.tried
    if tried is not None and tried.turn == place.turn:
        with problems.guarded("the counterfactual"):
            _result(tried, asking)


def _answers(page: PageState, found: Counterfactual | AsIf) -> tuple[str, str] | None:
    """Return what the model says to both prompts; a model that fails is told and costs no more."""
    try:
        llm = build_llm(page.model, key=sessions.key_for(page.model, page.api_key))
        before = answer(llm, found.before.assembly, page.model)
        return before, answer(llm, found.after.assembly, page.model)
    except MemoryInspectorError as exc:
        problems.show(exc)
        return None


def _result(tried: Tried, asking: Asking) -> None:
    before, after = tried.found.before.assembly, tried.found.after.assembly
    difference = what_if(before, after, asking.chronicle.message)
    st.markdown(f"**Turn {tried.turn}, the difference** · {difference.headline}")
    lines = [
        f"{sign} {move.label}: {' '.join(move.text.split())}"
        for sign, moves in (("+", difference.newly_in), ("-", difference.newly_out))
        for move in moves[:_NAMED]
    ]
    if lines:
        st.code("\n".join(lines), language="diff", wrap_lines=True)
    elif before.messages == after.messages:
        st.caption("The prompt is the same without it: it had no part in this turn.")
    found = tried.found
    if (
        asking.kind == MESSAGE
        and not isinstance(found, AsIf)
        and found.before.layers.summary.covers
    ):
        st.caption("The summary stays as it was written; it may still tell of it.")
    _sides(tried)


def _sides(tried: Tried) -> None:
    names = ("As it was", "As it would be")
    found = tried.found
    if tried.answers is not None:
        for side, name, said in zip(st.columns(2), names, tried.answers, strict=True):
            with side:
                st.markdown(f"**Answer** · {name.lower()}")
                st.code(said or "(nothing)", language=None, wrap_lines=True)
    for side, name, turn in zip(st.columns(2), names, (found.before, found.after), strict=True):
        with side, st.container(border=True):
            st.markdown(f"**{name}** · {turn.assembly.tokens:,} tokens")
            st.html(prompt_html(prompt_view(turn.assembly, room=_ROOM)))
