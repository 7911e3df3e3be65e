"""The layers under the formats: bytes to text, text to JSON values, archives to entries."""

from __future__ import annotations

import codecs
import io
import json
import struct
import zipfile
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_core.errors import InvalidInput
from memory_core.interchange import Notes, conversations, detect, fingerprint, preview
from memory_core.interchange.encoding import decode
from memory_core.interchange.jsonstream import JsonText, members, values
from memory_core.interchange.sample import sample
from memory_core.interchange.times import read_time
from memory_core.interchange.tree import other_leaves, path_to
from memory_core.messages import repair_text
from tests.core.interchange.making import TALK, openai, said, table, zipped

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


def pieces(text, size: int):
    """Return a text or bytes cut into chunks."""
    return [text[at : at + size] for at in range(0, len(text), size)]


@settings(max_examples=50, deadline=None)
@given(st.lists(json_values, max_size=5), st.integers(1, 9), st.sampled_from([None, 1]))
def test_a_list_streams_as_the_standard_library_reads_it(value, size: int, indent):
    """However the text is cut into chunks, the members are those of json.loads."""
    text = json.dumps(value, indent=indent)
    assert [v for _, v in members(JsonText(pieces(text, size)))] == json.loads(text)


@settings(max_examples=50, deadline=None)
@given(st.dictionaries(st.text(max_size=5), json_values, max_size=4), st.integers(1, 9))
def test_members_of_an_object_stream_with_their_names(value, size: int):
    """An object below a path gives its members, what stands beside it is kept."""
    text = json.dumps({"before": 1, "store": value, "after": [2]})
    rest: dict[str, object] = {}
    found = dict(members(JsonText(pieces(text, size)), ("store",), rest))
    assert found == value
    assert rest == {"before": 1, "after": [2]}


@settings(max_examples=40, deadline=None)
@given(st.lists(json_values, max_size=5), st.integers(1, 9))
def test_lines_stream_as_values(items, size: int):
    """JSON Lines give one value a line."""
    text = "\n".join(json.dumps(item) for item in items)
    assert list(values(JsonText(pieces(text, size)))) == items


@settings(max_examples=50, deadline=None)
@given(st.lists(json_values, min_size=1, max_size=4), st.data())
def test_text_that_is_cut_is_refused_with_its_place(value, data):
    """A list cut anywhere raises a refusal that names line and column."""
    text = json.dumps(value, indent=1)
    end = data.draw(st.integers(0, len(text) - 1))
    with pytest.raises(InvalidInput, match=r"at line \d+, column \d+: "):
        list(members(JsonText([text[:end]])))


def test_the_place_of_an_error_is_told_across_windows():
    """Line and column count over the whole text, not from where reading got to."""
    text = "[" + '"' + "x" * 600_000 + '",\n1,\n   oops]'
    with pytest.raises(InvalidInput, match="line 3, column 4"):
        list(members(JsonText(pieces(text, 1_000))))


def test_a_large_value_is_read_in_time_proportional_to_it():
    """The window doubles, so a long value is scanned a few times and not once a chunk."""
    read = 0

    def chunks():
        nonlocal read
        yield '["'
        for _ in range(2_000):
            read += 1
            yield "x" * 1_000
        yield '"]'

    text = JsonText(chunks())
    scans = 0
    widen = text._widen

    def counted() -> None:
        nonlocal scans
        scans += 1
        widen()

    text._widen = counted
    ((_, value),) = members(text)
    assert (len(value), read) == (2_000_000, 2_000)
    assert scans < 10


@settings(max_examples=50, deadline=None)
@given(json_values)
def test_a_sample_of_the_whole_has_the_shape_of_the_whole(value):
    """The tolerant reader sees keys and kinds as they are (numbers stand in as 1)."""

    def shape(item):
        if isinstance(item, dict):
            return {k: shape(v) for k, v in item.items()}
        if isinstance(item, list):
            return [shape(v) for v in item[:50]]
        return 1 if isinstance(item, (int, float)) and not isinstance(item, bool) else item

    found = sample(json.dumps(value))
    assert shape(found.top) == shape(value)
    assert found.stopped == -1


@settings(max_examples=50, deadline=None)
@given(json_values, st.data())
def test_a_sample_of_any_beginning_is_no_error(value, data):
    """A beginning that ends anywhere, even in an escape, is read as far as it goes."""
    text = json.dumps([value])
    sample(text[: data.draw(st.integers(0, len(text)))])


