"""Summary rounds: due at the right time, folding what left, checking what must be kept."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memory_core.buffer import History
from memory_core.messages import Message
from memory_core.summary import (
    check_facts,
    facts_prompt,
    plan_summary,
    read_facts,
    summary_prompt,
)


def history(count: int) -> History:
    """Return a history of alternating messages of 10 tokens."""
    made = History()
    for i in range(count):
        made.append(Message.of("user" if i % 2 == 0 else "assistant", f"m{i}"), 10)
    return made


def test_not_due_before_its_time() -> None:
    """With fewer messages gone than the period, nothing is folded and the wait is told."""
    plan = plan_summary(history(20), covered=0, window_start=4, every=6, open_turn=20)
    assert not plan.due
    assert plan.waiting == 4
    assert "4 of 6" in plan.reason


def test_the_oldest_half_is_folded() -> None:
    """A due round folds all that left and the oldest half of what no summary covers."""
    plan = plan_summary(history(20), covered=0, window_start=6, every=6, open_turn=20)
    assert (plan.due, plan.first, plan.last) == (True, 0, 10)


@given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 60), st.integers(1, 20))
def test_rounds_leave_no_gap(count: int, covered: int, start: int, every: int) -> None:
    """After a round no message is both out of the window and in no summary; none is open."""
    covered, start = min(covered, count), min(start, count)
    plan = plan_summary(
        history(count), covered=covered, window_start=start, every=every, open_turn=count
    )
    assert plan.waiting == max(0, start - covered)
    if plan.due:
        assert plan.first == covered
        assert start <= plan.last <= count
    else:
        assert plan.waiting < every or plan.last == covered


def test_facts_are_found_word_for_word() -> None:
    """A fact counts as kept when its words stand in the summary, in any case and spacing."""
    facts = [("a", "Allergic to nuts."), ("b", "Lives in Porto")]
    kept, lost = check_facts("Dana is allergic  to NUTS and bakes.", facts)
    assert kept == ["a"]
    assert lost == ["b"]


def test_facts_are_read_from_lines_with_a_dash() -> None:
    """Only list lines are facts; prose and a plain none are not."""
    reply = "Here you are:\n- Likes tea\n* Lives near the sea\nnone"
    assert read_facts(reply, max_facts=5) == ["Likes tea", "Lives near the sea"]
    assert read_facts(reply, max_facts=1) == ["Likes tea"]
    assert read_facts("none", max_facts=5) == []


def test_prompts_hold_what_they_are_about() -> None:
    """The summariser is handed the old summary, the facts, the messages and the limit."""
    messages = [Message.of("user", "I moved to Porto")]
    system, user = summary_prompt("Old text.", messages, ["Allergic to nuts"], max_tokens=99)
    assert "99 tokens" in system.text
    assert all(part in user.text for part in ("Old text.", "Allergic to nuts", "I moved to Porto"))
    _, asked = facts_prompt(messages, ["known one"], max_facts=3)
    assert "known one" in asked.text
