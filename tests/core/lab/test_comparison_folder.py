"""Saved comparisons: the same when reopened, sealed with the store, a user's own, forgotten."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memory_core.config import EngineConfig
from memory_core.engine import open_engine
from memory_core.errors import InvalidInput, MemoryInspectorError, NotFound
from memory_core.lab.comparison import PROMPTS, Comparison
from memory_core.lab.comparison_folder import (
    ComparisonFolder,
    comparisons_of,
    forget_comparisons,
    from_json,
    to_json,
)
from memory_core.lab.side_by_side import compare
from memory_core.redaction import KINDS, Redactor
from memory_core.stores.encryption import Sealed, new_key
from memory_core.strategies import BUFFER, MEMORY_BLOCKS
from tests.core.lab.test_compare import configured, engine, spoken

__all__ = ["engine"]


@pytest.fixture
def made(engine) -> Comparison:
    """Return a comparison of three strategies."""
    three = [configured("ours"), configured("buffer", BUFFER), configured("blocks", MEMORY_BLOCKS)]
    talk = spoken(["<b>nuts</b> from ana@example.org", "the tram", "and so on " * 40])
    return compare(talk, three, mode=PROMPTS, engine=engine)


def test_reopened_it_is_the_same(made, tmp_path):
    """What was saved comes back equal, under its name, newest first; deleting erases it."""
    folder = ComparisonFolder(tmp_path / "mine")
    assert folder.list() == []
    one, two = folder.save(made, "  three  ways "), folder.save(made, "again")
    assert folder.load(one.id) == ("three ways", made)
    assert {saved.name for saved in folder.list()} == {"three ways", "again"}
    assert folder.save(made, "three ways").id == one.id
    folder.delete(one.id)
    folder.delete(one.id)
    assert [saved.id for saved in folder.list()] == [two.id]
    with pytest.raises(NotFound):
        folder.load(one.id)
    with pytest.raises(InvalidInput):
        folder.save(made, " \n ")


def test_another_user_does_not_see_it(made, tmp_path):
    """Folders are apart, ids cannot leave them, and forgetting one user keeps the other's."""
    ana, bob = (ComparisonFolder(comparisons_of(tmp_path, user)) for user in ("ana", "bob"))
    kept = ana.save(made, "mine")
    assert bob.list() == []
    for stranger in (kept.id, f"../ana/{kept.id}", "..", "", "x" * 24):
        with pytest.raises(NotFound):
            bob.load(stranger)
    bob.save(made, "his")
    forget_comparisons(tmp_path, "ana")
    assert ana.list() == []
    assert [saved.name for saved in bob.list()] == ["his"]


def test_forget_me_erases_saved_comparisons(made, tmp_path):
    """Forgetting a user erases their comparisons with everything else, and nobody else's."""
    opened = open_engine(EngineConfig(folder=tmp_path / "data"))
    try:
        for user in ("ana", "bob"):
            ComparisonFolder(comparisons_of(tmp_path / "data", user)).save(made, "mine")
        opened.forget_user("ana")
    finally:
        opened.close()
    assert not comparisons_of(tmp_path / "data", "ana").exists()
    assert ComparisonFolder(comparisons_of(tmp_path / "data", "bob")).list()


def test_it_is_sealed_and_redacted_as_the_store_is(made, tmp_path):
    """With a key no word stands in the file; with redaction no address does."""
    sealed = ComparisonFolder(tmp_path / "sealed", cipher=Sealed.of([new_key()]))
    kept = sealed.save(made, "secret name")
    assert sealed.load(kept.id) == ("secret name", made)
    data = next((tmp_path / "sealed").iterdir()).read_bytes()
    assert b"nuts" not in data
    assert b"secret" not in data
    assert ComparisonFolder(tmp_path / "sealed").list() == []
    with pytest.raises(MemoryInspectorError):
        ComparisonFolder(tmp_path / "sealed").load(kept.id)
    redacted = ComparisonFolder(tmp_path / "redacted", redactor=Redactor(KINDS))
    redacted.save(made, "of ana@example.org")
    assert b"ana@example.org" not in next((tmp_path / "redacted").iterdir()).read_bytes()


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("kind",), "other"),
        (("version",), 2),
        (("mode",), "dreams"),
        (("columns",), []),
        (("columns",), "x"),
        (("made",), "yesterday"),
        (("columns", 0, "how"), "guessed"),
        (("columns", 0, "turns", 0, "runs"), [[0, 99]]),
        (("columns", 0, "turns", 0, "tokens"), {"buffer": "many"}),
        (("columns", 0, "asked", 0, "where"), []),
        (("columns", 0, "settings", "top_k"), -5),
        (("columns", 0, "setup", "strategy"), "unknown"),
        (("columns", 0, "spent"), None),
        (("questions", 0, "evidence"), [99]),
        (("lines", 0), 7),
    ],
)
def test_a_file_that_cannot_be_believed_is_refused(made, path, value):
    """Whatever was changed in a file, it is refused with a reason and never half read."""
    whole = json.loads(json.dumps(to_json(made)))
    assert from_json(whole) == made
    at = whole
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    with pytest.raises(InvalidInput, match="cannot be opened"):
        from_json(whole)


def test_a_damaged_file_is_passed_over_and_refused(made, tmp_path):
    """A list goes on without it; opening it says why it cannot be."""
    folder = ComparisonFolder(tmp_path)
    kept = folder.save(made, "one")
    file = Path(tmp_path / f"{kept.id}.comparison")
    file.write_bytes(file.read_bytes()[:60])
    with pytest.raises(InvalidInput):
        folder.load(kept.id)
    file.write_bytes(b"\xff\xfe")
    assert folder.list() == []
