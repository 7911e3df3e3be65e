"""The agent's tools: each changes the session or answers, and never raises at the model."""

from __future__ import annotations

import json

from memory_core.state import AgentState
from memory_core.tools import build_functions, get_weather


class _Memory:
    """Notes what the memory tools were asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    def remember(self, text: str) -> str:
        self.asked.append(("remember", text))
        return "ok"

    def recall(self, query: str) -> str:
        self.asked.append(("recall", query))
        return "found"

    def forget(self, text: str) -> str:
        self.asked.append(("forget", text))
        return "gone"


class _Tools:
    """The functions by name, over one state."""

    def __init__(self) -> None:
        self.state = AgentState("u", "s")
        self.memory = _Memory()
        made = build_functions(self.change, self.memory)
        self.functions = {f.__name__: f for f in made}

    def change(self, change):
        self.state = change(self.state)
        return self.state


def test_the_offered_tools() -> None:
    """The names are those the issue and the offline reader know, each with a docstring."""
    tools = _Tools().functions
    assert set(tools) == {
        "update_workflow_state",
        "get_workflow_state",
        "set_preference",
        "remember",
        "recall",
        "forget",
        "get_weather",
    }
    assert all(f.__doc__ for f in tools.values())


def test_workflow_and_preferences_change_the_state() -> None:
    """Workflow, step, slots and preferences end up in the state and can be read back."""
    tools = _Tools()
    tools.functions["update_workflow_state"](workflow="order", slots='{"city": "Porto"}')
    tools.functions["update_workflow_state"](step="address")
    tools.functions["set_preference"]("tone", "short")
    read = json.loads(tools.functions["get_workflow_state"]())
    assert read["workflow"] == "order"
    assert read["step"] == "address"
    assert read["slots"] == {"city": "Porto"}
    assert read["preferences"] == {"tone": "short"}


def test_bad_arguments_are_answered_not_raised() -> None:
    """Slots that are no JSON object and a nameless preference become an answer for the model."""
    tools = _Tools()
    assert "Not done" in tools.functions["update_workflow_state"](slots="[1]")
    assert "Not done" in tools.functions["update_workflow_state"](slots="{")
    assert "Not done" in tools.functions["set_preference"](" ", "x")
    assert tools.state.version == 0


def test_memory_tools_pass_on() -> None:
    """remember, recall and forget ask the session's memory with the same text."""
    tools = _Tools()
    for name in ("remember", "recall", "forget"):
        tools.functions[name]("nuts")
    assert tools.memory.asked == [("remember", "nuts"), ("recall", "nuts"), ("forget", "nuts")]


def test_the_weather_is_a_demo_and_says_so() -> None:
    """The demo tool gives the same invented weather each time and says it is not real."""
    assert get_weather("Porto") == get_weather(" porto ").replace("porto", "Porto")
    assert "not real" in get_weather("Porto")
