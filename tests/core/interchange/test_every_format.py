"""What holds for every format: known by content, read whole, previewed, and safe when hostile."""

from __future__ import annotations

import codecs
import json

import pytest

from memory_core.interchange import conversations, detect, fingerprint, preview
from memory_core.llama import to_chat
from tests.core.interchange.making import TALK, WRITERS, only, refused, said, zipped

EVERY = pytest.mark.parametrize("name", WRITERS)


def written(name: str, talk=TALK) -> bytes:
    """Return the file that holds the talk in a format."""
    return WRITERS[name][1](talk)


@EVERY
def test_a_file_is_known_by_its_content_alone(name: str):
    """No file name is needed, and a wrong one does not matter."""
    assert detect(written(name), name="holiday.png").id == WRITERS[name][0]


@EVERY
def test_a_talk_is_read_as_it_was_written(name: str):
    """Roles, texts and their order come through every format."""
    assert said(only(written(name)).messages) == list(TALK)


@EVERY
def test_a_preview_tells_what_reading_gives(name: str):
    """The counts of the preview are those of the conversations."""
    told = preview(written(name), name="f")
    read = list(conversations(written(name)))
    assert told.messages == sum(len(c.messages) for c in read) == len(TALK)
    assert told.questions == sum(len(c.questions) for c in read)
    assert [row.fingerprint for row in told.conversations] == [c.fingerprint for c in read]
    assert told.size == len(written(name))
    assert told.fingerprint == fingerprint(written(name))


@EVERY
def test_a_byte_order_mark_and_utf_16_change_nothing(name: str):
    """Files that Windows programs wrote are read like any other."""
    text = written(name).decode("utf-8")
    for data in (
        codecs.BOM_UTF8 + text.encode("utf-8"),
        text.encode("utf-16"),
        codecs.BOM_UTF16_BE + text.encode("utf-16-be"),
        text.encode("utf-32"),
        text.encode("utf-16-le"),
    ):
        assert said(only(data).messages) == list(TALK)


@EVERY
def test_windows_1252_is_read_and_told(name: str):
    """A file in the usual wrong encoding is taken over with a notice that says so."""
    talk = [("user", "Un café à Orléans, s'il vous plaît, et vite."), ("assistant", "Voilà !")]
    talk += [("user", "merci bien"), ("assistant", "de rien")]
    text = WRITERS[name][1](talk).decode("utf-8")
    told = preview(text.encode("windows-1252"))
    assert said(only(text.encode("windows-1252")).messages) == talk
    assert any("Windows-1252" in notice.what for notice in told.notices)


@EVERY
def test_half_an_emoji_is_replaced_and_told(name: str):
    """Half of a pair, written as an escape or as raw bytes, becomes U+FFFD with a count."""
    talk = [("user", "good morning HERE"), ("assistant", "hello"), *TALK[2:]]
    data = WRITERS[name][1](talk)
    raw = data.replace(b"HERE", b"\xed\xa0\xbd")
    escaped = data.replace(b"HERE", b"\\ud83d")
    for broken in (raw,) if name in ("csv", "transcript") else (raw, escaped):
        assert said(only(broken).messages)[0] == ("user", "good morning \ufffd")
        notices = [n for n in preview(broken).notices if "U+FFFD" in n.what]
        assert [n.count for n in notices] == [1]
        assert notices[0].place


@EVERY
def test_nul_is_replaced_and_told(name: str):
    """NUL, which PostgreSQL cannot hold, becomes U+FFFD with a notice."""
    nul = b"\0" if name in ("csv", "transcript") else b"\\u0000"
    data = WRITERS[name][1]([("user", "aHEREb"), *TALK[1:]]).replace(b"HERE", nul)
    assert only(data).messages[0].text == "a\ufffdb"
    assert any("NUL" in notice.what for notice in preview(data).notices)


@EVERY
def test_a_file_cut_off_is_refused_or_read_up_to_there(name: str):
    """Wherever a file ends, there is a result or one sentence, and never another error."""
    data = written(name)
    for end in range(0, len(data), max(1, len(data) // 40)):
        refusal = refused(data[:end])
        if refusal is None:
            assert preview(data[:end]).messages
            assert WRITERS[name][0] in ("csv", "transcript") or name == "openai lines"
        else:
            assert str(refusal).endswith(".")
            assert "\n" not in str(refusal)


@EVERY
def test_no_byte_changed_raises_anything_but_a_refusal(name: str):
    """Any damage gives a result or an InvalidInput; no stack trace reaches a page."""
    data = written(name)
    for place in range(0, len(data), max(1, len(data) // 50)):
        for byte in (b"\xff", b"[", b'"', b"\0", b"9"):
            refusal = refused(data[:place] + byte + data[place + 1 :])
            assert refusal is None or str(refusal)


@EVERY
def test_what_is_read_can_be_shown_stored_and_sent(name: str):
    """Every message is plain JSON in UTF-8 and fits LlamaIndex's own class."""
    for message in only(written(name)).messages:
        json.dumps(message.to_json(), allow_nan=False).encode("utf-8")
        assert to_chat(message).role.value == message.role


@EVERY
def test_a_huge_text_is_read_whole(name: str):
    """A message longer than any window of the reader is not cut."""
    long = "long " * 400_000
    talk = [("user", f"{long}end"), *TALK[1:]]
    assert only(WRITERS[name][1](talk)).messages[0].text == f"{long}end"


@EVERY
def test_a_zip_of_it_is_read_the_same(name: str):
    """An archive is looked into; what else is in it is told as left out."""
    data = zipped({"export/data.txt": written(name), "export/chat.html": b"<html>hi</html>"})
    assert said(only(data).messages) == list(TALK)
    told = preview(data)
    assert [n.place for n in told.notices if "no conversation file" in n.what] == [
        "export/chat.html"
    ]


@EVERY
def test_progress_ends_at_the_whole(name: str):
    """The callback is told the bytes read and their total, and ends with both equal."""
    calls: list[tuple[int, int]] = []
    list(conversations(written(name), progress=lambda done, total: calls.append((done, total))))
    assert calls == sorted(calls)
    assert calls[-1] == (len(written(name)), len(written(name)))
