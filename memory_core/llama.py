"""Between our messages and LlamaIndex's: one function each way, nothing lost.

:func:`from_chat` takes everything to JSON values: provider objects in ``additional_kwargs``
become what they dump to, pictures become base64 text, a picture named by a path is read in, so
that a stored message never changes because a file did. :func:`to_chat` is its inverse; it
refuses blocks that name a file, since a message from outside could then make the app read it.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from enum import Enum
from pathlib import Path

from llama_index.core.base.llms.types import ChatMessage, ContentBlock, MessageRole
from llama_index.core.schema import ImageDocument
from llama_index.core.utils import resolve_binary
from pydantic import BaseModel, TypeAdapter, ValidationError

from memory_core.errors import InvalidInput
from memory_core.messages import Json, Message

_BLOCK: TypeAdapter[ContentBlock] = TypeAdapter(ContentBlock)
# The field that holds the bytes of a block that can also name a file.
_BYTES_OF = {"image": "image", "audio": "audio", "video": "video", "document": "data"}


def from_chat(chat: ChatMessage) -> Message:
    """Return a LlamaIndex message as plain values.

    Raises :class:`InvalidInput` when a block names a file that cannot be read.
    """
    kwargs = dict(chat.additional_kwargs)
    images = kwargs.get("images")
    if isinstance(images, list) and any(isinstance(doc, ImageDocument) for doc in images):
        del kwargs["images"]  # subtle: ChatMessage has made blocks of them already
    return Message(chat.role.value, tuple(_from_block(b) for b in chat.blocks), as_json(kwargs))


def to_chat(message: Message) -> ChatMessage:
    """Return a plain message as LlamaIndex's class.

    Raises :class:`InvalidInput` for a role or a block that LlamaIndex does not have.
    """
    try:
        role = MessageRole(message.role)
    except ValueError as exc:
        known = ", ".join(r.value for r in MessageRole)
        raise InvalidInput(f"A message has the role {message.role!r:.40}; known: {known}.") from exc
    chat = ChatMessage(role=role, blocks=[_to_block(block) for block in message.blocks])
    # subtle: set afterwards, or ChatMessage would take an "images" entry for its own legacy one
    chat.additional_kwargs = as_json(message.kwargs)
    return chat


def as_json(value: Json) -> Json:
    """Return a deep copy made of JSON values only; what JSON does not have becomes text."""
    if isinstance(value, Enum):
        return as_json(value.value)
    if isinstance(value, BaseModel):
        return as_json(value.model_dump())
    if isinstance(value, Mapping):
        return {str(as_json(key)): as_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_json(item) for item in value]
    return _as_scalar(value)


def _as_scalar(value: Json) -> Json:
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, (int, float)):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, (set, frozenset)):
        return sorted((as_json(item) for item in value), key=str)
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode("ascii")
    return str(value)


def _from_block(block: ContentBlock) -> dict[str, Json]:
    kind = block.block_type
    dumped = {name: value for name, value in block.model_dump().items() if value is not None}
    holder = _BYTES_OF.get(kind)
    if holder is not None and dumped.get("path") is not None:
        path = Path(str(dumped.pop("path")))
        try:
            dumped.setdefault(holder, base64.b64encode(path.read_bytes()))
        except OSError as exc:
            raise InvalidInput(f"The {kind} file {path.name} cannot be read: {exc}.") from exc
    if holder is not None and isinstance(dumped.get(holder), bytes):
        raw = dumped[holder]
        dumped[holder] = resolve_binary(raw_bytes=raw, as_base64=True).read().decode("ascii")
    out: dict[str, Json] = as_json(dumped)
    return out


def _to_block(block: Mapping[str, Json]) -> ContentBlock:
    kind = str(block.get("block_type"))
    if block.get("path") is not None:
        raise InvalidInput(f"A message holds a block of type {kind[:40]!r} that names a file.")
    try:
        return _BLOCK.validate_python(as_json(block))
    except ValidationError as exc:
        first = exc.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise InvalidInput(
            f"A content block of type {kind[:40]!r} cannot be used: {place} {first['msg']}."
        ) from exc