@settings(max_examples=50, deadline=None)
@given(st.text(), st.integers(1, 7), st.sampled_from(["utf-8", "utf-16", "utf-32"]))
def test_text_comes_through_any_chunking_and_encoding(text: str, size: int, encoding: str):
    """Characters that are cut by a chunk's end are put together again."""
    whole = "{" * 8 + text
    notes = Notes()
    data = whole.encode(encoding)
    assert "".join(decode(pieces(data, size), notes)) == whole


@settings(max_examples=50, deadline=None)
@given(st.text(st.characters(min_codepoint=1, exclude_categories=["Cs"])), st.integers(1, 5))
def test_surrogates_written_as_utf_8_are_put_together(text: str, size: int):
    """Text that was written as UTF-16 halves in UTF-8 (CESU-8) reads as the text it was."""
    text = "{" * 8 + text
    halves = text.encode("utf-16-le")
    units = struct.unpack(f"<{len(halves) // 2}H", halves)
    data = "".join(map(chr, units)).encode("utf-8", "surrogatepass")
    notes = Notes()
    assert repair_text("".join(decode(pieces(data, size), notes))) == (text, 0)
    assert notes.notices() == ()


def test_a_file_in_another_encoding_is_refused():
    """Many bytes that are no UTF-8 are no Windows-1252 either, but another script."""
    data = "роль,текст\nя,привет как дела\n".encode("windows-1251") * 20
    with pytest.raises(InvalidInput, match="not UTF-8"):
        preview(data)


def test_an_odd_byte_at_the_end_of_utf_16_is_told():
    """Half a code unit at the end is one replaced character."""
    notes = Notes()
    assert "".join(decode([codecs.BOM_UTF16_LE + "ab".encode("utf-16-le") + b"c"], notes)) == (
        "ab\ufffd"
    )
    assert any("cut off" in notice.what for notice in notes.notices())


def test_utf_32_with_an_impossible_character_is_refused():
    """A code above the last plane is no character."""
    with pytest.raises(InvalidInput, match="UTF-32"):
        preview(codecs.BOM_UTF32_LE + b"\xff\xff\xff\xff" * 4)


@pytest.mark.parametrize(
    "data",
    [
        b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 8,
        b"%PDF-1.7\n" + bytes(range(128, 256)) * 20,
        b"\x7fELF" + b"\0" * 400,
        zlib.compress(b"x" * 999),
    ],
)
def test_what_is_no_text_is_refused(data: bytes):
    """Pictures, documents and programs are refused in a sentence."""
    with pytest.raises(InvalidInput):
        preview(data)


def test_a_zip_bomb_is_refused_before_it_is_opened():
    """An entry that unpacks to a thousand times its size is not read."""
    with pytest.raises(InvalidInput, match="times its size"):
        preview(zipped({"conversations.json": b"[" + b" " * 20_000_000}))


def test_an_archive_that_unpacks_to_too_much_is_refused():
    """The sizes that an archive claims are added up before anything is read."""
    data = bytearray(zipped({"a.json": openai(TALK)}))
    directory = data.rindex(b"PK\x01\x02")
    data[directory + 24 : directory + 28] = struct.pack("<I", 4_000_000_000)
    data[directory + 20 : directory + 24] = struct.pack("<I", 3_900_000_000)
    with pytest.raises(InvalidInput, match="unpacks to"):
        preview(bytes(data))


def test_names_in_archives_are_only_text():
    """A name that points elsewhere is shown as a plain name, and nothing is written."""
    data = zipped(
        {"../../etc/pass\nwd\x1b[2J": b"\x89PNG not text \xff\xfe", "C:\\a.json": openai(TALK)}
    )
    told = preview(data)
    assert told.messages == len(TALK)
    (left_out,) = [notice for notice in told.notices if "left out" in notice.what]
    assert left_out.place == "etc/pass\ufffdwd\ufffd[2J"


