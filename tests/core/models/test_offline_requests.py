"""Tools that people ask for in plain words."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core.models.offline.requests import Tool, forced, missing, wanted

TEXT = {"type": "string"}
TOOLS = [
    Tool.of("get_weather", {"properties": {"city": TEXT}}),
    Tool.of(
        "update_workflow_state",
        {"properties": {"workflow": TEXT, "step": TEXT, "slots": {"type": "object"}}},
    ),
    Tool.of("get_workflow_state", {}),
    Tool.of("set_preference", {"properties": {"name": TEXT, "value": TEXT}}),
    Tool.of("remember", {"properties": {"text": TEXT}}),
    Tool.of("recall", {"properties": {"query": TEXT}}),
    Tool.of("forget", {"properties": {"query": TEXT}}),
]


def calls(text: str) -> list[tuple[str, dict[str, Any]]]:
    """Return the tools and arguments that a text asks for."""
    return [(r.tool, dict(r.arguments)) for r in wanted(text, TOOLS)]


@pytest.mark.parametrize(
    ("text", "city"),
    [
        ("What's the weather in Porto?", "Porto"),
        ("weather in oslo", "oslo"),
        ("Is it raining in São Paulo today?", "São Paulo"),
        ("What's the weather like in New York this weekend?", "New York"),
        ("Get the forecast for St. Gallen, please", "St. Gallen"),
        ("What's the weather in Porto and what is my name?", "Porto"),
        ("How cold is it in 東京?", "東京"),
    ],
)
def test_weather_is_asked_for_a_city(text: str, city: str):
    """The city is taken from the question, without the time of day and further questions."""
    assert calls(text) == [("get_weather", {"city": city})]


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        (
            'Perfect. Set the workflow step to "comparing ovens", please.',
            {"step": "comparing ovens"},
        ),
        ("Start the onboarding workflow", {"workflow": "onboarding"}),
        ("start a workflow called trip planning", {"workflow": "trip planning"}),
        ("Set the city slot to Porto", {"slots": {"city": "Porto"}}),
        ("We are now at step: packing.", {"step": "packing"}),
    ],
)
def test_workflow_changes(text: str, arguments: dict[str, Any]):
    """Workflow, step and slots are set by saying so."""
    assert calls(text) == [("update_workflow_state", arguments)]


@pytest.mark.parametrize("text", ["Which step are we at?", "show me the workflow state"])
def test_the_workflow_is_shown(text: str):
    """Asking where the workflow stands reads it."""
    assert calls(text) == [("get_workflow_state", {})]


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("Set my preferred language to Portuguese.", "language", "Portuguese"),
        ("set my seat preference to window", "seat", "window"),
        (
            "From now on answer in short sentences, please, I'm busy.",
            "answers",
            "answer in short sentences",
        ),
        ("You know what, call me Bernadette from now on, not Mrs. A.", "name", "Bernadette"),
    ],
)
def test_preferences(text: str, name: str, value: str):
    """Preferences are set by name or by saying how to answer from now on."""
    assert calls(text) == [("set_preference", {"name": name, "value": value})]


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("Remember that I park on level 3.", ("remember", {"text": "I park on level 3."})),
        ("please remember: the code is 4417", ("remember", {"text": "the code is 4417"})),
        ("Don't forget that I park here", ("remember", {"text": "I park here"})),
        ("Forget my alarm code", ("forget", {"query": "my alarm code"})),
        ("Forget what I said about the oven", ("forget", {"query": "the oven"})),
        ("What do you remember about Porto?", ("recall", {"query": "Porto"})),
        ("Search your memory for the alarm code", ("recall", {"query": "the alarm code"})),
    ],
)
def test_memory_is_asked_for(text: str, call: tuple[str, dict[str, Any]]):
    """Remembering, forgetting and recalling take what follows."""
    assert calls(text) == [call]


@pytest.mark.parametrize(
    "text",
    [
        "The weather in Porto was awful.",
        "Do you remember my name?",
        "Remember when we met?",
        "forget it",
        "I run a bakery in Porto and I can't eat nuts.",
        "Starting in November the bakery opens at 7:00.",
        "I forgot my keys.",
        "My next step in life is unclear.",
        "",
    ],
)
def test_talk_about_such_things_calls_nothing(text: str):
    """Statements and other questions are no requests."""
    assert calls(text) == []


def test_only_offered_tools_are_called():
    """A request for a tool that is not on offer is none."""
    assert wanted("What's the weather in Porto?", TOOLS[1:]) == []


def test_several_requests_in_one_message():
    """Each sentence may ask for a tool; the order is kept."""
    found = calls("Set the step to packing. Also, what's the weather in Lisbon?")
    assert [name for name, _ in found] == ["update_workflow_state", "get_weather"]


def test_arguments_go_under_the_names_and_types_of_the_tool():
    """A tool with other parameter names gets the text in its first text parameter."""
    place = Tool.of(
        "get_weather", {"properties": {"location": {"anyOf": [TEXT, {"type": "null"}]}}}
    )
    (weather,) = wanted("weather in Oslo", [place])
    assert weather.arguments == {"location": "Oslo"}
    as_text = Tool.of("update_workflow_state", {"properties": {"slots": TEXT}})
    (slot,) = wanted("Set the city slot to Porto", [as_text])
    assert slot.arguments == {"slots": '{"city": "Porto"}'}


def test_a_missing_city_is_asked_for():
    """Weather without a city asks back, if the tool is on offer."""
    assert "which city" in missing("What's the weather?", TOOLS)
    assert missing("What's the weather?", []) == ""
    assert missing("What's the weather in Porto?", TOOLS) == ""


def test_a_forced_call_takes_what_it_finds():
    """A tool that must be called is called, with the text where nothing better is found."""
    assert forced("weather in Oslo", TOOLS[0]).arguments == {"city": "Oslo"}
    assert forced("anything", TOOLS[5]).arguments == {"query": "anything"}


@given(st.text(max_size=300))
def test_any_text_is_looked_through(text: str):
    """No text is too odd, and arguments are never empty where a request was recognised."""
    for request in wanted(text, TOOLS):
        assert request.sentence


def test_long_hostile_text_takes_no_time():
    """Text made to be slow to search is searched only at its beginning."""
    assert wanted("set step " * 20_000, TOOLS) == []
