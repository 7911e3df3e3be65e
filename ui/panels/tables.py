"""What the panels' tables share: lean data, a height that fits, the row that was selected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

Row = TypeVar("Row")

_ROW, _HEAD = 35, 38  # pixels, Streamlit's own
_MOST = 8  # rows in sight before a table scrolls


def columns(rows: Sequence[Mapping[str, object]]) -> Any:
    """Return rows as an Arrow table with small integers; a data frame weighs twice as much."""
    import pyarrow as pa

    names = list(rows[0]) if rows else []
    values = {name: [row[name] for row in rows] for name in names}
    return pa.table({name: _array(pa, column) for name, column in values.items()})


def table_height(rows: int) -> int:
    """Return the height in pixels of a table of so many rows."""
    return _HEAD + _ROW * min(max(rows, 1), _MOST)


def chosen(event: Any, rows: Sequence[Row]) -> Row | None:
    """Return the row that is selected in a table drawn with ``on_select``."""
    selected = event.selection.rows
    return rows[selected[0]] if selected and selected[0] < len(rows) else None


def _array(pa: Any, column: Sequence[object]) -> Any:
    whole = all(isinstance(value, int) or value is None for value in column)
    return pa.array(column, pa.int32()) if whole else pa.array(column)
