"""The budget bar tells where every token of a prompt comes from."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memory_core.settings import MemorySettings
from tests.ui.build import chat, prompt, recall
from ui.charts import budget_figure
from ui.view_models.budget import TurnBar, budget_bar


@given(turns=st.integers(0, 30), limit=st.integers(1, 3000), window=st.integers(256, 5000))
def test_segments_sum_to_the_prompt(turns, limit, window):
    """Whatever the settings, the bar's parts are all of the prompt's tokens and no more."""
    settings = MemorySettings(token_limit=limit, context_window=window)
    assembly = prompt(chat(turns), settings, recall=recall())
    bar = budget_bar(assembly)
    assert sum(s.tokens for s in bar.segments) == bar.tokens == assembly.tokens
    assert bar.free == max(0, bar.limit - bar.tokens)
    assert bar.over == max(0, bar.tokens - bar.limit)


def test_drawn_bar_adds_up_to_the_limit():
    """The drawn lengths are the segments' tokens and then what is free up to the limit."""
    bar = budget_bar(prompt(chat(5)))
    drawn = [trace["x"][0] for trace in budget_figure(bar)["data"]]
    assert sum(drawn) == bar.limit
    assert drawn[:-1] == [s.tokens for s in bar.segments]


def test_past_turns_stand_below_without_doubling_the_legend():
    """Past turns share their sources' legend entries with the bar above."""
    bar = budget_bar(prompt(chat(5)))
    turns = [TurnBar(n, {s.source: s.tokens for s in bar.segments}) for n in (1, 2)]
    traces = budget_figure(bar, turns)["data"]
    names = [t["name"] for t in traces if t.get("showlegend", True)]
    assert len(names) == len(set(names))
    assert any(t.get("xaxis") == "x2" and t["x"] == [1, 2] for t in traces)


def test_window_much_larger_than_the_limit_does_not_squeeze_the_bar():
    """With a window of 128,000 tokens the axis ends near the limit, so that parts stay visible."""
    bar = budget_bar(prompt(chat(5), MemorySettings(context_window=128_000)))
    assert budget_figure(bar)["layout"]["xaxis"]["range"][1] <= 2 * bar.limit


def test_system_prompt_over_the_limit_is_told(case):
    """Case C03: fixed part, limit and that no room is left for history are said in words."""
    case("C03")
    settings = MemorySettings(token_limit=200, system_prompt="word " * 450)
    bar = budget_bar(prompt(chat(2), settings))
    assert bar.over > 0
    assert "over the limit" in bar.headline
    assert any("no room is left for history" in note for note in bar.notes)


def test_alt_text_names_every_source_and_figure():
    """Who does not see the chart reads the same numbers."""
    bar = budget_bar(prompt(chat(3)))
    for segment in bar.segments:
        assert f"{segment.tokens:,}" in bar.alt
    assert f"{bar.limit:,}" in bar.alt
