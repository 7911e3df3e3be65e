"""The chat draws a window of messages, exactly as stored."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memory_core.messages import Message
from tests.ui.build import chat, store, tool_chat
from ui.view_models.chat import LEAST, LONG, ROOM, TOOL, chat_view


@given(turns=st.integers(0, 80), end=st.none() | st.integers(-5, 200))
def test_window_has_at_most_fifty_and_says_what_is_beside_it(turns, end):
    """At most 50 messages are drawn; those before and after are counted."""
    messages = chat(turns)
    view = chat_view(messages, end=end)
    assert len(view.bubbles) <= 50
    assert view.earlier + len(view.bubbles) + view.later == len(messages)


def test_text_is_the_stored_text(case):
    """Case C30: every text comes out character for character."""
    texts = case("C30")["input"]["texts"]
    view = chat_view(store([Message.of("user", text) for text in texts]))
    assert [b.text for b in view.bubbles] == texts


def test_equal_messages_have_ids_of_their_own(case):
    """Case C31: the same message four times gives four bubbles with four ids."""
    said = [Message.of(m["role"], m["content"]) for m in case("C31")["input"]["messages"]]
    view = chat_view(store(said))
    assert [b.text for b in view.bubbles] == ["ok"] * 4
    assert len({b.id for b in view.bubbles}) == 4


def test_tool_call_and_result_are_one_step():
    """A call and its result stand together between question and answer."""
    bubbles = chat_view(tool_chat()).bubbles
    assert [b.kind for b in bubbles] == ["text", TOOL, "text"]
    assert bubbles[1].text == 'get_weather({"city": "Porto"}) → sunny, 21 °C'


def test_long_message_is_clipped_until_opened():
    """A long text shows its beginning and how much is hidden; opened, it is shown whole."""
    messages = store([Message.of("user", "x" * 5000)])
    (bubble,) = chat_view(messages).bubbles
    assert (len(bubble.text), bubble.hidden) == (LONG, 5000 - LONG)
    (opened,) = chat_view(messages, opened=frozenset({bubble.id})).bubbles
    assert (len(opened.text), opened.hidden) == (5000, 0)


def test_many_long_messages_make_the_window_shorter():
    """Of messages that are long, fewer are drawn, counted in bytes, but always the newest three."""
    for letter, shown in (("y", ROOM // LONG), ("語", LEAST)):
        view = chat_view(store([Message.of("user", letter * 2000) for _ in range(60)]))
        assert len(view.bubbles) == shown
        assert view.earlier == 60 - shown
