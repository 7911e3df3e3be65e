"""The offline reader as a model: LlamaIndex's own classes work with it."""

from __future__ import annotations

import pytest
from llama_index.core import Document, SummaryIndex
from llama_index.core.agent.workflow import FunctionAgent, ReActAgent
from llama_index.core.chat_engine import CondensePlusContextChatEngine, SimpleChatEngine
from llama_index.core.llms import LLM, ChatMessage
from llama_index.core.memory import (
    ChatMemoryBuffer,
    ChatSummaryMemoryBuffer,
    FactExtractionMemoryBlock,
    Memory,
    StaticMemoryBlock,
)
from llama_index.core.tools import FunctionTool

from memory_core.errors import PromptTooLarge
from memory_core.models.build import build_llm
from memory_core.models.catalogue import ModelChoice
from memory_core.models.offline.llm import OfflineLLM

WEATHER_QUESTION = "What's the weather in Porto? And what am I allergic to?"


def get_weather(city: str) -> str:
    """Tell the weather in a city."""
    return f"{city}: rain"


def remember(text: str) -> str:
    """Keep a fact."""
    return f"Kept: {text}"


TOOLS = [FunctionTool.from_defaults(get_weather), FunctionTool.from_defaults(remember)]


def prompt(*texts: str) -> list[ChatMessage]:
    """Return user messages with these texts."""
    return [ChatMessage(role="user", content=text) for text in texts]


def test_it_says_what_it_is():
    """The metadata names the model, its window as set, and that it calls functions."""
    llm = build_llm(ModelChoice(context_window=1234))
    assert isinstance(llm, OfflineLLM)
    metadata = llm.metadata
    assert (metadata.model_name, metadata.context_window) == ("offline", 1234)
    assert metadata.is_chat_model
    assert metadata.is_function_calling_model


async def test_all_ways_to_ask_agree():
    """Chat, streams, completion, sync and async give the same text; deltas add up to it."""
    llm: LLM = OfflineLLM()
    question = "Who are you?"
    whole = llm.chat(prompt(question)).message.content
    pieces = list(llm.stream_chat(prompt(question)))
    apieces = [p async for p in await llm.astream_chat(prompt(question))]
    assert whole == pieces[-1].message.content == "".join(p.delta or "" for p in pieces)
    assert len(pieces) > 5
    assert [p.delta for p in pieces] == [p.delta for p in apieces]
    assert (await llm.achat(prompt(question))).message.content == whole
    assert llm.complete(question).text == (await llm.acomplete(question)).text == whole
    assert [p.text for p in llm.stream_complete(question)][-1] == whole
    assert [p.text async for p in await llm.astream_complete(question)][-1] == whole


def test_replies_carry_their_sources():
    """What a reply rests on stands in the raw response, with place, quote and support."""
    response = OfflineLLM().chat(prompt("I live in Porto.", "Where do I live?"))
    (source,) = response.raw["sources"]
    assert source["kind"] == "conversation"
    assert source["quote"] == "I live in Porto."
    assert source["support"] > 0.5


def test_a_prompt_over_the_window_is_refused():
    """Nothing exceeds the window in silence: the error names both numbers."""
    with pytest.raises(PromptTooLarge, match="holds 256"):
        OfflineLLM(context_window=256).chat(prompt("word " * 400))


def test_tool_calls_are_equal_for_equal_prompts_only():
    """Call ids repeat when a prompt is replayed and differ between turns."""
    llm = OfflineLLM()

    def ids(*texts: str) -> list[str]:
        response = llm.chat_with_tools(TOOLS, chat_history=prompt(*texts))
        calls = llm.get_tool_calls_from_response(response)
        return [call.tool_id for call in calls]

    assert ids("weather in Oslo") == ids("weather in Oslo") != ids("Hello", "weather in Oslo")


