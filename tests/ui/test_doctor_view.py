"""The Doctor's notes as rows: each with its title, the numbers and what avoids the fault."""

from __future__ import annotations

from pathlib import Path

from memory_core.engine import Engine
from memory_core.models.catalogue import ModelChoice
from memory_core.settings import MemorySettings
from memory_core.stores.vectors.chroma import open_chroma
from memory_core.strategies import default_setup
from memory_core.testing import HashEmbedder
from tests.core.made_sessions import sqlite
from ui.view_models.doctor import doctor_view


def test_a_healthy_turn_has_no_notes_and_an_oversized_one_has(tmp_path: Path) -> None:
    """A small chat is silent; one message over the limit is named with its numbers."""
    engine = Engine(store=sqlite(tmp_path), vectors=open_chroma(), embedder=HashEmbedder())
    info = engine.create("local", "doctor", settings={})
    chat = engine.chat(info.key, settings=MemorySettings(), model=ModelChoice())
    healthy = list(chat.stream("My name is Dana."))[-1].trace
    assert doctor_view(healthy, ()).notes == ()
    chat.run_as(default_setup("chat_memory_buffer", "simple_chat_engine"))
    knobs = type(chat.setup.knobs)(token_limit=20)
    chat.run_as(type(chat.setup)(chat.setup.strategy, chat.setup.agent, knobs))
    long = list(chat.stream("a long question about the tram " * 12))[-1].trace
    view = doctor_view(long, (healthy,))
    assert view.notes
    assert all(note.title and note.text and note.advice for note in view.notes)
    assert any("20" in note.text for note in view.notes)
    engine.close()
