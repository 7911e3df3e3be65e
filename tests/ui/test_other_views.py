"""The panels for retrieval, summary, state, prompt and turn, and the what-if comparison."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from html import unescape

from hypothesis import given
from hypothesis import strategies as st

from memory_core.messages import Message
from memory_core.prompt import Assembly, Gate, Part, Source
from memory_core.settings import MemorySettings
from memory_core.state import AgentState, Change, KeyFact
from memory_core.summary import NO_SUMMARY, Summary
from memory_core.trace import MemoryWrite, ModelCall, ToolStep, TurnTrace, Usage
from tests.ui.build import START, chat, hit, prompt, recall, store, tool_chat
from ui.charts import retrieved_figure
from ui.spans_html import prompt_html
from ui.view_models.prompt import prompt_json, prompt_view
from ui.view_models.retrieved import retrieved_view
from ui.view_models.state import state_view
from ui.view_models.summary import summary_view
from ui.view_models.text import excerpt, text_diff
from ui.view_models.turn import turn_view
from ui.view_models.whatif import what_if


def test_every_near_miss_names_its_gate():
    """Hits and near misses come with score, raw distance and, if stopped, gate and numbers."""
    view = retrieved_view(prompt(chat(3), recall=recall()), threshold=0.3)
    assert [r.gate for r in view.hits] == [""]
    assert [r.gate for r in view.near] == [Gate.THRESHOLD.value, Gate.TOP_K.value]
    assert "0.30" in view.near[0].reason
    assert view.query == "What can't I eat?"
    assert view.hits[0].distance == 1 - view.hits[0].similarity


def test_score_chart_shows_all_bars_and_the_threshold():
    """One bar a candidate on one axis, the threshold as a line, the same in words."""
    view = retrieved_view(prompt(chat(3), recall=recall()), threshold=0.3)
    figure = retrieved_figure(view)
    assert sorted(y for t in figure["data"] for y in t["y"]) == [0, 1, 2]
    assert figure["layout"]["shapes"][0]["x0"] == 0.3
    assert "0.30" in view.alt


def test_hover_text_cannot_be_read_as_markup():
    """A memory's text with tags is shown as its characters on hover."""
    found = recall()
    bad = replace(found, hits=(hit(1, 0.9, "<b>bold</b> & <script>"),))
    figure = retrieved_figure(retrieved_view(prompt(chat(1), recall=bad), threshold=0))
    assert "<b>" not in str(figure["data"][0]["customdata"])


def test_recall_switched_off_says_so():
    """Without a search the panel says why there is none."""
    assert retrieved_view(prompt(chat(1)), threshold=0.3).skipped


def test_summary_marks_lost_and_kept_facts():
    """A fact the text lost is shown as lost, one that was never checked as not checked."""
    facts = [KeyFact("a", "no nuts", 1), KeyFact("b", "Porto", 1), KeyFact("c", "new", 5)]
    now = Summary(2, "Dana has no nuts.", 5, 4, kept=("a",), lost=("b",), turn=4)
    before = Summary(1, "Dana lives in Porto.", 5, 2)
    view = summary_view(now, facts=facts, messages=chat(5), earlier=(before,))
    assert [f.mark for f in view.facts] == ["✓", "✗", "·"]
    assert view.lost == 1
    assert view.covers == "covers the oldest 4 messages, turns 1 to 2"
    assert view.versions == (1, 2)
    assert {line.mark for line in view.diff} == {"+", "-"}


def test_no_summary_yet_is_no_error():
    """A new session has an empty summary panel."""
    view = summary_view(NO_SUMMARY, facts=(), messages=())
    assert view.label == "Summary"
    assert view.covers == "covers nothing yet"


@given(st.text(max_size=200), st.text(max_size=200))
def test_diff_of_equal_texts_marks_nothing(a, b):
    """Equal texts differ nowhere; the lines without the gone ones are those of the new text."""
    assert all(line.mark == " " for line in text_diff(a, a))
    kept = [line.text for line in text_diff(a, b) if line.mark != "-"]
    assert kept == [line.text for line in text_diff(b, b)]


def test_state_changes_are_rows_with_json_values():
    """Added, changed and removed fields each say what was there before and what after."""
    changes = (
        Change("slots.city", None, "Porto"),
        Change("step", "ask", "book"),
        Change("preferences.tone", "curt", None),
    )
    state = AgentState("local", "s", workflow="trip", slots={"city": "Porto"}, version=7)
    view = state_view(state, changes=changes, turn=3)
    assert [c.kind for c in view.changes] == ["added", "changed", "removed"]
    assert view.changes[0].after == '"Porto"'
    assert view.label == "State v7"
    assert not view.empty
    assert state_view(AgentState("local", "s")).empty


@given(turns=st.integers(0, 20), limit=st.integers(20, 2000))
def test_prompt_spans_are_the_exact_text_and_its_tokens(turns, limit):
    """Joined spans give each message character for character; tokens sum to the prompt's."""
    assembly = prompt(
        chat(turns),
        MemorySettings(token_limit=limit),
        recall=recall(),
        state=AgentState("local", "s", workflow="trip", key_facts=(KeyFact("f", "no nuts", 1),)),
    )
    view = prompt_view(assembly, whole=True)
    for shown, message in zip(view.messages, assembly.messages, strict=True):
        assert "".join(span.text for span in shown.spans) == message.text
        assert Source.UNKNOWN not in {span.source for span in shown.spans}
    inside = sum(m.tokens for m in view.messages)
    assert inside + sum(s.tokens for s in view.beside) == assembly.tokens


