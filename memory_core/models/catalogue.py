"""Which model to use, as plain values: choices, prices, and where a key comes from.

Imports nothing heavy, so that a page can be drawn before any model library is loaded. A choice
holds no key and no secret; its JSON form may be stored and shared.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import TypeVar
from urllib.parse import urlsplit

from memory_core.errors import InvalidInput
from memory_core.messages import Json
from memory_core.trace import Usage

OFFLINE, OPENAI, OPENAI_LIKE, LOCAL = "offline", "openai", "openai_like", "local"
WORDLLAMA, MINILM = "wordllama", "minilm"
MODEL_KINDS = (OFFLINE, OPENAI, OPENAI_LIKE, LOCAL)
EMBEDDING_KINDS = (WORDLLAMA, MINILM, OPENAI, OPENAI_LIKE)

OPENAI_URL = "https://api.openai.com/v1"
HIDDEN = "…"
_SHORTEST_SECRET = 4  # characters; replacing shorter texts would mangle ordinary words


@dataclass(frozen=True)
class ModelChoice:
    """A chat model and how to call it.

    ``model`` is the provider's name of it, or the path of a GGUF file. ``context_window`` and
    ``max_tokens`` (of a reply; ``None``: the provider's own limit) are in tokens. A temperature
    or seed of ``None`` is not sent. ``retries`` is how often a failed request is sent again.
    """

    kind: str = OFFLINE
    model: str = OFFLINE
    base_url: str = ""
    context_window: int = 4096
    max_tokens: int | None = None
    timeout_seconds: float = 60.0
    function_calling: bool = True
    temperature: float | None = None
    seed: int | None = None
    retries: int = 1

    def __post_init__(self) -> None:
        _check_kind(self.kind, MODEL_KINDS)
        object.__setattr__(self, "model", self.model.strip())
        if not self.model:
            raise InvalidInput("A chat model needs a name.")
        object.__setattr__(self, "base_url", checked_url(self.base_url))
        if self.kind == OPENAI_LIKE and not self.base_url:
            raise InvalidInput("An OpenAI-compatible server needs a base URL.")
        _check_range("context window", self.context_window, 256, 10_000_000)
        _check_range("reply limit", self.max_tokens, 1, 1_000_000)
        _check_range("timeout in seconds", self.timeout_seconds, 0.1, 3600)
        _check_range("temperature", self.temperature, 0, 2)
        _check_range("number of retries", self.retries, 0, 5)

    def to_json(self) -> dict[str, Json]:
        """Return the choice as a JSON object."""
        return asdict(self)


@dataclass(frozen=True)
class EmbeddingChoice:
    """An embedding model and where it runs."""

    kind: str = WORDLLAMA
    model: str = ""
    base_url: str = ""
    timeout_seconds: float = 60.0

    def __post_init__(self) -> None:
        _check_kind(self.kind, EMBEDDING_KINDS)
        object.__setattr__(self, "model", self.model.strip())
        object.__setattr__(self, "base_url", checked_url(self.base_url))
        if self.kind in (OPENAI, OPENAI_LIKE) and not self.model:
            raise InvalidInput("An embedding model on a server needs a name.")
        if self.kind == OPENAI_LIKE and not self.base_url:
            raise InvalidInput("An OpenAI-compatible server needs a base URL.")
        _check_range("timeout in seconds", self.timeout_seconds, 0.1, 3600)

    def to_json(self) -> dict[str, Json]:
        """Return the choice as a JSON object."""
        return asdict(self)


def model_from_json(value: Mapping[str, Json]) -> ModelChoice:
    """Return the choice that :meth:`ModelChoice.to_json` wrote; unknown keys are left out.

    Raises :class:`InvalidInput` for values that cannot be used.
    """
    return _from_json(ModelChoice, value)


def embedding_from_json(value: Mapping[str, Json]) -> EmbeddingChoice:
    """Return the choice that :meth:`EmbeddingChoice.to_json` wrote; unknown keys are left out.

    Raises :class:`InvalidInput` for values that cannot be used.
    """
    return _from_json(EmbeddingChoice, value)


def checked_url(url: str) -> str:
    """Return a base URL without spaces and slashes at its ends; empty stays empty.

    Raises :class:`InvalidInput` when it is no http(s) URL or could carry a key.
    """
    url = url.strip().rstrip("/")
    if not url:
        return ""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as exc:
        raise InvalidInput("The base URL cannot be read: check host and port.") from exc
    if parts.scheme not in ("http", "https") or not host or any(c.isspace() for c in url):
        raise InvalidInput("The base URL must look like http://localhost:11434/v1.")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise InvalidInput(
            "The base URL must hold no user name, key or question mark; enter the key as the key."
        )
    return url


def find_key(
    kind: str, environ: Mapping[str, str], secrets: Mapping[str, Json], typed: str = ""
) -> str | None:
    """Return the key to use: the typed one, else from the secrets, else from the environment.

    The name is ``OPENAI_API_KEY`` for OpenAI, ``OPENAI_LIKE_API_KEY`` for other servers: a key
    for OpenAI is never sent anywhere else.
    """
    name = {OPENAI: "OPENAI_API_KEY", OPENAI_LIKE: "OPENAI_LIKE_API_KEY"}.get(kind)
    if name is None:
        return None
    for value in (typed, secrets.get(name), environ.get(name)):
        if isinstance(value, str) and value.strip():
            return value.strip()
    return None


def redact(text: str, keys: Iterable[str | None]) -> str:
    """Return a text with every key in it replaced."""
    for key in sorted({k for k in keys if k}, key=len, reverse=True):
        if len(key) >= _SHORTEST_SECRET:
            text = text.replace(key, HIDDEN)
    return text


@dataclass(frozen=True)
class Price:
    """US dollars per million tokens."""

    prompt: float
    cached: float
    completion: float


# OpenAI's list prices, standard tier (developers.openai.com/api/docs/pricing), as of March 2026.
_PRICES = {
    "gpt-4o": Price(2.50, 1.25, 10.00),
    "gpt-4o-2024-05-13": Price(5.00, 5.00, 15.00),
    "gpt-4o-mini": Price(0.15, 0.075, 0.60),
    "gpt-4.1": Price(2.00, 0.50, 8.00),
    "gpt-4.1-mini": Price(0.40, 0.10, 1.60),
    "gpt-4.1-nano": Price(0.10, 0.025, 0.40),
    "gpt-5": Price(1.25, 0.125, 10.00),
    "gpt-5-mini": Price(0.25, 0.025, 2.00),
    "gpt-5-nano": Price(0.05, 0.005, 0.40),
    "gpt-5.1": Price(1.25, 0.125, 10.00),
    "o3": Price(2.00, 0.50, 8.00),
    "o4-mini": Price(1.10, 0.275, 4.40),
}


def price(model: str) -> Price | None:
    """Return OpenAI's price of a model or of a dated version of it, ``None`` when not known."""
    name, dash, version = model.partition("-20")
    return _PRICES.get(model) or (_PRICES.get(name) if dash and version[:2].isdigit() else None)


def cost(choice: ModelChoice, usage: Usage | None) -> float | None:
    """Return what a request cost in US dollars; 0 for what runs here, ``None`` when not known."""
    if choice.kind in (OFFLINE, LOCAL):
        return 0.0
    known = price(choice.model) if choice.kind == OPENAI else None
    if usage is None or known is None:
        return None
    fresh = max(0, usage.prompt - usage.cached)
    paid = fresh * known.prompt + usage.cached * known.cached + usage.completion * known.completion
    return paid / 1_000_000


_Choice = TypeVar("_Choice", ModelChoice, EmbeddingChoice)


def _from_json(cls: type[_Choice], value: Mapping[str, Json]) -> _Choice:
    known = {f.name for f in fields(cls)}
    try:
        return cls(**{k: v for k, v in value.items() if k in known})
    except (TypeError, AttributeError) as exc:
        raise InvalidInput("A model choice holds a value of the wrong type.") from exc


def _check_kind(kind: str, known: Iterable[str]) -> None:
    if kind not in known:
        raise InvalidInput(f"There is no model kind {kind!r:.40}; known: {', '.join(known)}.")


def _check_range(name: str, value: Json, low: float, high: float) -> None:
    if value is None:
        return
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or not low <= value <= high:
        raise InvalidInput(f"The {name} must be from {low:,} to {high:,}, not {value!r:.40}.")
