"""OpenAI chat messages: a list, JSON Lines, ``{"messages": […]}`` records, requests and replies.

Items of the Responses API may stand wherever messages do; see
:mod:`memory_core.interchange.responses`. What :func:`write` and :func:`write_lines` write is read
back unchanged, except for what the shape has no place for, which is told: thinking, times, ids,
and the order of tool calls among texts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from memory_core.errors import InvalidInput
from memory_core.interchange.blocks import image_url
from memory_core.interchange.chat import TIME_FIELDS, is_assistant, looks_like_chat
from memory_core.interchange.clean import as_text
from memory_core.interchange.document import Document
from memory_core.interchange.draft import Draft, left_out
from memory_core.interchange.responses import ItemReader, looks_like_item
from memory_core.interchange.roles import ASSISTANT
from memory_core.interchange.sample import Sample
from memory_core.interchange.values import Conversation, Notes
from memory_core.interchange.writing import Written, json_bytes, lines_bytes
from memory_core.messages import TEXT, TOOL_CALL, Json, Message

_LISTS = ("messages", "input", "output", "data")
_OTHERS = frozenset({"title", "choices", "instructions", "object", "id"})
_RESERVED = frozenset(
    {"role", "content", "tool_calls", "function_call", "reasoning_content", "id"}
    | {"additional_kwargs", "blocks", "type", *TIME_FIELDS}
)


def recognises(sample: Sample) -> bool:
    """Tell whether a file begins like messages, items, or records that hold them."""
    first = sample.items[0] if sample.items else None
    if isinstance(first, list):
        return any(map(_is_message, first))
    if isinstance(first, dict) and "content" in first and not (first.keys() & {"role", "type"}):
        return sample.complete and _is_message(first)  # what it is may still be told further on
    return _is_message(first) or (isinstance(first, dict) and _holds_messages(first))


def read(document: Document) -> Iterator[Conversation]:
    """Yield the conversations of a file of messages, items or records."""
    first = document.sample.items[0]
    if _is_message(first):
        yield _conversation(Draft(document.title), document.items())
        return
    single = document.sample.top is first and len(document.sample.values) == 1

    def one(item: Json, place: str) -> Iterable[Conversation]:
        title = document.title if single else f"{document.title}, {place}"
        if isinstance(item, list):
            return [_conversation(Draft(title), item)]
        if not isinstance(item, dict) or not _holds_messages(item):
            raise InvalidInput("It is no record with a list of messages.")
        return [_record(item, title)]

    yield from document.each(document.items(), one)


def write(conversations: Sequence[Conversation]) -> Written:
    """Return one conversation as a list of messages, several as a list of records."""
    notes = Notes()
    records = [_record_json(c, notes) for c in conversations]
    value = records[0]["messages"] if len(records) == 1 else records
    return Written(json_bytes(value), "application/json", "messages.json", notes.notices())


def write_lines(conversations: Sequence[Conversation]) -> Written:
    """Return the conversations as JSON Lines, one record a line."""
    notes = Notes()
    data = lines_bytes(_record_json(c, notes) for c in conversations)
    return Written(data, "application/jsonl", "messages.jsonl", notes.notices())


def part_of(block: Mapping[str, Json]) -> dict[str, Json] | None:
    """Return a content block as a part of a chat message, or ``None`` if the shape has none."""
    kind = block.get("block_type")
    if kind == TEXT:
        return {"type": "text", "text": block["text"]}
    if kind == "image" and (block.get("image") or block.get("url")):
        image: dict[str, Json] = {"url": image_url(block)}
        if block.get("detail") is not None:
            image["detail"] = block["detail"]
        return {"type": "image_url", "image_url": image}
    if kind == "audio" and block.get("audio"):
        audio = {"data": block["audio"]}
        if block.get("format"):
            audio["format"] = block["format"]
        return {"type": "input_audio", "input_audio": audio}
    if kind == "document" and block.get("data"):
        mime = block.get("document_mimetype") or "application/octet-stream"
        file = {"file_data": f"data:{mime};base64,{block['data']}"}
        if block.get("title"):
            file["filename"] = block["title"]
        return {"type": "file", "file": file}
    return None


def arguments_text(block: Mapping[str, Json]) -> str:
    """Return the arguments of a tool call as the JSON text that OpenAI's shapes hold."""
    return as_text(block.get("tool_kwargs") or {})


