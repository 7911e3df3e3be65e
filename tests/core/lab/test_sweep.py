"""The sweep as a whole: every text once, every cell, as soon as it is known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from memory_core.errors import InvalidInput
from memory_core.lab.axes import Axis, Point
from memory_core.lab.embedded import EmbeddingCache
from memory_core.lab.sweep import LAYERED, STRATEGIES, TUTORIAL, Sweep, prepare_sweep
from memory_core.settings import MemorySettings
from memory_core.testing import HashEmbedder
from tests.core.lab.talks import counter, long_talk, sweep_of


def test_every_text_is_embedded_once(tmp_path: Path) -> None:
    """Two strategies share what they embed; the next sweep of the conversation embeds nothing."""
    talk, embedder = long_talk(), HashEmbedder()

    def prepared() -> Sweep:
        return prepare_sweep(
            talk,
            Axis("strategy", (LAYERED, TUTORIAL)),
            Axis("top_k", (1, 2)),
            base=Point(MemorySettings(), LAYERED, embedder.name),
            counter=counter(),
            embedders=[embedder],
            cache=EmbeddingCache(tmp_path / "e.sqlite"),
        )

    first = prepared()
    texts = {text for s in STRATEGIES.values() for text in s.texts(talk)}
    assert embedder.embedded == len(texts)
    again = prepared()
    assert embedder.embedded == len(texts)
    assert first.run().cells == again.run().cells
    assert embedder.embedded == len(texts)


@pytest.mark.parametrize(
    "x",
    [
        ("shares", "80/10/10,40/50/10"),
        ("window_rule", "exact,llama_index"),
        ("summary_every", "2,12"),
        ("recall_method", "dense,bm25,hybrid"),
        ("threshold", "-1:1:5"),
        ("weight_neighbours", "0,2"),
        ("strategy", "tutorial,layered"),
    ],
)
def test_every_knob_fills_the_grid(x: tuple[str, str]) -> None:
    """Whatever is swept, every cell is there once and the table belongs together."""
    result = sweep_of(long_talk(), x, ("token_limit", "150,300")).run()
    assert result.complete
    result.check()
    assert not np.isnan(result.heat()).any()


def test_a_threshold_nobody_reaches_retrieves_nothing() -> None:
    """Evidence falls to the buffer's as the threshold rises to the top."""
    x, y = ("threshold", "-1,1"), ("token_limit", "300")
    low, high = sweep_of(long_talk(), x, y, recall_method="dense").run().rows()
    assert low.places["retrieved"] > high.places["retrieved"] == 0
    assert low.tokens > high.tokens - 300


def test_models_are_compared() -> None:
    """Two embedding models are two columns, each ranked by its own vectors."""
    models = [HashEmbedder(2, name="rough"), HashEmbedder(256, name="fine")]
    sweep = prepare_sweep(
        long_talk(),
        Axis("embedding", ("rough", "fine")),
        Axis("top_k", (1,)),
        base=Point(MemorySettings(token_limit=10), TUTORIAL, "fine"),
        counter=counter(),
        embedders=models,
        cache=EmbeddingCache(),
    )
    rough, fine = sweep.run().cells
    assert fine.held.sum() > rough.held.sum()
    assert all(model.embedded for model in models)


@pytest.mark.parametrize("strategy", [LAYERED, TUTORIAL])
def test_cells_come_one_by_one(strategy: str) -> None:
    """The first cells are there before the last are planned, and make a table that has holes."""
    sweep = sweep_of(long_talk(), strategy=strategy)
    cells = sweep.cells()
    first = [next(cells), next(cells)]
    part = sweep.result(first)
    assert not part.complete
    assert np.isnan(part.heat()).sum() == 7
    assert sweep.result([*first, *cells]).complete


def test_a_limit_that_the_window_cuts_is_told() -> None:
    """Where the context window holds less than a token limit asks for, the table says so."""
    wide = ("token_limit", "100,4000")
    cut = sweep_of(long_talk(), wide, context_window=1024, reply_reserve=24).run()
    assert "over 1,000 are cut" in cut.notices[0]
    whole = sweep_of(long_talk(), wide, context_window=8192, summarise=False)
    assert not whole.run().notices


def test_a_summary_that_nobody_wrote_is_told_to_be_an_estimate() -> None:
    """Cells of the layered memory with summaries say that their room is counted in advance."""
    (notice,) = sweep_of(long_talk(), summarise=True).run().notices
    assert "An estimate" in notice
    assert not sweep_of(long_talk(), strategy=TUTORIAL).run().notices


def test_more_than_a_machine_holds_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Too many cells for too many questions are refused before anything is embedded."""
    monkeypatch.setattr("memory_core.lab.sweep.MOST_PROMPTS", 44)
    with pytest.raises(InvalidInput, match="45 prompts"):
        sweep_of(long_talk())
