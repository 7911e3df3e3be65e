"""Messages with a ``role`` and ``content``: the shape that most chat files share.

:func:`add_message` takes the shape as leniently as it is met in the wild and adds what it says
to a draft: one message, or several where tool results stand inside another message. Fields it
does not know are kept in the message's kwargs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from memory_core.interchange.blocks import Block, ToolResult, read_content, thinking, tool_call
from memory_core.interchange.clean import as_text, text_block
from memory_core.interchange.draft import Draft
from memory_core.interchange.roles import ASSISTANT, TOOL, read_role
from memory_core.messages import Json, Message

TIME_FIELDS = ("created_at", "timestamp", "create_time", "created", "time", "date")
_TIMES = frozenset(TIME_FIELDS)
_EMPTY_MEANS_NONE = frozenset({"annotations", "refusal", "audio", "tool_calls", "function_call"})


def add_message(
    draft: Draft, value: Json, *, place: str, native: Mapping[str, str] | None = None
) -> None:
    """Add what one role-and-content object says; a value that is no object is noted."""
    if not isinstance(value, dict):
        draft.notes.add(place, "left out: it is no message object")
        return
    fields = {k: v for k, v in value.items() if v is not None}
    role, speaker = read_role(
        fields.pop("role", None), place=place, notes=draft.notes, native=native
    )
    blocks = read_content(fields.pop("content", None), place=place, notes=draft.notes)
    thought = fields.pop("reasoning_content", None)
    if thought:
        blocks.insert(0, thinking(thought))
    blocks += take_calls(fields, place=place, draft=draft)
    time = next((fields.pop(name) for name in TIME_FIELDS if name in fields), None)
    id_ = fields.pop("id", None)
    more = fields.pop("additional_kwargs", None) or {}
    if not isinstance(more, dict):
        more = {"additional_kwargs": more}
    kwargs = {k: v for k, v in fields.items() if v or k not in _EMPTY_MEANS_NONE} | more
    if speaker:
        kwargs.setdefault("name", speaker)
    if role == TOOL and "tool_call_id" in kwargs:
        kwargs["tool_call_id"] = as_text(kwargs["tool_call_id"])
    add_split(draft, role, blocks, kwargs, place=place, time=time, id=id_)


def add_split(
    draft: Draft,
    role: str,
    blocks: Iterable[Block | ToolResult],
    kwargs: Mapping[str, Json],
    *,
    place: str,
    time: Json = None,
    id: Json = None,  # noqa: A002
) -> None:
    """Add a message; tool results among its blocks become messages of their own, in order."""
    own: list[Block] = []
    rest = dict(kwargs)
    added = 0

    def flush() -> None:
        nonlocal own, rest, added
        draft.add(Message(role, tuple(own), rest), place=place, time=time, id=id)
        own, rest, added = [], {}, added + 1

    for block in blocks:
        if isinstance(block, ToolResult):
            if own:
                flush()
            result: dict[str, Json] = {"tool_call_id": block.call_id} if block.call_id else {}
            if block.failed:
                result["is_error"] = True
            message = Message(TOOL, (text_block(block.text),), result)
            draft.add(message, place=place, time=time, id=id)
            added += 1
        else:
            own.append(block)
    if own or not added:
        flush()
    if rest:
        draft.notes.add(place, f"fields left out: {', '.join(sorted(rest))[:80]}")


def add_messages(
    draft: Draft, values: Iterable[Json], *, native: Mapping[str, str] | None = None
) -> Draft:
    """Add a list of role-and-content objects and return the draft."""
    for number, value in enumerate(values, start=1):
        add_message(draft, value, place=f"message {number:,}", native=native)
    return draft


def take_calls(fields: dict[str, Json], *, place: str, draft: Draft) -> list[Block]:
    """Take the tool calls out of a message's fields, unless they are of a kind we must keep."""
    blocks: list[Block] = []
    calls = fields.get("tool_calls")
    if calls and isinstance(calls, list):
        read = [_call(call) for call in calls]
        if all(read):
            del fields["tool_calls"]
            blocks += [call for call in read if call]
    old = fields.get("function_call")
    if isinstance(old, dict) and old.get("name"):
        del fields["function_call"]
        draft.notes.add(place, "the old function_call was read as a tool call")
        blocks.append(tool_call(None, old["name"], old.get("arguments")))
    return blocks


def _call(call: Json) -> Block | None:
    if not isinstance(call, dict):
        return None
    function = call.get("function")
    if isinstance(function, dict) and call.get("type", "function") == "function":
        known = call.keys() <= {"id", "type", "function", "index"}
        if known and function.keys() <= {"name", "arguments"}:
            return tool_call(call.get("id"), function.get("name"), function.get("arguments"))
    if "args" in call and "name" in call:  # LangChain
        return tool_call(call.get("id"), call["name"], call["args"])
    return None


def looks_like_chat(item: Json) -> bool:
    """Tell whether a value of a file's beginning is a role-and-content object."""
    return isinstance(item, dict) and (
        ("role" in item and bool(item.keys() & {"content", "tool_calls", "function_call"}))
        or ("content" in item and item.keys() <= {"content", "name", *_TIMES})
    )


def is_assistant(role: str) -> bool:
    """Tell whether a role is the model's."""
    return role in (ASSISTANT, "chatbot", "model")
