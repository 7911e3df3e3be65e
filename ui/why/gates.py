"""Why not: every gate on the way into one prompt, and the smallest change, one click away."""

from __future__ import annotations

from html import escape

import streamlit as st

from memory_core.errors import MemoryInspectorError
from memory_core.gates import Route
from memory_core.smallest import SettingChange
from memory_core.strategies import LAYERED
from memory_core.whynot import WhyNot
from ui import problems, resources, sessions
from ui.palette import GREEN, GREY, RED
from ui.state import NEXT, PageState, mine, seed, value_of
from ui.time_travel.place import Place, go
from ui.view_models.why import gates, mark
from ui.why.asking import Asking

_TURN, _QUESTION = "why-turn", "why-question"
_COLOURS = {"✓": GREEN, "✗": RED, "?": GREY}
_MOST = 500  # characters of a question


def draw(page: PageState, asking: Asking, place: Place) -> None:
    """Draw the question, the gates and the changes that would let the thing in."""
    st.subheader("Why not?")
    _ask(asking, place)
    engine = resources.engine()
    if engine is None:
        return
    with problems.guarded("why not"):
        settings = asking.settings(page.settings)
        found = asking.why(place.turn, settings=settings, embedder=engine.embedder)
        where = "the next prompt" if asking.question else f"the prompt of turn {place.turn}"
        verdict = ":green[**✓ in**]" if found.place else ":red[**✗ not in**]"
        st.markdown(f"{verdict} {where}")
        if asking.question and asking.changed:
            _other_settings(asking)
        st.text(found.sentence)
        apart = asking.apart(place.turn, found)
        if apart:
            st.caption(apart)
        for route in found.routes:
            st.html(route_html(route))
        _changes(page, asking, place, found)


def route_html(route: Route) -> str:
    """Return one way into the prompt as a row of gates, the first that stopped it marked."""
    cells = []
    for check, (sign, name, reason) in zip(route.checks, gates(route), strict=True):
        first = check is route.stopped
        frame = f"2px solid {_COLOURS[sign]}" if first else "1px solid #8C8C8C66"
        told = f"<br><small>{escape(reason)}</small>" if reason and reason != name else ""
        cells.append(
            f'<div style="border:{frame};border-radius:.4em;padding:.25em .5em;max-width:15em">'
            f'<b style="color:{_COLOURS[sign]}">{mark(check)}</b> {escape(name)}{told}</div>'
        )
    return (
        f'<div role="group" aria-label="Gates of {escape(route.name)}" '
        'style="display:flex;flex-wrap:wrap;gap:.35em;align-items:stretch;font-size:.85rem">'
        f'<div style="width:100%">by {escape(route.name)}</div>{"".join(cells)}</div>'
    )


def _ask(asking: Asking, place: Place) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if not asking.question:
            seed(_TURN, place.turn)
            st.number_input(
                "At turn", 1, asking.chronicle.turns, key=_TURN, width=130, on_change=_to_turn
            )
        seed(_QUESTION, asking.question)
        st.text_input(
            "or for a question, in the next prompt",
            key=_QUESTION,
            placeholder="What can't I eat?",
            max_chars=_MOST,
            on_change=_to_question,
        )


def _changes(page: PageState, asking: Asking, place: Place, found: WhyNot) -> None:
    if found.place:
        return
    if not found.changes:
        st.caption(_none(page, asking))
        return
    st.markdown("**Enough would be** one of these; a click tries it in the Playground")
    with st.container(horizontal=True):
        for at, change in enumerate(found.changes):
            if st.button(
                change.words.replace("_", "\\_"),
                key=f"why-apply-{change.setting}",
                icon=":material/science:",
                type="primary" if not at else "secondary",
                help=f"{change.less} would not be enough.",
            ):
                _apply(page, asking, place, change)


def _none(page: PageState, asking: Asking) -> str:
    """Say that no change is offered, and of a strategy of LlamaIndex's why."""
    if page.chat is None or page.chat.setup.strategy == LAYERED:
        return "No single setting lets it in."
    if asking.question:
        return "What would let it in is not explained by the class."
    return "Type a question above: what lets it in the next prompt is asked of the class itself."


def _other_settings(asking: Asking) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        told = ", ".join(f"{name} {value}" for name, value in asking.changed.items())
        st.text(f"under the settings of the link: {told[:_MOST]}")
        st.button("Under the session's own", key="why-own", on_click=_to_own)


def _apply(page: PageState, asking: Asking, place: Place, change: SettingChange) -> None:
    """Try a change in the Playground: its panels then show what it does to the next prompt."""
    engine = resources.engine()
    if engine is None:
        return
    try:
        if page.chat is not None and page.chat.setup.strategy != LAYERED:
            sessions.use_knob(page, engine, change.setting, change.value)
        else:
            sessions.use_settings(page, engine, change.apply(asking.settings(page.settings)))
    except MemoryInspectorError as exc:
        problems.show(exc)
        return
    page.probe = asking.question or asking.chronicle.trace(place.turn).query
    page.showing = NEXT
    page.notice = f"What if {change.words}: the panels show what it does to the next prompt."
    st.switch_page("app.py")


def _to_turn() -> None:
    page = mine()
    go(page, int(value_of(_TURN)))
    if page.asking is not None:
        page.asking.tried = None


def _to_own() -> None:
    asking = mine().asking
    if asking is not None:
        asking.changed = {}


def _to_question() -> None:
    asking = mine().asking
    if asking is not None:
        asking.question = str(value_of(_QUESTION) or "").strip()
