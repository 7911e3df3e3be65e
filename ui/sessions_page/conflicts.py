"""Two versions of one state side by side, and the choice that makes one of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import streamlit as st

from memory_core.errors import MemoryInspectorError, StaleVersion
from memory_core.merging import merge_states
from memory_core.session import utc_now
from memory_core.state import AgentState
from memory_core.stores.outbox import Conflict
from memory_core.stores.protocols import SessionKey
from memory_core.stores.writes import user_of
from ui import sessions
from ui.problems import plain
from ui.sessions_page.rows import act
from ui.state import PageState, value_of
from ui.view_models.sessions_page import ConflictField, conflict_fields

if TYPE_CHECKING:
    from memory_core.engine import Engine

OURS, THEIRS = "yours", "theirs"


def own_conflicts(engine: Engine, user: str) -> list[Conflict]:
    """Return the conflicts of this user's writes that waited, and of nobody else's."""
    if engine.opened is None:
        return []
    return [c for c in engine.opened.buffered.conflicts if user_of(c.write) == user]


def draw(page: PageState, engine: Engine) -> None:
    """Draw every conflict of this user; nothing is the rule."""
    if page.parted is not None:
        _merge(engine, page.parted, "You edited this state while somebody else saved it.", None)
    for place, conflict in enumerate(own_conflicts(engine, page.user)):
        if conflict.ours is not None:
            _merge(engine, conflict.ours, conflict.reason, conflict)
        else:
            _refused(place, conflict)


def _merge(engine: Engine, ours: AgentState, reason: str, conflict: Conflict | None) -> None:
    key = SessionKey(ours.user, ours.session)
    name = f"{key.session}-{ours.version}"
    try:
        info, theirs = engine.store.session(key), engine.store.state(key)
    except MemoryInspectorError as exc:
        st.warning(plain(f"Two versions wait, and the stored one cannot be read now: {exc}"))
        return
    fields = conflict_fields(ours, theirs)
    with st.container(border=True, key=f"conflict-{name}"):
        st.markdown(":material/call_merge: **Two versions of one state**")
        st.text(info.title)
        st.caption(
            f"{plain(reason)} Yours was made from version {ours.version - 1}; the stored one is "
            f"version {theirs.version}. Choose for each field; saved as version "
            f"{theirs.version + 1}, both stay in the history until then."
        )
        for field in fields:
            _field(name, field)
        if not fields:
            st.caption("Both versions say the same: nothing is lost by keeping the stored one.")
        with st.container(horizontal=True):
            args = (ours, theirs, conflict, fields, name)
            st.button(
                "Save this choice",
                key=f"merge-{name}",
                type="primary",
                on_click=_save,
                args=args,
                disabled=not fields,
            )
            st.button(
                "Keep the stored version", key=f"theirs-{name}", on_click=_drop, args=(conflict,)
            )


def _field(name: str, field: ConflictField) -> None:
    st.markdown(f"**{plain(field.path)}**")
    left, right, choice = st.columns([4, 4, 2], vertical_alignment="bottom")
    left.caption("yours")
    left.code(field.ours, language=None, wrap_lines=True)
    right.caption("theirs, as stored")
    right.code(field.theirs, language=None, wrap_lines=True)
    choice.segmented_control(
        f"Which {plain(field.path)}",
        [OURS, THEIRS],
        default=OURS,
        key=_widget(name, field),
        required=True,
        label_visibility="collapsed",
    )


def _refused(place: int, conflict: Conflict) -> None:
    """Draw a waiting write that the store refuses for good."""
    with st.container(border=True, key=f"refused-{place}"):
        st.warning(plain(f"A write that waited could not be made: {conflict.reason}"))
        st.button(
            "Drop it",
            key=f"drop-{place}",
            on_click=_drop,
            args=(conflict,),
            help="What was to be written is lost then.",
        )


def _widget(name: str, field: ConflictField) -> str:
    return f"choice-{name}-{field.path}"


def _save(
    ours: AgentState,
    theirs: AgentState,
    conflict: Conflict | None,
    fields: tuple[ConflictField, ...],
    name: str,
) -> None:
    mine_ = [f.path for f in fields if value_of(_widget(name, f), OURS) != THEIRS]

    def save(page: PageState, engine: Engine) -> None:
        key = SessionKey(page.user, theirs.session)
        merged = merge_states(ours, theirs, mine_)
        merged = replace(merged, user=page.user, version=theirs.version + 1, updated=utc_now())
        try:
            engine.store.save_state(key, merged)
        except StaleVersion as exc:
            raise StaleVersion(
                f"The state was saved once more meanwhile: it is at version {exc.found}. "
                "The newest version is shown now; choose again.",
                expected=exc.expected,
                found=exc.found,
            ) from exc
        _settle(page, engine, conflict)
        if page.info is not None and page.info.key == key:
            sessions.open_session(page, engine, page.info)

    act(save, f"Saved as version {theirs.version + 1}.")


def _drop(conflict: Conflict | None) -> None:
    act(lambda page, engine: _settle(page, engine, conflict), "The stored version stays.")


def _settle(page: PageState, engine: Engine, conflict: Conflict | None) -> None:
    if conflict is None:
        page.parted = None
    elif engine.opened is not None and conflict in own_conflicts(engine, page.user):
        engine.opened.buffered.settle(conflict)
