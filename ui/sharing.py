"""Settings as a link: only what differs from the defaults, one query parameter a knob."""

from __future__ import annotations

import json
from collections.abc import Mapping
from urllib.parse import urlencode

from memory_core.errors import InvalidInput
from memory_core.messages import Json
from memory_core.settings import MemorySettings, settings_from_json

MAX_VALUE = 4_000  # characters of one parameter


def link_parameters(settings: MemorySettings) -> dict[str, str]:
    """Return the query parameters that stand for these settings."""
    defaults = MemorySettings().to_json()
    return {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in settings.to_json().items()
        if value != defaults[name]
    }


def link(address: str, settings: MemorySettings) -> str:
    """Return the address of a page that opens with these settings."""
    base = address.partition("?")[0]
    query = urlencode(link_parameters(settings))
    return f"{base}?{query}" if query else base


def settings_from_link(parameters: Mapping[str, str]) -> MemorySettings | None:
    """Return the settings in a page's query parameters, ``None`` when there are none.

    Raises :class:`InvalidInput` for a value that cannot be used.
    """
    defaults = MemorySettings().to_json()
    given: dict[str, Json] = {}
    for name, text in parameters.items():
        if name not in defaults:
            continue
        if len(text) > MAX_VALUE:
            raise InvalidInput(
                f"Setting {name} in the link is longer than {MAX_VALUE:,} characters."
            )
        given[name] = text if isinstance(defaults[name], str) else _value(name, text)
    return settings_from_json(given) if given else None


def _value(name: str, text: str) -> Json:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise InvalidInput(f"Setting {name} in the link is no value: {text!r:.40}.") from exc
