"""The backends as they are: the session store, the protections in force, the collections."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import streamlit as st

from memory_core.errors import MemoryInspectorError
from ui import problems
from ui.problems import plain
from ui.state import PageState
from ui.storage.place import place_of
from ui.view_models.storage import Line, collection_row, store_lines
from ui.view_models.text import plural

if TYPE_CHECKING:
    from memory_core.engine import Engine
    from memory_core.longterm import LongTermMemory


def draw_store(engine: Engine, *, operator: bool) -> None:
    """Draw the session store: reachable or not, what it is, what is in force."""
    with st.container(border=True, key="storage-store"):
        st.markdown("**Sessions**")
        try:
            facts = engine.store.facts()
        except MemoryInspectorError as exc:
            st.markdown(":red[:material/cloud_off: not reachable]")
            problems.show(exc)
            st.button("Look again", key="storage-look", icon=":material/refresh:")
        else:
            st.markdown(":green[:material/check_circle: reachable]")
            _lines(store_lines(facts, operator=operator))
            for note in facts.notes:
                st.caption(plain(note))
        _protections(engine, operator=operator)


def draw_vectors(page: PageState, engine: Engine) -> None:
    """Draw long-term memory: the collections, what is wrong, and the way to put it right."""
    with st.container(border=True, key="storage-vectors"):
        st.markdown("**Long-term memory**")
        longterm = _longterm(page, engine)
        try:
            standing = longterm.standing(page.user)
        except MemoryInspectorError as exc:
            st.markdown(":red[:material/cloud_off: not reachable]")
            problems.show(exc)
            st.caption("Recall goes on by words only; vectors are written when it is back.")
            return
        st.markdown(
            ":green[:material/check_circle: reachable]"
            if standing.collection is not None or not standing.memories
            else ":orange[:material/warning: no collection for this embedding model]"
        )
        _lines(
            [
                Line("Embedding model", longterm.embedder.name),
                Line("Memories", f"{standing.memories:,}"),
                Line("Wait for a vector", f"{standing.waiting:,}"),
            ]
        )
        rows = [collection_row(standing.collection, current=True)] if standing.collection else []
        rows += [collection_row(other, current=False) for other in standing.others]
        if rows:
            st.dataframe(rows, key="storage-collections", hide_index=True, width="stretch")
        else:
            st.caption("No collection yet: the first turn that is remembered makes one.")
        for notice in standing.notices:
            st.warning(plain(notice))
        if standing.memories and st.button(
            "Re-embed all memories",
            key="storage-reembed",
            icon=":material/autorenew:",
            help="Fills the collection of the embedding model in use; interrupted, it goes on "
            "where it stopped. Nothing is deleted from collections of other models.",
        ):
            _reembed(page, engine)


def _longterm(page: PageState, engine: Engine) -> LongTermMemory:
    """Return the long-term memory in use: that of the open session's embedding model."""
    open_now = page.chat.session.longterm if page.chat is not None else None
    return open_now or engine.longterm


def _reembed(page: PageState, engine: Engine) -> None:
    place, longterm = place_of(page), _longterm(page, engine)
    bar = st.progress(0.0, "Embedding")

    def progress(done: int, total: int) -> None:
        bar.progress(done / max(total, 1), f"Embedded {done:,} of {total:,}")

    try:
        count = longterm.rebuild(page.user, progress)
    except MemoryInspectorError as exc:
        place.error = exc
    else:
        place.said = f"{plural(count, 'text')} embedded with {longterm.embedder.name}."
    st.rerun()


def _protections(engine: Engine, *, operator: bool) -> None:
    opened, config = engine.opened, engine.config
    if opened is None or config is None:
        return
    if opened.sealed:
        st.caption(":material/lock: Encrypted at rest; the vector database holds no text.")
    if opened.redactor is not None:
        st.caption(":material/visibility_off: Redacted before anything is stored.")
    else:
        st.caption(
            ":material/visibility: Stored as said: `MEMORY_REDACT=all` takes e-mail, phone, card, "
            "IBAN and keys out before anything is stored."
        )
    if not opened.spooled:
        st.caption(":material/warning: Waiting writes are kept in memory only.")
    waiting = opened.buffered.waiting
    if waiting:
        st.caption(f":material/hourglass_top: {plural(waiting, 'write')} wait for the store.")
    if operator:
        _endpoint(engine)


def _endpoint(engine: Engine) -> None:
    if engine.endpoint is None:
        st.caption(":material/monitoring: `MEMORY_METRICS_PORT=9464` offers these to Prometheus.")
    else:
        host, port = engine.endpoint.address
        st.caption(f":material/monitoring: Prometheus: `http://{host}:{port}/metrics`")


def _lines(lines: Sequence[Line]) -> None:
    for line in lines:
        name, value = st.columns([2, 5])
        name.caption(line.name)
        value.text(line.value)
