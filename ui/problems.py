"""How an error is shown: what happened and what to do next, never a traceback."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import streamlit as st

from memory_core.errors import MemoryInspectorError

log = logging.getLogger("ui.problems")

UNEXPECTED = "Something failed inside the program. Nothing that was stored is lost."
UNEXPECTED_STEP = "Try again; the details are in the log of the server."


def show(error: MemoryInspectorError) -> None:
    """Draw an error of the family."""
    st.error(plain(f"{error}\n\n{error.next_step}".strip()), icon=":material/error:")


@contextmanager
def caught(tell: Callable[[MemoryInspectorError], None], what: str) -> Iterator[None]:
    """Pass what goes wrong to ``tell``, as an error of the family.

    Of anything else the details go to the log and a plain sentence to ``tell``.
    """
    try:
        yield
    except MemoryInspectorError as exc:
        tell(exc)
    except Exception:
        log.exception("%s failed unexpectedly", what)
        tell(MemoryInspectorError(f"{UNEXPECTED} ({what})", next_step=UNEXPECTED_STEP))


def guarded(what: str) -> AbstractContextManager[None]:
    """Draw what goes wrong in the place of what failed; the rest of the page goes on."""
    return caught(show, what)


def plain(text: str) -> str:
    """Escape what Markdown would read in a message that quotes other people's text."""
    return "".join(f"\\{c}" if c in r"\`*_{}[]<>#+-.!|$~:" else c for c in text)
