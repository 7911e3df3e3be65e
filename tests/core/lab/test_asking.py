"""Strategies that ask a model, in a sweep: really played, counted, and able to travel."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Iterator

import pytest

from memory_core.errors import InvalidInput, ModelKeyRefused, ModelUnreachable
from memory_core.lab.asking import ASKING, FACTS, OURS, SUMMARY_BUFFER, Maker, strategies
from memory_core.lab.axes import Axis, Point
from memory_core.lab.embedded import EmbeddingCache
from memory_core.lab.pool import Pool
from memory_core.lab.sweep import HERE, Sweep, cells_of, pool_for, prepare_sweep, table_of
from memory_core.models.catalogue import EmbeddingChoice, ModelChoice
from memory_core.models.embeddings import build_embedder
from memory_core.settings import MemorySettings
from tests.core.lab.talks import counter, long_talk, sweep_of

SETTINGS = MemorySettings(system_prompt="Answer.", tools=False, summary_every=2)


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """LlamaIndex warns of what it deprecates; that is not what is tested."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        yield


def asking(
    name: str, model: ModelChoice | None = None, *, turns: int = 10, limits: str = "100,2000"
) -> Sweep:
    """Return a sweep in which a strategy asks a model."""
    embedder = build_embedder(EmbeddingChoice())
    return prepare_sweep(
        long_talk(turns),
        Axis.parse("token_limit", limits),
        Axis.parse("top_k", "2"),
        base=Point(SETTINGS, name, embedder.name),
        counter=counter(),
        embedders=[embedder],
        cache=EmbeddingCache(),
        strategies=strategies(model or ModelChoice()),
    )


@pytest.mark.parametrize("name", sorted(ASKING))
def test_a_strategy_is_played_with_the_model_asked(name: str) -> None:
    """A small limit makes the memory ask the model; with room for everything nothing is lost."""
    small, large = asking(name).run().cells
    assert small.model_calls > 1
    assert large.held.all()
    assert small.tokens.mean() < large.tokens.mean()
    assert (small.embeddings > 0) == (name == OURS)


def test_playing_in_processes_gives_the_same_cells() -> None:
    """Where nothing is planned every processor is used by itself, and finds the same."""
    sweep = asking(SUMMARY_BUFFER)
    assert pool_for([sweep]) != HERE or pool_for([sweep]).jobs == 1
    assert pool_for([sweep_of(long_talk())]) == HERE
    assert sweep.run(Pool(2)).cells == sweep.run().cells


def test_several_conversations_take_turns_and_are_one_table() -> None:
    """A table of several fills evenly, the same here and in processes."""
    sweeps = [sweep_of(long_talk(turns)) for turns in (12, 16)]
    here = list(cells_of(sweeps))
    assert [number for number, _ in here[:4]] == [0, 1, 0, 1]
    half = table_of(sweeps, here[:4], "Both")
    assert half is not None
    assert len(half.cells) == 2
    assert table_of(sweeps, [], "Both") is None
    whole, there = (table_of(sweeps, cells, "Both") for cells in (here, cells_of(sweeps, Pool(2))))
    assert whole is not None
    assert there is not None
    assert whole.cells == there.cells
    assert whole.title == "Both"
    assert whole.complete


@pytest.mark.parametrize("name", sorted(ASKING))
def test_a_model_that_does_not_answer_ends_the_sweep(name: str) -> None:
    """Its error is what it is, with what to do here."""
    nobody = ModelChoice("openai_like", "nobody", "http://127.0.0.1:9/v1", retries=0)
    with pytest.raises((ModelUnreachable, InvalidInput)) as caught:
        asking(name, nobody, turns=8, limits="60").run()
    assert "reach" in str(caught.value) or "answers" in str(caught.value)


def test_a_key_is_not_told_and_not_needed_where_it_is_found(monkeypatch) -> None:
    """A maker travels without showing its key; without any key OpenAI is refused."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    choice = ModelChoice("openai", "gpt-4o-mini")
    maker = Maker(FACTS, choice, "sk-secret-0123456789")
    assert "secret" not in repr(maker)
    assert pickle.loads(pickle.dumps(maker)) == maker  # noqa: S301 - what was just made
    point = Point(SETTINGS, FACTS, "wordllama-256")
    with pytest.raises(ModelKeyRefused):
        Maker(FACTS, choice)(point)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-from-the-environment")
    Maker(FACTS, choice)(point).close()


def test_the_layered_memory_is_played_with_built_in_embeddings_only() -> None:
    """Another model's vectors are not at hand where it is played; that is said."""
    with pytest.raises(InvalidInput, match="built-in"):
        Maker(OURS, ModelChoice())(Point(SETTINGS, OURS, "text-embedding-3-small"))
