"""Our memory in a sweep: cell by cell what the planner, and a chat, would have sent."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_core.lab.cells import BUFFER, NOWHERE, RETRIEVED, SUMMARISED, Cell
from memory_core.lab.inputs import SweepInput, message_id
from memory_core.lab.layered import Planner
from memory_core.lab.missed import why_missed
from memory_core.lab.sweep import Sweep
from memory_core.llama import to_chat
from memory_core.longterm import LongTermMemory
from memory_core.memory import LayeredMemory
from memory_core.messages import Message
from memory_core.prompt import Assembly, Source
from memory_core.session import Session
from memory_core.stores.vectors.simple import SimpleDatabase
from memory_core.testing import FrozenClock
from tests.core.lab.talks import EMBEDDER, counter, long_talk, sweep_of, talks
from tests.core.made_sessions import new_session, sqlite

KNOBS = st.fixed_dictionaries(
    {},
    optional={
        "recall_method": st.sampled_from(["hybrid", "dense", "bm25"]),
        "window_rule": st.sampled_from(["exact", "llama_index"]),
        "threshold": st.sampled_from([-1.0, 0.1, 0.4]),
        "share_retrieved": st.sampled_from([0.05, 0.3, 0.9]),
        "summary_every": st.integers(1, 4),
        "summary_tokens": st.sampled_from([16, 60]),
        "summarise": st.booleans(),
        "recall": st.booleans(),
        "system_prompt": st.sampled_from(["", "Be brief.\n"]),
        "diversity": st.sampled_from([0.0, 0.5]),
        "weight_recency": st.sampled_from([0.0, 0.3]),
    },
)


def read_off(prompt: Assembly, evidence: tuple[int, ...], covers: int) -> list[int]:
    """Return where a prompt holds the messages of evidence."""
    buffer = {i for part in prompt.parts if part.source is Source.BUFFER for i in part.ids}
    hits = prompt.recall.hits if prompt.recall else ()
    carried = {i for hit in hits for i in hit.message_ids}
    return [
        BUFFER
        if message_id(index) in buffer
        else RETRIEVED
        if message_id(index) in carried
        else SUMMARISED
        if index < covers
        else NOWHERE
        for index in evidence
    ]


def check_against_prompts(sweep: Sweep, cells: list[Cell]) -> None:
    """Compare every cell with the whole prompt of each of its questions."""
    result = sweep.result(cells)
    for cell in cells:
        point = result.point(cell)
        for number, question in enumerate(result.questions):
            prompt = Planner.of(sweep.prepared, point.embedding, number)(point.settings)
            assert cell.tokens[number] == prompt.tokens
            told = [p for p in prompt.parts if p.source is Source.SUMMARY]
            mine = cell.where[result.evidence.owner == number].tolist()
            covers = len(sweep.prepared.input.messages) if told or SUMMARISED in mine else 0
            expected = read_off(prompt, question.evidence, covers)
            assert [code if code != SUMMARISED else NOWHERE for code in mine] == [
                code if code != SUMMARISED else NOWHERE for code in expected
            ]
            assert SUMMARISED not in mine or point.settings.summarise


@given(conversation=talks(), knobs=KNOBS)
@settings(max_examples=25, deadline=None)
def test_cells_equal_whole_prompts(conversation: SweepInput, knobs: dict[str, object]) -> None:
    """Whatever the knobs, tokens and evidence of a cell are those of the assembled prompt."""
    sweep = sweep_of(conversation, **knobs)
    check_against_prompts(sweep, list(sweep.cells()))


@given(conversation=talks(roles=("user", "assistant", "tool", "system")), knobs=KNOBS)
@settings(max_examples=15, deadline=None)
def test_odd_histories_are_planned_too(conversation: SweepInput, knobs: dict[str, object]) -> None:
    """Orphan tool results and system messages in between change nothing about that."""
    sweep = sweep_of(conversation, y=("top_k", "2"), **knobs)
    check_against_prompts(sweep, list(sweep.cells()))


@pytest.mark.parametrize("method", ["hybrid", "dense", "bm25"])
def test_cells_are_what_a_chat_sends(tmp_path: Path, method: str) -> None:
    """A real session, stored and indexed, makes the very prompts that the sweep foresaw."""
    talk = long_talk()
    asked = tuple(q for q in talk.questions if q.position == len(talk.messages))
    talk = SweepInput(talk.title, talk.messages, asked)
    limits, top_ks = ("token_limit", "90,200,500"), ("top_k", "1,4")
    sweep = sweep_of(talk, limits, top_ks, summarise=False, tools=False, recall_method=method)
    result = sweep.run()
    store, clock = sqlite(tmp_path), FrozenClock()
    session = Session(
        key=new_session(store),
        counter=counter(),
        settings=sweep.base.settings,
        store=store,
        longterm=LongTermMemory(
            vectors=SimpleDatabase(tmp_path), embedder=EMBEDDER, store=store, clock=clock
        ),
        clock=clock,
    )
    memory = LayeredMemory(session)
    for turn in range(0, len(talk.messages), 2):
        memory.put_messages([to_chat(message) for message in talk.messages[turn : turn + 2]])
    ids = {stored.id: message_id(n) for n, stored in enumerate(session.messages)}
    for cell in result.cells:
        session.settings = result.point(cell).settings
        for number, question in enumerate(talk.questions):
            memory.put(to_chat(Message.of("user", question.text)))
            memory.get()
            prompt = memory._given
            session.drop_turn()
            assert prompt.tokens == cell.tokens[number]
            held = {ids.get(i, i) for hit in prompt.recall.hits for i in hit.message_ids}
            held |= {ids.get(i, i) for i in prompt.message_ids}
            mine = cell.held[result.evidence.owner == number].tolist()
            assert mine == [message_id(index) in held for index in question.evidence]
    store.close()


def test_larger_top_k_never_loses_evidence_that_fits() -> None:
    """With room for all hits, a larger top_k keeps what a smaller one found."""
    room = ("token_limit", "2000")
    result = sweep_of(long_talk(), room, ("top_k", "0:8"), share_retrieved=0.9, threshold=-1).run()
    for fewer, more in zip(result.cells, result.cells[1:], strict=False):
        assert not (fewer.held & ~more.held).any()


def test_summaries_are_counted_as_calls_and_as_tokens() -> None:
    """What left the window is told in a summary: calls a turn go up, evidence does not."""
    talk, only = long_talk(), {"recall": False, "summary_every": 2, "summary_tokens": 40}
    limit, periods = ("token_limit", "200"), ("summary_every", "2,8")
    often, seldom = sweep_of(talk, limit, periods, **only).run().cells
    assert often.model_calls > seldom.model_calls > 1
    assert (often.where == SUMMARISED).any()
    assert not often.held[often.where == SUMMARISED].any()
    (without,) = sweep_of(
        talk, limit, ("summary_every", "2"), summarise=False, recall=False
    ).cells()
    assert without.model_calls == 1
    assert (without.where != SUMMARISED).all()
    assert (without.embeddings, often.embeddings) == (1.0, 1.0)


def test_tool_definitions_take_room() -> None:
    """Tokens of tools that go with every prompt are counted, unless tools are switched off."""
    sweep = sweep_of(long_talk(), ("token_limit", "400"), ("top_k", "1"))
    heavy = replace(sweep, prepared=replace(sweep.prepared, tool_tokens=100))
    (cell,) = heavy.cells()
    check_against_prompts(heavy, [cell])
    silent = sweep_of(long_talk(), ("token_limit", "400"), ("top_k", "1"), tools=False)
    quiet = replace(silent, prepared=replace(silent.prepared, tool_tokens=100))
    assert next(quiet.cells()) == next(silent.cells())
    assert (cell.tokens <= 400).all()


def test_a_miss_says_why_and_what_would_help() -> None:
    """Each message that a cell misses has its gates, and the change offered lets it in."""
    sweep = sweep_of(long_talk(), ("token_limit", "240"), ("top_k", "1"), summarise=False)
    result = sweep.run()
    (cell,) = result.cells
    missed = result.missed(cell)
    assert missed
    for one in missed:
        told = why_missed(sweep.prepared, result.point(cell), one.number, one.missing[0])
        assert not told.place
        for change in told.changes[:1]:
            settings_ = result.point(cell).settings.with_(**{change.setting: change.value})
            prompt = Planner.of(sweep.prepared, "hash-64", one.number)(settings_)
            held = prompt.ids_in() | {i for hit in prompt.recall.hits for i in hit.message_ids}
            assert message_id(one.missing[0]) in held
    served = result.evidence.message[cell.held]
    owner = result.evidence.owner[cell.held]
    told = why_missed(sweep.prepared, result.point(cell), int(owner[0]), int(served[0]))
    assert told.place
