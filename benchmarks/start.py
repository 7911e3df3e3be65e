"""From the command to the first usable chat, against an empty Streamlit page.

Usable means that the chat's input box stands there and takes text; what is typed is answered as
soon as the engine, loading behind the page, is ready. How long that takes is in the detail.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

from benchmarks.browser import ROOT, browser, server, wait_until_up
from benchmarks.report import report

ROUNDS = 5
EMPTY = "import streamlit as st\n\nst.chat_input('Say something')\n"
INPUT = '[data-testid="stChatInput"] textarea:not([disabled])'


def main() -> None:
    """Start both in turns and print the medians."""
    times: dict[str, list[float]] = {"empty": [], "app": [], "answer": []}
    with tempfile.TemporaryDirectory() as name, browser() as chromium:
        folder = Path(name)
        empty = folder / "empty.py"
        empty.write_text(EMPTY, encoding="utf-8")
        for number in range(ROUNDS):
            for which, script in (("empty", empty), ("app", ROOT / "app.py")):
                page = chromium.new_page()
                began = time.perf_counter()
                with server(script, folder / f"data-{number}") as address:
                    wait_until_up(address)
                    page.goto(address)
                    page.wait_for_selector(INPUT, timeout=60_000)
                    times[which].append(time.perf_counter() - began)
                    if which == "app":
                        page.fill(INPUT, "Hi, I'm Dana and I can't eat nuts")
                        page.keyboard.press("Enter")
                        page.wait_for_selector(
                            '[data-testid="stChatMessage"] >> nth=1', timeout=120_000
                        )
                        times["answer"].append(time.perf_counter() - began)
                page.close()
    medians = {name: statistics.median(values) for name, values in times.items()}
    print(f"empty Streamlit page: {medians['empty']:.2f} s from the command to its input box")
    print(f"Memory Inspector: {medians['app']:.2f} s to its input box")
    print(f"Memory Inspector: {medians['answer']:.2f} s to the first answer, typed at once")
    report("start", {"first_paint_ratio": medians["app"] / medians["empty"]}, medians)
