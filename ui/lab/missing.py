"""The chosen cell: its figures, and the questions it misses, each with the reason on demand."""

from __future__ import annotations

import json

import streamlit as st

from memory_core.lab.cells import Cell
from memory_core.lab.missed import why_missed
from memory_core.lab.report import plain
from memory_core.lab.sweep import LAYERED, TUTORIAL
from memory_core.lab.table import SweepResult
from memory_core.models.catalogue import OPENAI, Price, price
from memory_core.whynot import WhyNot
from ui.lab.place import LabPlace, place_of
from ui.state import PageState, mine
from ui.time_travel.place import Asked, Place, link_to
from ui.view_models.lab import Miss, Piece, cell_line, misses
from ui.view_models.text import plural
from ui.why.gates import route_html

_MOST = 20  # questions shown
_OTHERS = {
    TUTORIAL: "Neither among the newest messages that fit the token limit, nor among the top_k "
    "most similar. This planner knows no other way into the prompt.",
}
_PLAYED = (
    "This memory was played for real: when the question was asked, its prompt held neither the "
    "message nor, word for word, its text."
)
_MOST_QUESTION = 500  # characters of one in a link
_HEIGHT = 560  # pixels


def draw(page: PageState, place: LabPlace) -> None:
    """Draw the chosen cell."""
    result = place.result
    if result is None or place.chosen is None:
        return
    cell = result.cell(*place.chosen)
    x, y = plain(result.x.values[cell.x]), plain(result.y.values[cell.y])
    st.subheader("The cell's misses")
    st.text(f"{result.x.title} {x}, {result.y.title} {y}")
    st.caption(cell_line(result, cell, price_of(page)))
    found = misses(result, cell, place.said)
    if not found:
        st.success("No question misses any of its evidence here.", icon=":material/check:")
        return
    st.markdown(f"**{plural(len(found), 'question')}** of {len(result.questions):,} miss evidence")
    with st.container(height=_HEIGHT, border=False):
        for miss in found[:_MOST]:
            _miss(page, place, cell, miss)
        if len(found) > _MOST:
            st.caption(f"and {len(found) - _MOST:,} more")


def price_of(page: PageState) -> Price | None:
    """Return the price of the open session's model, ``None`` where it costs nothing we know."""
    return price(page.model.model) if page.model.kind == OPENAI else None


def _miss(page: PageState, place: LabPlace, cell: Cell, miss: Miss) -> None:
    with st.container(border=True, gap="small"):
        st.text(miss.question)
        st.caption(miss.held)
        if miss.expected:
            st.text(f"expected: {miss.expected}")
        for piece in miss.pieces:
            _piece(page, place, cell, miss, piece)


def _piece(page: PageState, place: LabPlace, cell: Cell, miss: Miss, piece: Piece) -> None:
    who = f" {piece.speaker}: {piece.text}" if piece.speaker else ""
    told = f" ({piece.told})" if piece.told else ""
    st.text(f"✗ message {piece.message + 1}{told}{who}")
    asked = (miss.number, piece.message)
    st.button(
        "Why not?",
        key=f"lab-why-{miss.number}-{piece.message}",
        type="tertiary",
        icon=":material/help:",
        on_click=_ask,
        args=asked,
    )
    if place.asked == asked and place.result is not None:
        _why(page, place, place.result, cell)


def _why(page: PageState, place: LabPlace, result: SweepResult, cell: Cell) -> None:
    strategy = result.point(cell).strategy
    if strategy != LAYERED:
        st.caption(_OTHERS.get(strategy, _PLAYED))
        return
    found = _answer(place, result, cell)
    if found is None:
        st.caption("This sweep was opened again without its conversation; run it anew to ask why.")
        return
    st.text(found.sentence)
    for route in found.routes:
        st.html(route_html(route))
    link = why_link(page, place, result, cell)
    if link is None:
        st.caption("Keep the conversation as a session and open it to see its life turn by turn.")
    else:
        st.page_link(
            "pages/2_Why.py",
            label="Its whole life, and what would let it in",
            icon=":material/arrow_forward:",
            query_params=link,
            help="Asked of this session's real next prompt, with its summary, state and all "
            "memories, under the settings of this cell.",
        )


def why_link(
    page: PageState, place: LabPlace, result: SweepResult, cell: Cell
) -> dict[str, str] | None:
    """Return the address of a miss on the page Why?, ``None`` where no open session holds it."""
    chat, asked = page.chat, place.asked
    if chat is None or asked is None:
        return None
    number, index = asked
    said = place.said(number)
    if not said or tuple(stored.message for stored in chat.messages[: len(said)]) != said:
        return None  # the open session is another conversation
    stored = chat.messages[index]
    now = page.settings.to_json()
    then = result.point(cell).settings.to_json()
    changed = {name: value for name, value in then.items() if value != now[name]}
    question = result.questions[number].text[:_MOST_QUESTION]
    knobs = json.dumps(changed) if changed else ""
    return link_to(Place(chat.key.session, chat.turns, asked=Asked(stored.id, question, knobs)))


def _answer(place: LabPlace, result: SweepResult, cell: Cell) -> WhyNot | None:
    """Return the reason, worked out once for each miss that is looked at."""
    if place.asked is None:
        return None
    number, message = place.asked
    held = place.asked_of(number)
    if held is None:
        return None
    key = (place.asked, cell.x, cell.y)
    if place.why is None or place.why[0] != key:
        with st.spinner("Planning the question's prompt again"):
            found = why_missed(held[0], result.point(cell), held[1], message)
        place.why = (key, found)
    return place.why[1]


def _ask(number: int, message: int) -> None:
    place = place_of(mine())
    place.asked = None if place.asked == (number, message) else (number, message)
