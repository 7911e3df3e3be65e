"""Looking back in a real browser: a click in the matrix, a counterfactual side by side."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from memory_core.config import read_config
from memory_core.engine import open_engine
from tests.app.played import play

sync_api = pytest.importorskip("playwright.sync_api")
ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 90_000  # milliseconds; a busy machine may be slow, nothing is timed

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    """Play a session into a folder and serve the app over it; return its address and the id."""
    folder = tmp_path_factory.mktemp("inspect")
    environment = {**os.environ, "MEMORY_INSPECTOR_DATA": str(folder)}
    for name in ("MEMORY_STORE_URL", "CHROMA_URL", "CHROMA_PATH", "OPENAI_API_KEY"):
        environment.pop(name, None)
    engine = open_engine(read_config(environment, {}))
    key = play(engine).key
    engine.close()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(port)]
    with (folder / "server.log").open("w") as log:
        server = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log)
        yield f"http://localhost:{port}", key.session
        server.terminate()
        server.wait(30)


@pytest.fixture(scope="module")
def tab():
    """Open one browser tab."""
    with sync_api.sync_playwright() as playwright:
        found = shutil.which("chromium") or shutil.which("google-chrome")
        try:
            browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        except sync_api.Error as exc:
            pytest.skip(f"no browser here: {str(exc)[:80]}")
        page = browser.new_page(viewport={"width": 1440, "height": 1400})
        page.set_default_timeout(PATIENCE)
        yield page
        browser.close()


def go(tab, address, ready):
    """Open an address, also right after the server was started, and wait for a text."""
    for attempt in range(60):
        try:
            tab.goto(address)
            break
        except sync_api.Error:
            if attempt == 59:
                raise
            tab.wait_for_timeout(500)
    tab.get_by_text(ready).first.wait_for()


def test_click_on_a_cell_tells_its_life(tab, session):
    """A click in the matrix chooses the message and the turn of the cell under the pointer."""
    address, key = session
    go(tab, f"{address}/Why?session={key}&turn=14", "Its life")
    cells = tab.locator(".st-key-why-matrix .nsewdrag").first
    cells.wait_for()
    tab.locator(".st-key-why-matrix .point").first.wait_for(state="attached")
    box = cells.bounding_box()
    # 28 messages, newest on top: the second row from above is what was said in turn 14
    x, y = box["x"] + box["width"] * 0.97, box["y"] + box["height"] * 1.5 / 28
    tab.mouse.move(x, y)
    tab.mouse.click(x, y)
    tab.get_by_text(re.compile("Turn 14.* said by the user")).first.wait_for()


def test_counterfactual_stands_side_by_side(tab, session):
    """Replaying a turn without a message shows both prompts and both answers."""
    address, key = session
    go(tab, f"{address}/Why?session={key}&turn=3", "Its life")
    tab.get_by_role("button", name="Replay the turn").click()
    tab.get_by_text("As it would be").first.wait_for()
    assert tab.get_by_text("Answer").count() >= 2