def test_calls_one_at_a_time_and_by_force():
    """Parallel calls can be switched off, a tool can be demanded, and calls can be forbidden."""
    llm = OfflineLLM()
    both = prompt("Weather in Oslo. Remember that I ski.")
    one = llm.chat_with_tools(TOOLS, chat_history=both)
    two = llm.chat_with_tools(TOOLS, chat_history=both, allow_parallel_tool_calls=True)
    names = [
        [call.tool_name for call in llm.get_tool_calls_from_response(response)]
        for response in (one, two)
    ]
    assert names == [["get_weather"], ["get_weather", "remember"]]
    must = llm.chat_with_tools(TOOLS, user_msg="Oslo", tool_required=True)
    assert llm.get_tool_calls_from_response(must)[0].tool_kwargs == {"city": "Oslo"}
    named = llm.chat_with_tools(TOOLS, user_msg="I ski", tool_choice="remember")
    assert llm.get_tool_calls_from_response(named)[0].tool_name == "remember"
    never = llm.chat_with_tools(TOOLS, chat_history=both, tool_choice="none")
    with pytest.raises(ValueError, match="asks for no tool"):
        llm.get_tool_calls_from_response(never)


@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize("agent_class", [FunctionAgent, ReActAgent])
async def test_agents_call_tools_and_answer(agent_class: type[FunctionAgent], streaming: bool):
    """Both kinds of agent note a fact, call a tool, tell its result and answer from memory."""
    agent = agent_class(
        tools=TOOLS, llm=OfflineLLM(), system_prompt="Be kind.", streaming=streaming
    )
    memory = Memory.from_defaults(token_limit=3000)
    first = await agent.run("I'm Dana and I can't eat nuts.", memory=memory)
    assert str(first) == "Noted: “I'm Dana and I can't eat nuts.”"
    second = str(await agent.run(WEATHER_QUESTION, memory=memory))
    assert "The tool get_weather said: “Porto: rain”" in second
    assert "“I'm Dana and I can't eat nuts.”" in second


def test_the_simple_chat_engine_with_the_default_buffer():
    """The chat engine streams an answer from its buffer."""
    llm = OfflineLLM()
    engine = SimpleChatEngine.from_defaults(llm=llm, memory=ChatMemoryBuffer.from_defaults(llm=llm))
    engine.chat("I live in Porto.")
    streamed = "".join(engine.stream_chat("Where do I live?").response_gen)
    assert "“I live in Porto.”" in streamed


async def test_fact_extraction_and_its_condensing():
    """FactExtractionMemoryBlock gets its tags, and never more facts than it may keep."""
    block = FactExtractionMemoryBlock(llm=OfflineLLM(), max_facts=3)
    for text in ("I'm Dana.", "I can't eat nuts.", "My sister lives in Braga.", "I run a bakery."):
        await block._aput(prompt(text))
    assert 0 < len(block.facts) <= 3
    assert "I can't eat nuts." in block.facts


async def test_answers_from_memory_blocks():
    """What LlamaIndex's Memory puts into the system message is found and named."""
    memory = Memory.from_defaults(
        memory_blocks=[StaticMemoryBlock(name="profile", static_content="The shop closes at 6:30.")]
    )
    await memory.aput(prompt("When does the shop close?")[0])
    reply = await OfflineLLM().achat(await memory.aget())
    assert reply.message.content == "The memory block profile says: “The shop closes at 6:30.”"


def test_the_summary_buffer_gets_a_summary():
    """ChatSummaryMemoryBuffer's prompt is answered with the sentences that count."""
    buffer = ChatSummaryMemoryBuffer.from_defaults(llm=OfflineLLM(), token_limit=30)
    for text in ("I'm Dana, I run a bakery in Porto.", "I can't eat nuts.", "What a day it is!"):
        buffer.put(ChatMessage(role="user", content=text))
        buffer.put(ChatMessage(role="assistant", content="Thank you for telling me that."))
    summary = buffer.get()[0]
    assert summary.role == "system"
    assert "I'm Dana, I run a bakery in Porto." in summary.content


def test_documents_are_answered_from():
    """CondensePlusContext condenses the question, and the answer quotes the documents."""
    llm = OfflineLLM()
    index = SummaryIndex.from_documents([Document(text="The shop closes at six on Mondays.")])
    engine = CondensePlusContextChatEngine.from_defaults(
        retriever=index.as_retriever(), llm=llm, memory=ChatMemoryBuffer.from_defaults(llm=llm)
    )
    engine.chat("I like the shop in Porto.")
    assert "The documents say: “The shop closes at six on Mondays.”" in str(
        engine.chat("When does the shop close on Mondays?")
    )
