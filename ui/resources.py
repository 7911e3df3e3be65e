"""What all visitors share, and the one boundary between the frame and the heavy libraries.

The frame of a page is drawn from light modules only. :func:`start` then opens the engine in a
background thread, which imports LlamaIndex, Chroma, pandas and plotly; a page that finds
:func:`engine` empty draws itself without and looks again. Only clients and models are shared;
chats and memories live in each visitor's own state.
"""

from __future__ import annotations

import gc
import logging
import os
import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING

import streamlit as st

from memory_core.config import EngineConfig, read_config
from memory_core.errors import MemoryInspectorError

if TYPE_CHECKING:
    from memory_core.engine import Engine

log = logging.getLogger("ui.resources")


class Loader:
    """Opens the engine once, behind the page; a failed attempt can be made again."""

    def __init__(self, config: EngineConfig) -> None:
        self.config = config
        self._lock = threading.Lock()
        self._opening: Future[Engine] | None = None

    def start(self) -> None:
        """Begin, unless it has begun."""
        with self._lock:
            if self._opening is None:
                self._opening = Future()
                threading.Thread(
                    target=_open, args=(self.config, self._opening), name="engine", daemon=True
                ).start()

    def again(self) -> None:
        """Forget a failed attempt and make another."""
        with self._lock:
            if self._opening is not None and self._opening.done() and self._opening.exception():
                self._opening = None
        self.start()

    @property
    def settled(self) -> bool:
        """Whether the attempt is over, one way or the other."""
        return self._opening is not None and self._opening.done()

    def peek(self) -> Engine | None:
        """Return the engine if it is open; raise what kept it from opening."""
        opening = self._opening
        return opening.result() if opening is not None and opening.done() else None

    def wait(self, timeout: float) -> Engine:
        """Return the engine as soon as it is open.

        Raises what kept it from opening, or ``TimeoutError`` after ``timeout`` seconds.
        """
        self.start()
        opening = self._opening
        if opening is None:
            raise TimeoutError
        return opening.result(timeout)


def engine() -> Engine | None:
    """Return the shared engine, ``None`` while it loads; raise what kept it from opening."""
    return loader().peek()


def loader() -> Loader:
    """Return the loader of the configured engine."""
    return _loader(read_config(os.environ, secrets()))


def secrets() -> dict[str, object]:
    """Return ``.streamlit/secrets.toml`` as a dict, empty when there is none."""
    if not st.secrets.load_if_toml_exists():
        return {}
    return dict(st.secrets.to_dict())


@st.cache_resource(show_spinner=False)
def _loader(config: EngineConfig) -> Loader:
    return Loader(config)


def _open(config: EngineConfig, opening: Future[Engine]) -> None:
    try:
        from memory_core.engine import open_engine

        opened = open_engine(config)
        _warm_up()
        _settle_in()
    except MemoryInspectorError as exc:
        opening.set_exception(exc)
    except Exception as exc:
        log.exception("the engine did not open")
        error = MemoryInspectorError(
            "The engine did not start.",
            next_step="The details are in the log of the server; then try again.",
        )
        error.__cause__ = exc
        opening.set_exception(error)
    else:
        opening.set_result(opened)


def _warm_up() -> None:
    """Import what the panels draw with, so that the first panel does not wait for it."""
    import pandas as pd
    import plotly.io
    import plotly.tools
    import pyarrow as pa

    log.debug(
        "loaded pandas %s, plotly %s, pyarrow %s",
        pd.__version__,
        plotly.__version__,
        pa.__version__,
    )


def _settle_in() -> None:
    """Take what was loaded out of the garbage collector's sight.

    Streamlit collects garbage after every run of a script. With LlamaIndex, Chroma and pandas
    loaded that is 300,000 objects that never go away, and a quarter of a second each time.
    """
    gc.collect()
    gc.freeze()
