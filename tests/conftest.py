"""Shared fixtures: cases from bug reports and public data, where they are at hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# No test is timed: on a busy machine a slow example is no failure.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

SHARED = Path(__file__).resolve().parents[2] / "shared"


def expand(value: Any) -> Any:
    """Replace ``{"$repeat": text, "times": n}`` by the repeated text, everywhere."""
    if isinstance(value, dict):
        if "$repeat" in value:
            return value["$repeat"] * value["times"]
        return {k: expand(v) for k, v in value.items()}
    if isinstance(value, list):
        return [expand(v) for v in value]
    return value


@pytest.fixture(scope="session")
def case():
    """Return a loader of one case by its number, e.g. ``case("C01")``; skip where absent."""

    def load(number: str) -> dict[str, Any]:
        found = sorted((SHARED / "cases").glob(f"{number}_*.json"))
        if not found:
            pytest.skip(f"case {number} is not here: ../shared/cases is absent")
        return expand(json.loads(found[0].read_text(encoding="utf-8")))

    return load


@pytest.fixture(scope="session")
def public_data():
    """Return a loader of a file in ../shared/data; skip where absent."""

    def load(name: str) -> Any:
        path = SHARED / "data" / name
        if not path.exists():
            pytest.skip(f"{name} is not here: ../shared/data is absent")
        return json.loads(path.read_text(encoding="utf-8"))

    return load