def test_text_no_part_explains_is_shown_all_the_same():
    """A gap between parts is drawn as not explained, never left out."""
    message = Message.of("user", "abcdef")
    assembly = Assembly((message,), ("",), (Part(Source.BUFFER, 5, 0, 2, 4),))
    spans = prompt_view(assembly).messages[0].spans
    assert [(s.source, s.text) for s in spans] == [
        (Source.UNKNOWN, "ab"),
        (Source.BUFFER, "cd"),
        (Source.UNKNOWN, "ef"),
    ]


def test_long_prompts_are_drawn_in_part_and_counted_whole():
    """Beyond 50 messages the middle is not drawn, which is said, and tokens stay those of all."""
    assembly = prompt(chat(100), MemorySettings(token_limit=100_000, context_window=200_000))
    view = prompt_view(assembly)
    assert len(view.messages) == 50
    assert view.skipped == len(assembly.messages) - 50
    assert view.partial
    assert view.tokens == assembly.tokens
    assert prompt_json(assembly).count('"role"') == len(assembly.messages)
    assert not prompt_view(assembly, whole=True).partial


def test_long_messages_of_a_prompt_are_clipped_with_the_number_of_hidden_characters():
    """However long the messages, some 10,000 characters are drawn; the rest is counted."""
    said = [Message.of("user", "z" * 3000) for _ in range(40)]
    assembly = prompt(store(said), MemorySettings(token_limit=900_000, context_window=1_000_000))
    view = prompt_view(assembly)
    spans = [span for message in view.messages for span in message.spans]
    assert sum(len(span.text) for span in spans) < 12_000
    assert sum(len(s.text) + s.hidden for s in spans) == sum(len(m.text) for m in assembly.messages)


def test_prompt_html_shows_hostile_text_as_its_characters():
    """Tags, entities and quotes in a message come out as text, and nothing is lost."""
    hostile = "<script>alert(1)</script> &amp; \"quoted\" </span></div><b onclick='x'>"
    html = prompt_html(prompt_view(prompt(store([Message.of("user", hostile)])), whole=True))
    assert "<script" not in html
    assert unescape(re.sub(r"<[^>]*>", "", html)).count(hostile) == 1


def test_tool_calls_stand_beside_the_text():
    """A message that only calls a tool shows name and arguments."""
    view = prompt_view(prompt(tool_chat()))
    calls = [m.calls for m in view.messages if m.calls]
    assert calls == [('get_weather({"city": "Porto"})',)]


def trace(**more) -> TurnTrace:
    """Return a turn with a model call, a tool, writes and a degradation."""
    call = ModelCall(
        "reply", "m", prompt(chat(2), recall=recall()), usage=Usage(100, 7), estimated=8, cost=0.01
    )
    given = {
        "number": 3,
        "session": "s",
        "started": START,
        "ended": START + timedelta(seconds=1),
        "strategy": "layered",
        "settings": MemorySettings().to_json(),
        "calls": (call,),
        "steps": (ToolStep("c", "get_weather", "{}", "sunny", at=5, milliseconds=2),),
        "appended": ("m0", "m1"),
        "evicted": ("m9",),
        "memories": (MemoryWrite("skipped", "x", "thanks", reason="small talk"),),
        "degradations": ("Recall was skipped.",),
        "milliseconds": {"total": 14.2, "model": 3},
    }
    return TurnTrace(**(given | more))


def test_turn_tells_events_usage_writes_and_degradations():
    """One turn: what ran, our count beside the provider's, what was written and what failed."""
    view = turn_view(trace())
    assert [e.kind for e in view.events] == ["reply", "tool"]
    assert view.usage[0].theirs_prompt == 100
    assert view.usage[0].off == (view.usage[0].ours_prompt - 100) / 100
    assert any("small talk" in write for write in view.writes)
    assert any("1 message left the buffer" in write for write in view.writes)
    assert view.degradations == ("Recall was skipped.",)
    assert "14 ms" in view.headline
    assert "1 memory" in view.headline


def test_what_if_names_what_enters_and_leaves():
    """Lowering the limit lists the messages that leave; raising it lists the same coming in."""
    messages = chat(30)
    wide = prompt(messages, MemorySettings(token_limit=400))
    narrow = prompt(messages, MemorySettings(token_limit=200))
    stored = {m.id: m for m in messages}
    lower, higher = what_if(wide, narrow, stored), what_if(narrow, wide, stored)
    assert lower.newly_out
    assert not lower.newly_in
    assert lower.newly_out == higher.newly_in
    assert lower.tokens == narrow.tokens - wide.tokens == -higher.tokens
    assert lower.newly_out[0].label.startswith("B turn ")
    assert not what_if(wide, wide).changed


def test_excerpt_says_how_much_is_missing():
    """A long text is cut with the number of characters that are not shown."""
    assert excerpt("x" * 10, 20) == "x" * 10
    assert excerpt("x" * 1500, 100).endswith("(+1,400 characters)")
