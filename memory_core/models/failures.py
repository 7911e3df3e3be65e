"""What went wrong with a model, in one sentence of ours, and what a provider says it counted.

:func:`explain` translates the errors of openai, httpx and LlamaIndex into the family of
:mod:`memory_core.errors`, looking through wrappers for the real one. A key never gets out: it is
taken from the failed request itself and replaced wherever it stands, in the original too, since
that may be logged with its traceback.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from json import JSONDecodeError
from typing import Any
from urllib.parse import urlsplit

import httpx
import openai
from llama_index.core.base.llms.types import ChatResponse, CompletionResponse

from memory_core.errors import (
    MemoryInspectorError,
    ModelError,
    ModelKeyRefused,
    ModelRateLimited,
    ModelRefused,
    ModelTimeout,
    ModelUnknown,
    ModelUnreachable,
    PromptTooLarge,
)
from memory_core.models.catalogue import HIDDEN, OFFLINE, OPENAI, ModelChoice, redact
from memory_core.trace import Usage

_SAID = 300  # characters of a server's own words that are repeated
_LOOKS_LIKE_A_KEY = re.compile(r"\b(?:sk|pk|rk|key)-[\w*-]{6,}|(?<=Bearer )\S+")
_TOO_LONG = re.compile(
    r"context_length_exceeded|exceed_context_size|maximum context|context (?:size|length|window)",
    re.IGNORECASE,
)
_NO_SUCH_MODEL = re.compile(r"model_not_found|\bmodel\b", re.IGNORECASE)
_NO_QUOTA = re.compile(r"insufficient_quota|exceeded your current quota|billing", re.IGNORECASE)


def explain(
    exc: BaseException, choice: ModelChoice | None = None, *, keys: Iterable[str | None] = ()
) -> MemoryInspectorError:
    """Return the error to show for a failed model call, without any key in it."""
    chain = list(_chain(exc))
    known = {*keys, *(key for link in chain for key in _keys_in(link))}
    for link in chain:
        _scrub(link, known)
    for link in chain:
        if isinstance(link, MemoryInspectorError):
            return link
        error = _translate(link, choice)
        if error is not None:
            return error
    said = _clean(f"{type(exc).__name__}: {exc}", known)
    return ModelRefused(f"{_who(choice)} failed: {said}")


def usage_of(response: ChatResponse | CompletionResponse | None) -> Usage | None:
    """Return the tokens that a provider reports in a response, ``None`` when it reports none."""
    usage = _field(response.raw, "usage") if response is not None else None
    prompt, completion = _field(usage, "prompt_tokens"), _field(usage, "completion_tokens")
    if not isinstance(prompt, int) or not isinstance(completion, int):
        return None
    cached = _field(_field(usage, "prompt_tokens_details"), "cached_tokens")
    return Usage(prompt, completion, cached if isinstance(cached, int) else 0)


def _translate(exc: BaseException, choice: ModelChoice | None) -> MemoryInspectorError | None:
    """Return our error for one exception, ``None`` when it says nothing by itself."""
    if isinstance(exc, (openai.APITimeoutError, httpx.TimeoutException, TimeoutError)):
        return _of_timeout(choice)
    if isinstance(exc, (openai.APIConnectionError, httpx.TransportError, ConnectionError)):
        return _of_connection(exc, choice)
    if isinstance(exc, openai.APIError) and not isinstance(exc, openai.APIResponseValidationError):
        return _of_status(exc, choice)
    # What LlamaIndex raises when it takes apart a reply that is none, such as a web page.
    garbled = (openai.APIResponseValidationError, AttributeError, IndexError, TypeError)
    if isinstance(exc, (*garbled, JSONDecodeError)) and _on_a_server(choice):
        return _unreadable(choice)
    return None


def _of_status(exc: openai.APIError, choice: ModelChoice | None) -> MemoryInspectorError:
    status = exc.status_code if isinstance(exc, openai.APIStatusError) else _status_in(exc)
    who, said = _who(choice), _said(exc)
    code = f"{exc.code or ''} {exc.type or ''} {said}"
    if status in (401, 403):
        return ModelKeyRefused(f"{who} refused the key (status {status}).")
    if status == 429:
        return _of_rate(exc, who, code)
    if status in (400, 413, 422) and _TOO_LONG.search(code):
        return PromptTooLarge(f"The prompt is too long for {who[:1].lower() + who[1:]}: {said}")
    if status == 404 and _NO_SUCH_MODEL.search(code):
        name = f"model {choice.model!r}" if choice else "such model"
        return ModelUnknown(f"{_host(choice)} has no {name}.")
    if status in (404, 405):
        return ModelUnreachable(
            f"{_host(choice)} has no chat at this address (status {status}). The base URL usually "
            "ends in /v1."
        )
    failed = "failed on its side" if status >= 500 else "refused the request"
    return ModelRefused(f"{who} {failed} (status {status}): {said}")


def _of_rate(exc: openai.APIError, who: str, code: str) -> ModelError:
    if _NO_QUOTA.search(code):
        return ModelRateLimited(
            f"{who} says that the quota of this key is used up.",
            next_step="Your message is kept. Add credit or use another key, then Retry.",
        )
    wait = _retry_after(exc)
    return ModelRateLimited(
        f"{who} got too many requests{f'; it asks to wait {wait}' if wait else ''}."
    )


def _of_timeout(choice: ModelChoice | None) -> ModelError:
    if choice is None:
        return ModelTimeout("The model gave no answer in time.")
    tried = f", tried {choice.retries + 1} times" if choice.retries else ""
    return ModelTimeout(f"{_who(choice)} gave no answer in {choice.timeout_seconds:g} s{tried}.")


def _of_connection(exc: BaseException, choice: ModelChoice | None) -> ModelError:
    causes = list(_chain(exc))
    if any(isinstance(c, (httpx.RemoteProtocolError, httpx.ReadError)) for c in causes):
        return ModelUnreachable(
            f"{_host(choice)} broke off the connection in the middle of an answer.",
            next_step="Your message is kept. Press Retry.",
        )
    return ModelUnreachable(f"Nothing answers at {_address(choice)}.")


def _unreadable(choice: ModelChoice | None) -> ModelError:
    return ModelRefused(
        f"What {_host(choice)} sent is no chat reply.",
        next_step="Your message is kept. Check that the base URL is an OpenAI-compatible one.",
    )


def _chain(exc: BaseException) -> Iterator[BaseException]:
    """Yield an exception and what it came from, outermost first."""
    seen: set[int] = set()
    link: BaseException | None = exc
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        yield link
        link = link.__cause__ or link.__context__


def _keys_in(exc: BaseException) -> Iterator[str]:
    """Yield the keys that a failed request was sent with."""
    try:
        request = getattr(exc, "request", None)
    except RuntimeError:  # httpx: the request was never made
        return
    headers = getattr(request, "headers", None) or {}
    for name in ("authorization", "api-key", "x-api-key"):
        value = headers.get(name)
        if isinstance(value, str):
            yield value.removeprefix("Bearer ").strip()


def _scrub(exc: BaseException, keys: Iterable[str | None]) -> None:
    """Replace keys in an exception's own texts."""
    if isinstance(exc, MemoryInspectorError):
        return
    exc.args = tuple(_clean(a, keys) if isinstance(a, str) else a for a in exc.args)
    for name in ("message", "body"):
        if hasattr(exc, name):
            setattr(exc, name, _cleaned(getattr(exc, name), keys))


