"""What every page says on top: a server is away, two versions wait, something was redacted.

While the store or the vector index is away the banner looks again by itself, so that it leaves
when all is well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from memory_core.errors import MemoryInspectorError
from ui import resources
from ui.account import draw as draw_account
from ui.problems import plain
from ui.state import mine

if TYPE_CHECKING:
    from memory_core.engine import Engine

LOOK_IN = 2.0  # seconds between two looks whether the store is back
SESSIONS = "Sessions"


def draw(title: str) -> None:
    """Draw what there is to say on the page of this title; nothing is the rule."""
    draw_account()
    try:
        engine = resources.engine()
    except MemoryInspectorError:
        return  # the page itself says why there is none
    if engine is None or engine.opened is None:
        return
    if engine.banner or engine.longterm.problem(mine().user):
        _away()
    if title != SESSIONS and _conflicts(engine):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.warning(
                "Somebody else changed a session too: two versions wait for your choice.",
                icon=":material/call_merge:",
            )
            st.page_link("pages/4_Sessions.py", label="Compare both versions")
    _redacted(engine)


@st.fragment(run_every=LOOK_IN, key="banner")
def _away() -> None:
    engine = resources.engine()
    index = engine.longterm.problem(mine().user) if engine is not None else ""
    if engine is None or not (engine.banner or index):
        st.rerun()
    if engine.banner:
        st.warning(plain(engine.banner), icon=":material/cloud_off:")
    if index:
        st.warning(
            f"{plain(index)} The chat goes on: memories are found by their words, and what is new "
            "is indexed when the vector index is back.",
            icon=":material/cloud_off:",
        )


def _conflicts(engine: Engine) -> bool:
    page, opened = mine(), engine.opened
    if page.parted is not None:
        return True
    if opened is None or not opened.buffered.conflicts:
        return False
    from ui.sessions_page.conflicts import own_conflicts

    return bool(own_conflicts(engine, page.user))


def _redacted(engine: Engine) -> None:
    page = mine()
    if engine.opened is None or page.info is None:
        return
    counts = engine.opened.meter.redactions(page.info.key)
    if counts:
        told = ", ".join(f"{kind}: {count:,}" for kind, count in counts.items())
        st.caption(
            f":material/visibility_off: Redacted before anything of this session was stored: "
            f"{plain(told)}. The text itself was not kept."
        )
