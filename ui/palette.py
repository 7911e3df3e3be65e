"""One colour, letter and name per source of a prompt, the same in every panel and chart.

The colours are the eight of Okabe and Ito (2008), told apart with every common kind of colour
blindness, and greys for what is no memory. Colour never stands alone: the letter is beside it,
and bars carry a pattern where two sources share a hue.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from memory_core.prompt import Source

BLUE, SKY, GREEN, ORANGE = "#0072B2", "#56B4E9", "#009E73", "#E69F00"
YELLOW, RED, PINK, GREY = "#F0E442", "#D55E00", "#CC79A7", "#8C8C8C"
LIGHT_GREY, DARK_GREY = "#BDBDBD", "#5F5F5F"


@dataclass(frozen=True)
class Swatch:
    """How a source looks: colour as hex, its letter, its name, a bar pattern ("" for plain)."""

    colour: str
    letter: str
    label: str
    pattern: str = ""

    @property
    def ink(self) -> str:
        """The colour that a letter on it is read in."""
        return "#fff" if self.colour in (BLUE, GREEN, RED, DARK_GREY) else "#1c2733"


SWATCHES: Mapping[Source, Swatch] = {
    Source.SYSTEM: Swatch(GREY, "S", "system prompt"),
    Source.TOOLS: Swatch(LIGHT_GREY, "T", "tool definitions", "/"),
    Source.STATE: Swatch(YELLOW, "J", "state"),
    Source.FACTS: Swatch(ORANGE, "K", "key facts"),
    Source.SUMMARY: Swatch(GREEN, "Σ", "summary"),
    Source.RETRIEVED: Swatch(PINK, "R", "retrieved"),
    Source.BLOCK: Swatch(RED, "M", "memory block"),
    Source.DOCUMENTS: Swatch(SKY, "D", "documents"),
    Source.BUFFER: Swatch(BLUE, "B", "buffer"),
    Source.STEPS: Swatch(SKY, "A", "agent steps", "x"),
    Source.FORMAT: Swatch(DARK_GREY, "F", "format"),
    Source.UNKNOWN: Swatch(DARK_GREY, "?", "not explained", "."),
}


def swatch(source: Source) -> Swatch:
    """Return how a source looks."""
    return SWATCHES[source]


def translucent(colour: str, alpha: float) -> str:
    """Return a hex colour as CSS ``rgba`` that lets the page's own background through.

    >>> translucent("#0072B2", 0.25)
    'rgba(0, 114, 178, 0.25)'
    """
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, {alpha})"