def message_json(message: Message, *, place: str, notes: Notes) -> dict[str, Json]:
    """Return a message as an OpenAI chat message, noting what it cannot hold."""
    parts, calls = [], []
    for block in message.blocks:
        part = part_of(block)
        if block.get("block_type") == TOOL_CALL:
            calls.append(_call_json(block))
        elif part is None:
            notes.add(place, f"a block of type {block.get('block_type')!r} left out")
        else:
            if calls:
                notes.add(place, "text after a tool call moved before it")
            parts.append(part)
    role = ASSISTANT if is_assistant(message.role) else message.role
    if role != message.role:
        notes.add(place, f"role {message.role!r} written as assistant")
    out: dict[str, Json] = {"role": role, "content": parts or None}
    if len(parts) == 1 and parts[0]["type"] == "text":
        out["content"] = parts[0]["text"]
    if calls:
        out["tool_calls"] = calls
    kwargs = {k: v for k, v in message.kwargs.items() if v is not None}
    raw = kwargs.pop("tool_calls", None)
    if raw and not calls:
        out["tool_calls"] = raw
    if lost := kwargs.keys() & _RESERVED:
        notes.add(place, left_out(lost))
    return out | {k: v for k, v in kwargs.items() if k not in _RESERVED}


def _call_json(block: Mapping[str, Json]) -> dict[str, Json]:
    function = {"name": block["tool_name"], "arguments": arguments_text(block)}
    call: dict[str, Json] = {"type": "function", "function": function}
    id_ = block.get("tool_call_id")
    return call if id_ is None else {"id": id_, **call}


def _record_json(conversation: Conversation, notes: Notes) -> dict[str, Json]:
    if conversation.times or conversation.ids or conversation.questions:
        notes.add(conversation.title, "times, ids and questions have no place in messages")
    messages = [
        message_json(m, place=f"{conversation.title}, message {n:,}", notes=notes)
        for n, m in enumerate(conversation.messages, start=1)
    ]
    return {"title": conversation.title, "messages": messages}


def _conversation(draft: Draft, values: Iterable[Json]) -> Conversation:
    reader = ItemReader(draft)
    for number, value in enumerate(values, start=1):
        reader.take(value, f"message {number:,}")
    reader.close()
    return draft.finish()


def _record(item: Mapping[str, Json], title: str) -> Conversation:
    body = item.get("body")
    if isinstance(body, dict):  # a line of a batch file
        item = {**{k: v for k, v in item.items() if k != "body"}, **body}
    draft = Draft(item.get("title") or title)
    values: list[Json] = []
    if isinstance(item.get("instructions"), str):
        values.append({"role": "system", "content": item["instructions"]})
    for name in _LISTS:
        if isinstance(item.get(name), list):
            values += item[name]
        elif isinstance(item.get(name), str) and name == "input":
            values.append({"role": "user", "content": item[name]})
    choices = item.get("choices")
    if isinstance(choices, list) and choices:
        if len(choices) > 1:
            draft.notes.add("choices", f"{len(choices) - 1} other answers left out")
        first = choices[0]
        values.append(first.get("message") if isinstance(first, dict) else first)
    if rest := {k for k, v in item.items() if v} - _OTHERS - set(_LISTS):
        draft.notes.add("record", left_out(rest))
    return _conversation(draft, values)


def _is_message(value: Json) -> bool:
    return looks_like_chat(value) or looks_like_item(value)


def _holds_messages(item: Mapping[str, Json]) -> bool:
    body = item.get("body")
    if isinstance(body, dict):
        return _holds_messages(body)
    choices = item.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        return "message" in choices[0]
    return any(
        isinstance(item.get(name), list) and any(map(_is_message, item[name])) for name in _LISTS
    )
