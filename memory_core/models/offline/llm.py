"""The offline reader as a LlamaIndex model: chat, tools, streaming."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, ChatResponse, ToolCallBlock
from pydantic import PrivateAttr

from memory_core.errors import PromptTooLarge
from memory_core.llama import from_chat
from memory_core.messages import Json
from memory_core.models.catalogue import OFFLINE
from memory_core.models.offline.requests import Tool
from memory_core.models.offline.respond import respond
from memory_core.models.offline.scoring import Support
from memory_core.models.pieces import PiecewiseLLM, in_pieces
from memory_core.tokens import TokenCounter, encoding_for


class OfflineLLM(PiecewiseLLM):
    """A deterministic reader behind the interface of a language model.

    A prompt over ``context_window`` raises :class:`~memory_core.errors.PromptTooLarge`, as a
    provider would refuse it. What a reply rests on stands in the response's ``raw["sources"]``.
    """

    model_name: str = OFFLINE
    _counter: TokenCounter = PrivateAttr(
        default_factory=lambda: TokenCounter(encoding_for(OFFLINE), image_tokens=0)
    )

    @classmethod
    def class_name(cls) -> str:
        """Return the name under which LlamaIndex serialises this class."""
        return "OfflineLLM"

    def _pieces(
        self, messages: Sequence[ChatMessage], kwargs: Mapping[str, Any]
    ) -> Iterator[ChatResponse]:
        plain = [from_chat(message) for message in messages]
        specs = list(kwargs.get("tools") or [])
        needed = self._counter.messages(plain) + self._counter.tools(specs)
        if needed > self.context_window:
            raise PromptTooLarge(
                f"The prompt has {needed:,} tokens; the window of the offline reader holds "
                f"{self.context_window:,}."
            )
        choice = kwargs.get("tool_choice")
        tools = [] if choice == "none" else [_tool(spec) for spec in specs]
        must_call = _must_call(choice, tools, required=bool(kwargs.get("tool_required")))
        reply = respond(plain, tools=tools, must_call=must_call, counter=self._counter)
        wanted = reply.calls if kwargs.get("parallel_tool_calls", True) else reply.calls[:1]
        seed = _seed(messages)
        calls = [
            ToolCallBlock(
                tool_call_id=f"call_{seed}_{index}",
                tool_name=call.tool,
                tool_kwargs=dict(call.arguments),
            )
            for index, call in enumerate(wanted)
        ]
        yield from in_pieces(reply.text, calls, {"sources": [_source(s) for s in reply.sources]})


def _seed(messages: Sequence[ChatMessage]) -> str:
    """Return the part of call ids that is equal for equal prompts, so that replays are too."""
    text = "\0".join(f"{m.role.value}:{m.content}" for m in messages)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _source(support: Support) -> dict[str, Json]:
    passage = support.sentence.passage
    return {
        "kind": str(passage.kind),
        "place": passage.place or str(passage.kind),
        "said_by": passage.said_by,
        "quote": support.sentence.text,
        "support": round(support.score, 3),
    }


def _tool(spec: Mapping[str, Json]) -> Tool:
    function = spec.get("function", spec)
    return Tool.of(function.get("name", ""), function.get("parameters") or {})


def _must_call(choice: Json, tools: Sequence[Tool], *, required: bool) -> str:
    """Return the name of the tool that has to be called, empty when none has to."""
    if isinstance(choice, Mapping):
        return str(choice.get("function", {}).get("name", ""))
    names = [tool.name for tool in tools]
    if isinstance(choice, str) and choice in names:
        return choice
    return names[0] if names and (required or choice == "required") else ""