def _cleaned(value: Any, keys: Iterable[str | None]) -> Any:
    if isinstance(value, str):
        return _clean(value, keys)
    if isinstance(value, dict):
        return {k: _cleaned(v, keys) for k, v in value.items()}
    return value


def _clean(text: str, keys: Iterable[str | None]) -> str:
    return _LOOKS_LIKE_A_KEY.sub(HIDDEN, redact(text, keys))


def _said(exc: openai.APIError) -> str:
    """Return the server's own words in one line; they are cleaned of keys already."""
    body = exc.body
    inner = body.get("error", body) if isinstance(body, Mapping) else body
    text = _field(inner, "message") or (inner if isinstance(inner, str) else "") or exc.message
    line = " ".join(str(text).split())
    return line if len(line) <= _SAID else f"{line[:_SAID]}…"


def _status_in(exc: openai.APIError) -> int:
    code = _field(exc.body, "code") or exc.code
    if str(code).isdigit():
        return int(str(code))
    return 400 if _TOO_LONG.search(f"{code} {exc.message}") else 500


def _retry_after(exc: openai.APIError) -> str:
    response = getattr(exc, "response", None)
    value = response.headers.get("retry-after", "") if response is not None else ""
    return f"{value} s" if re.fullmatch(r"\d{1,6}(?:\.\d+)?", value) else ""


def _field(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def _on_a_server(choice: ModelChoice | None) -> bool:
    return choice is not None and choice.kind != OFFLINE


def _who(choice: ModelChoice | None) -> str:
    if choice is None:
        return "The model"
    return f"{choice.model} at {_host(choice)}" if _on_a_server(choice) else choice.model


def _host(choice: ModelChoice | None) -> str:
    if choice is None or not _on_a_server(choice):
        return "the server"
    if choice.kind == OPENAI and not choice.base_url:
        return "api.openai.com"
    return urlsplit(choice.base_url).netloc or "the local server"


def _address(choice: ModelChoice | None) -> str:
    return choice.base_url if choice is not None and choice.base_url else _host(choice)
