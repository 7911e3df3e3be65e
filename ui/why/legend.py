"""Colours with their letters and words, as one line of HTML."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from ui.view_models.why import Look

_CHIP = (
    "display:inline-block;min-width:1.2em;height:1.2em;line-height:1.2em;text-align:center;"
    "font-size:.75rem;border:1px solid #8C8C8C66;margin-right:.25em;background:"
)


def legend_html(looks: Sequence[Look]) -> str:
    """Return what each colour and letter stands for."""
    items = "".join(
        f'<span style="white-space:nowrap"><span style="{_CHIP}{look.colour}">'
        f"{escape(look.letter)}</span>{escape(look.words)}</span>"
        for look in looks
    )
    return f'<div style="display:flex;flex-wrap:wrap;gap:.3em .9em;font-size:.8rem">{items}</div>'
