"""Memory blocks as a form: any choice of them in any order, each with its own knobs.

The blocks being edited are a draft on the page state. A block keeps its number while it is
edited, so its fields keep their values when blocks are moved.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

import streamlit as st

from ui import strategy_fields
from ui.state import Draft, mine, value_of
from ui.view_models.blocks import KINDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memory_core.messages import Json

_NUMBER = "number"


def draw(blocks: Sequence[Json]) -> None:
    """Draw the draft; without one it begins with these blocks."""
    from memory_core.native import knobs

    page = mine()
    if page.blocks is None:
        page.blocks = [{**block, _NUMBER: number} for number, block in enumerate(blocks)]
    st.markdown("**Memory blocks**, in the order in which they stand in the prompt")
    for place, block in enumerate(page.blocks):
        kind = str(block["kind"])
        with st.container(border=True):
            with st.container(horizontal=True, vertical_alignment="center"):
                st.markdown(f"{place + 1}. {KINDS[kind]}")
                _button(block, "arrow_upward", "Up", -1, disabled=place == 0)
                _button(block, "arrow_downward", "Down", 1, disabled=place == len(page.blocks) - 1)
                _button(block, "delete", "Remove", 0)
            for knob in knobs.schema(knobs.BLOCK_KINDS[kind]):
                value = block.get(knob.name, knob.default)
                strategy_fields.draw(knob, value, _key(block, knob.name))
    full = len(page.blocks) >= knobs.MAX_BLOCKS
    with st.container(horizontal=True):
        for kind, title in KINDS.items():
            st.button(
                title,
                key=f"block-add-{kind}",
                icon=":material/add:",
                disabled=full,
                on_click=_add,
                args=(kind,),
            )


def read() -> list[Json]:
    """Return the blocks of the draft as the form has them."""
    from memory_core.native import knobs

    return [
        {
            "kind": block["kind"],
            **{
                knob.name: _value(block, knob.name, knob.default)
                for knob in knobs.schema(knobs.BLOCK_KINDS[str(block["kind"])])
            },
        }
        for block in mine().blocks or ()
    ]


def _value(block: Draft, name: str, default: Json) -> Any:
    typed = value_of(_key(block, name))
    return block.get(name, default) if typed is None else typed


def _key(block: Draft, name: str) -> str:
    return f"block-{block[_NUMBER]}-{name}"


def _button(block: Draft, icon: str, label: str, by: int, *, disabled: bool = False) -> None:
    st.button(
        label,
        key=_key(block, label.lower()),
        icon=f":material/{icon}:",
        type="tertiary",
        disabled=disabled,
        on_click=_move if by else _remove,
        args=(block, by) if by else (block,),
    )


def _add(kind: str) -> None:
    from memory_core.native import knobs

    page = mine()
    draft = page.blocks if page.blocks is not None else []
    made = knobs.to_json(knobs.BLOCK_KINDS[kind]())
    taken = {str(block["name"]) for block in read()}
    base = str(made["name"])
    names = (base if n == 1 else f"{base}{n}" for n in count(1))
    number = max((int(block[_NUMBER]) for block in draft), default=-1) + 1
    name = next(n for n in names if n not in taken)
    page.blocks = [*draft, {**made, "kind": kind, "name": name, _NUMBER: number}]


def _move(block: Draft, by: int) -> None:
    draft = mine().blocks or []
    place = draft.index(block)
    draft.insert(place + by, draft.pop(place))


def _remove(block: Draft) -> None:
    page = mine()
    page.blocks = [other for other in page.blocks or () if other is not block]
