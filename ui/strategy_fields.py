"""One field of a form for each knob of a strategy, whatever its kind."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import streamlit as st

from memory_core.errors import InvalidInput

if TYPE_CHECKING:
    from memory_core.native.knobs import Knob


def draw(knob: Knob, value: Any, key: str, **more: Any) -> None:
    """Draw the field of a knob under this key; ``more`` is handed to the widget."""
    label = knob.name.replace("_", " ")
    if knob.kind in ("int", "float"):
        kind: Callable[[Any], Any] = int if knob.kind == "int" else float
        st.number_input(
            label,
            min_value=kind(knob.low) if knob.low is not None else None,
            max_value=kind(knob.high) if knob.high is not None else None,
            value=kind(value),
            step=kind(knob.step) if knob.step else None,
            key=key,
            help=knob.help,
            **more,
        )
    elif knob.kind == "bool":
        st.toggle(label, bool(value), key=key, help=knob.help, **more)
    elif knob.kind == "choice":
        at = knob.choices.index(str(value))
        st.selectbox(label, knob.choices, at, key=key, help=knob.help, **more)
    elif knob.kind == "blocks":
        text = json.dumps(value, ensure_ascii=False, indent=1)
        st.text_area(f"{label}, as JSON", text, height=240, key=key, help=knob.help, **more)
    elif knob.name == "name":
        st.text_input(label, str(value), key=key, help=knob.help, **more)
    else:
        st.text_area(label, str(value), key=key, help=knob.help, **more)


def read(knob: Knob, value: Any) -> Any:
    """Return what a field holds as the knob's own kind of value.

    Raises :class:`InvalidInput` for blocks that are no JSON.
    """
    if knob.kind != "blocks":
        return value
    try:
        return json.loads(str(value))
    except ValueError as exc:
        raise InvalidInput(f"The {knob.name} are no JSON: {exc}.") from exc
