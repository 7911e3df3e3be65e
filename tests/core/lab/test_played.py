"""Memories played for real: the same as planned where both exist, and those that need a model."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import pytest
from llama_index.core.memory import ChatMemoryBuffer, ChatSummaryMemoryBuffer

from memory_core.errors import InvalidInput, ModelUnreachable
from memory_core.lab.axes import Point
from memory_core.lab.cells import BUFFER, ELSEWHERE
from memory_core.lab.embedded import EmbeddingCache
from memory_core.lab.played import Player, played
from memory_core.lab.pool import Pool
from memory_core.lab.sweep import STRATEGIES, TUTORIAL, Sweep, prepare_sweep
from memory_core.memory import LayeredMemory
from memory_core.models.offline.llm import OfflineLLM
from memory_core.settings import MemorySettings
from memory_core.testing import HashEmbedder, ScriptedLLM
from tests.core.lab.talks import counter, long_talk, sweep_of


def buffer(point: Point) -> Player:
    """Make a ChatMemoryBuffer."""
    return Player(
        ChatMemoryBuffer.from_defaults(
            token_limit=point.settings.token_limit, tokenizer_fn=counter().encode
        )
    )


def summary_buffer(point: Point) -> Player:
    """Make a ChatSummaryMemoryBuffer whose model repeats what it is given."""
    llm = ScriptedLLM(*["I cannot eat peanuts, please remember that (0). Much else."] * 500)
    memory = ChatSummaryMemoryBuffer.from_defaults(
        llm=llm, token_limit=point.settings.token_limit, tokenizer_fn=counter().encode
    )
    return Player(memory, model_calls=lambda: len(llm.prompts))


def layered_without_search(point: Point) -> Player:
    """Make our memory with the offline model writing its summaries."""
    return Player(LayeredMemory.from_defaults(settings=point.settings, llm=OfflineLLM()))


def broken(point: Point) -> Player:
    """Fail for one value as a library would, for the other as a model would."""
    raise KeyError("boom") if point.settings.token_limit < 200 else ModelUnreachable("gone")


MADE = {
    "buffer": played("Buffer", "", buffer),
    "summary": played("Summary buffer", "", summary_buffer),
    "ours": played("Ours", "", layered_without_search),
    "broken": played("Broken", "", broken),
}


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """LlamaIndex warns of what it deprecates; that is not what is tested."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def playing(strategy: str, limits: str = "60,200") -> Sweep:
    """Return a sweep over limits in which a memory is played."""
    sweep = sweep_of(long_talk(12), ("token_limit", limits), ("top_k", "0"), strategy=TUTORIAL)
    return prepare_sweep(
        sweep.prepared.input,
        sweep.x,
        sweep.y,
        base=Point(MemorySettings(system_prompt="Answer."), strategy, "hash-64"),
        counter=counter(),
        embedders=[HashEmbedder()],
        cache=EmbeddingCache(),
        strategies=STRATEGIES | MADE,
    )


def test_a_played_buffer_holds_what_the_planned_one_does() -> None:
    """ChatMemoryBuffer played message by message serves the evidence that its plan says."""
    planned = sweep_of(
        long_talk(12), ("token_limit", "60,200"), ("top_k", "0"), strategy=TUTORIAL
    ).run()
    for real, cell in zip(playing("buffer").run().cells, planned.cells, strict=True):
        assert real.held.tolist() == cell.held.tolist()
        assert (real.where[real.held] == BUFFER).all()
        assert real.model_calls == 1


def test_a_summary_may_hold_evidence_word_for_word() -> None:
    """What a model's summary quotes counts as elsewhere, and its calls are counted."""
    small, _ = playing("summary").cells()
    assert ELSEWHERE in small.where
    assert small.model_calls > 1


def test_our_memory_can_be_played_with_a_model() -> None:
    """LayeredMemory runs with its summaries really written, and stays within its limit."""
    small, large = playing("ours", "120,2000").cells()
    assert (small.tokens <= 140).all()
    assert large.held.all()


def test_playing_runs_in_processes_too() -> None:
    """Strategies that call a model can be spread over processes: the same cells."""
    sweep = playing("summary")
    assert sweep.run(Pool(2)).cells == sweep.run().cells


def test_a_memory_that_fails_says_for_which_values() -> None:
    """A library's error names the cell; a model's error stays what it is."""
    with pytest.raises(InvalidInput, match=r"60 tokens.*KeyError"):
        playing("broken", "60").run()
    with pytest.raises(ModelUnreachable):
        playing("broken", "300").run()


def test_a_strategy_must_be_there() -> None:
    """Strategies and models that were not given are refused before anything runs."""
    with pytest.raises(InvalidInput, match="no strategy"):
        playing("nobody")
    with pytest.raises(InvalidInput, match="no embedding model"):
        sweep_of(long_talk(), ("embedding", "other"))
