"""The buffer panel lists every message with its tokens, age, place and reason."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from memory_core.messages import Message
from memory_core.settings import MemorySettings
from tests.ui.build import chat, hit, prompt, recall, store, tool_chat
from ui.view_models.buffer import PAGE, Whereabouts, buffer_view


@given(turns=st.integers(0, 40), limit=st.integers(1, 900), page=st.integers(-3, 9))
def test_rows_stand_where_the_plan_put_them(turns, limit, page):
    """Each row is in or out exactly as the plan says, newest first, at most a page of them."""
    messages = chat(turns)
    assembly = prompt(messages, MemorySettings(token_limit=limit))
    view = buffer_view(messages, assembly, turn=turns, page=page, size=10)
    rows = [*view.inside, *view.outside]
    assert len(rows) <= 10
    assert view.kept + view.left_out == len(messages)
    for row in rows:
        assert row.inside == assembly.window.keeps(row.position)
        assert row.inside or row.reason
    for part in (view.inside, view.outside):
        assert [r.position for r in part] == sorted((r.position for r in part), reverse=True)


def test_pages_cover_the_history_once():
    """Turning pages shows every message exactly once."""
    messages = chat(120)
    assembly = prompt(messages)
    pages = buffer_view(messages, assembly, turn=120).pages
    seen = []
    for page in range(1, pages + 1):
        view = buffer_view(messages, assembly, turn=120, page=page)
        seen += [r.position for r in (*view.inside, *view.outside)]
    assert sorted(seen) == list(range(240))
    assert len(seen) / pages <= PAGE


def test_reason_holds_the_numbers_that_were_compared():
    """The first group left out says what it needs and what is left, as the omission does."""
    messages = chat(30)
    assembly = prompt(messages, MemorySettings(token_limit=200))
    view = buffer_view(messages, assembly, turn=30)
    plan = assembly.window
    first_out = view.outside[0]
    assert f"{plan.next_needed:,} tokens" in first_out.reason
    assert f"{plan.next_left:,} left" in first_out.reason
    assert str(plan.limit) in view.line.replace(",", "")


def test_what_older_messages_need_grows_with_their_age():
    """Further back, a message needs all that is newer too: the sums only grow."""
    messages = chat(30)
    assembly = prompt(messages, MemorySettings(token_limit=150))
    view = buffer_view(messages, assembly, turn=30, size=100)
    needs = [
        int(m[1].replace(",", ""))
        for r in view.outside
        if (m := re.match(r"needs ([\d,]+) with all", r.reason))
    ]
    assert len(needs) > 20
    assert needs == sorted(needs)
    start = assembly.window.start
    oldest = view.outside[-1]
    assert needs[-1] == sum(m.tokens for m in messages[oldest.position : start])


def test_left_messages_say_where_they_went():
    """Below the line: in which summary, in long-term memory, or back as a memory."""
    messages = chat(30)
    search = recall()
    assembly = prompt(messages, MemorySettings(token_limit=220), recall=search)
    went = Whereabouts(summary=2, covers=4, remembered=frozenset({1, 2}))
    view = buffer_view(messages, assembly, turn=30, went=went, size=100)
    by_position = {r.position: r.reason for r in view.outside}
    assert "summary 2" in by_position[3]
    assert "summary" not in by_position[4]
    assert "memory" in by_position[2]
    assert "back as a memory, score 0.82" in by_position[0]


def test_orphan_tool_result_is_listed_with_its_reason():
    """Case C01's kind: a tool result without its call is out, and the row says so."""
    messages = store([Message.of("user", "hi"), Message.of("tool", "42", tool_call_id="gone")])
    view = buffer_view(messages, prompt(messages), turn=1)
    assert [r.role for r in view.outside] == ["tool"]
    assert "tool result without its call" in view.outside[0].reason


def test_tool_group_over_the_limit_is_out_whole():
    """A group that does not fit is out as a whole, each member with its numbers."""
    old, new = tool_chat(), [Message.of("user", "ok"), Message.of("assistant", "ok")]
    messages = store([m.message for m in old] + new)
    settings = MemorySettings(token_limit=55)
    view = buffer_view(messages, prompt(messages, settings), turn=2)
    assert len(view.outside) == 4
    assert all("its group does not fit" in r.reason for r in view.outside)
    assert view.outside[2].text == 'get_weather({"city": "Porto"})'


def test_pinned_system_message_says_so():
    """Case C06's kind: an old system message stays in and the row tells why."""
    said = [Message.of("system", "Answer in French."), *(m.message for m in chat(30))]
    messages = store(said)
    view = buffer_view(
        messages, prompt(messages, MemorySettings(token_limit=200)), turn=30, size=99
    )
    pinned = [r for r in view.inside if r.position == 0]
    assert pinned
    assert "pinned" in pinned[0].reason


def test_history_that_grew_since_the_prompt_is_cut_back_to_it():
    """A past prompt is shown over the history it saw, not over today's."""
    messages = chat(10)
    assembly = prompt(messages[:6])
    view = buffer_view(messages, assembly, turn=3)
    assert view.kept + view.left_out == 6


def test_memory_is_matched_by_message_id():
    """A hit made from two messages marks both."""
    assert hit(1, 0.5, message_ids=("m0", "m1")).message_ids == ("m0", "m1")
    messages = chat(30)
    search = recall()
    both = type(search)(search.query, (hit(1, 0.5, message_ids=("m0", "m1")),))
    view = buffer_view(
        messages, prompt(messages, MemorySettings(token_limit=200), recall=both), turn=30, size=99
    )
    assert sum("back as a memory" in r.reason for r in view.outside) == 2
