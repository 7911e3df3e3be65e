"""The knobs of a session, as one frozen value that is stored with every turn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace

from memory_core.budget import Shares
from memory_core.buffer import EXACT, LLAMA_INDEX
from memory_core.errors import InvalidInput
from memory_core.messages import Json

DEFAULT_SYSTEM_PROMPT = (
    "You are a helpful assistant with a memory. Use what you are given below; "
    "say so when it holds no answer."
)

THIS_SESSION, ALL_SESSIONS = "session", "user"  # recall scopes
HYBRID, DENSE, BM25 = "hybrid", "dense", "bm25"  # recall methods


@dataclass(frozen=True)
class MemorySettings:
    """Everything that decides what a prompt holds. Token figures are tokens of the chat model.

    ``token_limit`` is for the whole prompt: system prompt, tools and memory. ``threshold`` is
    compared with a memory's score, whose scale the recall method sets: the cosine similarity
    for ``dense``, the share of the question's words found for ``bm25``, and for ``hybrid`` both
    between the average memory (0) and a word for word match (1), see
    :mod:`memory_core.fusion`. The weights count for ``hybrid`` only; ``recency_days`` is the
    age at which recency is half, ``diversity`` how much likeness to a better hit costs.
    ``summary_every`` is how many messages must have left the buffer before a
    summary round starts.
    """

    system_prompt: str = DEFAULT_SYSTEM_PROMPT
    context_window: int = 4096
    reply_reserve: int = 512
    token_limit: int = 1600
    share_buffer: float = 0.6
    share_retrieved: float = 0.2
    share_state: float = 0.2
    window_rule: str = EXACT
    image_tokens: int = 765
    recall: bool = True
    top_k: int = 4
    threshold: float = 0.15
    near_misses: int = 5
    scope: str = ALL_SESSIONS
    recall_method: str = HYBRID
    weight_dense: float = 1.0
    weight_bm25: float = 1.0
    weight_neighbours: float = 0.6
    weight_recency: float = 0.0
    recency_days: float = 30.0
    diversity: float = 0.0
    summarise: bool = True
    summary_every: int = 6
    summary_tokens: int = 100
    remember_turns: bool = True
    tools: bool = True

    @property
    def shares(self) -> Shares:
        """The budget shares, scaled to sum to 1 (equal thirds when all are 0)."""
        total = self.share_buffer + self.share_retrieved + self.share_state
        if total <= 0:
            return Shares(1 / 3, 1 / 3, 1 / 3)
        return Shares(
            self.share_buffer / total, self.share_retrieved / total, self.share_state / total
        )

    def with_(self, **changes: Json) -> MemorySettings:
        """Return a copy with some knobs changed; raise :class:`InvalidInput` for bad values."""
        return settings_from_json(asdict(self) | changes)

    def to_json(self) -> dict[str, Json]:
        """Return the knobs as a JSON object."""
        return asdict(self)


_RANGES: Mapping[str, tuple[float, float]] = {
    "context_window": (256, 10_000_000),
    "reply_reserve": (0, 1_000_000),
    "token_limit": (1, 10_000_000),
    "share_buffer": (0, 1),
    "share_retrieved": (0, 1),
    "share_state": (0, 1),
    "image_tokens": (0, 100_000),
    "top_k": (0, 1_000),
    "threshold": (-1, 1),
    "near_misses": (0, 100),
    "weight_dense": (0, 10),
    "weight_bm25": (0, 10),
    "weight_neighbours": (0, 2),
    "weight_recency": (0, 1),
    "recency_days": (0.01, 36_500),
    "diversity": (0, 1),
    "summary_every": (1, 10_000),
    "summary_tokens": (16, 100_000),
}
_CHOICES: Mapping[str, tuple[str, ...]] = {
    "window_rule": (EXACT, LLAMA_INDEX),
    "scope": (ALL_SESSIONS, THIS_SESSION),
    "recall_method": (HYBRID, DENSE, BM25),
}


def settings_from_json(value: Mapping[str, Json]) -> MemorySettings:
    """Return settings from a JSON object; unknown keys are left out, missing ones default.

    Raises :class:`InvalidInput` for a value of the wrong type or outside its range.
    """
    defaults = MemorySettings()
    changes: dict[str, Json] = {}
    for item in fields(MemorySettings):
        if item.name in value:
            changes[item.name] = _checked(item.name, value[item.name], getattr(defaults, item.name))
    return replace(defaults, **changes)


def _checked(name: str, value: Json, default: Json) -> Json:
    if isinstance(default, float) and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if type(value) is not type(default):
        kind = type(default).__name__
        raise InvalidInput(f"Setting {name} must be of type {kind}, not {value!r:.40}.")
    if name in _CHOICES and value not in _CHOICES[name]:
        raise InvalidInput(f"Setting {name} must be one of {', '.join(_CHOICES[name])}.")
    if name in _RANGES:
        low, high = _RANGES[name]
        if not low <= value <= high:
            raise InvalidInput(f"Setting {name} must be from {low:,} to {high:,}, not {value}.")
    return value
