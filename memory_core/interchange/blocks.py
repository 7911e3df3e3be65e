"""Content of a message as other programs write it, to LlamaIndex's content blocks.

Content may be a text, nothing, a list of parts in the vocabularies of OpenAI (chat and
Responses), Anthropic and LangChain, or something odd; all end as blocks. What has no block of its
own is kept as its JSON text with a notice. A tool result inside a message (Anthropic) is no block
but a message of its own, :class:`ToolResult`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from memory_core.interchange.clean import as_text, text_block
from memory_core.interchange.values import Notes
from memory_core.messages import IMAGE, THINKING, TOOL_CALL, Json

Block = dict[str, Json]

DATA_URL = re.compile(r"data:(?P<mime>[\w.+-]+/[\w.+-]+);base64,(?P<data>[A-Za-z0-9+/=\s]*)")


@dataclass(frozen=True)
class ToolResult:
    """The answer to a tool call that stood inside another message."""

    call_id: str
    text: str
    failed: bool = False


def read_content(content: Json, *, place: str, notes: Notes) -> list[Block | ToolResult]:
    """Return the blocks of a message's content, whatever its shape."""
    if content is None:
        return []
    if isinstance(content, str):
        return [text_block(content)]
    if isinstance(content, list):
        return [block for part in content for block in _read_part(part, place, notes)]
    if _reader_of(content):
        notes.add(place, "content was one part instead of a list of parts")
        return _read_part(content, place, notes)
    kind = "an object" if isinstance(content, dict) else "a number or a truth value"
    notes.add(place, f"content was {kind}, kept as its JSON text")
    return [text_block(as_text(content, place, notes))]


def flat_text(content: Json, *, place: str, notes: Notes) -> str:
    """Return content that must be text (a tool's result); what is not is kept as JSON."""
    texts = []
    for block in read_content(content, place=place, notes=notes):
        if isinstance(block, dict) and block.get("block_type") == "text":
            texts.append(as_text(block["text"]))
        else:
            notes.add(place, "a part of a tool result that is no text was kept as its JSON text")
            texts.append(as_text(block if isinstance(block, dict) else block.text))
    return "\n".join(texts)


def image_from_url(url: str, detail: Json = None) -> Block:
    """Return a picture: the bytes of a data URL, or the address of any other."""
    block: Block = {"block_type": IMAGE}
    match = DATA_URL.fullmatch(url)
    if match:
        block |= {"image": match["data"], "image_mimetype": match["mime"]}
    else:
        block["url"] = url
    return block | ({"detail": detail} if detail is not None else {})


def image_url(block: Mapping[str, Json]) -> str:
    """Return the address of a picture, its bytes as a data URL."""
    if block.get("url") is not None:
        return as_text(block["url"])
    return f"data:{block.get('image_mimetype') or 'image/png'};base64,{block.get('image') or ''}"


def tool_call(id: Json, name: Json, arguments: Json) -> Block:  # noqa: A002
    """Return a tool call; arguments that are neither text nor an object are kept as JSON text."""
    if arguments is None:
        arguments = {}
    if not isinstance(arguments, (str, dict)):
        arguments = as_text(arguments)
    block = {"block_type": TOOL_CALL, "tool_name": as_text(name or ""), "tool_kwargs": arguments}
    return block if id is None else block | {"tool_call_id": as_text(id)}


def thinking(text: Json, more: Mapping[str, Json] | None = None) -> Block:
    """Return what a model thought before it answered, with the provider's own fields."""
    block: Block = {"block_type": THINKING, "content": as_text(text or "")}
    return block | ({"additional_information": dict(more)} if more else {})


def _read_part(part: Json, place: str, notes: Notes) -> list[Block | ToolResult]:
    if isinstance(part, str):
        return [text_block(part)]
    known: Mapping[str, Json] = part if isinstance(part, dict) else {}
    reader = _reader_of(part)
    block = reader(known, place, notes) if reader else None
    if block is None:
        kind = known.get("type")
        notes.add(place, f"a part of unknown type {str(kind)[:40]!r} was kept as its JSON text")
        block = text_block(as_text(part, place, notes))
    return [block]


def _reader_of(part: Json) -> _Reader | None:
    kind = part.get("type") if isinstance(part, dict) else None
    return _READERS.get(kind) if isinstance(kind, str) else None


