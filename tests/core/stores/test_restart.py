"""A favourite colour told to one process and recalled in another, over stores and vectors."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from memory_core.config import EngineConfig
from memory_core.engine import open_engine
from memory_core.models.catalogue import ModelChoice
from memory_core.settings import MemorySettings
from tests.core.stores.backends import place
from tests.servers import chroma_server

ROOT = Path(__file__).resolve().parents[3]
KNOBS = MemorySettings(token_limit=700, summarise=False)
ASK = """
import sys
from pathlib import Path
from memory_core.config import EngineConfig
from memory_core.engine import open_engine
from memory_core.models.catalogue import ModelChoice
from memory_core.settings import MemorySettings

folder, store, chroma = sys.argv[1:]
engine = open_engine(EngineConfig(folder=Path(folder), store_url=store, chroma_url=chroma))
(info,) = engine.sessions("dana")
knobs = MemorySettings(token_limit=700, summarise=False)
chat = engine.chat(info.key, settings=knobs, model=ModelChoice())
for _ in chat.stream("What is my favourite colour?"):
    pass
trace = chat.trace(chat.turns)
print(chat.messages[-1].message.text)
print("in the buffer:", any("teal" in m.text for m in trace.assembly.messages[1:-1]))
print("somebody else's sessions:", len(engine.sessions("mallory")))
engine.close()
"""


@pytest.mark.parametrize(
    ("store", "vectors"),
    [
        ("sqlite", "embedded"),
        ("files", "embedded"),
        ("sqlite", "server"),
        ("postgresql", "server"),
        ("redis", "server"),
    ],
)
def test_a_colour_told_before_is_recalled_in_another_process(tmp_path, store, vectors):
    """The message has left the buffer; long-term memory brings it back after a restart."""
    server = chroma_server(tmp_path / "chroma") if vectors == "server" else None
    if server is not None:
        server.start()
    try:
        with place(store, tmp_path) as backend:
            url = server.url if server is not None else ""
            engine = open_engine(
                EngineConfig(folder=tmp_path / "data", store_url=backend.url, chroma_url=url)
            )
            chat = engine.chat(
                engine.create("dana", "colours", settings={}).key,
                settings=KNOBS,
                model=ModelChoice(),
            )
            chat.play("My favourite colour is teal.", "Noted.")
            for number in range(6):
                chat.play(f"The ferry number {number} was late again.", "I see. " * 20)
            engine.close()
            done = subprocess.run(
                [sys.executable, "-c", ASK, str(tmp_path / "data"), backend.url, url],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                capture_output=True,
                text=True,
                check=False,
            )
    finally:
        if server is not None:
            server.stop()
    assert done.returncode == 0, done.stderr
    answer, buffer, others = done.stdout.splitlines()
    assert "teal" in answer
    assert buffer == "in the buffer: False"
    assert others == "somebody else's sessions: 0"
