"""A language model that is watched: each call is passed on unchanged and noted exactly.

:class:`RecordingLLM` wraps any LlamaIndex model. What it notes is what it was handed by the
agent or chat engine, which is what it hands on, so the record cannot differ from what was sent.
Vendor errors leave it as the family that users are shown.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from typing import Any, Protocol

from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    ChatResponseAsyncGen,
    ChatResponseGen,
    CompletionResponse,
    CompletionResponseAsyncGen,
    CompletionResponseGen,
    LLMMetadata,
)
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.llms import LLM
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.tools.types import BaseTool

from memory_core.errors import MemoryInspectorError, ModelRefused
from memory_core.llama import as_json, from_chat
from memory_core.messages import Json, Message
from memory_core.models.failures import usage_of
from memory_core.prompt import Assembly
from memory_core.trace import REPLY, ModelCall, Usage


class Recorder(Protocol):
    """Who keeps the calls of the running turn."""

    def explain(self, purpose: str, sent: Sequence[Message], tools: Sequence[Json]) -> Assembly:
        """Return the Assembly of exactly these messages and tool definitions."""
        ...

    def count(self, message: Message) -> int:
        """Return our own token count of a reply."""
        ...

    def elapsed(self) -> float:
        """Return the milliseconds since the turn began."""
        ...

    def add(self, call: ModelCall) -> None:
        """Keep a finished or failed call."""
        ...


Translate = Callable[[Exception], MemoryInspectorError]
Price = Callable[[Usage], float | None]


class RecordingLLM(FunctionCallingLLM):
    """Passes every call on to ``inner`` and notes it with ``recorder`` under one purpose."""

    _inner: LLM = PrivateAttr()
    _recorder: Recorder = PrivateAttr()
    _purpose: str = PrivateAttr()
    _translate: Translate = PrivateAttr()
    _price: Price = PrivateAttr()
    _completions: str = PrivateAttr(default="")

    def __init__(
        self,
        inner: LLM,
        *,
        recorder: Recorder,
        translate: Translate,
        price: Price = lambda _: None,
        purpose: str = REPLY,
    ) -> None:
        super().__init__(callback_manager=inner.callback_manager)
        self._inner, self._recorder, self._purpose = inner, recorder, purpose
        self._translate, self._price = translate, price

    @classmethod
    def class_name(cls) -> str:
        """Return the name LlamaIndex serialises the class under."""
        return "RecordingLLM"

    @property
    def inner(self) -> LLM:
        """The model behind."""
        return self._inner

    @property
    def metadata(self) -> LLMMetadata:
        """The metadata of the model behind."""
        return self._inner.metadata

    def for_purpose(self, purpose: str) -> RecordingLLM:
        """Return the same model, its calls noted under another purpose."""
        return RecordingLLM(
            self._inner,
            recorder=self._recorder,
            translate=self._translate,
            price=self._price,
            purpose=purpose,
        )

    def recorded_by(self, recorder: Recorder, *, completions: str = "") -> RecordingLLM:
        """Return the same model, its calls noted with another recorder.

        ``completions`` is the purpose of calls that are bare prompts, where that is another one.
        """
        llm = RecordingLLM(
            self._inner,
            recorder=recorder,
            translate=self._translate,
            price=self._price,
            purpose=self._purpose,
        )
        llm._completions = completions
        return llm

    @property
    def kept_by(self) -> Recorder:
        """Who keeps the calls."""
        return self._recorder

    def tool_specs(self, tools: Sequence[BaseTool]) -> list[Json]:
        """Return the tool definitions as this model would be sent them."""
        if not tools or not isinstance(self._inner, FunctionCallingLLM):
            return []
        prepared = self._inner._prepare_chat_with_tools(list(tools), user_msg="")  # noqa: SLF001
        return _specs(prepared.get("tools"))

    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        """Pass the messages on and note the call."""
        note = self._begin(messages, kwargs, streamed=False)
        try:
            response = self._inner.chat(messages, **kwargs)
        except Exception as exc:
            raise note.failed(exc) from exc
        note.finished(response)
        return response

    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        """Pass the messages on and note the call."""
        note = self._begin(messages, kwargs, streamed=False)
        try:
            response = await self._inner.achat(messages, **kwargs)
        except Exception as exc:
            raise note.failed(exc) from exc
        note.finished(response)
        return response

    def stream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseGen:
        """Pass the messages on; the call is noted when the stream ends or is left."""

        def stream() -> Generator[ChatResponse, None, None]:
            note = self._begin(messages, kwargs, streamed=True)
            try:
                for chunk in self._inner.stream_chat(messages, **kwargs):
                    note.saw(chunk)
                    yield chunk
                note.check_answered()
            except Exception as exc:
                raise note.failed(exc) from exc
            finally:
                note.finished()

        return stream()

    async def astream_chat(
        self, messages: Sequence[ChatMessage], **kwargs: Any
    ) -> ChatResponseAsyncGen:
        """Pass the messages on; the call is noted when the stream ends or is left."""

        async def stream() -> AsyncGenerator[ChatResponse, None]:
            note = self._begin(messages, kwargs, streamed=True)
            try:
                async for chunk in await self._inner.astream_chat(messages, **kwargs):
                    note.saw(chunk)
                    yield chunk
                note.check_answered()
            except Exception as exc:
                raise note.failed(exc) from exc
            finally:
                note.finished()

        return stream()

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        """Pass a bare prompt on, noted as one user message."""
        note = self._begin_bare(prompt, kwargs, streamed=False)
        try:
            response = self._inner.complete(prompt, formatted=formatted, **kwargs)
        except Exception as exc:
            raise note.failed(exc) from exc
        note.finished(_as_chat(response))
        return response

    async def acomplete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> CompletionResponse:
        """Pass a bare prompt on, noted as one user message."""
        note = self._begin_bare(prompt, kwargs, streamed=False)
        try:
            response = await self._inner.acomplete(prompt, formatted=formatted, **kwargs)
        except Exception as exc:
            raise note.failed(exc) from exc
        note.finished(_as_chat(response))
        return response

    def stream_complete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> CompletionResponseGen:
        """Pass a bare prompt on, noted as one user message."""

        def stream() -> Generator[CompletionResponse, None, None]:
            note = self._begin_bare(prompt, kwargs, streamed=True)
            try:
                for chunk in self._inner.stream_complete(prompt, formatted=formatted, **kwargs):
                    note.saw(_as_chat(chunk))
                    yield chunk
            except Exception as exc:
                raise note.failed(exc) from exc
            finally:
                note.finished()

        return stream()

    async def astream_complete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> CompletionResponseAsyncGen:
        """Pass a bare prompt on, noted as one user message."""

        async def stream() -> AsyncGenerator[CompletionResponse, None]:
            note = self._begin_bare(prompt, kwargs, streamed=True)
            try:
                async for chunk in await self._inner.astream_complete(
                    prompt, formatted=formatted, **kwargs
                ):
                    note.saw(_as_chat(chunk))
                    yield chunk
            except Exception as exc:
                raise note.failed(exc) from exc
            finally:
                note.finished()

        return stream()

    def get_tool_calls_from_response(
        self, response: ChatResponse, error_on_no_tool_call: bool = True, **kwargs: Any
    ) -> list[ToolSelection]:
        """Ask the model behind for the tool calls in its own reply."""
        if not isinstance(self._inner, FunctionCallingLLM):
            return []
        return self._inner.get_tool_calls_from_response(
            response, error_on_no_tool_call=error_on_no_tool_call, **kwargs
        )

    def _prepare_chat_with_tools(  # type: ignore[override]
        self, tools: Sequence[BaseTool], **kwargs: Any
    ) -> dict[str, Any]:
        if not isinstance(self._inner, FunctionCallingLLM):
            raise ValueError(f"{self._inner.class_name()} cannot be offered tools")  # noqa: TRY004
        return self._inner._prepare_chat_with_tools(tools, **kwargs)  # noqa: SLF001

    def _begin(
        self,
        messages: Sequence[ChatMessage],
        kwargs: dict[str, Any],
        *,
        streamed: bool,
        purpose: str = "",
    ) -> _Note:
        sent = [from_chat(message) for message in messages]
        purpose = purpose or self._purpose
        assembly = self._recorder.explain(purpose, sent, _specs(kwargs.get("tools")))
        return _Note(self, purpose, assembly, streamed=streamed)

    def _begin_bare(self, prompt: str, kwargs: dict[str, Any], *, streamed: bool) -> _Note:
        message = ChatMessage(role="user", content=prompt)
        return self._begin([message], kwargs, streamed=streamed, purpose=self._completions)


class _Note:
    """One call while it runs."""

    def __init__(
        self, llm: RecordingLLM, purpose: str, assembly: Assembly, *, streamed: bool
    ) -> None:
        self._llm = llm
        self._purpose = purpose
        self._assembly = assembly
        self._streamed = streamed
        self._recorder: Recorder = llm._recorder  # noqa: SLF001
        self._at = self._recorder.elapsed()
        self._began = time.perf_counter()
        self._last: ChatResponse | None = None
        self._usage: Usage | None = None
        self._done = False

    def saw(self, chunk: ChatResponse) -> None:
        self._last = chunk
        self._usage = usage_of(chunk) or self._usage

    def check_answered(self) -> None:
        """Raise :class:`ModelRefused` when the stream ended before it began."""
        if self._last is None:
            raise ModelRefused(
                "The server ended its answer before it began.",
                next_step="Check that the base URL is an OpenAI-compatible API's, then Retry.",
            )

    def finished(self, response: ChatResponse | None = None) -> None:
        if response is not None:
            self.saw(response)
        self._add("")

    def failed(self, exc: Exception) -> MemoryInspectorError:
        error = exc if isinstance(exc, MemoryInspectorError) else self._llm._translate(exc)  # noqa: SLF001
        self._add(str(error))
        return error

    def _add(self, error: str) -> None:
        if self._done:
            return
        self._done = True
        reply = from_chat(self._last.message) if self._last is not None else None
        self._recorder.add(
            ModelCall(
                purpose=self._purpose,
                model=self._llm.metadata.model_name,
                assembly=self._assembly,
                reply=reply,
                usage=self._usage,
                estimated=self._recorder.count(reply) if reply is not None else 0,
                cost=self._llm._price(self._usage) if self._usage else None,  # noqa: SLF001
                at=self._at,
                milliseconds=(time.perf_counter() - self._began) * 1000,
                streamed=self._streamed,
                error=error,
            )
        )


def _as_chat(response: CompletionResponse) -> ChatResponse:
    message = ChatMessage(role="assistant", content=response.text)
    return ChatResponse(message=message, raw=response.raw, delta=response.delta)


def _specs(tools: Any) -> list[Json]:
    specs = []
    for tool in tools or ():
        metadata = getattr(tool, "metadata", None)
        specs.append(as_json(metadata.to_openai_tool() if metadata is not None else tool))
    return specs
