"""LangChain and LangGraph: messages as ``messages_to_dict``, ``dumpd`` or ``model_dump`` give them.

They stand in a list, under ``messages`` of a graph's state, or in the ``values`` of thread states
as LangGraph's server and checkpointers dump them; of several states of one thread the one with
the most messages is taken. :func:`write` gives the ``messages_to_dict`` form, which
``messages_from_dict`` loads.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

from memory_core.errors import InvalidInput
from memory_core.interchange.blocks import Block, read_content, tool_call
from memory_core.interchange.chat import add_message, add_split, is_assistant, take_calls
from memory_core.interchange.clean import as_text
from memory_core.interchange.document import Document
from memory_core.interchange.draft import Draft, left_out
from memory_core.interchange.openai import part_of
from memory_core.interchange.roles import ASSISTANT, SYSTEM, TOOL, USER, read_role
from memory_core.interchange.sample import Sample
from memory_core.interchange.values import Conversation, Notes
from memory_core.interchange.writing import Written, json_bytes
from memory_core.messages import THINKING, TOOL_CALL, Json, Message

_ROLES = {"human": USER, "ai": ASSISTANT, "system": SYSTEM, "tool": TOOL, "function": "function"}
_TYPES = {role: kind for kind, role in _ROLES.items()} | {"chatbot": "ai", "model": "ai"}
_DEVELOPER = "__openai_role__"  # langchain-openai tells system and developer apart by this
_USAGE = frozenset({"input_tokens", "output_tokens", "total_tokens"})
_IGNORED = frozenset({"type", "example", "tool_call_chunks", "chunk_position"})


def recognises(sample: Sample) -> bool:
    """Tell whether a file begins like LangChain messages or a state that holds them."""
    first = sample.items[0] if sample.items else None
    if not isinstance(first, dict):
        return False
    return _is_message(first) or any(map(_is_message, _messages_of(first) or ()))


def read(document: Document) -> Iterator[Conversation]:
    """Yield the conversations of a LangChain or LangGraph file."""
    first = document.sample.items[0]
    if _is_message(first):
        yield _conversation(Draft(document.title), document.items())
    elif "messages" in first:
        yield from document.each(document.items(), lambda item, at: [_record(document, item, at)])
    else:
        drafts = _threads(document, document.items())
        yield from document.each(drafts, lambda draft, _: [draft.finish()])


def write(conversations: Sequence[Conversation]) -> Written:
    """Return one conversation as a list of messages, several as a list of records."""
    notes = Notes()
    records = []
    for conversation in conversations:
        if conversation.times or conversation.questions:
            notes.add(conversation.title, "times and questions have no place in messages")
        ids = conversation.ids or [""] * len(conversation.messages)
        messages = [
            _message_json(m, i, place=f"{conversation.title}, message {n:,}", notes=notes)
            for n, (m, i) in enumerate(zip(conversation.messages, ids, strict=True), start=1)
        ]
        records.append({"title": conversation.title, "messages": messages})
    value = records[0]["messages"] if len(records) == 1 else records
    return Written(json_bytes(value), "application/json", "langchain.json", notes.notices())


def _message_json(message: Message, id_: str, *, place: str, notes: Notes) -> dict[str, Json]:
    parts: list[dict[str, Json]] = []
    calls: list[dict[str, Json]] = []
    invalid: list[dict[str, Json]] = []
    for block in message.blocks:
        if block.get("block_type") == TOOL_CALL:
            call = _call_json(block)
            (calls if call["type"] == "tool_call" else invalid).append(call)
        elif part := _part(block):
            if calls or invalid:
                notes.add(place, "text after a tool call moved before it")
            parts.append(part)
        else:
            notes.add(place, f"a block of type {block.get('block_type')!r} left out")
    kwargs = {k: v for k, v in message.kwargs.items() if v is not None}
    kind = _TYPES.get(message.role, "chat")
    data: dict[str, Json] = {"content": _content(parts, called=bool(calls or invalid))}
    if message.role == "developer":
        kind, kwargs = "system", kwargs | {_DEVELOPER: "developer"}
    elif is_assistant(message.role) and message.role != ASSISTANT:
        notes.add(place, f"role {message.role!r} written as ai")
    if kind == "chat":
        data["role"] = message.role
    if kind == "ai":
        data |= {"tool_calls": calls, "invalid_tool_calls": invalid}
    elif calls or invalid:
        notes.add(place, f"tool calls of a message with role {message.role!r} left out")
    if kind == "tool":
        data["tool_call_id"] = as_text(kwargs.pop("tool_call_id", ""))
    own = {name: value for name, value in kwargs.items() if _is_own(kind, name, value)}
    rest = {name: value for name, value in kwargs.items() if name not in own}
    if kind == "function":
        own.setdefault("name", "")  # required there
    data |= {"type": kind, "id": id_ or None, "additional_kwargs": rest, **own}
    return {"type": kind, "data": data}


def _is_own(kind: str, name: str, value: Json) -> bool:
    """Tell whether LangChain's message class has a field of its own for one of our kwargs."""
    if name in ("name", "response_metadata"):
        return isinstance(value, str if name == "name" else dict) and bool(value)
    if name == "usage_metadata":
        return kind == "ai" and isinstance(value, dict) and value.keys() >= _USAGE
    if name == "status":
        return kind == "tool" and value == "error"
    return name == "artifact" and kind == "tool" and value not in ("", [], {})


