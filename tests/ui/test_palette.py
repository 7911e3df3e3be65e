"""The colours of the sources and the letters on them."""

from __future__ import annotations

import pytest

from memory_core.prompt import Source
from ui.palette import swatch

READABLE = 3.0  # contrast, as WCAG 2.1 asks for large or bold letters


def luminance(colour: str) -> float:
    """Return the relative luminance of a hex colour, by the formula of WCAG 2.1."""
    code = colour.removeprefix("#")
    code = code if len(code) == 6 else "".join(c * 2 for c in code)
    parts = [int(code[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("source", Source)
def test_the_letter_of_a_source_is_read_on_its_colour(source: Source):
    """No letter drowns in its own swatch."""
    look = swatch(source)
    low, high = sorted((luminance(look.colour), luminance(look.ink)))
    assert (high + 0.05) / (low + 0.05) >= READABLE
