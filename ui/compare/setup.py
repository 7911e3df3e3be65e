"""What is compared and how far: conversation, configurations, mode, and the button that runs it."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

import streamlit as st

from memory_core.errors import MemoryInspectorError
from memory_core.lab.comparison import (
    ABOUT,
    MODES,
    MOST,
    PROMPTS,
    Comparison,
    Configuration,
    checked,
)
from memory_core.models.catalogue import MODEL_KINDS, embedding_from_json, find_key
from memory_core.strategies import BUFFER, Setup, default_setup, setup_from_json
from ui import resources, sessions
from ui.compare import cards
from ui.compare.place import ComparePlace, place_of
from ui.compare.running import Running
from ui.resources import secrets
from ui.state import PageState, mine, seed, value_of
from ui.view_models.compare import long_words, short, unused

if TYPE_CHECKING:
    from memory_core.engine import Engine
    from memory_core.lab.side_by_side import Look
    from memory_core.models.embeddings import Embedder
    from memory_core.stores.protocols import SessionInfo

_MODE = "compare-mode"
LOOK_IN = 0.5  # seconds between two looks at a comparison that runs


def draw(page: PageState, engine: Engine, place: ComparePlace) -> None:
    """Draw the configurations, the mode and the button."""
    if not place.drafts:
        _begin(page, engine, place)
    cards.draw(place, place.conversation)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.button(
            "Add a configuration",
            key="compare-add",
            icon=":material/add:",
            disabled=len(place.drafts) >= MOST,
            help=f"At most {MOST} stand side by side.",
            on_click=_add,
        )
        seed(_MODE, place.mode)
        st.segmented_control(
            "What is asked of a model",
            list(MODES),
            key=_MODE,
            required=True,
            format_func=lambda mode: MODES[mode],
            on_change=_to_mode,
        )
        st.button(
            "Compare",
            key="compare-run",
            type="primary",
            icon=":material/play_arrow:",
            disabled=place.conversation is None or place.running is not None,
            on_click=run,
        )
    st.caption(ABOUT[place.mode])
    turns = len(set(place.conversation.turns)) if place.conversation is not None else 0
    slow = long_words([draft.configuration for draft in place.drafts], turns)
    if slow:
        st.caption(f":material/hourglass_top: {slow}")


@st.fragment(run_every=LOOK_IN, key="compare-running")
def draw_running() -> None:
    """Draw how far the comparison is; when it is over the page follows."""
    running = place_of(mine()).running
    if running is None or running.done:
        st.rerun()
    st.progress(running.share, running.words)
    st.button("Stop", key="compare-stop", icon=":material/stop_circle:", on_click=running.stop)


def settle(place: ComparePlace) -> None:
    """Take over a comparison that is over: its result, or what went wrong."""
    running = place.running
    if running is None or not running.done:
        return
    place.running = None
    place.error = running.error
    if running.result is not None:
        place.show(running.result)
    elif running.stopped:
        place.told = "Stopped. Nothing of it was kept; sessions and memories are as they were."


def run() -> None:
    """Start comparing what stands on the page."""
    page, engine = mine(), resources.engine()
    place = place_of(page)
    if engine is None or place.conversation is None or place.running is not None:
        return
    try:
        place.running = _start(page, engine, place)
    except MemoryInspectorError as exc:
        place.error = exc


def _start(page: PageState, engine: Engine, place: ComparePlace) -> Running | None:
    conversation, mode = place.conversation, place.mode
    if conversation is None:
        return None
    configurations = checked([draft.configuration for draft in place.drafts])
    keys = {k: find_key(k, os.environ, secrets(), page.api_key) for k in MODEL_KINDS}
    embedder = _embedder(page, engine, place)

    def compare(look: Look) -> Comparison:
        from memory_core.lab import side_by_side

        return side_by_side.compare(
            conversation,
            configurations,
            mode=mode,
            engine=engine,
            embedder=embedder,
            keys=keys,
            look=look,
        )

    return Running(compare)


def _begin(page: PageState, engine: Engine, place: ComparePlace) -> None:
    """Put three configurations on the page: as the session is, half the room, another memory."""
    first = _as_is(page, engine, place)
    limit = max(64, first.settings.token_limit // 2)
    half = replace(first, setup=Setup(), settings=first.settings.with_(token_limit=limit))
    buffer = replace(first, setup=default_setup(BUFFER))
    for one in (first, half, buffer):
        names = [draft.configuration.name for draft in place.drafts]
        place.add(replace(one, name=unused(short(one), names)))


def _as_is(page: PageState, engine: Engine, place: ComparePlace) -> Configuration:
    """Return how the session that is compared on is set, for other conversations the open one."""
    info = _other(page, engine, place)
    if info is None:
        setup = page.chat.setup if page.chat is not None else Setup()
        return Configuration("", setup, page.settings, page.model)
    settings, model = sessions.kept_with(info)
    kept = info.settings.get("strategy")
    return Configuration("", setup_from_json(kept) if kept else Setup(), settings, model)


def _embedder(page: PageState, engine: Engine, place: ComparePlace) -> Embedder:
    """Return the embedding model of the session that is compared on, else of the open one."""
    info = _other(page, engine, place)
    if info is not None and info.settings.get("embedding"):
        choice = embedding_from_json(info.settings["embedding"])
        key = find_key(choice.kind, os.environ, secrets(), page.embedding_key)
        return engine.recall_with(choice, key_text=key).embedder
    longterm = page.chat.session.longterm if info is None and page.chat is not None else None
    return longterm.embedder if longterm is not None else engine.embedder


def _other(page: PageState, engine: Engine, place: ComparePlace) -> SessionInfo | None:
    """Return the session that is compared on when it is not the open one."""
    key = place.conversation.key if place.conversation is not None else None
    if key is None or (page.info is not None and page.info.key == key):
        return None
    return engine.store.session(key)


def _add() -> None:
    page, engine = mine(), resources.engine()
    place = place_of(page)
    if engine is None or len(place.drafts) >= MOST:
        return
    try:
        one = _as_is(page, engine, place)
    except MemoryInspectorError as exc:
        place.error = exc
        return
    names = [draft.configuration.name for draft in place.drafts]
    place.add(replace(one, name=unused(short(one), names)))


def _to_mode() -> None:
    place_of(mine()).mode = str(value_of(_MODE) or PROMPTS)
