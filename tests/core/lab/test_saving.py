"""Sweeps on disk and in other programs: nothing is lost on the way, nothing is believed."""

from __future__ import annotations

import contextlib
import copy
import csv
import io
import json
import os
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_core.errors import InvalidInput
from memory_core.lab import saving
from memory_core.lab.cells import Measure
from memory_core.lab.choosing import cheapest
from memory_core.lab.comparing import compare
from memory_core.lab.exporting import to_csv, to_html
from memory_core.lab.inputs import SweepInput
from memory_core.lab.report import as_json, in_words
from memory_core.lab.saving import delete, from_json, load, rename, save, saved, to_json
from memory_core.lab.sweep import merge
from memory_core.lab.table import SweepResult
from memory_core.models.catalogue import price
from tests.core.lab.talks import long_talk, sweep_of, talks

HOSTILE = "<script>alert(1)</script> \" ' & =1+1 | `x` \u202e"


@pytest.fixture(scope="module")
def result() -> SweepResult:
    """Return a finished sweep."""
    return sweep_of(long_talk()).run()


def same(one: SweepResult, two: SweepResult) -> bool:
    """Return whether two sweeps are equal, cells included."""
    return one == two and to_json(one) == to_json(two)


@given(conversation=talks(), summarise=st.booleans())
@settings(max_examples=20, deadline=None)
def test_json_round_trips(conversation: SweepInput, summarise: bool) -> None:
    """A sweep read back from its JSON is the same in every value."""
    made = sweep_of(conversation, summarise=summarise, summary_every=1).run()
    assert same(from_json(json.loads(json.dumps(to_json(made)))), made)


def test_a_sweep_is_saved_under_its_name(tmp_path: Path, result: SweepResult) -> None:
    """Names are people's own; the list shows them, last saved first, and one name is one file."""
    names = ["Été 2026 / übung", "../../etc/passwd", "日本", "x" * 200, "half \ud83d"]
    for age, name in enumerate(names):
        file = save(result, name, tmp_path / "sweeps")
        assert file.parent == tmp_path / "sweeps"
        os.utime(file, (age, age))
        assert same(load(file), result)
    save(replace(result, title="again"), names[0], tmp_path / "sweeps")
    listed = saved(tmp_path / "sweeps")
    assert [one.name for one in listed] == [names[0], "half \ufffd", *names[3:0:-1]]
    assert load(listed[0].file).title == "again"
    with pytest.raises(InvalidInput):
        save(result, "  ", tmp_path)
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(InvalidInput, match="cannot be saved"):
        save(result, "name", tmp_path / "file" / "below")


def test_a_saved_sweep_is_renamed_and_deleted(tmp_path: Path, result: SweepResult) -> None:
    """It is the same under its new name; another one's name is refused; gone is gone."""
    save(result, "First", tmp_path)
    save(result, "Second", tmp_path)
    first = next(one for one in saved(tmp_path) if one.name == "First")
    for wrong, reason in (("Second", "already"), ("  ", "character")):
        with pytest.raises(InvalidInput, match=reason):
            rename(first, wrong)
    assert rename(first, "First") == first.file
    file = rename(first, "Third")
    assert load(file) == result
    assert {one.name for one in saved(tmp_path)} == {"Second", "Third"}
    with pytest.raises(InvalidInput):
        rename(first, "Fourth")
    third = next(one for one in saved(tmp_path) if one.name == "Third")
    delete(third)
    delete(third)
    assert [one.name for one in saved(tmp_path)] == ["Second"]


def test_other_files_are_passed_over(tmp_path: Path, result: SweepResult) -> None:
    """A list shows sweeps only, whatever else lies in the folder."""
    save(result, "good", tmp_path)
    for number, text in enumerate([b"", b"\xff\xfe", b"[" * 9999, b'{"name": 7', b'{"name": "x']):
        (tmp_path / f"{number}{saving.SUFFIX}").write_bytes(text)
    assert [one.name for one in saved(tmp_path)] == ["good"]
    assert saved(tmp_path / "nowhere") == []


@pytest.mark.parametrize(
    "text", [b"", b"\xff\xfe\x00", b"[" * 100_000, b"{}", b"[]", b"null", b"1"]
)
def test_files_that_are_none_are_refused(tmp_path: Path, text: bytes) -> None:
    """What is no saved sweep is refused with a reason and a next step."""
    file = tmp_path / "bad.sweep.json"
    file.write_bytes(text)
    with pytest.raises(InvalidInput) as caught:
        load(file)
    assert caught.value.next_step
    with pytest.raises(InvalidInput):
        load(tmp_path / "not there")


def places_in(value: object, at: tuple = ()) -> list[tuple]:
    """Return the paths of all values in a JSON value."""
    found = [at]
    if isinstance(value, dict):
        for key, item in value.items():
            found += places_in(item, (*at, key))
    elif isinstance(value, list):
        for index, item in enumerate(value[:3]):
            found += places_in(item, (*at, index))
    return found


