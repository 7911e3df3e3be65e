"""Values that no exporter writes, at every place of every JSON format: never a stack trace."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory_core.errors import InvalidInput
from memory_core.interchange import conversations, preview
from tests.core.interchange.making import TALK, WRITERS, dumped, only, refused

ODD: tuple[Any, ...] = (None, 5, True, "", "x", [], {}, [None], {"a": [1]}, float("nan"), 10**400)
JSON_FORMATS = [n for n in WRITERS if n not in ("csv", "transcript", "openai lines")]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path to every value of a JSON value."""
    yield path
    if isinstance(value, dict):
        for key, item in value.items():
            yield from places(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value[:3]):
            yield from places(item, (*path, index))


def replaced(value: Any, path: tuple[Any, ...], odd: Any) -> Any:
    """Return a copy of a JSON value with another one at a path."""
    if not path:
        return odd
    out = copy.deepcopy(value)
    inner = out
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = odd
    return out


def previewed(data: bytes) -> None:
    """Preview a file; whatever comes of it must be presentable."""
    refusal = refused(data)
    if refusal is not None:
        assert str(refusal)
        return
    for conversation in conversations(data):
        for message in conversation.messages:
            json.dumps(message.to_json(), allow_nan=False).encode("utf-8")
    assert all(str(notice) for notice in preview(data).notices)


@pytest.mark.parametrize("name", JSON_FORMATS)
def test_an_odd_value_anywhere_is_taken_over_or_refused(name: str):
    """Whatever stands where a text, a list or an object should, the app goes on."""
    value = json.loads(WRITERS[name][1](TALK))
    for number, path in enumerate(places(value)):
        for odd in ODD[number % 3 :: 3]:
            previewed(dumped(replaced(value, path, odd)))


KEYS = (
    "role content messages type text data kwargs lc blocks store mapping parts from value name id "
    "conversations chat_messages sender tool_calls function arguments input output values body "
    "checkpoint choices message haystack_sessions conversation session_1 qa evidence chat_store "
    "db_data chat_history additional_kwargs"
).split()
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(json_values)
def test_any_json_at_all_is_taken_over_or_refused(value: Any):
    """Any JSON value is a file somebody may drop."""
    previewed(json.dumps(value).encode("utf-8"))


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda t: t.encode("utf-8", "replace")))
def test_any_bytes_at_all_are_taken_over_or_refused(data: bytes):
    """Any bytes are a file somebody may drop."""
    previewed(data)


def test_numbers_that_json_cannot_hold_become_text():
    """NaN, infinity and integers of a thousand digits are kept as they were written."""
    call = (
        '[{"role":"assistant","content":null,"logprob":NaN,"big":%s,"far":-Infinity,"wide":1e999}]'
    )
    conversation = only((call % ("7" * 5_000)).encode())
    assert conversation.messages[0].kwargs == {
        "logprob": "NaN",
        "big": "7" * 5_000,
        "far": "-Infinity",
        "wide": "inf",
    }
    (notice,) = conversation.notices
    assert notice.count == 4


@pytest.mark.parametrize("depth", [70, 900, 100_000])
@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_deep_nesting_is_refused(depth: int, opening: str):
    """Values nested without end are refused in a sentence, at any depth."""
    closing = "]" if opening == "[" else "}"
    nested = opening * depth + "1" + closing * depth
    data = f'[{{"role":"user","content":"hi","extra":{nested}}}]'.encode()
    with pytest.raises(InvalidInput, match="nested"):
        preview(data)


@pytest.mark.parametrize("closing", ["", "]" * 100_000])
def test_a_file_of_nothing_but_brackets_is_refused(closing: str):
    """Lists within lists that hold no message are refused in a sentence, cut off or not."""
    with pytest.raises(InvalidInput, match="holds no messages"):
        preview(b"[" * 100_000 + closing.encode())


def test_notices_of_many_odd_messages_are_one():
    """Equal changes are told once, with their number and the first places."""
    many = [{"role": "human", "content": "hi"}] * 5_000
    (notice,) = preview(dumped(many)).notices
    assert notice.count == 5_000
    assert notice.place.startswith("message 1; message 2; ")
    assert notice.place.endswith("4,995 more")


def test_a_role_of_its_own_in_every_message_keeps_the_list_short():
    """Notices stay few, however many kinds of changes a hostile file needs."""
    many = [{"role": f"role {n}", "content": "hi"} for n in range(1_000)]
    told = preview(dumped(many))
    assert len(told.notices) < 250
    assert sum(notice.count for notice in told.notices) == 1_000
