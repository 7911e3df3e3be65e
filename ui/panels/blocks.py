"""Memory blocks: what each put in the prompt, which was dropped and why, what it was given."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from ui.panels.tables import chosen, columns, table_height
from ui.past import Past
from ui.problems import plain
from ui.scene import Scene
from ui.view_models.blocks import BatchRow, BlockRow, blocks_view

_TEXT = 1_200  # characters of a block that are drawn
_BRIEF = 300


def draw(scene: Scene, past: Past, *, brief: bool) -> None:
    """Draw the blocks of the prompt, and the batches that were flushed into them."""
    view = blocks_view(scene.assembly, scene.blocks, past.newest(), scene.stored)
    for row in view.rows:
        _block(row, _BRIEF if brief else _TEXT)
    st.markdown("**What went into which block**, newest first")
    if not view.batches:
        st.caption(
            "Nothing yet. When the queue holds more than its share of the limit, its oldest "
            "turns are flushed: they leave the prompt and are given to each block."
        )
        return
    _batches(view.batches, scene.turn)


def _block(row: BlockRow, most: int) -> None:
    mark = ":green[**✓ in**]" if row.inside else ":red[**✗ out**]"
    st.markdown(
        f"{mark} **{plain(row.name)}** · {plain(row.kind)} · priority {row.priority} · "
        f"{row.tokens:,} tokens"
    )
    if not row.inside:
        st.caption(plain(row.standing))
    if row.text:
        cut = len(row.text) - most
        st.code(row.text[:most], language=None, wrap_lines=True)
        if cut > 0:
            st.caption(f"and {cut:,} characters more; the prompt has them all")


def _batches(rows: Sequence[BatchRow], turn: int) -> None:
    event = st.dataframe(
        columns(
            [
                {
                    "turn": row.turn,
                    "block": row.block,
                    "messages": row.count,
                    "": ("✗ " if row.waits else "") + row.outcome,
                }
                for row in rows
            ]
        ),
        key=f"blocks-batches-{turn}",
        hide_index=True,
        height=table_height(len(rows)),
        on_select="rerun",
        selection_mode="single-row",
        alt="Batches of messages given to memory blocks, newest first",
    )
    picked = chosen(event, rows)
    if picked is not None:
        st.code(picked.text, language=None, wrap_lines=True)