def _content(parts: list[dict[str, Json]], *, called: bool) -> Json:
    """Return parts as LangChain has them: one text as a text, a bare tool call as an empty one."""
    if called and not parts:
        return ""
    if len(parts) == 1 and parts[0]["type"] == "text" and (parts[0]["text"] or not called):
        return parts[0]["text"]
    return parts


def _part(block: Mapping[str, Json]) -> dict[str, Json] | None:
    if block.get("block_type") == THINKING:
        known = dict(block.get("additional_information") or {})
        return known | {"type": "thinking", "thinking": block.get("content") or ""}
    return part_of(block)


def _call_json(block: Mapping[str, Json]) -> dict[str, Json]:
    arguments = block.get("tool_kwargs") or {}
    call = {"name": block["tool_name"], "id": block.get("tool_call_id")}
    if isinstance(arguments, str):
        try:
            read_as = json.loads(arguments)
        except (ValueError, RecursionError):
            read_as = None
        if not isinstance(read_as, dict):
            return call | {"args": arguments, "error": None, "type": "invalid_tool_call"}
        arguments = read_as
    return call | {"args": arguments, "type": "tool_call"}


def _conversation(draft: Draft, values: Iterable[Json]) -> Conversation:
    for number, value in enumerate(values, start=1):
        _add(draft, value, f"message {number:,}")
    return draft.finish()


def _record(document: Document, item: Json, place: str) -> Conversation:
    messages = _messages_of(item) if isinstance(item, dict) else None
    if messages is None:
        raise InvalidInput("It is no state with a list of messages.")
    single = document.sample.top is document.sample.items[0]
    title = item.get("title") or (document.title if single else f"{document.title}, {place}")
    draft = Draft(title)
    if rest := {k for k, v in item.items() if v} - {"messages", "title"}:
        draft.notes.add("state", left_out(rest))
    return _conversation(draft, messages)


def _threads(document: Document, states: Iterable[Json]) -> list[Draft]:
    """Return a draft for each thread: its state with the most messages."""
    longest: dict[str, list[Json]] = {}
    seen = 0
    for seen, state in enumerate(states, start=1):
        messages = _messages_of(state) if isinstance(state, dict) else None
        if messages is None:
            document.notes.add(f"state {seen:,}", "left out: it holds no list of messages")
            continue
        thread = _thread_of(state) or document.title
        if len(messages) > len(longest.get(thread, ())):
            longest[thread] = messages
    if seen > len(longest):
        document.notes.add("file", f"left out: {seen - len(longest):,} other states of the threads")
    drafts = []
    for thread, messages in longest.items():
        draft = Draft(thread)
        for number, value in enumerate(messages, start=1):
            _add(draft, value, f"message {number:,}")
        drafts.append(draft)
    return drafts


