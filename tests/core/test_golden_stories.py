"""The life stories of the samples' planted facts, word for word as they were once read by a person.

Every sample is played with its scripted replies, then its questions are asked, under settings
tight enough that facts leave the buffer. ``UPDATE_GOLDEN=1`` writes the texts anew; read what
changed before it is committed.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from memory_core.config import EngineConfig
from memory_core.engine import open_engine
from memory_core.fate import MESSAGE
from memory_core.ledger import Ledger
from memory_core.models.catalogue import ModelChoice
from memory_core.samples import Sample, load_samples
from memory_core.settings import MemorySettings
from memory_core.stories import tell

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "stories"
TIGHT = MemorySettings(token_limit=700, tools=False)


def stories(sample: Sample, folder: Path) -> str:
    """Play a sample and its questions; return the story of each message that plants a fact."""
    engine = open_engine(EngineConfig(folder=folder))
    key = engine.create("local", sample.title, settings={}).key
    chat = engine.chat(key, settings=TIGHT, model=ModelChoice())
    for turn in sample.turns:
        chat.play(turn.user, turn.assistant)
    for question in sample.questions:
        chat.play(question.question, question.answer or "You did not say.")
    ledger = Ledger.fold(chat.trace(number) for number in range(1, chat.turns + 1))
    said = {m.turn: m for m in reversed(chat.messages) if m.message.role == "user"}
    told = []
    for number, turn in enumerate(sample.turns, start=1):
        for fact in turn.facts:
            stored = said[number]
            story = tell(ledger, MESSAGE, stored.id, stored).text
            told.append(f"## {fact.id}: {fact.text}\n{story}\n")
    engine.close()
    return "\n".join(told)


@pytest.mark.parametrize("sample", load_samples(), ids=lambda s: s.id)
def test_the_story_of_every_planted_fact(sample, tmp_path):
    """The story is the one that was checked by hand."""
    path = GOLDEN / f"{sample.id}.md"
    found = stories(sample, tmp_path)
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(found, encoding="utf-8")
    assert found == path.read_text(encoding="utf-8")
