"""How a benchmark measures and what it prints last."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from typing import Any


def seconds(action: Callable[[], object], *, repeat: int, number: int = 1) -> float:
    """Return the median time of one run of ``action``, over ``repeat`` rounds of ``number``."""
    rounds = []
    for _ in range(repeat):
        start = time.perf_counter()
        for _ in range(number):
            action()
        rounds.append((time.perf_counter() - start) / number)
    return statistics.median(rounds)


def report(benchmark: str, ratios: dict[str, float], detail: dict[str, Any]) -> None:
    """Print the closing line: one JSON object."""
    rounded = {name: float(f"{value:.4g}") for name, value in ratios.items()}
    print(json.dumps({"benchmark": benchmark, "ratios": rounded, "detail": detail}))
