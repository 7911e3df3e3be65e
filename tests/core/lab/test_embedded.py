"""Embeddings on disk: no text is embedded twice, and a bad file costs nothing but time."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import numpy as np
import pytest

from memory_core.errors import ModelUnreachable
from memory_core.lab import embedded
from memory_core.lab.embedded import EmbeddingCache
from memory_core.testing import HashEmbedder

TEXTS = ["one", "two", "two", "日本語 🙂", "half \ud83d"]


def test_a_text_is_embedded_once_a_model(tmp_path: Path) -> None:
    """What was embedded before is read back the same to the last bit; another model starts anew."""
    cache, model, other = EmbeddingCache(tmp_path / "e.sqlite"), HashEmbedder(), HashEmbedder(8)
    first = cache.embed(TEXTS, model)
    assert model.embedded == 4
    again = EmbeddingCache(tmp_path / "e.sqlite").embed([*TEXTS, "three"], model)
    assert model.embedded == 5
    assert np.array_equal(again[:5], first)
    assert np.array_equal(first[1], first[2])
    assert cache.embed(TEXTS, other).shape == (5, 8)


def test_progress_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Progress counts distinct texts, those that were known from the start included."""
    monkeypatch.setattr(embedded, "BATCH", 2)
    cache, told = EmbeddingCache(tmp_path / "e.sqlite"), []
    cache.embed(["a"], HashEmbedder())
    texts = ["a", "b", "c", "d", "e"]
    cache.embed(texts, HashEmbedder(), progress=lambda *step: told.append(step))
    assert told == [(1, 5), (3, 5), (5, 5)]
    assert cache.embed([], HashEmbedder()).shape == (0, 0)


def test_an_interrupted_run_keeps_what_it_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the model fails on the way, what it made before is there at the next call."""
    monkeypatch.setattr(embedded, "BATCH", 1)

    class Failing(HashEmbedder):
        def embed(self, texts):
            if "bad" in texts:
                raise ModelUnreachable("gone")
            return super().embed(texts)

    cache, model = EmbeddingCache(tmp_path / "e.sqlite"), Failing()
    with pytest.raises(ModelUnreachable):
        cache.embed(["a", "b", "bad", "c"], model)
    cache.embed(["a", "b"], model)
    assert model.embedded == 2


@pytest.mark.parametrize("bad", [b"no database at all" * 99, b"SQLite format 3\0" + b"\xff" * 4096])
def test_a_damaged_file_is_set_aside(tmp_path: Path, bad: bytes) -> None:
    """A file that is no database is kept beside, and embeddings are kept again."""
    file = tmp_path / "e.sqlite"
    file.write_bytes(bad)
    model = HashEmbedder()
    EmbeddingCache(file).embed(["a"], model)
    EmbeddingCache(file).embed(["a"], model)
    assert model.embedded == 1
    assert (tmp_path / "e.sqlite.damaged").read_bytes() == bad


@pytest.mark.parametrize(
    "spoil",
    [
        "UPDATE vectors SET vector = x'00'",
        "UPDATE vectors SET vector = 'text'",
        "UPDATE vectors SET vector = x'0000807f0000c07f'",
        "UPDATE vectors SET vector = NULL",
        "DROP TABLE vectors; CREATE TABLE vectors (a, b)",
    ],
)
def test_bad_rows_are_made_anew(tmp_path: Path, spoil: str) -> None:
    """Rows that are no vectors, or a table of somebody else, count as not there."""
    cache, model = EmbeddingCache(tmp_path / "e.sqlite"), HashEmbedder()
    first = cache.embed(["a", "b"], model)
    with sqlite3.connect(tmp_path / "e.sqlite") as db:
        db.executescript(spoil)
    db.close()
    assert np.array_equal(cache.embed(["a", "b"], model), first)


def test_a_model_that_changed_its_length_is_asked_again(tmp_path: Path) -> None:
    """Old vectors of another length are replaced, so that all of a call are alike."""
    cache = EmbeddingCache(tmp_path / "e.sqlite")
    cache.embed(["a", "b"], HashEmbedder(8, name="same"))
    assert cache.embed(["a", "b", "c"], HashEmbedder(16, name="same")).shape == (3, 16)
    last = HashEmbedder(16, name="same")
    cache.embed(["a", "b", "c"], last)
    assert last.embedded == 0


def test_without_a_place_it_still_embeds(tmp_path: Path) -> None:
    """Where no file can be written, or none is wanted, embedding goes on."""
    (tmp_path / "file").write_text("in the way")
    for cache in (EmbeddingCache(tmp_path / "file" / "e.sqlite"), EmbeddingCache()):
        assert cache.embed(["a"], HashEmbedder()).shape == (1, 64)


def test_threads_share_a_file(tmp_path: Path) -> None:
    """Several at once lose nothing."""
    cache, made = EmbeddingCache(tmp_path / "e.sqlite"), {}

    def work(number: int) -> None:
        made[number] = cache.embed([f"{number}-{i}" for i in range(40)], HashEmbedder())

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    model = HashEmbedder()
    for number, vectors in made.items():
        texts = [f"{number}-{i}" for i in range(40)]
        assert np.array_equal(cache.embed(texts, model), vectors)
    assert model.embedded == 0
