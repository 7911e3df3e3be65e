"""Where a visitor stands in a session's past, and the link that leads others there."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import streamlit as st

from memory_core.errors import InvalidInput, NotFound
from ui import sessions
from ui.state import PageState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from memory_core.engine import Engine

_SESSION, _TURN = "session", "turn"
_MESSAGE, _QUESTION, _KNOBS = "message", "question", "knobs"
_MOST = {_MESSAGE: 200, _QUESTION: 500, _KNOBS: 4_000}  # characters


@dataclass(frozen=True)
class Asked:
    """What a link asks about on the page Why?: a message by its id, in the prompt of a question.

    ``knobs`` is a JSON object of settings that hold instead of the session's. All may be empty.
    """

    message: str = ""
    question: str = ""
    knobs: str = ""

    def parameters(self) -> dict[str, str]:
        """Return the query parameters of what is asked."""
        given = {_MESSAGE: self.message, _QUESTION: self.question, _KNOBS: self.knobs}
        return {name: text for name, text in given.items() if text}


@dataclass(frozen=True)
class Place:
    """A turn of a session and the turn it is compared with.

    ``against`` 0 stands for the turn before. ``playing`` goes on a turn at a time. ``asked`` is
    what the page Why? was linked to with.
    """

    session: str
    turn: int
    against: int = 0
    playing: bool = False
    panel: str = "Buffer"
    asked: Asked = field(default_factory=Asked)

    @property
    def other(self) -> int:
        """The number of the turn compared with, 0: there is none."""
        return self.against or self.turn - 1


def place_of(page: PageState) -> Place | None:
    """Return where the visitor stands in the open session: at first its newest turn."""
    chat = page.chat
    if chat is None or not chat.turns:
        return None
    place = page.place
    if place is None or place.session != chat.key.session:
        place = Place(chat.key.session, chat.turns)
    last = chat.turns
    kept = replace(
        place, turn=min(max(1, place.turn), last), against=min(max(0, place.against), last)
    )
    page.place = kept
    return kept


def go(page: PageState, turn: int, *, playing: bool = False) -> None:
    """Stand at another turn of the open session, and let the page's address say so.

    An address that named the old turn would lead back there in the next run.
    """
    place, page.lost = place_of(page), None
    if place is not None:
        page.place = replace(place, turn=turn, playing=playing)
        moved = place_of(page)
        if moved is not None and st.query_params.to_dict():
            keep_link(moved)


def follow_link(page: PageState, engine: Engine) -> None:
    """Open the session and the turn that the page's address names.

    Raises :class:`NotFound` and :class:`InvalidInput` for what is not there or is no turn.
    """
    given = st.query_params.to_dict()
    place = place_of(page)
    wanted = given.get(_SESSION, "")
    if not wanted or (place is not None and given in (parameters(place), link_to(place))):
        return
    st.query_params.clear()
    turn, asked = _turn(given), _asked(given)
    if page.info is None or wanted != page.info.key.session:
        found = [i for i in engine.sessions(page.user) if i.key.session == wanted]
        if not found:
            raise NotFound("The link's session is not among yours.")
        sessions.open_session(page, engine, found[0])
    last = page.chat.turns if page.chat is not None else 0
    if turn > last:
        raise NotFound(
            f"This session has no turn {turn:,}; its newest is turn {last:,}.",
            next_step="Choose one of its turns here.",
        )
    go(page, turn or last)
    if page.place is not None:
        page.place = replace(page.place, asked=asked)


def parameters(place: Place) -> dict[str, str]:
    """Return the query parameters of a place."""
    return {_SESSION: place.session, _TURN: str(place.turn)}


def link_to(place: Place) -> dict[str, str]:
    """Return the query parameters of a place with what is asked there."""
    return parameters(place) | place.asked.parameters()


def keep_link(place: Place, *, asked: bool = False) -> None:
    """Let the page's address name this place, on the page Why? with what is asked there."""
    wanted = link_to(place) if asked else parameters(place)
    if st.query_params.to_dict() != wanted:
        st.query_params.from_dict(wanted)


def _asked(given: Mapping[str, str]) -> Asked:
    texts = {name: given.get(name, "") for name in _MOST}
    for name, text in texts.items():
        if len(text) > _MOST[name]:
            raise InvalidInput(f"The link's {name} is longer than {_MOST[name]:,} characters.")
    return Asked(texts[_MESSAGE], texts[_QUESTION].strip(), texts[_KNOBS])


def _turn(given: Mapping[str, str]) -> int:
    text = given.get(_TURN, "")
    if not text:
        return 0
    if not (text.isascii() and text.isdigit() and len(text) < 9 and int(text) > 0):
        raise InvalidInput(f"The link's turn is no number of a turn: {text[:40]!r}.")
    return int(text)
