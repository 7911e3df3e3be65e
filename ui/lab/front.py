"""What a token buys: the Pareto front, the recommended cell, and the way to use the chosen one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import streamlit as st

from memory_core.errors import MemoryInspectorError
from memory_core.lab.setups import embedding_of, setup_of
from memory_core.settings import MemorySettings
from ui import problems, sessions
from ui.charts import CONFIG
from ui.lab.figures import front_figure
from ui.lab.missing import price_of
from ui.lab.place import LabPlace, place_of
from ui.panels.tables import columns, table_height
from ui.snippet import snippet
from ui.state import PageState, mine, seed, value_of
from ui.view_models.lab import changes, front_rows
from ui.view_models.text import plural

if TYPE_CHECKING:
    from memory_core.engine import Engine
    from memory_core.lab.axes import Point
    from memory_core.lab.table import SweepResult
    from memory_core.strategies import Setup

_KEEP = "lab-keep"


def draw(page: PageState, engine: Engine, place: LabPlace) -> None:
    """Draw front, recommendation and what can be done with the chosen cell."""
    result = place.result
    if result is None or place.chosen is None:
        return
    left, right = st.columns([6, 5], gap="medium")
    with left:
        st.subheader("Evidence against tokens")
        found = place.found(result)
        st.plotly_chart(
            front_figure(result, found, chosen=place.chosen),
            key="lab-front",
            config=CONFIG,
            alt=f"Evidence against tokens of {plural(len(result.cells), 'cell')}; "
            f"{len(found.front)} are on the front. {found.words}",
        )
        rows = front_rows(result, found, price_of(page))
        st.dataframe(
            columns(rows),
            key="lab-front-rows",
            hide_index=True,
            height=table_height(len(rows)),
            alt="The cells of the Pareto front, cheapest first",
        )
    with right:
        st.subheader("Recommended ★")
        _recommended(place, result)
        st.subheader("Use the chosen cell")
        _use(page, engine, place, result)


def _recommended(place: LabPlace, result: SweepResult) -> None:
    seed(_KEEP, round(place.keep * 100))
    st.slider(
        "The cheapest setting that keeps so much of the best cell's evidence",
        50,
        100,
        key=_KEEP,
        format="%d %%",
        on_change=_to_keep,
    )
    found = place.found(result)
    st.text(found.words)
    st.caption("In brackets: 95 % intervals, by resampling the questions 1,000 times.")
    cell = found.choice.cell
    if place.chosen != (cell.x, cell.y):
        st.button(
            "Choose the recommended cell",
            key="lab-best",
            on_click=_choose_best,
        )


def _use(page: PageState, engine: Engine, place: LabPlace, result: SweepResult) -> None:
    if place.chosen is None or page.chat is None:
        return
    point = result.point(result.cell(*place.chosen))
    setup = setup_of(point)
    if setup is None:
        st.caption(
            "This planner measures what most tutorials build and is no strategy of a session. "
            "SimpleComposableMemory, chosen beside the model, comes nearest."
        )
        return
    settings = chosen_settings(page, place, result)
    changed = _changed(page, settings, setup, point.embedding)
    if changed:
        st.code("\n".join(changed), language=None, wrap_lines=True)
    else:
        st.caption("The open session has these settings already.")
    busy = page.live is not None or page.player is not None
    with st.container(horizontal=True):
        if st.button(
            "Apply to session",
            key="lab-apply",
            type="primary",
            icon=":material/check:",
            disabled=not changed or busy,
        ):
            _apply(page, engine, settings, setup, point)
        with st.popover("Copy as code", icon=":material/code:"):
            st.caption("Runs as it is, beside the package `memory_core`.")
            st.code(snippet(settings, page.model, setup), language="python")


def chosen_settings(page: PageState, place: LabPlace, result: SweepResult) -> MemorySettings:
    """Return what was measured in the chosen cell, with the session's own system prompt."""
    if place.chosen is None:
        return page.settings
    measured = result.point(result.cell(*place.chosen)).settings
    return replace(measured, system_prompt=page.settings.system_prompt)


def _changed(page: PageState, settings: MemorySettings, setup: Setup, embedding: str) -> list[str]:
    """Return what applying would change, a line each."""
    chat, lines = page.chat, changes(page.settings, settings)
    if chat is None:
        return lines
    now = chat.setup
    if (now.strategy, now.knobs) != (setup.strategy, setup.knobs):
        limit = getattr(setup.knobs, "token_limit", None)
        more = f" with {limit:,} tokens" if limit is not None else ""
        lines.append(f"strategy: {now.strategy} → {setup.strategy}{more}")
    used = chat.session.longterm
    if used is not None and used.embedder.name != embedding:
        lines.append(f"embedding model: {used.embedder.name} → {embedding}")
    return lines


def _apply(
    page: PageState, engine: Engine, settings: MemorySettings, setup: Setup, point: Point
) -> None:
    chat = page.chat
    if chat is None:
        return
    changed = "; ".join(_changed(page, settings, setup, point.embedding))
    used, choice = chat.session.longterm, embedding_of(point)
    now = chat.setup
    try:
        if used is not None and used.embedder.name != point.embedding and choice is not None:
            sessions.use_embedding(page, engine, choice)
        if (now.strategy, now.knobs) != (setup.strategy, setup.knobs):
            sessions.use_strategy(page, engine, setup)
        sessions.use_settings(page, engine, settings)
    except MemoryInspectorError as exc:
        problems.show(exc)
        return
    page.epoch += 1
    page.notice = f"Applied from the Tuning lab: {changed}."
    st.switch_page("app.py")


def _to_keep() -> None:
    place_of(mine()).keep = int(value_of(_KEEP)) / 100


def _choose_best() -> None:
    place = place_of(mine())
    if place.result is not None:
        cell = place.found(place.result).choice.cell
        place.chosen, place.asked = (cell.x, cell.y), None
