"""Comparisons kept under a name: save, open again, delete, download, and link to."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import streamlit as st

from memory_core.errors import InvalidInput, MemoryInspectorError, NotFound
from memory_core.lab.comparison import Comparison
from memory_core.lab.comparison_folder import (
    MOST_NAME,
    ComparisonFolder,
    Saved,
    comparisons_of,
)
from memory_core.stores.encryption import cipher_from
from ui import resources
from ui.compare.place import SESSION, ComparePlace, place_of
from ui.compare.report import to_html
from ui.compare.subject import listed
from ui.state import PageState, mine, seed, value_of
from ui.view_models.text import excerpt

if TYPE_CHECKING:
    from memory_core.engine import Engine

_NAME, _SAVED = "compare-name", "compare-saved"
_COMPARISON, _SESSION = "comparison", "session"  # query parameters


def folder_of(page: PageState, engine: Engine) -> ComparisonFolder | None:
    """Return where a visitor's comparisons are kept, each visitor's apart, ``None``: nowhere."""
    if engine.config is None:
        return None
    return ComparisonFolder(
        comparisons_of(engine.config.folder, page.user),
        cipher=cipher_from(engine.config.encryption_key),
        redactor=engine.opened.redactor if engine.opened is not None else None,
    )


def draw(page: PageState, engine: Engine, place: ComparePlace) -> None:
    """Draw what keeps the comparison at hand, and those that were kept."""
    folder = folder_of(page, engine)
    found = folder.list() if folder is not None else []
    result = place.result if place.running is None else None
    if result is None and not found:
        return
    st.subheader("Keep and reopen")
    if result is not None:
        _keep(place, result, can_save=folder is not None)
    if found:
        _kept(found)


def _keep(place: ComparePlace, result: Comparison, *, can_save: bool) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if can_save:
            st.text_input(
                "Name of this comparison",
                key=_NAME,
                max_chars=MOST_NAME,
                placeholder=place.name or excerpt(result.title, 60),
            )
            st.button("Save", key="compare-save", icon=":material/save:", on_click=_save)
        st.download_button(
            "HTML report",
            lambda: to_html(result, name=place.name),
            file_name="comparison.html",
            mime="text/html",
            key="compare-html",
            icon=":material/html:",
            help="One page that needs nothing else and loads nothing.",
            on_click="ignore",
        )


def _kept(found: list[Saved]) -> None:
    known = {one.id: one for one in found}
    if value_of(_SAVED) not in known:
        seed(_SAVED, next(iter(known)))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.selectbox(
            "Saved comparisons",
            list(known),
            key=_SAVED,
            format_func=lambda id_: (
                f"{excerpt(known[id_].name, 60)} · "
                f"{datetime.fromtimestamp(known[id_].when, UTC):%Y-%m-%d %H:%M:%S}"
            ),
        )
        st.button("Open", key="compare-open", icon=":material/folder_open:", on_click=_open)
        with st.popover("Delete", icon=":material/delete:"):
            chosen = known[str(value_of(_SAVED))]
            st.text(f"“{excerpt(chosen.name, 60)}” with the conversation in it.")
            sure = st.checkbox(
                "It cannot be undone: I want it gone", key=f"compare-sure-{chosen.id}"
            )
            st.button(
                "Delete for good",
                key="compare-delete",
                icon=":material/delete_forever:",
                disabled=not sure,
                on_click=_delete,
                args=(chosen.id,),
            )


def follow_link(page: PageState, engine: Engine, place: ComparePlace) -> None:
    """Open the saved comparison or the session that the page's address names.

    Raises :class:`NotFound` and :class:`InvalidInput` for what is not there or cannot be used.
    """
    given = st.query_params.to_dict()
    wanted, session = given.get(_COMPARISON, ""), given.get(_SESSION, "")
    if wanted and wanted != place.link:
        place.link = wanted
        folder = folder_of(page, engine)
        if folder is None:
            raise NotFound("No comparison is kept here.")
        name, comparison = folder.load(wanted)
        place.show(comparison, saved=wanted, name=name)
    elif session and session != place.link:
        place.link = session
        if session not in listed(page, engine):
            raise NotFound("The link's session is not among yours, or nothing was said in it.")
        place.source, place.session = SESSION, session


def keep_link(place: ComparePlace) -> None:
    """Let the page's address name the saved comparison that is open, and nothing else."""
    wanted = {_COMPARISON: place.saved} if place.saved else {}
    if st.query_params.to_dict() != wanted:
        st.query_params.from_dict(wanted)
        place.link = place.saved


def _save() -> None:
    page, engine = mine(), resources.engine()
    place = place_of(page)
    folder = folder_of(page, engine) if engine is not None else None
    if folder is None or place.result is None:
        return
    name = str(value_of(_NAME) or "").strip() or place.name or place.result.title[:MOST_NAME]
    try:
        taken = next((one for one in folder.list() if one.name == " ".join(name.split())), None)
        if taken is not None and taken.id != place.saved:
            raise InvalidInput(
                f"A comparison named {name[:60]!r} is there already.",
                next_step="Choose another name, or delete that one first.",
            )
        kept = folder.save(place.result, name)
    except MemoryInspectorError as exc:
        place.error = exc
        return
    place.saved, place.name = kept.id, kept.name
    place.told = f"Saved as “{kept.name}”. The page's address opens it again."
    seed(_SAVED, kept.id)


def _open() -> None:
    page, engine = mine(), resources.engine()
    place = place_of(page)
    folder = folder_of(page, engine) if engine is not None else None
    wanted = str(value_of(_SAVED) or "")
    if folder is None or not wanted:
        return
    try:
        name, comparison = folder.load(wanted)
    except MemoryInspectorError as exc:
        place.error = exc
        return
    place.show(comparison, saved=wanted, name=name)


def _delete(id_: str) -> None:
    page, engine = mine(), resources.engine()
    place = place_of(page)
    folder = folder_of(page, engine) if engine is not None else None
    if folder is None:
        return
    try:
        folder.delete(id_)
    except (MemoryInspectorError, OSError) as exc:
        place.error = exc if isinstance(exc, MemoryInspectorError) else InvalidInput(str(exc))
        return
    if place.saved == id_:
        place.saved = place.name = ""
    place.told = "Deleted."
