"""Models that stand in for a real one: before one is chosen, and where none may be asked."""

from __future__ import annotations

from typing import Any

from llama_index.core.base.llms.types import (
    CompletionResponse,
    CompletionResponseGen,
    LLMMetadata,
)
from llama_index.core.llms.custom import CustomLLM

from memory_core.errors import ModelRefused

PLACEHOLDER = "(The model writes this text when the prompt is really sent.)"


class NoModel(CustomLLM):
    """Refuses every call: no model was chosen yet."""

    @property
    def metadata(self) -> LLMMetadata:
        """What LlamaIndex asks of a model before it uses it."""
        return LLMMetadata(model_name="none")

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:  # noqa: ARG002
        """Refuse."""
        raise ModelRefused("No chat model is set, so nothing can be summarised or extracted.")

    def stream_complete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> CompletionResponseGen:
        """Refuse."""
        return iter([self.complete(prompt, formatted, **kwargs)])  # type: ignore[return-value]


class PreviewModel(CustomLLM):
    """Answers every call with a placeholder, so that a preview asks no model."""

    @property
    def metadata(self) -> LLMMetadata:
        """What LlamaIndex asks of a model before it uses it."""
        return LLMMetadata(model_name="preview")

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:  # noqa: ARG002
        """Return the placeholder."""
        return CompletionResponse(text=PLACEHOLDER)

    def stream_complete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> CompletionResponseGen:
        """Yield the placeholder."""
        return iter([self.complete(prompt, formatted, **kwargs)])  # type: ignore[return-value]
