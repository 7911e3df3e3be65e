"""A sample conversation that was played in before the page is opened."""

from __future__ import annotations

from dataclasses import replace

from streamlit.testing.v1 import AppTest

from memory_core.engine import Engine
from memory_core.models.catalogue import ModelChoice
from memory_core.settings import MemorySettings
from memory_core.stores.protocols import SessionInfo
from tests.app.conftest import APP, PATIENCE, checked
from ui.player import samples

TIGHT = MemorySettings(token_limit=420, summary_every=4, tools=False)


def play(
    engine: Engine,
    *,
    turns: int = 14,
    settings: MemorySettings = TIGHT,
    title: str = "The bakery",
    sample: str = "bakery",
) -> SessionInfo:
    """Play the first turns of a sample into a new session of the local person."""
    info = engine.create("local", title, settings={})
    kept = {"memory": settings.to_json(), "model": ModelChoice().to_json()}
    engine.store.update(replace(info, settings=kept))
    chat = engine.chat(info.key, settings=settings, model=ModelChoice())
    said = next(s for s in samples() if s.id == sample).turns[:turns]
    for turn in said:
        chat.play(turn.user, turn.assistant)
    return engine.store.session(info.key)


def open_page(script: str, **query: str) -> AppTest:
    """Open one of the further pages as a visitor with this address would."""
    at = AppTest.from_file(APP, default_timeout=PATIENCE)
    at.switch_page(f"pages/{script}")
    for name, value in query.items():
        at.query_params[name] = value
    return checked(at.run())
