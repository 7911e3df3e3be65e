"""From a page's frame to a page in use: wait for the engine, open a session, send what waits.

Every page calls :func:`prepare` after its frame's configuration. It never blocks: while the
engine loads it returns ``None`` and :func:`wait` looks again until the page can be drawn whole.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import streamlit as st

from memory_core.errors import InvalidInput, MemoryInspectorError
from ui import conversation, problems, resources, sessions
from ui.sharing import link_parameters, settings_from_link
from ui.state import PageState

if TYPE_CHECKING:
    from memory_core.engine import Engine

LOOK_IN = 1.0  # seconds between two looks whether the engine is there
_STAY = 0.5  # seconds of such a look: it ends as soon as the engine is open


def prepare(page: PageState) -> Engine | None:
    """Return the engine with a session open, ``None`` while there is none."""
    with problems.caught(page.fail, "opening the engine"):
        engine = resources.engine()
        if engine is None:
            return None
        if page.chat is None:
            sessions.open_newest(page, engine)
            engine.index_soon(page.user)  # what another program left, as an import does
        _follow_link(page, engine)
        conversation.settle(page)
        if page.outbox and page.error is None:
            conversation.send(page, page.outbox)
        return engine
    return None


def wait(page: PageState) -> None:
    """Start the engine if need be, and draw what there is to see meanwhile."""
    if page.error is not None and page.chat is None:
        problems.show(page.error)
        st.button("Try again", key="engine-again", on_click=_again, args=(page,))
        return
    resources.loader().start()
    _look_again()


@st.fragment(run_every=LOOK_IN, key="engine")
def _look_again() -> None:
    st.caption(
        ":material/hourglass_top: The engine is loading (LlamaIndex and Chroma, a few seconds). "
        "What you type meanwhile is kept and answered."
    )
    with suppress(TimeoutError, MemoryInspectorError):
        resources.loader().wait(_STAY)
    if resources.loader().settled:
        st.rerun()


def _again(page: PageState) -> None:
    page.error = None
    resources.loader().again()


def _follow_link(page: PageState, engine: Engine) -> None:
    """Open a session with the settings of a shared link, once; then clear the link."""
    if page.link_read:
        return
    page.link_read = True
    try:
        settings = settings_from_link(st.query_params.to_dict())
    except InvalidInput as exc:
        page.notice = f"The link's settings were not used: {exc}"
        return
    if settings is None:
        return
    sessions.open_new(page, engine, settings=settings)
    given = ", ".join(f"{k} {v[:40]}" for k, v in link_parameters(settings).items())
    page.notice = f"This chat starts with the settings of the link: {given or 'the defaults'}."
    st.query_params.clear()