def _thread_of(state: Mapping[str, Json]) -> str:
    for holder in (state.get("config"), state.get("checkpoint"), state.get("metadata")):
        inner = holder.get("configurable", holder) if isinstance(holder, dict) else None
        if isinstance(inner, dict) and inner.get("thread_id"):
            return as_text(inner["thread_id"])
    return ""


def _messages_of(item: Mapping[str, Json]) -> list[Json] | None:
    """Return the messages of a graph's state, wherever its dump keeps them."""
    for holder in ("values", "channel_values", "checkpoint", "kwargs"):
        if isinstance(item.get(holder), dict) and "messages" not in item:
            return _messages_of(item[holder])
    messages = item.get("messages")
    return messages if isinstance(messages, list) else None


def _unpacked(value: Json) -> tuple[str, dict[str, Json]] | None:
    """Return type and fields of a message in any of the three forms, ``None`` if it is none."""
    if not isinstance(value, dict):
        return None
    kind, fields = value.get("type"), value
    if value.get("lc") and isinstance(value.get("kwargs"), dict):
        fields = value["kwargs"]
        path = value.get("id")
        kind = fields.get("type") or (path[-1] if isinstance(path, list) and path else None)
    elif isinstance(value.get("data"), dict):
        fields = value["data"]
    elif "content" not in value:
        return None
    if not isinstance(kind, str):
        return None
    kind = kind.removesuffix("Chunk").removesuffix("Message")
    kind = kind.lower() if kind[:1].isupper() else kind
    return (kind, fields) if kind in {*_ROLES, "chat", "remove"} else None


def _is_message(value: Json) -> bool:
    return _unpacked(value) is not None


def _add(draft: Draft, value: Json, place: str) -> None:
    unpacked = _unpacked(value)
    if unpacked is None:
        add_message(draft, value, place=place)
        return
    kind, fields = unpacked[0], {k: v for k, v in unpacked[1].items() if v is not None}
    if kind == "remove":
        draft.notes.add(place, "left out: it only removes another message")
        return
    more = fields.pop("additional_kwargs", None) or {}
    kwargs: dict[str, Json] = dict(more) if isinstance(more, dict) else {"additional_kwargs": more}
    role, speaker = _ROLES.get(kind, ""), ""
    if kind == "chat":
        role, speaker = read_role(fields.pop("role", None), place=place, notes=draft.notes)
    elif role == SYSTEM and kwargs.get(_DEVELOPER) == "developer":
        role = as_text(kwargs.pop(_DEVELOPER))
    calls = _calls(fields, kwargs, place, draft)
    content = fields.pop("content", None)
    if content == "" and calls:
        content = None
    blocks = read_content(content, place=place, notes=draft.notes)
    told = {b.get("tool_call_id") for b in blocks if isinstance(b, dict)}
    blocks += [call for call in calls if call.get("tool_call_id") not in told - {None}]
    id_ = fields.pop("id", None)
    kwargs |= {k: v for k, v in fields.items() if k not in _IGNORED and v not in ("", {}, [])}
    if fields.get("status") == "success":
        del kwargs["status"]
    if speaker:
        kwargs.setdefault("name", speaker)
    add_split(draft, role, blocks, kwargs, place=place, id=id_)


def _calls(
    fields: dict[str, Json], kwargs: dict[str, Json], place: str, draft: Draft
) -> list[Block]:
    """Take a message's tool calls out of its fields, valid ones first."""
    blocks = []
    for name in ("tool_calls", "invalid_tool_calls"):
        calls = fields.pop(name, None)
        for call in calls if isinstance(calls, list) else ():
            if isinstance(call, dict):
                blocks.append(tool_call(call.get("id"), call.get("name"), call.get("args")))
            else:
                draft.notes.add(place, "a tool call that is no object left out")
    if blocks:
        kwargs.pop("tool_calls", None)  # the provider's own form of the same calls
        kwargs.pop("function_call", None)
        return blocks
    return take_calls(kwargs, place=place, draft=draft)
