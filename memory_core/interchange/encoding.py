"""Bytes of a file to text, in chunks: which encoding, and what was not in it.

UTF-8 is expected, with or without a byte order mark; UTF-16 and UTF-32 are known by their mark
or by where their zero bytes stand. Single bytes that are no UTF-8 are read as Windows-1252, the
usual cause, and counted; a file with many of them is in another encoding or no text, and refused.
Halves of surrogate pairs are kept for :func:`memory_core.messages.repair_text`, which sees whole
texts and can join them.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator

from memory_core.errors import InvalidInput
from memory_core.interchange.values import Notes

CHUNK = 1 << 18  # bytes
_STRANGE = 0.1  # share of bytes that are no UTF-8, above which a file is refused
_FEW = 8  # so many strange bytes are always allowed

_MARKS = (  # longest first: the UTF-32 mark begins with the UTF-16 one
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_ZEROS = (  # where zero bytes stand when a file of one of these begins with ASCII characters
    (b"[^\0]\0\0\0[^\0]\0\0\0", "utf-32-le"),
    (b"\0\0\0[^\0]\0\0\0[^\0]", "utf-32-be"),
    (b"[^\0]\0[^\0]\0", "utf-16-le"),
    (b"\0[^\0]\0[^\0]", "utf-16-be"),
)
# A surrogate written as if it were UTF-8, or any other byte that is none.
_ESCAPED = re.compile("\udced([\udca0-\udcbf])([\udc80-\udcbf])|[\udc80-\udcff]")
_OPEN = re.compile("\udced[\udca0-\udcbf]?$")  # may be the beginning of one


def encoding_of(head: bytes) -> tuple[str, int]:
    """Return the encoding that the first bytes of a file show, and the length of its mark."""
    for mark, name in _MARKS:
        if head.startswith(mark):
            return name, len(mark)
    for pattern, name in _ZEROS:
        if re.match(pattern, head, re.DOTALL):
            return name, 0
    return "utf-8", 0


def decode(chunks: Iterable[bytes], notes: Notes) -> Iterator[str]:
    """Yield the text of a file, noting what was read in another encoding.

    Raises :class:`InvalidInput` when too much of it is no text.
    """
    source = iter(chunks)
    head = b""
    for chunk in source:
        head += chunk
        if len(head) >= 8:
            break
    name, mark = encoding_of(head)
    if name == "utf-8":
        yield from _decode_utf8(head[mark:], source, notes)
    else:
        notes.add("file", f"read as {name.upper()}")
        yield from _decode_wide(head[mark:], source, name, notes)


def _decode_utf8(head: bytes, rest: Iterator[bytes], notes: Notes) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
    held, strange, seen = "", 0, 0
    for chunk in _ending(head, rest):
        seen += len(chunk or b"")
        text = held + decoder.decode(chunk or b"", final=chunk is None)
        held = ""
        if not _is_whole(text):
            tail = _OPEN.search(text)
            if tail and chunk is not None:
                held, text = tail[0], text[: tail.start()]
            strange += sum(match[1] is None for match in _ESCAPED.finditer(text))
            text = _ESCAPED.sub(_unescape, text)
            if strange > max(_FEW, seen * _STRANGE):
                raise InvalidInput(
                    f"The file is not UTF-8 text: {strange:,} of its first {seen:,} bytes are not.",
                    next_step="Save it as UTF-8 and import it again.",
                )
        yield text
    if strange:
        notes.add("file", "bytes that are no UTF-8 were read as Windows-1252", strange)


def _decode_wide(head: bytes, rest: Iterator[bytes], name: str, notes: Notes) -> Iterator[str]:
    width = 4 if name.startswith("utf-32") else 2
    decoder = codecs.getincrementaldecoder(name)("surrogatepass")
    held = b""
    for chunk in _ending(head, rest):
        held += chunk or b""
        whole = len(held) - len(held) % width
        try:
            yield decoder.decode(held[:whole], final=False)
        except UnicodeDecodeError as exc:
            raise InvalidInput(f"The file is not {name.upper()} text: {exc.reason}.") from exc
        held = held[whole:]
    try:
        yield decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        held = b"\0"  # the second half of the last character is missing
    if held:
        notes.add("file", "the last character is cut off and was replaced by U+FFFD")
        yield "\ufffd"


def _ending(head: bytes, rest: Iterator[bytes]) -> Iterator[bytes | None]:
    """Yield the chunks and then ``None``, when the decoder must give what it holds back."""
    yield head
    yield from rest
    yield None


def _is_whole(text: str) -> bool:
    """Tell whether no byte was escaped and no half of a pair stands in the text; fast."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _unescape(match: re.Match[str]) -> str:
    if match[1] is None:
        return bytes([ord(match[0]) - 0xDC00]).decode("windows-1252", "replace")
    high, low = (ord(half) & 0x3F for half in match.groups())
    return chr(0xD000 | (high << 6) | low)
