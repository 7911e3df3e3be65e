"""What the panels' tables share: a height that fits, and the row that was selected."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

Row = TypeVar("Row")

_ROW, _HEAD = 35, 38  # pixels, Streamlit's own
_MOST = 8  # rows in sight before a table scrolls


def table_height(rows: int) -> int:
    """Return the height in pixels of a table of so many rows."""
    return _HEAD + _ROW * min(max(rows, 1), _MOST)


def chosen(event: Any, rows: Sequence[Row]) -> Row | None:
    """Return the row that is selected in a table drawn with ``on_select``."""
    selected = event.selection.rows
    return rows[selected[0]] if selected and selected[0] < len(rows) else None
