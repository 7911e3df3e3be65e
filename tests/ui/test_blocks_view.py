"""Memory blocks as rows: what each put in the prompt, why one is out, what it was given."""

from __future__ import annotations

from memory_core import strategies as s
from memory_core.native import knobs as k
from tests.core.native.rig import Rig, setup_of
from ui.view_models.blocks import blocks_view
from ui.view_models.budget import budget_bar
from ui.view_models.buffer import Whereabouts, buffer_view, kept_by_class
from ui.view_models.retrieved import documents_view
from ui.view_models.strategies import known_as
from ui.view_models.turn import turn_view

SAID = ["The oven costs 412 euros. " * 3, "Ferries leave at noon, pier 4. " * 3, "Nuts never. " * 5]


def traces(setup: s.Setup):
    """Return rig and traces of a chat in which the queue was flushed."""
    rig, found = Rig(setup), []
    for text in SAID:
        rig.say(text)
        found.append(rig.session.last_trace)
    return rig, found


def view_of(setup: s.Setup):
    """Return rig, the last trace and its blocks."""
    rig, found = traces(setup)
    stored = {m.id: m for m in rig.session.messages}
    knobs = setup.to_json()["knobs"]["blocks"]
    return rig, found[-1], blocks_view(found[-1].assembly, knobs, found, stored)


def test_blocks_are_rows_whose_tokens_are_in_the_prompt():
    """Every block of the setup has a row; tokens and text are those of its parts."""
    _, trace, view = view_of(setup_of(s.MEMORY_BLOCKS, token_limit=900, token_flush_size=20,
                                      chat_history_token_ratio=0.05))  # fmt: skip
    assert [row.name for row in view.rows] == ["about_user", "facts", "earlier"]
    for row in view.rows:
        assert row.inside
        parts = [part for part in trace.assembly.parts if part.note == row.name]
        assert row.tokens == sum(part.tokens for part in parts) > 0
        assert row.text in "\n".join(message.text for message in trace.assembly.messages)
    assert view.label == "Blocks 3·0 out"


def test_a_dropped_block_says_by_which_numbers_and_what_it_held():
    """What is over the limit goes whole, lowest priority first; its hits are near misses then."""
    blocks = (k.StaticBlock(content="must stay " * 5), k.VectorBlock(priority=3))
    setup = setup_of(
        s.MEMORY_BLOCKS, blocks=blocks, token_limit=60, token_flush_size=20,
        chat_history_token_ratio=0.5,
    )  # fmt: skip
    _, trace, view = view_of(setup)
    fixed, searched = view.rows
    assert fixed.inside
    assert not searched.inside
    assert searched.tokens == 0
    assert "the limit is 60" in searched.standing
    assert "this one is 3" in searched.standing
    assert "oven" in searched.text
    recall = trace.assembly.recall
    assert not recall.hits
    assert {f"dropped whole: {out.reason}" for _, out in recall.near} == {searched.standing}


def test_what_went_into_which_block_when_is_told():
    """Each flush is a row per block that keeps something, with its turn and its messages."""
    rig, _, view = view_of(setup_of(s.MEMORY_BLOCKS))
    assert {row.block for row in view.batches} == {"facts", "earlier"}
    assert [row.turn for row in view.batches] == sorted(
        (row.turn for row in view.batches), reverse=True
    )
    archived = rig.memory.adapter._archived
    for block in ("facts", "earlier"):
        assert sum(row.count for row in view.batches if row.block == block) == archived
    assert "turn 1 you: The oven costs" in view.batches[-1].text


def test_a_block_that_waits_is_told_in_the_row():
    """A batch that a block could not take stands there with the block's own error."""
    setup = setup_of(s.MEMORY_BLOCKS, blocks=(k.FactBlock(priority=0),), token_limit=60)
    rig = Rig(setup)
    rig.llm.fails_on = "<existing_facts>"
    found = []
    for text in SAID:
        rig.say(text)
        found.append(rig.session.last_trace)
    view = blocks_view(found[-1].assembly, setup.to_json()["knobs"]["blocks"], found)
    assert view.batches[0].waits
    assert "rate limit" in view.batches[0].outcome


def test_each_request_for_the_prompt_is_a_row_with_its_cost():
    """As many rows as the agent asked, with what each returned, asked a model and embedded."""
    _, found = traces(setup_of(s.MEMORY_BLOCKS))
    for trace in found:
        rows = turn_view(trace).asks
        assert len(rows) == trace.asked >= 1
        assert all(row.messages and row.tokens for row in rows)
        assert sum(row.embedded for row in rows) <= trace.embedded


def test_a_class_sets_no_limit_to_the_whole_prompt():
    """The budget names what the class's rule says of the history, and no window of ours."""
    _, found = traces(setup_of(s.BUFFER))
    bar = budget_bar(found[-1].assembly)
    assert (bar.limit, bar.window, bar.over) == (0, 0, 0)
    plan = found[-1].assembly.window
    assert f"history {plan.initial + plan.tokens:,} of 60 by the class's own count" in bar.headline
    _, found = traces(setup_of(s.SUMMARISING_BUFFER))
    assert "limited in messages" in budget_bar(found[-1].assembly).headline


def test_the_line_through_the_list_is_the_rule_of_the_class():
    """A queue's line tells its share and what was archived; a pattern's counts messages."""
    rig, found = traces(setup_of(s.MEMORY))
    view = buffer_view(rig.session.messages, found[-1].assembly, turn=3)
    assert "the queue may hold 62 tokens" in view.line
    rig, found = traces(setup_of(s.SUMMARISING_BUFFER, every=4))
    view = buffer_view(rig.session.messages, found[-1].assembly, turn=3)
    assert "counts messages" in view.line


def test_documents_of_an_engine_are_a_source_of_their_own():
    """The chunks with scores stand there, and the question as the engine had it rewritten."""
    for agent, rewritten in ((s.CONTEXT_ENGINE, False), (s.CONDENSE_ENGINE, True)):
        rig = Rig(setup_of(s.FULL_HISTORY, agent))
        rig.say("Where do trams stop in Porto?")
        trace = rig.say("And the ferries?")[-1].trace
        view = documents_view(trace.assembly, trace.query)
        assert view.rewritten == rewritten
        assert ("rewritten" in view.headline) == rewritten
        assert view.rows
        for row in view.rows:
            assert row.kind.endswith(".md")
            assert any(row.text in message.text for message in trace.assembly.messages)
    assert documents_view(traces(setup_of(s.BUFFER))[1][-1].assembly, "Hi") is None


def test_the_list_says_where_a_class_put_what_it_let_go():
    """An archived message names the blocks that took it, and only those of its own flush."""
    rig, found = traces(setup_of(s.MEMORY_BLOCKS))
    went = Whereabouts(kept=kept_by_class(found))
    view = buffer_view(rig.session.messages, found[-1].assembly, turn=3, went=went)
    assert view.outside
    for row in view.outside:
        assert "→ block facts, block earlier" in row.reason or "block earlier, block facts" in (
            row.reason
        )
    assert not any("block" in row.reason for row in view.inside)


def test_names_of_older_code_lead_to_what_there_is_today():
    """Any case, any part of a name; a name nobody knows leads nowhere."""
    assert known_as("dynamicMEMORYblock") == [
        "`DynamicMemoryBlock` is **Memory with blocks** today."
    ]
    assert any("FunctionAgent" in line for line in known_as("FunctionCallingAgentWorker"))
    assert known_as("mem0") == known_as("  ") == []
