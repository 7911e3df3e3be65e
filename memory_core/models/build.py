"""From a choice to a LlamaIndex model.

A key goes into the HTTP client and nowhere else: the LlamaIndex object, its ``repr`` and its
dumps hold a placeholder. Base URL, organisation and the like come from the choice, never from
the environment.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import httpx
from llama_index.core.llms import LLM
from llama_index.llms.openai import OpenAI
from llama_index.llms.openai.utils import ALL_AVAILABLE_MODELS, is_chatcomp_api_supported
from llama_index.llms.openai_like import OpenAILike
from openai import AsyncOpenAI
from openai import OpenAI as Client

from memory_core.errors import ModelKeyRefused
from memory_core.models import local
from memory_core.models.catalogue import HIDDEN, LOCAL, OFFLINE, OPENAI, OPENAI_URL, ModelChoice
from memory_core.models.offline.llm import OfflineLLM

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_OPENAI_TEMPERATURE = 1.0  # OpenAI's own default, and all that its reasoning models accept
_NO_KEY = "none"  # the client insists on a key where the server wants none


class ServerLLM(OpenAILike):
    """``OpenAILike`` that leaves the temperature to the server unless one is chosen."""

    send_temperature: bool = True

    def _get_model_kwargs(self, **kwargs: Any) -> dict[str, Any]:
        sent: dict[str, Any] = super()._get_model_kwargs(**kwargs)
        if not self.send_temperature:
            sent.pop("temperature", None)
        return sent


def build_llm(choice: ModelChoice, *, key: str | None = None) -> LLM:
    """Return the model of a choice; a local file is served from now on.

    OpenAI models that LlamaIndex does not know by name go through ``OpenAILike``. Raises
    :class:`~memory_core.errors.ModelKeyRefused` when OpenAI is chosen without a key, and what
    :func:`memory_core.models.local.serve` raises.
    """
    if choice.kind == OFFLINE:
        return OfflineLLM(context_window=choice.context_window)
    if choice.kind == OPENAI and not key:
        raise ModelKeyRefused("OpenAI needs a key, and none was given.")
    url, name = choice.base_url or OPENAI_URL, choice.model
    if choice.kind == LOCAL:
        server = local.serve(choice.model, context_window=choice.context_window)
        url, key, name = server.base_url, server.key, server.path.stem
    common = _common(choice, url, key)
    known = name in ALL_AVAILABLE_MODELS and is_chatcomp_api_supported(name)
    if choice.kind == OPENAI and known and choice.function_calling:
        return OpenAI(model=name, **common)
    return ServerLLM(
        model=name,
        send_temperature=choice.kind == OPENAI or choice.temperature is not None,
        context_window=choice.context_window,
        is_chat_model=True,
        is_function_calling_model=choice.function_calling,
        **common,
    )


def clients(
    url: str, key: str | None, *, timeout_seconds: float, retries: int
) -> tuple[Client, AsyncOpenAI]:
    """Return the two HTTP clients of a server; a proxy is not asked for what runs here."""
    direct = urlsplit(url).hostname in _LOOPBACK
    common: dict[str, Any] = {
        "api_key": key or _NO_KEY,
        "base_url": url,
        "timeout": timeout_seconds,
        "max_retries": retries,
    }
    client = Client(**common, http_client=httpx.Client(trust_env=False) if direct else None)
    aclient = AsyncOpenAI(
        **common, http_client=httpx.AsyncClient(trust_env=False) if direct else None
    )
    client.organization = aclient.organization = client.project = aclient.project = None
    return client, aclient


def _common(choice: ModelChoice, url: str, key: str | None) -> dict[str, Any]:
    client, aclient = clients(
        url, key, timeout_seconds=choice.timeout_seconds, retries=choice.retries
    )
    extra: dict[str, Any] = {
        # Usage of a streamed reply comes only when asked for, in a last chunk of its own.
        "stream_options": {"include_usage": True},
    }
    if choice.seed is not None:
        extra["seed"] = choice.seed
    if choice.max_tokens is not None:
        # OpenAI deprecated max_tokens for this; other servers know only the older name.
        name = "max_completion_tokens" if choice.kind == OPENAI else "max_tokens"
        extra[name] = choice.max_tokens
    return {
        "api_key": HIDDEN,
        "temperature": _OPENAI_TEMPERATURE if choice.temperature is None else choice.temperature,
        "api_base": url,
        "timeout": choice.timeout_seconds,
        "max_retries": 0,  # the client retries; LlamaIndex would wait up to a minute on top
        "additional_kwargs": extra,
        "openai_client": client,
        "async_openai_client": aclient,
    }