def _text(part: Mapping[str, Json], place: str, notes: Notes) -> Block | None:
    text = part.get("text")
    if isinstance(text, dict) and isinstance(text.get("value"), str):  # OpenAI Assistants
        text = text["value"]
    if not isinstance(text, str):
        return None
    extra = [k for k, v in part.items() if v and k not in _TEXT_FIELDS]
    if extra:
        notes.add(place, f"fields of a text part left out: {', '.join(sorted(extra))[:80]}")
    return text_block(text)


_TEXT_FIELDS = frozenset({"type", "text", "id", "index", "start_timestamp", "stop_timestamp"})


def _refusal(part: Mapping[str, Json], place: str, notes: Notes) -> Block:
    notes.add(place, "a refusal was read as text")
    return text_block(as_text(part.get("refusal") or ""))


def _image(part: Mapping[str, Json], place: str, notes: Notes) -> Block | None:
    told = part.get("image_url", part.get("url"))
    inner: Mapping[str, Json] = told if isinstance(told, dict) else {"url": told}
    detail = inner.get("detail", part.get("detail"))
    if isinstance(inner.get("url"), str):
        return image_from_url(inner["url"], detail)
    source = part.get("source")
    where: Mapping[str, Json] = source if isinstance(source, dict) else part
    data = where.get("data", where.get("base64"))
    if isinstance(data, str):
        mime = where.get("media_type", where.get("mime_type"))
        return {"block_type": IMAGE, "image": data, "image_mimetype": as_text(mime or "image/png")}
    if isinstance(where.get("url"), str):
        return image_from_url(where["url"], detail)
    if part.get("file_id"):
        notes.add(place, "a picture that is not in the file was replaced by its name")
        return text_block(f"[picture: {as_text(part['file_id'])}]")
    return None


def _file(part: Mapping[str, Json], place: str, notes: Notes) -> Block | None:
    inner = part.get("file")
    file: Mapping[str, Json] = inner if isinstance(inner, dict) else part
    data = file.get("file_data")
    match = DATA_URL.fullmatch(data) if isinstance(data, str) else None
    if match:
        block: Block = {"block_type": "document", "data": match["data"]}
        block["document_mimetype"] = match["mime"]
        name = file.get("filename")
        return block | ({"title": as_text(name)} if name else {})
    name = file.get("filename") or file.get("file_id") or file.get("file_url")
    if not name:
        return None
    notes.add(place, "a document that is not in the file was replaced by its name")
    return text_block(f"[document: {as_text(name)}]")


def _audio(part: Mapping[str, Json], _place: str, _notes: Notes) -> Block | None:
    audio = part.get("input_audio")
    if not isinstance(audio, dict) or not isinstance(audio.get("data"), str):
        return None
    block: Block = {"block_type": "audio", "audio": audio["data"]}
    return block | ({"format": as_text(audio["format"])} if audio.get("format") else {})


def _tool_use(part: Mapping[str, Json], _place: str, _notes: Notes) -> Block:
    return tool_call(part.get("id"), part.get("name"), part.get("input", part.get("args")))


def _tool_result(part: Mapping[str, Json], place: str, notes: Notes) -> ToolResult:
    text = flat_text(part.get("content"), place=place, notes=notes)
    return ToolResult(as_text(part.get("tool_use_id") or ""), text, bool(part.get("is_error")))


def _thinking(part: Mapping[str, Json], _place: str, _notes: Notes) -> Block:
    name = next((n for n in ("thinking", "reasoning", "text") if part.get(n)), "thinking")
    more = {k: v for k, v in part.items() if k not in ("type", name) and v}
    return thinking(part.get(name), more)


_Reader = Callable[[Mapping[str, Json], str, Notes], Block | ToolResult | None]

_READERS: Mapping[str, _Reader] = {
    "text": _text,
    "input_text": _text,
    "output_text": _text,
    "summary_text": _text,
    "refusal": _refusal,
    "image_url": _image,
    "input_image": _image,
    "image": _image,
    "file": _file,
    "input_file": _file,
    "input_audio": _audio,
    "tool_use": _tool_use,
    "tool_call": _tool_use,
    "tool_result": _tool_result,
    "thinking": _thinking,
    "redacted_thinking": _thinking,
    "reasoning": _thinking,
}
