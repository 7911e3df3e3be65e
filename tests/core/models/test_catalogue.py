"""Choices of models are plain values that hold no secret."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core.errors import InvalidInput
from memory_core.models.catalogue import (
    LOCAL,
    MINILM,
    OFFLINE,
    OPENAI,
    OPENAI_LIKE,
    EmbeddingChoice,
    ModelChoice,
    checked_url,
    cost,
    embedding_from_json,
    find_key,
    model_from_json,
    price,
    redact,
)
from memory_core.trace import Usage

URL = "http://localhost:11434/v1"


def test_choices_load_nothing_heavy():
    """A page can name models before any model library is loaded."""
    heavy = ["llama_index", "openai", "numpy", "chromadb", "httpx"]
    code = (
        f"import sys, memory_core.models.catalogue; print([m for m in {heavy} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_default_needs_nothing():
    """Without a choice it is the offline reader and the embedded vectors."""
    assert ModelChoice().kind == OFFLINE
    assert EmbeddingChoice().kind == "wordllama"


@pytest.mark.parametrize(
    "choice",
    [
        ModelChoice(),
        ModelChoice(OPENAI, "gpt-4o-mini", max_tokens=50, temperature=0.5, seed=7),
        ModelChoice(OPENAI_LIKE, "llama3", URL, context_window=8192, function_calling=False),
        ModelChoice(LOCAL, "/models/a.gguf"),
    ],
)
def test_model_choices_survive_json(choice: ModelChoice):
    """A choice comes back equal from its JSON text, unknown keys are left out."""
    value = json.loads(json.dumps(choice.to_json()))
    assert model_from_json(value | {"colour": "blue"}) == choice


def test_embedding_choices_survive_json():
    """An embedding choice comes back equal from its JSON text."""
    for choice in (
        EmbeddingChoice(),
        EmbeddingChoice(MINILM),
        EmbeddingChoice(OPENAI_LIKE, "m", URL),
    ):
        assert embedding_from_json(json.loads(json.dumps(choice.to_json()))) == choice


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({"kind": "oracle"}, "oracle"),
        ({"model": "  "}, "name"),
        ({"model": None}, "wrong type"),
        ({"kind": OPENAI_LIKE, "model": "m"}, "base URL"),
        ({"context_window": 1}, "context window"),
        ({"context_window": "big"}, "context window"),
        ({"context_window": True}, "context window"),
        ({"timeout_seconds": float("nan")}, "timeout"),
        ({"temperature": 3}, "temperature"),
        ({"max_tokens": 0}, "reply limit"),
        ({"retries": 99}, "retries"),
        ({"base_url": 7}, "wrong type"),
    ],
)
def test_bad_model_choices_are_refused(value: dict[str, Any], problem: str):
    """Every unusable value is refused in one sentence that names it."""
    with pytest.raises(InvalidInput, match=problem):
        model_from_json(value)


@pytest.mark.parametrize(
    "value", [{"kind": "oracle"}, {"kind": OPENAI}, {"kind": OPENAI_LIKE, "model": "m"}]
)
def test_bad_embedding_choices_are_refused(value: dict[str, Any]):
    """An embedding choice needs a known kind, and a model and URL where it runs on a server."""
    with pytest.raises(InvalidInput):
        embedding_from_json(value)


def test_urls_are_trimmed():
    """Spaces and slashes at the ends do not matter."""
    assert checked_url(f"  {URL}// ") == URL
    assert checked_url("") == ""


@pytest.mark.parametrize(
    "url",
    [
        "localhost:11434",
        "ftp://host/v1",
        "http://",
        "http://host:port/v1",
        "http://[::1/v1",
        "https://key@host/v1",
        "https://user:key@host/v1",
        "https://host/v1?api_key=sk-1234",
        "https://host/v1#x",
        "http://a b/v1",
    ],
)
def test_urls_that_could_carry_a_key_or_lead_nowhere_are_refused(url: str):
    """A base URL is http(s) with a host, and has no place for a key; the error repeats none."""
    with pytest.raises(InvalidInput) as caught:
        checked_url(url)
    assert "sk-1234" not in str(caught.value)


def test_a_typed_key_wins_over_secrets_and_environment():
    """Precedence is the field, then secrets, then environment; blank counts as none."""
    environ, secrets = {"OPENAI_API_KEY": "env"}, {"OPENAI_API_KEY": "secret"}
    assert find_key(OPENAI, environ, secrets, " typed ") == "typed"
    assert find_key(OPENAI, environ, secrets, "  ") == "secret"
    assert find_key(OPENAI, environ, {"OPENAI_API_KEY": {"nested": 1}}) == "env"
    assert find_key(OPENAI, {}, {}) is None


def test_openais_key_goes_nowhere_else():
    """Another server gets its own key or none; what runs here gets none."""
    environ = {"OPENAI_API_KEY": "env"}
    assert find_key(OPENAI_LIKE, environ, {}) is None
    assert find_key(OPENAI_LIKE, environ | {"OPENAI_LIKE_API_KEY": "own"}, {}) == "own"
    assert find_key(OFFLINE, environ, {}, "typed") is None
    assert find_key(LOCAL, environ, {}, "typed") is None


@given(st.text(max_size=50), st.text("abc-123", min_size=4, max_size=9), st.text(max_size=50))
def test_redacted_text_holds_no_key(before: str, key: str, after: str):
    """Wherever a key stands in a text, it is gone after redaction."""
    assert key not in redact(before + key + after, [key, None, ""])


def test_longer_keys_are_redacted_first():
    """A key that begins like another one leaves no tail behind."""
    assert redact("use abcdef-123 now", ["abcdef", "abcdef-123"]) == "use … now"


def test_prices_are_known_for_a_few_and_their_dated_versions():
    """A dated version costs what its model costs unless it has a price of its own."""
    assert price("gpt-4o-mini-2024-07-18") == price("gpt-4o-mini")
    assert price("gpt-4o-2024-05-13") != price("gpt-4o")
    assert price("gpt-unheard-of") is None
    assert price("gpt-4o-audio") is None


def test_cost_counts_cached_tokens_at_their_price():
    """A million fresh, a million cached and a million written tokens cost the three prices."""
    million = 1_000_000
    usage = Usage(prompt=2 * million, completion=million, cached=million)
    assert cost(ModelChoice(OPENAI, "gpt-4o"), usage) == pytest.approx(2.50 + 1.25 + 10.00)


def test_cost_is_zero_here_and_unknown_elsewhere():
    """What runs here is free; without price or usage the cost is not known."""
    usage = Usage(10, 10)
    assert cost(ModelChoice(), None) == 0
    assert cost(ModelChoice(LOCAL, "a.gguf"), usage) == 0
    assert cost(ModelChoice(OPENAI, "gpt-unheard-of"), usage) is None
    assert cost(ModelChoice(OPENAI_LIKE, "gpt-4o", URL), usage) is None
    assert cost(ModelChoice(OPENAI, "gpt-4o"), None) is None
