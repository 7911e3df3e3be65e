"""Messages survive the way to LlamaIndex and back."""

from __future__ import annotations

import base64
import io
import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.base.llms.types import (
    AudioBlock,
    ChatMessage,
    CitableBlock,
    DocumentBlock,
    ImageBlock,
    MessageRole,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    VideoBlock,
)
from llama_index.core.schema import ImageDocument
from openai.types.chat import ChatCompletionMessageToolCall
from openai.types.chat.chat_completion_message_tool_call import Function

from memory_core.errors import InvalidInput
from memory_core.llama import as_json, from_chat, to_chat
from memory_core.messages import IMAGE, TEXT, THINKING, TOOL_CALL, Message

TEXTS = st.text(max_size=40)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.dictionaries(TEXTS, JSON, max_size=3)
BINARY = st.binary(min_size=1, max_size=40)
BLOCKS = st.one_of(
    st.builds(TextBlock, text=TEXTS),
    st.builds(ImageBlock, image=BINARY, detail=st.none() | TEXTS),
    st.builds(ImageBlock, url=st.just("https://example.org/a.png")),
    st.builds(AudioBlock, audio=BINARY),
    st.builds(VideoBlock, video=BINARY),
    st.builds(DocumentBlock, data=BINARY, title=TEXTS),
    st.builds(
        ThinkingBlock,
        content=st.none() | TEXTS,
        num_tokens=st.none() | st.integers(0, 9),
        additional_information=OBJECTS,
    ),
    st.builds(
        ToolCallBlock, tool_call_id=st.none() | TEXTS, tool_name=TEXTS, tool_kwargs=OBJECTS | TEXTS
    ),
    st.builds(CitableBlock, title=TEXTS, source=TEXTS, content=TEXTS),
)
KWARGS = OBJECTS.filter(lambda kwargs: "images" not in kwargs)
CHATS = st.builds(
    ChatMessage,
    role=st.sampled_from(MessageRole),
    blocks=st.lists(BLOCKS, max_size=4),
    additional_kwargs=KWARGS,
)


@given(CHATS)
def test_round_trip_is_lossless(chat: ChatMessage):
    """Every block and kwarg comes back equal, also through JSON text."""
    message = from_chat(chat)
    stored = Message.from_json(json.loads(json.dumps(message.to_json())))
    assert stored == message
    assert to_chat(stored) == chat
    assert from_chat(to_chat(message)) == message


@given(CHATS)
def test_text_is_the_content_llamaindex_sends(chat: ChatMessage):
    """The visible text equals ``ChatMessage.content``."""
    assert from_chat(chat).text == (chat.content or "")


def test_block_names_are_those_of_llamaindex():
    """The names in messages.py are the block types as LlamaIndex dumps them."""
    kinds = [TextBlock(text=""), ImageBlock(), ToolCallBlock(tool_name=""), ThinkingBlock()]
    assert [b.block_type for b in kinds] == [TEXT, IMAGE, TOOL_CALL, THINKING]


def test_tool_calls_are_read_from_blocks_and_from_provider_objects():
    """Both storage styles give the same tool call, and provider objects become JSON."""
    call = ChatCompletionMessageToolCall(
        id="c1",
        type="function",
        function=Function(name="get_weather", arguments='{"city": "Oslo"}'),
    )
    block = ToolCallBlock(tool_call_id="c1", tool_name="get_weather", tool_kwargs={"city": "Oslo"})
    in_block = from_chat(ChatMessage(role="assistant", blocks=[block]))
    in_kwargs = from_chat(ChatMessage(role="assistant", additional_kwargs={"tool_calls": [call]}))
    assert in_block.tool_calls == in_kwargs.tool_calls
    assert in_kwargs.kwargs["tool_calls"][0]["function"]["name"] == "get_weather"
    json.dumps(in_kwargs.to_json())


def test_values_json_does_not_have_become_text():
    """Bytes, times, sets, not-a-number and odd objects are text; keys are text."""
    when = datetime(2026, 1, 2, tzinfo=UTC)
    value = {1: b"\xff", "t": when, "s": {"b", "a"}, "n": float("nan"), "r": MessageRole.USER}
    assert as_json(value) == {
        "1": "/w==",
        "t": str(when),
        "s": ["a", "b"],
        "n": "nan",
        "r": "user",
    }


def test_a_picture_in_a_file_is_read_in(tmp_path):
    """A stored message holds the picture itself and does not change when the file does."""
    path = tmp_path / "a.png"
    path.write_bytes(b"\x89PNG-ish")
    message = from_chat(ChatMessage(role="user", blocks=[ImageBlock(path=path)]))
    path.unlink()
    (block,) = to_chat(message).blocks
    assert base64.b64decode(block.image) == b"\x89PNG-ish"
    assert "path" not in message.blocks[0]


def test_a_picture_file_that_vanished_is_named():
    """A missing file is an error shown to users with its name, not a traceback."""
    gone = ImageBlock.model_construct(path="/nowhere/holiday.png", image=None)
    chat = ChatMessage(role="user")
    chat.blocks = [gone]
    with pytest.raises(InvalidInput, match=r"holiday\.png"):
        from_chat(chat)


def test_a_picture_in_a_stream_is_read_in():
    """A picture handed over as an open stream is stored as its bytes."""
    chat = ChatMessage(role="user", blocks=[ImageBlock(image=io.BytesIO(b"\x89\x00raw"))])
    (block,) = to_chat(from_chat(chat)).blocks
    assert block.resolve_image().read() == b"\x89\x00raw"


def test_legacy_image_kwargs_are_kept_once():
    """Images given as legacy kwargs are blocks already and are not stored twice."""
    doc = ImageDocument(image=base64.b64encode(b"\x89\x00raw").decode())
    chat = ChatMessage(role="user", content="look", additional_kwargs={"images": [doc]})
    message = from_chat(chat)
    assert message.images == 1
    assert to_chat(message).blocks == chat.blocks


def test_foreign_image_kwargs_pass_through():
    """An ``images`` entry of another kind is carried along and read as no legacy image."""
    message = Message.of("user", "look", images=["aGk="])
    assert from_chat(to_chat(message)) == message


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        (Message.of("narrator", "x"), "narrator"),
        (Message("user", ({"block_type": "hologram"},)), "hologram"),
        (Message("user", ({"block_type": "text"},)), "text"),
        (Message("user", ({"block_type": "image", "path": "/etc/passwd"},)), "names a file"),
        (Message("user", ({"block_type": "document", "path": "/etc/passwd"},)), "names a file"),
    ],
)
def test_what_llamaindex_does_not_have_is_refused(message: Message, problem: str):
    """An unknown role, an odd block or one that names a file is refused in one sentence."""
    with pytest.raises(InvalidInput, match=problem):
        to_chat(message)


def test_lone_surrogates_pass_through():
    """Text that no socket can carry is not this module's business: it comes back unchanged."""
    message = Message.of("user", "hi \ud83d")
    assert from_chat(to_chat(message)) == message
