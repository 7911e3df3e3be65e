"""Colours with their letters and words, as one line of HTML."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from ui.palette import BLUE, DARK_GREY, GREEN, PINK
from ui.view_models.why import Look

_CHIP = (
    "display:inline-block;min-width:1.2em;height:1.2em;line-height:1.2em;text-align:center;"
    "font-size:.75rem;border:1px solid #8C8C8C66;margin-right:.25em;background:"
)
_DARK = (BLUE, GREEN, PINK, DARK_GREY)  # white letters are read better on these


def legend_html(looks: Sequence[Look]) -> str:
    """Return what each colour and letter stands for."""
    items = "".join(
        f'<span style="white-space:nowrap"><span style="{_CHIP}{look.colour}{_ink(look)}">'
        f"{escape(look.letter)}</span>{escape(look.words)}</span>"
        for look in looks
    )
    return f'<div style="display:flex;flex-wrap:wrap;gap:.3em .9em;font-size:.8rem">{items}</div>'


def _ink(look: Look) -> str:
    return ";color:#fff" if look.colour in _DARK else ""
