"""The catalogue: every strategy described once, its knobs checked, its claims measured."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core import strategies as s
from memory_core.agent import Finished
from memory_core.errors import InvalidInput
from memory_core.native import knobs as k
from memory_core.trace import REPLY
from tests.core.native.rig import Rig, setup_of

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3)
    ),
    max_leaves=8,
)
DOCS = Path(__file__).resolve().parents[2] / "docs" / "strategies.md"
SAID = [
    f"Statement {n}: the oven costs {n}12 euros and the man from pier {n} says so."
    for n in range(12)
]


def test_the_document_holds_the_catalogue_as_it_is():
    """docs/strategies.md shows the very tables that the app shows."""
    text = DOCS.read_text(encoding="utf-8")
    for table in (s.table(), s.agent_table(), s.pairing_table()):
        assert table.markdown in text


def test_names_from_older_tutorials_lead_somewhere():
    """What people search for maps to a strategy or an agent of today."""
    names = {name for item in (*s.STRATEGIES, *s.AGENTS) for name in item.old_names}
    assert {"FunctionCallingAgentWorker", "DynamicMemoryBlock", "Memory.from_blocks"} <= names


def test_the_catalogue_loads_without_llama_index():
    """A page can draw every strategy and knob before any heavy library is imported."""
    modules = "memory_core.strategies, memory_core.doctor"
    code = f"import sys, {modules}; print('llama_index' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize("strategy", s.STRATEGIES, ids=lambda item: item.id)
def test_defaults_survive_the_way_to_json_and_back(strategy):
    """A setup comes back equal, every knob has a kind, a meaning and a default in its range."""
    setup = s.default_setup(strategy.id)
    assert s.setup_from_json(setup.to_json()) == setup
    for knob in k.schema(strategy.knobs):
        assert knob.help
        assert knob.kind in (k.INT, k.FLOAT, k.BOOL, k.CHOICE, k.TEXT, k.BLOCKS)
        if knob.low is not None:
            assert knob.low <= knob.default <= knob.high
        if knob.choices:
            assert knob.default in knob.choices


@pytest.mark.parametrize("kind", k.BLOCK_KINDS.values(), ids=lambda kind: kind.kind)
def test_blocks_say_their_kind_and_come_back(kind):
    """Every kind of block, in any order, survives JSON with its own knobs."""
    knobs = k.MemoryKnobs(blocks=(kind(name="one"), *k.DEFAULT_BLOCKS))
    assert k.from_json(k.MemoryKnobs, k.to_json(knobs)) == knobs


@pytest.mark.parametrize(
    ("knobs", "problem"),
    [
        ({"token_limit": 0}, "from 1 to 1,000,000"),
        ({"token_limit": "many"}, "of type int"),
        ({"token_limit": True}, "of type int"),
        ({"token_limit": 2.5}, "of type int"),
        ({"insert_method": "somewhere"}, "one of system, user"),
        ({"blocks": "static"}, "must be a list"),
        ({"blocks": [{"kind": "dynamic"}]}, "must say its kind"),
        ({"blocks": [7]}, "must say its kind"),
        ({"blocks": [{"kind": "static", "name": "</memory>"}]}, "cannot be named"),
        ({"blocks": [{"kind": "static", "name": ""}]}, "cannot be named"),
        ({"blocks": [{"kind": "static"}, {"kind": "static"}]}, "Two memory blocks are named"),
        ({"blocks": [{"kind": "static", "content": "x" * 20_001}]}, "at most 20,000"),
        ({"blocks": [{"kind": "static", "name": f"b{n}"} for n in range(13)]}, "at most 12"),
    ],
)
def test_knobs_that_cannot_be_used_are_refused_in_one_sentence(knobs, problem):
    """The sentence names the knob and what it may be."""
    with pytest.raises(InvalidInput, match=problem):
        s.setup_from_json({"strategy": s.MEMORY_BLOCKS, "knobs": knobs})


@given(JSON)
def test_any_json_is_taken_or_refused(value):
    """No shape of stored settings raises anything but our own error."""
    for strategy in (s.MEMORY_BLOCKS, s.HYBRID):
        with contextlib.suppress(InvalidInput):
            s.setup_from_json({"strategy": strategy, "knobs": value, "agent": value})


def test_half_an_emoji_in_a_block_is_replaced():
    """Text of a block can always be stored and sent."""
    block = {"kind": "static", "content": "good \ud83d"}
    setup = s.setup_from_json({"strategy": s.MEMORY_BLOCKS, "knobs": {"blocks": [block]}})
    assert setup.knobs.blocks[0].content == "good \ufffd"


def test_what_does_not_go_together_is_refused_with_the_reason():
    """A strategy in an agent that never asks it properly cannot be chosen."""
    with pytest.raises(InvalidInput, match="without the question"):
        s.setup_from_json({"strategy": s.VECTOR_MEMORY, "agent": s.FUNCTION_AGENT})
    with pytest.raises(InvalidInput, match="no memory strategy"):
        s.setup_from_json({"strategy": "mem0"})
    with pytest.raises(InvalidInput, match="no agent"):
        s.setup_from_json({"agent": "crew"})


COSTS = {  # model calls besides the reply, and texts embedded, in twelve turns of statements
    s.STATELESS: (0, 0),
    s.FULL_HISTORY: (0, 0),
    s.BUFFER: (0, 0),
    s.MEMORY: (0, 0),
    s.VECTOR_MEMORY: (0, 48),  # each message, the question, and the engine for its documents
    s.COMPOSABLE: (0, 24),  # each message; the agent asks without the question
    s.SUMMARISING_BUFFER: (10, 0),  # of five messages three are left
    s.SUMMARY_MEMORY: (10, 0),  # every two messages over those in full
    s.HYBRID: (0, 36),  # each statement, and two requests a turn
}


@pytest.mark.parametrize("strategy", COSTS)
def test_costs_are_what_the_catalogue_says(strategy):
    """Calls and embeddings of a real run are the numbers that the table tells in words."""
    rig = Rig(setup_of(strategy))
    calls = embedded = 0
    tools = [_tool()]
    for text in SAID:
        events = rig.say(text, tools=tools)
        assert isinstance(events[-1], Finished)
        calls += sum(call.purpose != REPLY for call in events[-1].trace.calls)
        embedded += events[-1].trace.embedded
    wanted_calls, wanted_texts = COSTS[strategy]
    assert embedded == wanted_texts
    assert calls == wanted_calls


@pytest.mark.parametrize("strategy", [s.SUMMARY_BUFFER, s.MEMORY_BLOCKS])
def test_costs_that_depend_on_what_is_said_are_bounded(strategy):
    """Once over the limit a summary buffer asks every turn; a fact block asks once a flush."""
    rig = Rig(setup_of(strategy))
    later = []
    for text in SAID:
        trace = rig.say(text, tools=[_tool()])[-1].trace
        later.append(sum(call.purpose != REPLY for call in trace.calls))
    assert max(later) <= 2
    assert sum(later[3:]) >= 6


def _tool():
    from llama_index.core.tools import FunctionTool

    def look(q: str) -> str:
        """Look something up."""
        return q

    return FunctionTool.from_defaults(fn=look)
