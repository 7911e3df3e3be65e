"""LlamaIndex's ``ReActAgent`` puts tools, thoughts and observations into plain text; so do we.

:func:`unpack` takes such a prompt back to the tools, calls and results it stands for, so that
everything else here need not know the format; :func:`thought` writes a reply in it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from memory_core.messages import TEXT, TOOL_CALL, Json, Message
from memory_core.models.offline.requests import Request, Tool

_ACTION = re.compile(r"^Action: (?P<name>\S+)\s*\nAction Input: (?P<input>\{.*\})", re.MULTILINE)
_CONTEXT = "Here is some context to help you answer the question and plan:\n"
_OBSERVATION = "Observation:"


def unpack(messages: Sequence[Message]) -> tuple[list[Message], list[Tool]] | None:
    """Return the messages and tools that a prompt of ``ReActAgent`` stands for, else ``None``."""
    header = next((m for m in messages if m.role == "system" and _is_header(m.text)), None)
    if header is None:
        return None
    out: list[Message] = []
    call_id = ""
    for index, message in enumerate(messages):
        action = _ACTION.search(message.text) if message.role == "assistant" else None
        if message is header:
            given = message.text.partition(_CONTEXT)[2].partition("\n## Output Format")[0]
            out.append(Message.of("system", given))
        elif action is not None:
            call_id = f"react-{index}"
            block = {
                "block_type": TOOL_CALL,
                "tool_call_id": call_id,
                "tool_name": action["name"],
                "tool_kwargs": _object(action["input"]),
            }
            out.append(Message("assistant", ({"block_type": TEXT, "text": ""}, block)))
        elif message.text.startswith(_OBSERVATION):
            result = message.text.removeprefix(_OBSERVATION).strip()
            out.append(Message.of("tool", result, tool_call_id=call_id))
        else:
            out.append(message)
    return out, _tools(header.text)


def thought(text: str, calls: Sequence[Request]) -> str:
    """Return a reply, or the first of the calls, in the form that ``ReActAgent`` reads."""
    if not calls:
        return f"Thought: I can answer without using any more tools.\nAnswer: {text}"
    arguments = json.dumps(dict(calls[0].arguments), ensure_ascii=False)
    return (
        f"Thought: I need to use a tool to help me answer the question.\n"
        f"Action: {calls[0].tool}\nAction Input: {arguments}"
    )


def _is_header(text: str) -> bool:
    return "## Output Format" in text and "Action Input:" in text


def _tools(header: str) -> list[Tool]:
    tools = []
    for block in header.split("> Tool Name: ")[1:]:
        name = block.partition("\n")[0].strip()
        arguments = block.partition("\nTool Args: ")[2].partition("\n")[0]
        tools.append(Tool.of(name, _object(arguments)))
    return tools


def _object(text: str) -> Mapping[str, Json]:
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
