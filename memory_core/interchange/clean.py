"""Makes a message from outside safe to store, show and send, and notes every change.

Files may hold what JSON, SQL or a screen cannot carry: half of an emoji, NUL, NaN, numbers of a
thousand digits, values nested a thousand deep, blocks that name a file on this machine. Each is
replaced by the nearest thing that can be carried, in its place, with a notice.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

from memory_core.errors import InvalidInput
from memory_core.interchange.values import Notes
from memory_core.messages import TEXT, Json, Message, repair_text

MAX_DEPTH = 64  # containers within containers; far above what chat files hold
_MAX_INTEGER = 2**63

_REPLACED = "characters that cannot be stored (half an emoji, NUL) were replaced by U+FFFD"
_NUMBERS = "numbers that JSON or a database cannot hold were kept as text"
_PATH = "a block that names a file on disk was replaced by the name"
_URL = "an address that is neither http, https nor data was replaced by its text"
_BLOCK = "a block that is not as LlamaIndex has it was kept as its JSON text"
_IMAGES = 'the old "images" entry was renamed to "imported_images"'

# What LlamaIndex 0.14 requires in each kind of content block, beside the kind itself.
_REQUIRED: Mapping[str, Mapping[str, tuple[type, ...]]] = {
    "text": {"text": (str,)},
    "image": {},
    "audio": {},
    "video": {},
    "document": {},
    "cache": {"cache_control": (dict,)},
    "citable": {"title": (str,), "source": (str,), "content": (str, list)},
    "citation": {
        "title": (str,),
        "source": (str,),
        "cited_content": (str, list, dict),
        "additional_location_info": (dict,),
    },
    "thinking": {},
    "tool_call": {"tool_name": (str,)},
}


class Digits(str):
    """A number, as it was written, that is too large or no number at all (NaN)."""

    __slots__ = ()


def clean_text(text: str, place: str, notes: Notes) -> str:
    """Return a text that can be stored; see :func:`memory_core.messages.repair_text`."""
    if text.isascii() and "\0" not in text:
        return text
    repaired, replaced = repair_text(text)
    if replaced:
        notes.add(place, _REPLACED, replaced)
    return repaired


def clean_message(message: Message, place: str, notes: Notes) -> Message:
    """Return the message with everything replaced that cannot be stored or must not be kept."""
    blocks = tuple(_block(block, place, notes) for block in message.blocks)
    kwargs = clean_json(dict(message.kwargs), place, notes) if message.kwargs else {}
    if kwargs.get("images"):
        notes.add(place, _IMAGES)
        kwargs["imported_images"] = kwargs.pop("images")
    return Message(message.role, blocks, kwargs)


def clean_json(value: Json, place: str, notes: Notes, *, depth: int = 0) -> Json:
    """Return a JSON value that can be stored anywhere.

    Raises :class:`InvalidInput` when it is nested deeper than :data:`MAX_DEPTH`.
    """
    if isinstance(value, str):
        if isinstance(value, Digits):
            notes.add(place, _NUMBERS)
        return clean_text(str(value), place, notes)
    if isinstance(value, (dict, list)):
        if depth >= MAX_DEPTH:
            raise InvalidInput(f"{place or 'A value'} is nested more than {MAX_DEPTH} levels deep.")
        if isinstance(value, list):
            return [clean_json(item, place, notes, depth=depth + 1) for item in value]
        return {
            clean_text(str(key), place, notes): clean_json(item, place, notes, depth=depth + 1)
            for key, item in value.items()
        }
    unfit = (isinstance(value, float) and not math.isfinite(value)) or (
        isinstance(value, int) and abs(value) > _MAX_INTEGER
    )
    if unfit:
        notes.add(place, _NUMBERS)
        return str(value)
    return value


def as_text(value: Json, place: str = "", notes: Notes | None = None) -> str:
    """Return any JSON value as text: a text as it is, anything else as its JSON."""
    if isinstance(value, str):
        return str(value)
    return json.dumps(clean_json(value, place, notes or Notes()), ensure_ascii=False)


def text_block(text: str) -> dict[str, Json]:
    """Return a text as a content block."""
    return {"block_type": TEXT, "text": text}


def _block(block: Mapping[str, Json], place: str, notes: Notes) -> dict[str, Json]:
    kind, text = block.get("block_type"), block.get("text")
    if kind == TEXT and type(text) is str and len(block) == 2:
        return text_block(clean_text(text, place, notes))
    known = {k: v for k, v in block.items() if v is not None}
    out: dict[str, Json] = clean_json(known, place, notes)
    if out.get("path") is not None:
        notes.add(place, _PATH)
        return text_block(f"[{kind} file: {as_text(out['path'])}]")
    url = out.get("url")
    if url is not None and not str(url).lower().startswith(("http://", "https://", "data:")):
        notes.add(place, _URL)
        return text_block(f"[{kind}: {as_text(url)}]")
    required = _REQUIRED.get(str(kind))
    if required is None or any(not isinstance(out.get(k), t) for k, t in required.items()):
        notes.add(place, _BLOCK)
        return text_block(as_text(out))
    return out
