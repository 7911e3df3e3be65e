"""Sweeps kept under a name: save, open, rename, delete, compare two, download as CSV or page."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from memory_core.errors import InvalidInput, MemoryInspectorError
from memory_core.lab.comparing import compare
from memory_core.lab.exporting import to_csv, to_html
from memory_core.lab.saving import Saved, check_free, delete, load, rename, save, saved
from memory_core.lab.sweep_folder import sweeps_of
from memory_core.lab.table import SweepResult
from memory_core.models.catalogue import Price
from ui import resources
from ui.lab.missing import price_of
from ui.lab.place import LabPlace, Named, place_of
from ui.panels.tables import columns, table_height
from ui.state import PageState, mine, seed, value_of
from ui.view_models.lab import comparison
from ui.view_models.text import excerpt

if TYPE_CHECKING:
    from memory_core.engine import Engine

_NAME, _SAVED, _WITH, _TITLE = "lab-name", "lab-saved", "lab-with", "lab-title"
HERE = "here"  # the sweep on the page, among those that one can be compared with
_ROWS = 500
_MOST_NAME = 100  # characters


def draw(page: PageState, engine: Engine, place: LabPlace) -> None:
    """Draw what keeps the sweep at hand, and the sweeps that were kept."""
    folder = folder_of(page, engine)
    found = saved(folder) if folder is not None else []
    result = place.result if place.running is None else None
    if result is None and not found:
        return
    st.divider()
    st.subheader("Keep and compare")
    if result is not None:
        _keep(page, place, result, can_save=folder is not None)
    if found:
        _kept(found, at_hand=result is not None)
    if place.compared is not None:
        _compared(place, *place.compared)


def folder_of(page: PageState, engine: Engine) -> Path | None:
    """Return where a visitor's sweeps are kept, each visitor's apart."""
    if engine.config is None:
        return None
    return sweeps_of(engine.config.folder, page.user)


def _keep(page: PageState, place: LabPlace, result: SweepResult, *, can_save: bool) -> None:
    cost, choice = price_of(page), place.found(result).choice
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if can_save:
            st.text_input(
                "Name of this sweep", key=_NAME, max_chars=_MOST_NAME, placeholder=result.title[:60]
            )
            st.button("Save", key="lab-save", icon=":material/save:", on_click=_save)
        st.download_button(
            "CSV",
            lambda: _csv(result, cost),
            file_name="sweep.csv",
            mime="text/csv",
            key="lab-csv",
            icon=":material/table:",
            on_click="ignore",
        )
        st.download_button(
            "HTML",
            lambda: to_html(result, choice, price=cost),
            file_name="sweep.html",
            mime="text/html",
            key="lab-html",
            icon=":material/html:",
            on_click="ignore",
        )


def _kept(found: list[Saved], *, at_hand: bool) -> None:
    files = {str(one.file): one for one in found}
    chosen = _settled(_SAVED, list(files))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.selectbox(
            "Saved sweeps", list(files), key=_SAVED, format_func=lambda file: _called(files[file])
        )
        st.button("Open", key="lab-open", icon=":material/folder_open:", on_click=_open)
        with st.popover("Rename or delete", icon=":material/edit:"):
            _change(files[chosen])
    others = [*([HERE] if at_hand else []), *(file for file in files if file != chosen)]
    if not others:
        st.caption("Two sweeps can be compared: run another one, or save a second.")
        return
    _settled(_WITH, others)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.selectbox(
            "Compare it with",
            others,
            key=_WITH,
            format_func=lambda file: "the sweep above" if file == HERE else _called(files[file]),
        )
        st.button("Compare", key="lab-compare", icon=":material/compare:", on_click=_compare)


def _change(one: Saved) -> None:
    """Draw what renames and what deletes a saved sweep; deleting is asked about once more."""
    key = f"{_TITLE}-{one.file.name}"
    st.text_input("Another name", key=key, max_chars=_MOST_NAME, placeholder=excerpt(one.name, 60))
    st.button("Rename", key="lab-rename", icon=":material/edit:", on_click=_rename, args=(key,))
    sure = st.checkbox("It cannot be undone: I want it gone", key=f"lab-sure-{one.file.name}")
    st.button(
        "Delete for good",
        key="lab-delete",
        icon=":material/delete_forever:",
        disabled=not sure,
        on_click=_delete,
    )


def _compared(place: LabPlace, first: Named, second: Named) -> None:
    words, rows = comparison(first[1], compare(first[1], second[1], place.measure))
    st.text(f"A: “{excerpt(first[0], 60)}”, B: “{excerpt(second[0], 60)}”.")
    st.text(words)
    st.dataframe(
        columns(rows[:_ROWS]),
        key="lab-compared",
        hide_index=True,
        height=table_height(len(rows)),
        alt="Evidence and tokens of both sweeps, cell by cell",
    )
    if len(rows) > _ROWS:
        st.caption(f"and {len(rows) - _ROWS:,} more")


def _settled(key: str, options: list[str]) -> str:
    """Return what is chosen of some options, the first where nothing of them is."""
    if value_of(key) not in options:
        seed(key, options[0])
    return str(value_of(key))


def _called(one: Saved) -> str:
    return f"{excerpt(one.name, 60)} · {datetime.fromtimestamp(one.when, UTC):%Y-%m-%d %H:%M}"


def _csv(result: SweepResult, cost: Price | None) -> str:
    return to_csv(result, price=cost)


def _save() -> None:
    page, engine = mine(), resources.engine()
    place = place_of(page)
    if engine is None or place.result is None:
        return
    folder = folder_of(page, engine)
    name = str(value_of(_NAME) or "").strip() or place.result.title[:_MOST_NAME]
    try:
        if folder is not None:
            check_free(name, folder)
            save(place.result, name, folder)
            place.name, place.told = name, f"Saved as “{name}”."
    except MemoryInspectorError as exc:
        place.error = exc


def _open() -> None:
    place = place_of(mine())
    one = _chosen(_SAVED)
    named = _loaded(place, one) if one is not None else None
    if named is not None:
        place.show(named[1])
        place.name = named[0]


def _compare() -> None:
    place = place_of(mine())
    second = _chosen(_SAVED)
    first = _chosen(_WITH)
    there = _loaded(place, second) if second is not None else None
    if value_of(_WITH) == HERE and place.result is not None:
        here: Named | None = (place.name or f"{place.result.title}, not saved", place.result)
    else:
        here = _loaded(place, first) if first is not None else None
    if here is None or there is None:
        return
    try:
        compare(here[1], there[1], place.measure)
    except InvalidInput as exc:
        place.error = exc
    else:
        place.compared = (here, there)


def _rename(key: str) -> None:
    place, one = place_of(mine()), _chosen(_SAVED)
    name = str(value_of(key) or "").strip()
    if one is None:
        return
    try:
        file = rename(one, name)
    except MemoryInspectorError as exc:
        place.error = exc
        return
    place.name = name if place.name == one.name else place.name
    place.compared = None
    place.told = f"“{one.name}” is called “{name}” now."
    seed(_SAVED, str(file))


def _delete() -> None:
    place, one = place_of(mine()), _chosen(_SAVED)
    if one is None:
        return
    try:
        delete(one)
    except MemoryInspectorError as exc:
        place.error = exc
        return
    place.name = "" if place.name == one.name else place.name
    place.compared = None
    place.told = f"“{one.name}” is deleted."


def _chosen(key: str) -> Saved | None:
    """Return the saved sweep that is chosen, of those of this visitor."""
    page, engine = mine(), resources.engine()
    folder = folder_of(page, engine) if engine is not None else None
    wanted = value_of(key)
    return next((s for s in saved(folder) if str(s.file) == wanted), None) if folder else None


def _loaded(place: LabPlace, one: Saved) -> Named | None:
    try:
        return one.name, load(one.file)
    except MemoryInspectorError as exc:
        place.error = exc
        return None
