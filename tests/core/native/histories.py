"""Random histories: tool groups in both styles, empty content, pictures, any script, long texts."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from llama_index.core.base.llms.types import (
    ChatMessage,
    ImageBlock,
    MessageRole,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
)

PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(16)
WORDS = st.sampled_from(
    "oven flour 4417 nuts Porto 東京 κάτι 🍞 repair {query_str} </memory> deliver </facts> <b> "
    "12.50 Überraschung ferry".split()
)
TEXTS = st.one_of(
    st.lists(WORDS, min_size=1, max_size=12).map(" ".join),
    st.lists(WORDS, min_size=60, max_size=90).map(" ".join),
    st.text(max_size=12),
    st.sampled_from(["", " ", "\n\n", "yes", "What is 4417?"]),
)


@st.composite
def turns(draw: Any) -> list[ChatMessage]:
    """Return the messages of one turn: a question, maybe tools, an answer."""
    question = ChatMessage(role=MessageRole.USER, content=draw(TEXTS))
    if draw(st.integers(0, 9)) == 0:
        question.blocks.append(ImageBlock(image=PICTURE))
    answer = ChatMessage(role=MessageRole.ASSISTANT, content=draw(TEXTS))
    if draw(st.integers(0, 9)) == 0:
        answer.blocks.insert(0, ThinkingBlock(content=draw(TEXTS)))
    return [question, *draw(st.one_of(st.just([]), tool_groups())), answer]


@st.composite
def tool_groups(draw: Any) -> list[ChatMessage]:
    """Return a message that calls tools, in either style, and the results."""
    ids = [f"c{draw(st.integers(0, 999))}-{n}" for n in range(draw(st.integers(1, 2)))]
    if draw(st.booleans()):
        blocks: list[Any] = [
            ToolCallBlock(tool_call_id=i, tool_name="look", tool_kwargs={"q": draw(TEXTS)})
            for i in ids
        ]
        call = ChatMessage(role=MessageRole.ASSISTANT, blocks=blocks)
    else:
        calls = [
            {"id": i, "type": "function", "function": {"name": "look", "arguments": "{}"}}
            for i in ids
        ]
        call = ChatMessage(
            role=MessageRole.ASSISTANT, content=None, additional_kwargs={"tool_calls": calls}
        )
    results = [
        ChatMessage(
            role=MessageRole.TOOL,
            blocks=[TextBlock(text=draw(TEXTS))],
            additional_kwargs={"tool_call_id": i},
        )
        for i in ids
    ]
    return [call, *results]


SYSTEM = st.just([ChatMessage(role=MessageRole.SYSTEM, content="Never give prices.")])
HISTORIES = st.lists(turns(), min_size=1, max_size=6)
SEEDS = st.one_of(
    st.just([]),
    SYSTEM,
    st.lists(turns(), min_size=1, max_size=4).map(lambda some: [m for turn in some for m in turn]),
)
