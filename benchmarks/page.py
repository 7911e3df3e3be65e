"""A knob of the Playground at 5,000 messages against the same at 50: the whole script's rerun.

The page runs in process (AppTest), so this is the server's part; what goes to the browser is
counted and bounded by ``tests/app/test_limits.py``, the same at any length.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.report import report

if TYPE_CHECKING:
    from streamlit.testing.v1 import AppTest

ROOT = Path(__file__).resolve().parents[1]
ROUNDS = 15
SIZES = (50, 5_000)


def _open(messages: int) -> AppTest:
    """Return the page on a session of so many messages."""
    from streamlit.testing.v1 import AppTest

    from ui import resources, sessions
    from ui.state import PageState

    engine = resources.loader().wait(120)
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=120)
    at.run()
    page: PageState = at.session_state["memory_inspector"]
    sessions.open_new(page, engine, settings=page.settings.with_(summarise=False))
    chat = page.chat
    if chat is None:
        raise SystemExit("the page opened no chat")
    chat.configure(chat.settings.with_(recall=False, remember_turns=False))
    for turn in range(messages // 2):
        chat.play(f"In week {turn} we baked {turn * 3} loaves of rye.", f"Noted for week {turn}.")
    sessions.use_settings(page, engine, page.settings.with_(recall=True, remember_turns=True))
    at.run()
    return at


def _turn_knob(at: AppTest, value: int) -> float:
    """Move the token limit and return the seconds until the page is drawn."""
    (slider,) = [s for s in (*at.slider, *at.select_slider) if s.label == "Token limit"]
    slider.set_value(value)
    began = time.perf_counter()
    at.run()
    spent = time.perf_counter() - began
    if at.exception:
        raise SystemExit(str(at.exception))
    return spent


def main() -> None:
    """Measure both sizes in turns, each move to a limit that was not shown before."""
    warnings.simplefilter("ignore")
    times: dict[int, list[float]] = {size: [] for size in SIZES}
    with tempfile.TemporaryDirectory() as name:
        os.environ["MEMORY_INSPECTOR_DATA"] = name
        pages = {size: _open(size) for size in SIZES}
        for number in range(ROUNDS):
            for size, at in pages.items():
                times[size].append(_turn_knob(at, 1_000 + 50 * number))
    medians = {size: statistics.median(values) for size, values in times.items()}
    for size, spent in medians.items():
        print(f"a move of the token limit at {size:,} messages: {spent * 1e3:.0f} ms")
    report(
        "page",
        {"growth_5k": medians[5_000] / medians[50]},
        {"milliseconds": {size: spent * 1e3 for size, spent in medians.items()}},
    )
