"""A GGUF file, served in process: llama.cpp's own OpenAI-compatible server on a loopback port.

Opt-in: needs ``xllamacpp`` (``requirements-local.txt``). Each server has a random key, so that
neither other users of this machine nor pages in a browser can use it. :func:`serve` starts one
per file and keeps it; they stop with the process or by :func:`stop_all`.
"""

from __future__ import annotations

import atexit
import os
import secrets
import threading
from pathlib import Path
from typing import Any

from memory_core.errors import InvalidInput, ModelRefused

_MAGIC = b"GGUF"
_LOCK = threading.Lock()
_running: dict[Path, LocalServer] = {}


class LocalServer:
    """A running llama.cpp server.

    ``base_url`` and ``key`` are what a client needs; ``context_window`` is in tokens.
    """

    def __init__(self, path: Path, *, context_window: int) -> None:
        """Start serving a file; returns when the server answers.

        Raises :class:`InvalidInput` when the file is not there or no GGUF file,
        :class:`ModelRefused` when ``xllamacpp`` is missing or cannot load the model.
        """
        self.path = checked_path(path)
        self.context_window = context_window
        self.key = secrets.token_urlsafe(24)
        self._server: Any = _start(self.path, context_window, self.key)
        self.base_url = f"{self._server.listening_address}/v1"

    def stop(self) -> None:
        """Stop serving and free the model's memory; harmless when stopped."""
        self._server = None  # subtle: the destructor of the C++ object stops and joins

    @property
    def running(self) -> bool:
        """Whether the server was not stopped."""
        return self._server is not None


def serve(path: str | Path, *, context_window: int) -> LocalServer:
    """Return the server of a file, started on first use or with another context window."""
    resolved = checked_path(path)
    with _LOCK:
        server = _running.get(resolved)
        if server is not None and server.running and server.context_window == context_window:
            return server
        if server is not None:
            server.stop()
        _running[resolved] = LocalServer(resolved, context_window=context_window)
        return _running[resolved]


def stop_all() -> None:
    """Stop every server that :func:`serve` started."""
    with _LOCK:
        for server in _running.values():
            server.stop()
        _running.clear()


atexit.register(stop_all)


def checked_path(path: str | Path) -> Path:
    """Return the full path of a GGUF file; raise :class:`InvalidInput` when it is none."""
    try:
        resolved = Path(path).expanduser().resolve()
        with resolved.open("rb") as file:
            magic = file.read(len(_MAGIC))
    except (OSError, ValueError, RuntimeError) as exc:
        raise InvalidInput(
            f"The model file {str(path)!r:.200} cannot be opened.",
            next_step="Give the path of a GGUF file on this machine.",
        ) from exc
    if magic != _MAGIC:
        raise InvalidInput(
            f"{resolved.name} is no GGUF file.",
            next_step="Give the path of a GGUF file on this machine.",
        )
    return resolved


def _start(path: Path, context_window: int, key: str) -> Any:
    try:
        import xllamacpp
    except ImportError as exc:
        raise ModelRefused(
            "Local GGUF files need the package xllamacpp, which is not installed.",
            next_step="Run: pip install -r requirements-local.txt, then start the app again.",
        ) from exc
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.model_alias = {path.stem}
    params.hostnames = ["127.0.0.1"]
    params.port = 0  # the system chooses a free one
    params.api_keys = [key]
    params.n_ctx = context_window
    params.n_parallel = 1
    params.use_jinja = True
    params.offline = True
    params.warmup = False
    params.ui = False
    for cpu in (params.cpuparams, params.cpuparams_batch):
        cpu.poll = 0  # wait without spinning, on half of the cores: the page needs some too
        cpu.n_threads = max(1, (os.cpu_count() or 2) // 2)
    params.verbosity = 0
    try:
        return xllamacpp.Server(params)
    except (RuntimeError, ValueError) as exc:
        raise ModelRefused(
            f"llama.cpp cannot load {path.name}.",
            next_step="Check that the file is whole and that it fits in memory, then Retry.",
        ) from exc
