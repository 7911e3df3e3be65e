"""A LlamaIndex model made of one function: a prompt in, pieces of the reply out.

LlamaIndex asks a function-calling model for some fifteen methods. Here all of them follow from
``_pieces``, so that the offline reader and the scripted model of the tests are the same in how
they stream, complete and call tools.
"""

from __future__ import annotations

import asyncio
import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    ChatResponseAsyncGen,
    ChatResponseGen,
    CompletionResponse,
    CompletionResponseAsyncGen,
    CompletionResponseGen,
    LLMMetadata,
    MessageRole,
    TextBlock,
    ToolCallBlock,
)
from llama_index.core.llms.callbacks import llm_chat_callback, llm_completion_callback
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.tools import BaseTool
from pydantic import Field

from memory_core.messages import Json

_PIECE = re.compile(r"\S+\s*|\s+")


class PiecewiseLLM(FunctionCallingLLM):
    """A chat model that calls functions, given how it replies in pieces.

    ``context_window`` and ``num_output`` are in tokens; ``pause_seconds`` is waited before each
    piece of an async reply.
    """

    model_name: str = "model"
    context_window: int = Field(default=4096, gt=0)
    num_output: int = Field(default=512, gt=0)
    pause_seconds: float = Field(default=0.0, ge=0)

    @abstractmethod
    def _pieces(
        self, messages: Sequence[ChatMessage], kwargs: Mapping[str, Any]
    ) -> Iterator[ChatResponse]:
        """Yield the growing reply; the last piece is the whole one."""

    @property
    def metadata(self) -> LLMMetadata:
        """What LlamaIndex asks of a model before it uses it."""
        return LLMMetadata(
            context_window=self.context_window,
            num_output=self.num_output,
            is_chat_model=True,
            is_function_calling_model=True,
            model_name=self.model_name,
        )

    @llm_chat_callback()
    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        """Return the reply to a prompt."""
        *_, last = self._pieces(messages, kwargs)
        return last

    @llm_chat_callback()
    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        """Return the reply to a prompt."""
        *_, last = self._pieces(messages, kwargs)
        await asyncio.sleep(self.pause_seconds)
        return last

    @llm_chat_callback()
    def stream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseGen:
        """Yield the reply to a prompt word by word; tool calls come with the last piece."""
        yield from self._pieces(messages, kwargs)

    @llm_chat_callback()
    async def astream_chat(
        self, messages: Sequence[ChatMessage], **kwargs: Any
    ) -> ChatResponseAsyncGen:
        """Yield the reply to a prompt word by word; tool calls come with the last piece."""

        async def pieces() -> ChatResponseAsyncGen:
            for piece in self._pieces(messages, kwargs):
                await asyncio.sleep(self.pause_seconds)
                yield piece

        return pieces()

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        """Return the reply to a prompt of one user message."""
        del formatted
        *_, last = map(_as_completion, self._pieces(_asked(prompt), kwargs))
        return last

    @llm_completion_callback()
    async def acomplete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> CompletionResponse:
        """Return the reply to a prompt of one user message."""
        del formatted
        await asyncio.sleep(self.pause_seconds)
        *_, last = map(_as_completion, self._pieces(_asked(prompt), kwargs))
        return last

    @llm_completion_callback()
    def stream_complete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> CompletionResponseGen:
        """Yield the reply to a prompt of one user message word by word."""
        del formatted
        yield from map(_as_completion, self._pieces(_asked(prompt), kwargs))

    @llm_completion_callback()
    async def astream_complete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> CompletionResponseAsyncGen:
        """Yield the reply to a prompt of one user message word by word."""
        del formatted

        async def pieces() -> CompletionResponseAsyncGen:
            for piece in self._pieces(_asked(prompt), kwargs):
                await asyncio.sleep(self.pause_seconds)
                yield _as_completion(piece)

        return pieces()

    def get_tool_calls_from_response(
        self, response: ChatResponse, error_on_no_tool_call: bool = True, **kwargs: Any
    ) -> list[ToolSelection]:
        """Return the tools a response asks for; ``ValueError`` when there must be one."""
        del kwargs
        blocks = [b for b in response.message.blocks if isinstance(b, ToolCallBlock)]
        if not blocks and error_on_no_tool_call:
            raise ValueError("the response asks for no tool")
        return [
            ToolSelection(
                tool_id=block.tool_call_id or "",
                tool_name=block.tool_name,
                tool_kwargs=block.tool_kwargs if isinstance(block.tool_kwargs, dict) else {},
            )
            for block in blocks
        ]

    def _prepare_chat_with_tools(  # noqa: PLR0917 - LlamaIndex's signature
        self,
        tools: Sequence[BaseTool],
        user_msg: str | ChatMessage | None = None,
        chat_history: list[ChatMessage] | None = None,
        verbose: bool = False,
        allow_parallel_tool_calls: bool = False,
        tool_required: bool = False,
        **kwargs: Any,
    ) -> dict[str, Any]:
        del verbose
        messages = list(chat_history or [])
        if user_msg is not None:
            messages += _asked(user_msg) if isinstance(user_msg, str) else [user_msg]
        return {
            "messages": messages,
            "tools": [tool.metadata.to_openai_tool(skip_length_check=True) for tool in tools],
            "parallel_tool_calls": allow_parallel_tool_calls,
            "tool_required": tool_required,
            **kwargs,
        }


def in_pieces(text: str, calls: Sequence[ToolCallBlock] = (), raw: Json = None) -> ChatResponseGen:
    """Yield a reply word by word; its tool calls and ``raw`` come with the last piece."""
    said = ""
    pieces = _PIECE.findall(text) or [""]
    for index, piece in enumerate(pieces):
        said += piece
        last = index == len(pieces) - 1
        blocks = [TextBlock(text=said)] if said or not (last and calls) else []
        message = ChatMessage(
            role=MessageRole.ASSISTANT, blocks=[*blocks, *calls] if last else blocks
        )
        yield ChatResponse(message=message, delta=piece, raw=raw if last else None)


def _asked(prompt: str) -> list[ChatMessage]:
    return [ChatMessage(role=MessageRole.USER, content=prompt)]


def _as_completion(piece: ChatResponse) -> CompletionResponse:
    return CompletionResponse(text=piece.message.content or "", delta=piece.delta, raw=piece.raw)
