"""The tools an agent is offered: state, memory on request, and a demo.

Each is a plain function with the docstring the model reads; they act on one session through the
three callables they are given, so they can be tested without a model.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from functools import wraps
from typing import Any, Protocol

from memory_core.errors import InvalidInput, MemoryInspectorError
from memory_core.state import AgentState, set_preference, to_json, update_workflow

ChangeState = Callable[[Callable[[AgentState], AgentState]], AgentState]


class MemoryOnRequest(Protocol):
    """What the memory tools need: each returns a sentence for the model."""

    def remember(self, text: str) -> str:
        """Keep a fact."""
        ...

    def recall(self, query: str) -> str:
        """Search long-term memory."""
        ...

    def forget(self, text: str) -> str:
        """Forget what matches a text."""
        ...


def build_functions(change: ChangeState, memory: MemoryOnRequest) -> list[Callable[..., str]]:
    """Return the tool functions of one session."""

    def update_workflow_state(workflow: str = "", step: str = "", slots: str = "{}") -> str:
        """Note the workflow, its current step, and slots as a JSON object (null removes one)."""
        values = _object(slots)
        state = change(
            lambda s: update_workflow(s, workflow=workflow or None, step=step or None, slots=values)
        )
        return f"Saved: workflow {state.workflow!r}, step {state.step!r}, slots {state.slots}."

    def get_workflow_state() -> str:
        """Return the whole structured state as JSON."""
        state = to_json(change(lambda s: s))
        hidden = ("user", "session", "version", "updated")
        return json.dumps({k: v for k, v in state.items() if k not in hidden}, ensure_ascii=False)

    def set_user_preference(name: str, value: str) -> str:
        """Note a preference of the user; an empty value removes it."""
        change(lambda s: set_preference(s, name, value))
        return f"Saved: {name} = {value}." if value else f"Removed: {name}."

    def remember(text: str) -> str:
        """Keep a fact word for word for all later conversations."""
        return memory.remember(text)

    def recall(query: str) -> str:
        """Search long-term memory for something said earlier."""
        return memory.recall(query)

    def forget(text: str) -> str:
        """Forget the stored facts and memories that hold this text."""
        return memory.forget(text)

    set_user_preference.__name__ = "set_preference"
    functions: list[Callable[..., str]] = [
        update_workflow_state,
        get_workflow_state,
        set_user_preference,
        remember,
        recall,
        forget,
        get_weather,
    ]
    return [_answering(function) for function in functions]


def get_weather(city: str) -> str:
    """Tell today's weather in a city (a demo: invented from the city's name)."""
    digest = hashlib.sha256(city.strip().casefold().encode("utf-8", "replace")).digest()
    sky = ("sunny", "cloudy", "rainy", "windy")[digest[0] % 4]
    return f"Demo weather, not real: {city.strip() or 'nowhere'} is {sky}, {5 + digest[1] % 25} °C."


def _answering(function: Callable[..., str]) -> Callable[..., str]:
    """Return the function with errors users may see turned into its answer."""

    @wraps(function)
    def answer(*args: Any, **kwargs: Any) -> str:
        try:
            return function(*args, **kwargs)
        except MemoryInspectorError as exc:
            return f"Not done: {exc}"

    return answer


def _object(text: str | dict[str, Any]) -> dict[str, Any]:
    if isinstance(text, dict):
        return text
    try:
        value = json.loads(text or "{}")
    except ValueError as exc:
        raise InvalidInput(f"slots must be a JSON object: {exc}.") from exc
    if not isinstance(value, dict):
        raise InvalidInput("slots must be a JSON object.")
    return value
