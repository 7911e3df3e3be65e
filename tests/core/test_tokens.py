"""Counting: exact, additive where it is said to be, offline, and never paid for twice."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from memory_core.messages import Message
from memory_core.tokens import (
    PER_MESSAGE,
    PER_NAME,
    PRIMING,
    TokenCounter,
    encoding_for,
    load_encoding,
)


def test_a_hand_counted_message() -> None:
    """A message costs its overhead, its text, and its name where one is sent."""
    counter = TokenCounter()
    hello = len(load_encoding("o200k_base").encode("hello world"))
    assert counter.message(Message.of("user", "hello world")) == PER_MESSAGE + hello
    named = Message.of("user", "hello world", name="dana")
    name = len(load_encoding("o200k_base").encode("dana"))
    assert counter.message(named) == PER_MESSAGE + hello + PER_NAME + name
    assert counter.messages([named]) == counter.message(named) + PRIMING


def test_tool_calls_count_in_both_styles() -> None:
    """Arguments count whether the call stands in a block or in additional_kwargs."""
    counter = TokenCounter()
    block = {
        "block_type": "tool_call",
        "tool_call_id": "c",
        "tool_name": "note",
        "tool_kwargs": {"text": "river level report"},
    }
    call = {
        "id": "c",
        "function": {"name": "note", "arguments": '{"text": "river level report"}'},
    }
    in_block = counter.message(Message("assistant", (block,)))
    assert in_block == counter.message(Message("assistant", (), {"tool_calls": [call]}))
    assert in_block > PER_MESSAGE + 5


def test_pictures_cost_what_the_setting_says() -> None:
    """Each picture adds the set number of tokens."""
    picture = Message("user", ({"block_type": "image", "image": "aGk="},) * 2)
    assert TokenCounter(image_tokens=100).message(picture) == PER_MESSAGE + 200
    assert TokenCounter(image_tokens=0).message(picture) == PER_MESSAGE


def test_control_tokens_are_text() -> None:
    """Text that looks like a control token is counted as the text it is."""
    assert TokenCounter().text("<|endoftext|>") > 1


def test_thinking_counts() -> None:
    """A thinking block is part of what is sent and counted."""
    thinking = Message("assistant", ({"block_type": "thinking", "content": "step " * 500},))
    assert TokenCounter().message(thinking) > 500


def test_counting_again_encodes_nothing() -> None:
    """A text that was counted is not encoded again."""
    counter = TokenCounter()
    counter.text("the same text")
    before = counter.encoded
    counter.text("the same text")
    assert counter.encoded == before


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=80), st.lists(st.integers(0, 80), max_size=4))
def test_spans_sum_to_the_text(text: str, cuts: list[int]) -> None:
    """However a text is cut, the tokens of its spans sum to the tokens of the text."""
    counter = TokenCounter()
    ends = [*sorted(min(c, len(text)) for c in cuts), len(text)]
    assert sum(counter.spans(text, ends)) == counter.text(text)


def test_encodings_of_models() -> None:
    """GPT-4 and 3.5 are counted in cl100k, newer and unknown models in o200k."""
    assert encoding_for("gpt-4") == encoding_for("gpt-3.5-turbo") == "cl100k_base"
    assert encoding_for("gpt-4-turbo") == "cl100k_base"
    assert encoding_for("gpt-4o-mini") == encoding_for("gpt-4.1") == "o200k_base"
    assert encoding_for("llama3.2") == "o200k_base"


def test_lone_surrogates_do_not_stop_counting() -> None:
    """Half an emoji is counted without an error."""
    assert TokenCounter().text("good morning \ud83d") > 0


@settings(max_examples=600, deadline=None)
@given(
    st.text(max_size=60)
    | st.text(alphabet="ab1 .,'/\n\t\u00a0\u2028\x1fé日😀<|>", max_size=40)
    | st.text(alphabet=st.characters(categories=["Zs", "Cc", "Nd", "Po", "Lu"]), max_size=30),
    st.sampled_from(["o200k_base", "cl100k_base"]),
)
def test_counting_by_words_is_exact(text: str, encoding: str) -> None:
    """The count is that of the whole text encoded at once, in both encodings."""
    whole = load_encoding(encoding).encode(text, disallowed_special=())
    assert TokenCounter(encoding).text(text) == len(whole)
