"""What the slider, the fate ledger and why-not take in a browser at 5,000 messages against 50.

Each session is served by a server of its own and looked at in Chromium; the time is from the key
or click to the page that shows what was asked for, drawn to the end. The bound is 1.5 times what
it takes at 50 messages plus 300 ms; ``_of_bound`` is how much of it is used.
"""

from __future__ import annotations

import logging
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.browser import ROOT, browser, server, wait_until_up
from benchmarks.inspect import SIZES, play
from benchmarks.report import report
from memory_core.config import EngineConfig
from memory_core.engine import open_engine

if TYPE_CHECKING:
    from playwright.sync_api import Page

ROUNDS = 9
PATIENCE = 180_000  # milliseconds, for the first look at a page
_TEXT = "document.querySelector('[data-testid=\"stMainBlockContainer\"]').innerText"
_READY = '[data-testid="stApp"][data-test-script-state="notRunning"]'


def slide(page: Page, turn: int) -> None:
    """Move the slider a turn back and wait for that turn's question."""
    page.get_by_role("slider", name="Turn of").press("ArrowLeft")
    page.get_by_text(f"Turn {turn} · you:").wait_for()
    page.wait_for_selector(_READY)


def choose(page: Page, turn: int) -> None:
    """Click a cell of the matrix and wait for another life story."""
    box = page.locator(".st-key-why-matrix .nsewdrag").first.bounding_box()
    if box is None:
        raise SystemExit("there is no matrix on the page")
    x, y = box["x"] + box["width"] * 0.99, box["y"] + box["height"] * (0.1 + 0.07 * (turn % 10))
    page.mouse.move(x, y)
    page.evaluate(f"window.before = {_TEXT}")
    page.mouse.click(x, y)
    page.wait_for_function(f"window.before !== {_TEXT}")
    page.wait_for_selector(_READY)


def ask(page: Page, turn: int) -> None:
    """Ask why not at another turn and wait for the verdict."""
    field = page.get_by_role("spinbutton", name="At turn")
    field.fill(str(turn))
    field.press("Enter")
    page.get_by_text(f"the prompt of turn {turn}", exact=False).first.wait_for()
    page.wait_for_selector(_READY)


def look(chromium: object, folder: Path, size: int) -> dict[str, float]:
    """Return the median milliseconds of each at one size."""
    engine = open_engine(EngineConfig(folder=folder))
    key = play(engine, size).session.key
    engine.close()
    turns = size // 2
    times: dict[str, list[float]] = {"slider": [], "ledger": [], "why_not": []}
    steps: dict[str, Callable[[Page, int], None]] = {
        "slider": slide,
        "ledger": choose,
        "why_not": ask,
    }
    with server(ROOT / "app.py", folder) as address:
        wait_until_up(address)
        page = chromium.new_page(viewport={"width": 1440, "height": 1400})  # type: ignore[attr-defined]
        page.set_default_timeout(PATIENCE)
        for name, step in steps.items():
            where = "Time_travel" if name == "slider" else "Why"
            page.goto(f"{address}/{where}?session={key.session}&turn={turns}")
            page.get_by_text("Fork here" if name == "slider" else "Its life").first.wait_for()
            page.wait_for_timeout(3_000)
            page.wait_for_selector(_READY)
            for number in range(ROUNDS + 1):  # the first fills what is cached once per process
                began = time.perf_counter()
                step(page, turns - 1 - number)
                if number:
                    times[name].append((time.perf_counter() - began) * 1000)
                page.wait_for_timeout(300)
        page.close()
    return {name: statistics.median(spent) for name, spent in times.items()}


def main() -> None:
    """Look at both sizes and report."""
    logging.disable(logging.INFO)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name, browser() as chromium:
        found = {size: look(chromium, Path(name) / str(size), size) for size in SIZES}
    small, large = (found[size] for size in SIZES)
    for step, spent in small.items():
        print(f"{step:8} {spent:6.0f} ms at 50, {large[step]:6.0f} ms at 5,000")
    report(
        "inspect_browser",
        {f"{step}_of_bound": large[step] / (1.5 * spent + 300) for step, spent in small.items()},
        {str(size): {k: round(v) for k, v in spent.items()} for size, spent in found.items()},
    )
