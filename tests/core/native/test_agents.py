"""Every agent and chat engine tells the same events and shows what it added to the prompt."""

from __future__ import annotations

import asyncio

import pytest
from llama_index.core.tools import FunctionTool

from memory_core import strategies as s
from memory_core.agent import Delta, Failed, Finished, ToolFinished, ToolStarted, run_turn
from memory_core.errors import InvalidInput
from memory_core.explain import FILLED
from memory_core.loop import submit
from memory_core.memory import LayeredMemory
from memory_core.models.embeddings import LlamaIndexEmbedding
from memory_core.models.failures import explain
from memory_core.native.agents import runner_of
from memory_core.native.documents import open_documents
from memory_core.prompt import Source
from memory_core.recording import RecordingLLM
from memory_core.settings import MemorySettings
from memory_core.testing import HashEmbedder
from memory_core.trace import CONDENSE, REPLY, trace_from_json, trace_to_json
from tests.core.native.rig import PAIRINGS, PROMPT, EchoLLM, Rig, setup_of


def look(q: str) -> str:
    """Look something up."""
    return f"{q} is 12"


TOOLS = [FunctionTool.from_defaults(fn=look)]


@pytest.mark.parametrize(("strategy", "agent"), PAIRINGS)
def test_each_pairing_runs_a_turn_and_explains_all_of_it(strategy, agent):
    """Deltas make the answer, tools are told, every token has a source, nothing is unknown."""
    rig = Rig(setup_of(strategy, agent))
    rig.say("I am Dana, the oven costs 412 euros.")
    rig.llm.wants = "look"
    events = rig.say("Look it up: what does the oven cost?", tools=TOOLS)
    assert isinstance(events[-1], Finished)
    trace = events[-1].trace
    answer = "".join(event.text for event in events if isinstance(event, Delta))
    assert answer == trace.replies[-1].reply.text
    called = [type(event) for event in events if isinstance(event, (ToolStarted, ToolFinished))]
    functions = agent == s.FUNCTION_AGENT
    assert called == ([ToolStarted, ToolFinished] if functions else [])
    assert [step.result for step in trace.steps] == (["x is 12"] if functions else [])
    assert len(trace.asks) == trace.asked > 0
    for call in trace.replies:
        sources = {part.source for part in call.assembly.parts}
        assert call.assembly.messages in rig.llm.prompts
        assert Source.UNKNOWN not in sources
        assert Source.SYSTEM in sources
        assert sum(part.tokens for part in call.assembly.parts) == call.assembly.tokens
    assert trace_from_json(trace_to_json(trace), rig.session.find) == trace


@pytest.mark.parametrize("agent", [s.CONTEXT_ENGINE, s.CONDENSE_ENGINE])
def test_documents_and_the_question_searched_are_sources_of_their_own(agent):
    """The chunks stand in the prompt under their file and score, the search text beside them."""
    rig = Rig(setup_of(s.FULL_HISTORY, agent))
    rig.say("Where do trams stop in Porto?")
    trace = rig.say("And the ferries?")[-1].trace
    found = trace.assembly.documents
    parts = [part for part in trace.assembly.parts if part.source is Source.DOCUMENTS]
    assert [part.ids[0] for part in parts] == [hit.id for hit in found.hits]
    assert all(part.note.endswith(".md") and part.score == found.hits[i].score
               for i, part in enumerate(parts))  # fmt: skip
    assert all(hit.text in trace.assembly.messages[0].text for hit in found.hits)
    condensed = [call for call in trace.calls if call.purpose == CONDENSE]
    assert bool(condensed) == (agent == s.CONDENSE_ENGINE)
    wanted = condensed[0].reply.text if condensed else "And the ferries?"
    assert found.query == wanted


def test_react_tells_its_instructions_tools_and_prompt_apart():
    """Its one system message is split into tool descriptions, our prompt and its own words."""
    rig = Rig(setup_of(s.FULL_HISTORY, s.REACT_AGENT))
    trace = rig.say("Hi", tools=TOOLS)[-1].trace
    first = {part.source: trace.assembly.text_of(part) for part in trace.assembly.parts
             if part.message == 0 and part.source is not Source.FORMAT}  # fmt: skip
    assert first[Source.SYSTEM] == PROMPT
    assert "Look something up." in first[Source.TOOLS]


def test_placeholders_in_what_people_say_are_filled_by_chat_engines_and_shown():
    """A text that holds the engine's own placeholder is sent changed, and marked as such."""
    rig = Rig(setup_of(s.FULL_HISTORY, s.CONTEXT_ENGINE))
    rig.say("Please write {query_str} here.")
    trace = rig.say("Now what?")[-1].trace
    changed = [part for part in trace.assembly.parts if part.note == FILLED]
    assert [trace.assembly.text_of(part) for part in changed] == ["Please write Now what? here."]
    assert changed[0].ids == (rig.session.messages[0].id,)


