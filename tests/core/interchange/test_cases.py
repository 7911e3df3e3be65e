"""Chat files in odd shapes from bug reports: taken over and told, or refused in one sentence."""

from __future__ import annotations

import pytest

from memory_core.errors import InvalidInput
from memory_core.interchange import preview
from memory_core.llama import to_chat
from tests.core.interchange.making import only

SHAPES = (
    "chat_list wrapped_messages_key llama_store llama_store_written_twice null_content_with_call "
    "content_parts content_is_object content_is_number role_human role_upper_case role_missing "
    "role_unknown with_bom empty_file empty_object not_json one_line_per_message cut_off"
).split()


@pytest.mark.parametrize("shape", SHAPES)
def test_odd_shapes_are_taken_over_or_refused(case, shape: str):
    """C16: each file has a count and a list of changes, or one sentence that names the place."""
    found = case("C16")
    data = found["input"]["files"][shape].encode("utf-8")
    expected = found["expected"]["check"][shape]
    if expected.get("refused"):
        with pytest.raises(InvalidInput) as refusal:
            preview(data, name=shape)
        assert str(refusal.value).count("\n") == 0
        return
    told = preview(data, name=shape)
    conversation = only(data)
    message = conversation.messages[0]
    assert told.messages == len(conversation.messages)
    if "messages" in expected:
        assert told.messages == expected["messages"]
    if "content_text" in expected:
        assert message.text == expected["content_text"]
    if "role" in expected:
        assert message.role == expected["role"]
    if "blocks" in expected:
        assert [block["block_type"] for block in message.blocks] == expected["blocks"]
    if "tool_calls" in expected:
        assert len(message.tool_calls) == expected["tool_calls"]
    if expected.get("notice") or expected.get("refused_or_notice"):
        assert told.notices
        assert all(notice.place for notice in told.notices)


def test_every_shape_of_the_case_is_tested(case):
    """C16: a shape added to the case is not forgotten here."""
    assert set(case("C16")["input"]["files"]) == set(SHAPES)


def test_half_an_emoji_is_replaced_and_told(case):
    """C34: the lone half becomes U+FFFD, told with its number and place; both messages work."""
    found = case("C34")
    data = found["input"]["json_text"].encode("utf-8")
    expected = found["expected"]["check"]
    conversation = only(data)
    assert len(conversation.messages) == expected["messages"]
    assert conversation.messages[0].text == expected["content_0"]
    (notice,) = preview(data).notices
    assert notice.count == expected["replaced"]
    assert notice.place == "message 1"
    for message in conversation.messages:
        to_chat(message).model_dump_json().encode("utf-8")
