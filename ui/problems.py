"""How an error is shown: what happened and what to do next, never a traceback."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

from memory_core.errors import MemoryInspectorError
from ui.live import UNEXPECTED

log = logging.getLogger("ui.problems")


def show(error: MemoryInspectorError) -> None:
    """Draw an error of the family."""
    st.error(plain(f"{error}\n\n{error.next_step}".strip()), icon=":material/error:")


@contextmanager
def guarded(what: str) -> Iterator[None]:
    """Draw an error in the place of what failed; the rest of the page goes on."""
    try:
        yield
    except MemoryInspectorError as exc:
        show(exc)
    except Exception:
        log.exception("%s failed unexpectedly", what)
        st.error(
            f"{UNEXPECTED} ({what}; details are in the server's log.)", icon=":material/error:"
        )


def plain(text: str) -> str:
    """Escape what Markdown would read in a message that quotes other people's text."""
    return "".join(f"\\{c}" if c in r"\`*_{}[]<>#+-.!|$~:" else c for c in text)