def test_archives_that_are_damaged_are_refused():
    """Cut, corrupted and encrypted archives give one sentence."""
    whole = zipped({"conversations.json": openai(TALK) * 1})
    cut = whole[: len(whole) // 2]
    corrupt = whole.replace(whole[60:64], b"\xff\xff\xff\xff", 1)
    encrypted = bytearray(whole)
    encrypted[6] |= 1
    encrypted[whole.rindex(b"PK\x01\x02") + 8] |= 1
    for data in (cut, corrupt, bytes(encrypted), b"PK\x03\x04", b"PK\x05\x06" + b"\0" * 18):
        with pytest.raises(InvalidInput, match="zip archive"):
            preview(data)


def test_several_conversation_files_in_an_archive_are_all_read():
    """Exports that are split over files are read in the order of their names."""
    first, second = [("user", "one"), ("assistant", "1")], [("user", "two"), ("assistant", "2")]
    data = zipped({"b.json": openai(second), "a.csv": table(first)})
    assert [said(c.messages) for c in conversations(data)] == [first, second]
    assert detect(data).id == "csv"


def test_entries_of_the_same_name_are_both_read():
    """An archive may hold one name twice; neither is lost."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("a.json", openai(TALK))
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("a.json", openai(TALK[:2]))
    assert preview(out.getvalue()).messages == len(TALK) + 2


def test_the_same_file_has_the_same_fingerprint():
    """The hash is of the bytes, whether they come as bytes or as a stream."""
    data = openai(TALK)
    assert fingerprint(data) == fingerprint(io.BytesIO(data)) != fingerprint(data + b" ")


def test_equal_conversations_in_one_file_are_told():
    """The same talk twice is read twice and said to be so."""
    line = json.dumps({"messages": json.loads(openai(TALK))}).encode() + b"\n"
    told = preview(line * 2)
    assert len(told.conversations) == 2
    assert [(n.place, n.what) for n in told.notices] == [
        ("conversation 2", "has the same messages as conversation 1")
    ]


def test_a_stream_is_read_bounded():
    """Of a file of many conversations only a window is held, not the whole."""

    class Watched(io.BytesIO):
        furthest = 0

        def read(self, size: int | None = -1) -> bytes:
            out = super().read(size)
            Watched.furthest = max(Watched.furthest, self.tell())
            return out

    line = json.dumps({"messages": json.loads(openai([("user", "x" * 1_000)] * 100))}).encode()
    file = Watched((line + b"\n") * 60)
    Watched.furthest = 0
    next(conversations(file))
    assert 0 < Watched.furthest < 1_500_000 < len(file.getvalue())


@pytest.mark.parametrize(
    ("written", "iso", "zoned"),
    [
        (1_700_000_000, "2023-11-14T22:13:20+00:00", True),
        (1_700_000_000.25, "2023-11-14T22:13:20.250000+00:00", True),
        ("1700000000", "2023-11-14T22:13:20+00:00", True),
        (1_700_000_000_000, "2023-11-14T22:13:20+00:00", True),
        (1_700_000_000_000_000_000, "2023-11-14T22:13:20+00:00", True),
        ("2024-05-01T10:00:00Z", "2024-05-01T10:00:00+00:00", True),
        ("2024-05-01T10:00:00+02:00", "2024-05-01T08:00:00+00:00", True),
        ("2024-05-01 10:00", "2024-05-01T10:00:00+00:00", False),
        ("1:56 pm on 8 May, 2023", "2023-05-08T13:56:00+00:00", False),
        ("2023/05/20 (Sat) 02:21", "2023-05-20T02:21:00+00:00", False),
        ("31.12.2023, 23:59", "2023-12-31T23:59:00+00:00", False),
    ],
)
def test_times_are_read_to_utc(written, iso: str, zoned: bool):
    """Every form that the supported files use is read, and whether it named its zone is told."""
    time, told = read_time(written)
    assert time is not None
    assert (time.isoformat(), told) == (iso, zoned)


@pytest.mark.parametrize(
    "written",
    [
        None,
        True,
        "soon",
        "",
        "9" * 30,
        1e300,
        -1e300,
        float("nan"),
        [],
        "0001-01-01T00:00:00+14:00",
    ],
)
def test_times_that_are_none_are_not_read(written):
    """Nothing that only looks like a time becomes a wrong one."""
    assert read_time(written)[0] is None


def test_a_tree_gives_its_way_and_its_branches():
    """The way to a leaf starts at the root; a leaf with something of its own is a branch."""
    parents = {"root": "", "a": "root", "b": "a", "c": "a", "d": "c", "e": "c"}
    main = path_to("b", parents)
    assert main == ["root", "a", "b"]
    assert other_leaves(main, parents, lambda _: True) == ["d", "e"]
    assert other_leaves(main, parents, lambda node: node == "c") == ["d"]


def test_parents_in_a_circle_are_refused():
    """A file that refers to itself ends in a sentence, not in a loop."""
    with pytest.raises(InvalidInput, match="circle"):
        path_to("a", {"a": "b", "b": "a"})
