"""A progress bar for work that is done while the page is drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import streamlit as st


@contextmanager
def bar(text: str) -> Iterator[Callable[[int, int], None]]:
    """Draw a bar and give what moves it, told of how many of how many; it goes away at the end.

    The browser hears of whole percents only, however often it is moved.
    """
    drawn, last = st.progress(0.0, text), 0

    def move(done: int, total: int) -> None:
        nonlocal last
        percent = min(100, 100 * done // max(total, 1))
        if percent != last:
            last = percent
            drawn.progress(percent, text)

    try:
        yield move
    finally:
        drawn.empty()
