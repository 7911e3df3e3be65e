"""Sweeps kept under a name: save, open again, compare two, download as CSV or as a page."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from memory_core.errors import InvalidInput, MemoryInspectorError
from memory_core.lab.comparing import compare
from memory_core.lab.exporting import to_csv, to_html
from memory_core.lab.saving import Saved, load, save, saved
from memory_core.lab.sweep_folder import sweeps_of
from memory_core.lab.table import SweepResult
from memory_core.models.catalogue import Price
from ui import resources
from ui.lab.missing import price_of
from ui.lab.place import LabPlace, place_of
from ui.panels.tables import columns, table_height
from ui.state import PageState, mine, seed, value_of
from ui.view_models.lab import comparison
from ui.view_models.text import excerpt

if TYPE_CHECKING:
    from memory_core.engine import Engine

_NAME, _SAVED, _ROWS = "lab-name", "lab-saved", 500
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
        _kept(found, can_compare=result is not None)
    if place.compared is not None and result is not None:
        _compared(place, result, *place.compared)


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


def _kept(found: list[Saved], *, can_compare: bool) -> None:
    files = {str(one.file): one for one in found}
    if value_of(_SAVED) not in files:
        seed(_SAVED, next(iter(files)))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.selectbox(
            "Saved sweeps",
            list(files),
            key=_SAVED,
            format_func=lambda file: (
                f"{excerpt(files[file].name, 60)} · "
                f"{datetime.fromtimestamp(files[file].when, UTC):%Y-%m-%d %H:%M}"
            ),
        )
        st.button("Open", key="lab-open", icon=":material/folder_open:", on_click=_open)
        if can_compare:
            st.button("Compare", key="lab-compare", icon=":material/compare:", on_click=_compare)


def _compared(place: LabPlace, result: SweepResult, name: str, other: SweepResult) -> None:
    words, rows = comparison(result, other, compare(result, other, place.measure))
    st.text(f"Here: “{excerpt(place.name or result.title, 60)}”; there: “{excerpt(name, 60)}”.")
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
            save(place.result, name, folder)
            place.name, place.told = name, f"Saved as “{name}”."
    except MemoryInspectorError as exc:
        place.error = exc


def _open() -> None:
    place = place_of(mine())
    one = _chosen(place)
    if one is not None:
        place.show(one[1])
        place.name = one[0]


def _compare() -> None:
    place = place_of(mine())
    one = _chosen(place)
    if one is None or place.result is None:
        return
    try:
        compare(place.result, one[1], place.measure)
    except InvalidInput as exc:
        place.error = exc
    else:
        place.compared = one


def _chosen(place: LabPlace) -> tuple[str, SweepResult] | None:
    """Return the saved sweep that is chosen, of those of this visitor."""
    page, engine = mine(), resources.engine()
    folder = folder_of(page, engine) if engine is not None else None
    wanted = value_of(_SAVED)
    one = next((s for s in saved(folder) if str(s.file) == wanted), None) if folder else None
    try:
        return (one.name, load(one.file)) if one is not None else None
    except MemoryInspectorError as exc:
        place.error = exc
        return None
