"""Errors from anywhere become one of ours; usage is read wherever it stands."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from llama_index.core.base.llms.types import ChatMessage, ChatResponse
from openai.types.completion_usage import CompletionUsage

from memory_core.errors import (
    InvalidInput,
    ModelError,
    ModelRefused,
    ModelTimeout,
    ModelUnreachable,
    PromptTooLarge,
)
from memory_core.models.catalogue import OPENAI, OPENAI_LIKE, ModelChoice
from memory_core.models.failures import explain, usage_of
from memory_core.trace import Usage

SERVER = ModelChoice(OPENAI_LIKE, "m", "https://gate.example/v1")


def response(raw: Any) -> ChatResponse:
    """Return a response with this raw part."""
    return ChatResponse(message=ChatMessage(role="assistant"), raw=raw)


def wrapped(inner: Exception, outer: Exception, *, cause: bool) -> Exception:
    """Return the outer error as raised while the inner one was handled."""
    outer.__context__ = inner
    outer.__cause__ = inner if cause else None
    return outer


def test_our_own_errors_pass_through():
    """An error of the family is not translated again, also when it was wrapped."""
    own = PromptTooLarge("too long")
    assert explain(own) is own
    assert explain(wrapped(own, RuntimeError("workflow failed"), cause=True), SERVER) is own


@pytest.mark.parametrize("cause", [True, False])
def test_the_real_error_is_found_below_wrappers(cause: bool):
    """A time-out two levels down is told, not the wrappers around it."""
    inner = wrapped(httpx.ReadTimeout("slow"), RuntimeError("step failed"), cause=cause)
    outer = wrapped(inner, RuntimeError("Detected nested async"), cause=cause)
    assert type(explain(outer, SERVER)) is ModelTimeout


@pytest.mark.parametrize(
    ("exc", "expected"),
    [
        (TimeoutError(), ModelTimeout),
        (httpx.ConnectError("no"), ModelUnreachable),
        (ConnectionResetError(), ModelUnreachable),
        (KeyError("x"), ModelRefused),
        (AttributeError("'str' object has no attribute 'choices'"), ModelRefused),
    ],
)
def test_anything_is_explained(exc: Exception, expected: type[ModelError]):
    """Whatever is raised, the result is an error to show with a next step."""
    for choice in (None, SERVER, ModelChoice(OPENAI, "gpt-4o"), ModelChoice()):
        error = explain(exc, choice)
        assert type(error) is expected
        assert str(error)
        assert error.next_step


def test_known_keys_and_what_looks_like_one_are_hidden():
    """A key is replaced in the message and in the original error, whoever wrote it there."""
    exc = RuntimeError("no: hunter2-hunter2 and sk-abcdefghijk and Bearer abc.def")
    error = explain(exc, SERVER, keys=["hunter2-hunter2", None])
    for text in (str(error), str(exc)):
        assert "hunter2" not in text
        assert "sk-abc" not in text
        assert "abc.def" not in text


def test_an_error_that_is_not_about_a_model_keeps_its_words():
    """Bad input found on the way is shown as it is."""
    assert explain(InvalidInput("no such file")).args == ("no such file",)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ({"usage": {"prompt_tokens": 7, "completion_tokens": 2}}, Usage(7, 2)),
        (
            SimpleNamespace(
                usage=CompletionUsage(
                    prompt_tokens=7,
                    completion_tokens=2,
                    total_tokens=9,
                    prompt_tokens_details={"cached_tokens": 5},
                )
            ),
            Usage(7, 2, 5),
        ),
        ({"usage": {"prompt_tokens": None, "completion_tokens": 2}}, None),
        ({"usage": None}, None),
        ({"usage": "7"}, None),
        ({}, None),
        (None, None),
        ("text", None),
    ],
)
def test_usage_is_read_from_dicts_and_objects(raw: Any, expected: Usage | None):
    """Usage is found in both forms, with cached tokens; anything odd counts as not reported."""
    assert usage_of(response(raw)) == expected


def test_no_response_has_no_usage():
    """A call that never came back reports nothing."""
    assert usage_of(None) is None
