"""A real server and a real browser: Debian's chromium, driven by Playwright.

Where there is no browser the tests are skipped and say so; with ``CI=true`` that is a failure.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).resolve().parents[2]
CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
PATIENCE = 180  # seconds; nothing is timed, a busy machine is slow
SHOTS = Path(os.environ.get("SCREENSHOTS", ROOT / "screenshots"))


class Server:
    """``streamlit run app.py`` on a free port with its own data folder."""

    def __init__(self, folder: Path, **environ: str) -> None:
        self.folder = folder
        self.log = folder / "server.log"
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self._environ = {
            **{k: v for k, v in os.environ.items() if k != "OPENAI_API_KEY"},
            "MEMORY_INSPECTOR_DATA": str(folder / "data"),
            **environ,
        }
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The address of the Playground."""
        return f"http://localhost:{self.port}"

    def start(self) -> None:
        """Start and wait until it answers."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "streamlit", "run", "app.py", f"--server.port={self.port}"],
                cwd=ROOT,
                env=self._environ,
                stdout=log,
                stderr=log,
            )
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            try:
                with socket.create_connection(("localhost", self.port), timeout=5):
                    return
            except OSError:
                assert self._process.poll() is None, self.log.read_text()
                time.sleep(0.2)
        raise AssertionError(self.log.read_text())

    def stop(self) -> int:
        """Stop it as Ctrl-C does and return how it ended."""
        if self._process is None:
            return 0
        self._process.terminate()
        code = self._process.wait(30)
        self._process = None
        return code


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """Return a function that starts a server; all are stopped at the end."""
    started: list[Server] = []

    def start(**environ: str) -> Server:
        server = Server(tmp_path, **environ)
        server.start()
        started.append(server)
        return server

    yield start
    for server in started:
        server.stop()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Return a server for tests that leave nothing behind which another one would see."""
    server = Server(tmp_path_factory.mktemp("server"), MEMORY_INSPECTOR_VISITORS="separate")
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Return a browser for the whole run."""
    if not Path(CHROMIUM).exists():
        message = f"no browser at {CHROMIUM}: apt-get install chromium"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
        yield opened
        opened.close()