def test_a_model_without_tools_gets_the_simple_engine():
    """FunctionAgent needs a model that calls functions; others answer from the prompt alone."""

    class Plain(EchoLLM):
        @property
        def metadata(self):
            return super().metadata.model_copy(update={"is_function_calling_model": False})

    rig = Rig(setup_of(s.FULL_HISTORY), llm=Plain())
    trace = rig.say("Hi", tools=TOOLS)[-1].trace
    assert Source.TOOLS not in trace.assembly.tokens_by_source()
    assert [m.role for m in trace.assembly.messages] == ["system", "user"]


@pytest.mark.parametrize("agent", [a.id for a in s.AGENTS])
def test_our_own_memory_runs_in_each_agent(agent):
    """LayeredMemory is a LlamaIndex memory: it runs in all of them and is explained in all."""
    memory = LayeredMemory.from_defaults(settings=MemorySettings(system_prompt=PROMPT))
    llm = RecordingLLM(EchoLLM(), recorder=memory.recorder(), translate=explain)
    embedding = LlamaIndexEmbedding(HashEmbedder(16))
    runner = runner_of(agent, lambda: open_documents(embedding))

    async def chat() -> None:
        for text in ("I am Dana.", "Who am I?"):
            events = [e async for e in run_turn(memory, llm, TOOLS, text, runner=runner)]
            assert isinstance(events[-1], Finished), events[-1]

    submit(chat()).result()
    assembly = memory.session.last_trace.assembly
    assert Source.UNKNOWN not in {part.source for part in assembly.parts}
    said = [m.text for m in assembly.messages if m.role == "user"]
    assert said == ["I am Dana.", "Who am I?"]
    assert any(PROMPT in m.text for m in assembly.messages)


@pytest.mark.parametrize("agent", [a.id for a in s.AGENTS])
def test_an_answer_that_is_left_writes_nothing_later(agent):
    """Stopping in the middle keeps the question and its error; no answer arrives afterwards."""
    rig = Rig(setup_of(s.FULL_HISTORY, agent), llm=EchoLLM(pause_seconds=0.05))
    rig.session.settings = MemorySettings(system_prompt=PROMPT)

    began = asyncio.Event()

    async def stop() -> None:
        task = asyncio.ensure_future(_drain(rig, began))
        await began.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0.3)

    submit(stop()).result()
    assert [m.message.text for m in rig.session.messages] == ["Tell me all."]
    assert rig.session.last_trace.error
    rig.llm.pause_seconds = 0.0
    assert isinstance(rig.say("Again?")[-1], Finished)


async def _drain(rig: Rig, began: asyncio.Event) -> None:
    run = run_turn(rig.memory, rig.recording, TOOLS, "Tell me all.", runner=rig._runner())
    async for event in run:
        if isinstance(event, Delta):
            began.set()


def test_an_agent_that_gives_no_answer_fails_in_words():
    """Running out of steps ends the turn with an error of ours, the question kept."""
    rig = Rig(setup_of(s.FULL_HISTORY))
    rig.llm.wants = "look"
    rig.llm.again = True
    events = rig.say("Look for ever.", tools=TOOLS)
    assert isinstance(events[-1], Failed)
    assert "iterations" in str(events[-1].error)
    assert events[-1].trace.replies


def test_answers_can_be_whole_instead_of_streamed():
    """Without streaming each engine gives its answer in one piece."""
    for agent in (s.FUNCTION_AGENT, s.SIMPLE_ENGINE, s.CONDENSE_ENGINE):
        rig = Rig(setup_of(s.FULL_HISTORY, agent))

        async def chat(rig: Rig = rig) -> list[object]:
            run = run_turn(rig.memory, rig.recording, [], "Hi", streaming=False,
                           runner=rig._runner())  # fmt: skip
            return [event async for event in run]

        events = submit(chat()).result()
        assert isinstance(events[-1], Finished)
        assert [call.streamed for call in events[-1].trace.calls if call.purpose == REPLY] == [
            False
        ]


def test_an_engine_without_documents_is_refused(tmp_path):
    """A folder without documents is named; forgetting to pass any is misuse."""
    with pytest.raises(InvalidInput, match="no documents"):
        open_documents(LlamaIndexEmbedding(HashEmbedder(16)), folder=tmp_path)
    with pytest.raises(ValueError, match="needs documents"):
        runner_of(s.CONTEXT_ENGINE)
