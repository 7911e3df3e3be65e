"""Long-term memory: what was searched for, the hits, and the near misses with their gate."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st

from ui.charts import CONFIG, retrieved_figure
from ui.panels.tables import chosen, columns, table_height
from ui.problems import plain
from ui.scene import Scene
from ui.state import value_of
from ui.view_models.retrieved import HitRow, RetrievedView, documents_view, retrieved_view
from ui.view_models.text import excerpt

_RAW, _PROBE = "retrieved-raw", "retrieved-probe"
_QUERY = 600  # characters of the searched text


def draw(scene: Scene, ask: Callable[[str], None] | None = None) -> None:
    """Draw the searched text, the score chart and one row a candidate.

    ``ask`` is told another question to search for, without sending it; a past turn has none.
    """
    view = retrieved_view(scene.assembly, threshold=scene.settings.threshold)
    _documents(scene)
    if ask is not None:
        _another_question(f"{_PROBE}-{scene.turn}", ask)
    if not (view.hits or view.near):
        st.caption(_nothing(view, ours=scene.assembly.allotment is not None))
        return
    st.caption(f"searched for · {plain(view.about)}")
    st.code(excerpt(view.query, _QUERY), language=None, wrap_lines=True)
    st.plotly_chart(retrieved_figure(view), key="chart-retrieved", config=CONFIG, alt=view.alt)
    picked = _table((*view.hits, *view.near), view, scene.turn)
    if picked is not None:
        told = f"{picked.label} · {picked.signals or 'no signals'} · {picked.reason or 'in'}"
        st.caption(plain(told))
        st.code(picked.text, language=None, wrap_lines=True)
    for warning in (*filter(None, [view.skipped]), *view.warnings):
        st.warning(plain(warning))


def _documents(scene: Scene) -> None:
    """Draw what a chat engine found in its documents, a source of its own beside memories."""
    question = scene.trace.query if scene.trace is not None else ""
    view = documents_view(scene.assembly, question)
    if view is None:
        return
    st.markdown("**Documents** of the chat engine")
    st.caption(view.headline)
    st.code(excerpt(view.query, _QUERY), language=None, wrap_lines=True)
    if view.rows:
        st.dataframe(
            columns(
                [
                    {
                        "rank": row.rank,
                        "score": round(row.score, 3),
                        "file": row.kind,
                        "tokens": row.tokens,
                        "text": excerpt(row.text, 60),
                    }
                    for row in view.rows
                ]
            ),
            key=f"retrieved-documents-{scene.turn}",
            hide_index=True,
            height=table_height(len(view.rows)),
            alt="Chunks of documents found, best first",
        )
    st.markdown("**Memories**")


def _nothing(view: RetrievedView, *, ours: bool) -> str:
    """Say why nothing stands here."""
    if not ours:
        why = "found nothing" if view.query else "made no search"
        return (
            f"For this prompt the strategy {why}. One that searches by meaning shows here what "
            "it searched for and every result with its score."
        )
    return (
        f"{plain(view.skipped or 'Nothing was found.')} Each turn is remembered here. A "
        "question then brings back the memories nearest to it; what almost came back stands "
        "below with the gate that stopped it."
    )


def _table(rows: Sequence[HitRow], view: RetrievedView, turn: int) -> HitRow | None:
    raw = st.toggle("Raw distances", key=_RAW, help="The index's own number and its metric.")
    score = "score" if view.ours else "class's score"  # which may be no similarity at all
    distance = f"{view.metric} distance"
    order = ["rank", "turn", score, "gate", "text", "tokens"]
    if raw or not view.ours:
        order[3:3] = ["cosine", distance] if raw else ["cosine"]
    if any(row.signals for row in rows):
        order.insert(order.index("gate"), "signals")
    if all(row.turn is None for row in rows):
        order.remove("turn")
    event = st.dataframe(
        columns(
            [
                {
                    "rank": row.rank or None,
                    "turn": row.turn,
                    score: round(row.score, 3),
                    "cosine": round(row.similarity, 3),
                    distance: round(row.distance, 4),
                    "signals": row.signals,
                    "gate": f"{row.gate}: {row.reason}" if row.gate else "✓ in",
                    "text": excerpt(row.text, 60),
                    "tokens": row.tokens,
                }
                for row in rows
            ]
        ),
        key=f"retrieved-rows-{turn}",
        hide_index=True,
        height=table_height(len(rows)),
        column_order=order,
        on_select="rerun",
        selection_mode="single-row",
        alt="Memories found, hits first, then near misses",
    )
    return chosen(event, rows)


def _another_question(key: str, ask: Callable[[str], None]) -> None:
    st.text_input(
        "Try another question",
        key=key,
        placeholder="another question to search for; nothing is sent",
        label_visibility="collapsed",
        on_change=lambda: ask(str(value_of(key) or "").strip()),
    )