def test_any_spoiled_value_is_refused_or_harmless(result: SweepResult) -> None:
    """Whatever value of a file is replaced, reading gives a whole sweep or a clear refusal."""
    good = to_json(result)
    for path in places_in(good)[1:]:
        for bad in (None, -1, "x" * 50, [], {}, True, 10**30, float("nan"), "\ud800"):
            value = copy.deepcopy(good)
            inner = value
            for step in path[:-1]:
                inner = inner[step]
            inner[path[-1]] = bad
            with contextlib.suppress(InvalidInput):
                read = from_json(value)
                list(read.rows())
                to_html(read, cheapest(read)).encode()


def test_a_file_too_large_is_not_read(
    tmp_path: Path, result: SweepResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file over the limit is refused before it is read."""
    file = save(result, "large", tmp_path)
    monkeypatch.setattr(saving, "MOST_BYTES", 100)
    with pytest.raises(InvalidInput, match="larger"):
        load(file)


def test_csv_holds_every_cell(result: SweepResult) -> None:
    """One line a cell, with figures that a spreadsheet reads and nothing that it runs."""
    rows = list(csv.DictReader(io.StringIO(to_csv(result, price=price("gpt-4o-mini")))))
    assert len(rows) == 9
    first = result.row(result.cells[0], price=price("gpt-4o-mini"))
    assert int(rows[0]["token_limit"]) == first.x
    assert float(rows[0]["evidence_share"]) == pytest.approx(first.share, abs=1e-4)
    assert float(rows[0]["tokens_mean"]) == pytest.approx(first.tokens, rel=1e-4)
    assert float(rows[0]["cost_usd"]) == pytest.approx(first.cost, abs=1e-8)
    hostile = replace(result, x=type(result.x)("strategy", ("=1+1", "+x", "@y")))
    assert "\n=1" not in to_csv(hostile)
    assert "'=1+1" in to_csv(hostile)


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self.tags.add(tag)
        self.links += [value for name, value in attrs if name in ("src", "href")]


def test_the_page_stands_alone_and_runs_nothing(result: SweepResult) -> None:
    """The page loads nothing and holds no script, whatever the texts in it say."""
    hostile = replace(
        result,
        title=HOSTILE,
        notices=(HOSTILE,),
        counter=HOSTILE,
        y=type(result.y)("embedding", (HOSTILE, "b", "c")),
    )
    parser = _Tags()
    page = to_html(hostile, cheapest(hostile), price=price("gpt-4o"))
    parser.feed(page)
    assert not parser.tags & {"script", "iframe", "link", "img", "object"}
    assert not parser.links
    assert "&lt;script&gt;" in page
    assert "http" not in page
    assert page.count('class="best"') == 1


def test_a_sweep_that_still_runs_can_be_shown(result: SweepResult) -> None:
    """What is known so far can be saved, drawn and told."""
    part = replace(result, cells=result.cells[:2])
    choice = cheapest(part)
    assert same(from_json(to_json(part)), part)
    assert "<td></td>" in to_html(part, choice)
    assert "held out" in in_words(part, choice)
    assert len(as_json(part, choice)["cells"]) == 2


def test_comparing_tells_gains_and_losses(result: SweepResult) -> None:
    """Two sweeps are compared cell by cell over the questions both ask."""
    other = sweep_of(long_talk(), ("token_limit", "120,400,900"), recall=False).run()
    fewer = replace(other, questions=other.questions)
    differences = compare(result, fewer)
    assert {(d.x, d.y) for d in differences} == {(x, y) for x in (120, 400) for y in (0, 1, 3)}
    lost = [d for d in differences if d.y == 3 and d.x == 400]
    assert lost[0].evidence[0] > lost[0].evidence[1]
    assert lost[0].lost
    assert not lost[0].gained
    assert all(not (d.gained or d.lost) for d in compare(result, result, Measure.ALL))


def test_what_cannot_be_compared_is_refused(result: SweepResult) -> None:
    """Other axes, no common cell, no common question: each is said."""
    with pytest.raises(InvalidInput, match="other over"):
        compare(result, replace(result, x=result.y, y=result.x))
    with pytest.raises(InvalidInput, match="no cell"):
        compare(result, sweep_of(long_talk(), ("token_limit", "7")).run())
    asked = tuple(replace(q, text=q.text + "!") for q in result.questions)
    with pytest.raises(InvalidInput, match="no question"):
        compare(result, replace(result, questions=asked))


def test_several_conversations_are_one_table(result: SweepResult) -> None:
    """Merged sweeps average over all their questions; different grids are refused."""
    other = sweep_of(long_talk(12)).run()
    both = merge([result, other], "Both")
    both.check()
    count, more = len(result.questions), len(other.questions)
    assert len(both.questions) == count + more
    for x, y in ((0, 0), (2, 1)):
        shares = [one.row(one.cell(x, y)).share for one in (result, other)]
        expected = (shares[0] * count + shares[1] * more) / (count + more)
        assert both.row(both.cell(x, y)).share == pytest.approx(expected)
    assert len(merge([result, replace(other, cells=other.cells[:4])], "Part").cells) == 4
    with pytest.raises(InvalidInput):
        merge([result, sweep_of(long_talk(), ("token_limit", "9")).run()], "Bad")
    with pytest.raises(InvalidInput):
        merge([], "None")
