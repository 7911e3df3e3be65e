"""The catalogue: every memory strategy of the field, and the agents that can run around each.

Plain values that a page can draw before LlamaIndex is loaded. :class:`Setup` is what a session
chose; :mod:`memory_core.native.opening` makes the objects. ``docs/strategies.md`` holds
the Markdown of :func:`table` and its like; a test keeps them the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from memory_core.errors import InvalidInput
from memory_core.messages import Json
from memory_core.native import knobs as k
from memory_core.native.knobs import Knobs

LAYERED, STATELESS, FULL_HISTORY = "layered", "stateless", "full_history"
BUFFER, SUMMARY_BUFFER = "chat_memory_buffer", "chat_summary_memory_buffer"
MEMORY, MEMORY_BLOCKS = "memory", "memory_blocks"
VECTOR_MEMORY, COMPOSABLE = "vector_memory", "simple_composable_memory"
SUMMARISING_BUFFER, SUMMARY_MEMORY, HYBRID = "summarising_buffer", "summary_memory", "hybrid"

FUNCTION_AGENT, REACT_AGENT = "function_agent", "react_agent"
SIMPLE_ENGINE, CONTEXT_ENGINE, CONDENSE_ENGINE = (
    "simple_chat_engine",
    "context_chat_engine",
    "condense_plus_context_chat_engine",
)


@dataclass(frozen=True)
class Strategy:
    """One memory strategy as people choose it. ``old_names`` are those of older tutorials."""

    id: str
    title: str
    keeps: str
    forgets: str
    calls: str
    embeddings: str
    tokens: str
    choose: str
    knobs: type[Knobs]
    old_names: tuple[str, ...] = ()


@dataclass(frozen=True)
class AgentKind:
    """One agent or chat engine. ``question`` is how it asks its memory for the prompt."""

    id: str
    title: str
    about: str
    question: str
    tools: bool = False
    documents: bool = False
    old_names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Pairing:
    """Whether a strategy runs in an agent as LlamaIndex has it, and what to know about it."""

    works: bool = True
    note: str = ""


STRATEGIES: tuple[Strategy, ...] = (
    Strategy(
        id=LAYERED,
        title="LayeredMemory (three layers, shared budget)",
        keeps="state and key facts, a running summary, the newest turns in full, and every turn "
        "for the long term",
        forgets="nothing from the record; a prompt leaves out what its budget, threshold or top_k "
        "stops, each with the numbers",
        calls="2 in a summary round (facts, summary), every few turns; else 0",
        embeddings="1 a turn for the question, 1 for the turn that is remembered",
        tokens="at most the token limit, tools and system prompt included",
        choose="long chats in which early facts matter; the default here",
        knobs=k.LayeredKnobs,
        old_names=("three-layer agent", "hybrid memory agent"),
    ),
    Strategy(
        id=STATELESS,
        title="Stateless",
        keeps="the running question",
        forgets="everything else, with each answer",
        calls="0",
        embeddings="0",
        tokens="the question",
        choose="as a control: what the model knows without any memory",
        knobs=k.StatelessKnobs,
    ),
    Strategy(
        id=FULL_HISTORY,
        title="Full history",
        keeps="every message, in every prompt",
        forgets="nothing, until the model's context window refuses the prompt",
        calls="0",
        embeddings="0",
        tokens="grows with the chat, without a limit",
        choose="as a control, and for short chats",
        knobs=k.FullHistoryKnobs,
        old_names=("SimpleChatStore as it is",),
    ),
    Strategy(
        id=BUFFER,
        title="ChatMemoryBuffer",
        keeps="the newest messages whose texts fit in the limit",
        forgets="the oldest turn as soon as the next one does not fit, for good",
        calls="0",
        embeddings="0",
        tokens="at most the limit for texts; tool calls and pictures come on top",
        choose="chats about what was said last; deprecated, still what most programs run",
        knobs=k.BufferKnobs,
        old_names=(
            "ConversationBufferMemory",
            "TokenBuffer",
            "FunctionCallingAgentWorker's memory",
        ),
    ),
    Strategy(
        id=SUMMARY_BUFFER,
        title="ChatSummaryMemoryBuffer",
        keeps="the newest messages in full, all before as one summary",
        forgets="what the summary leaves out; a summary is summarised again each time",
        calls="1 whenever something does not fit in full any more: in long chats every turn",
        embeddings="0",
        tokens="at most the limit for texts in full, and the summary",
        choose="long chats with a plot, where single details may go",
        knobs=k.SummaryBufferKnobs,
        old_names=("ConversationSummaryBufferMemory",),
    ),
    Strategy(
        id=MEMORY,
        title="Memory without blocks",
        keeps="the newest turns, up to a share of the limit",
        forgets="the oldest turns in batches (archived in its table, never read again), a system "
        "message in the history among the first",
        calls="0",
        embeddings="0",
        tokens="at most limit times ratio; tool calls as content blocks count as nothing",
        choose="today's class for a plain window that is stored in SQL",
        knobs=k.PlainMemoryKnobs,
        old_names=("Memory.from_defaults",),
    ),
    Strategy(
        id=MEMORY_BLOCKS,
        title="Memory with blocks",
        keeps="the newest turns, fixed texts, facts read out of what was flushed, and flushed "
        "turns searched by meaning",
        forgets="what no block took; whole blocks, lowest priority first, when all is over the "
        "limit",
        calls="1 a flush for each fact block, 1 more when its facts are over their maximum",
        embeddings="1 for each request of the agent (2 or more a turn) and 1 a flush, for each "
        "vector block",
        tokens="at most the limit, unless a block of priority 0 is larger",
        choose="today's way to long-term memory in LlamaIndex",
        knobs=k.MemoryKnobs,
        old_names=("Memory.from_blocks", "DynamicMemoryBlock", "MemoryBlock"),
    ),
    Strategy(
        id=VECTOR_MEMORY,
        title="VectorMemory",
        keeps="every user message with its answers, as records to search",
        forgets="the order of the chat: only what is near the question comes back",
        calls="0",
        embeddings="1 for each message (a record is embedded again as it grows), 1 for the "
        "question",
        tokens="top_k records, however long they are",
        choose="looking things up in old chats, in an engine that passes the question on",
        knobs=k.VectorMemoryKnobs,
        old_names=("VectorStoreRetrieverMemory",),
    ),
    Strategy(
        id=COMPOSABLE,
        title="SimpleComposableMemory (buffer, then vectors)",
        keeps="the newest messages, and records near the question in the system message",
        forgets="what is neither new nor near",
        calls="0",
        embeddings="1 for each message, 1 for each request that passes the question on",
        tokens="the buffer's limit, and top_k records",
        choose="chats that come back to old subjects; deprecated in favour of Memory",
        knobs=k.ComposableKnobs,
        old_names=("CombinedMemory",),
    ),
    Strategy(
        id=SUMMARISING_BUFFER,
        title="Summarising buffer (tutorial)",
        keeps="the first message, one summary, the last turn",
        forgets="in jumps: at every n messages all in between is one summary",
        calls="1 whenever n messages have gathered; two or three are left after each",
        embeddings="0",
        tokens="saw-toothed: grows to n messages, falls to three",
        choose="to see what a summary does to a chat",
        knobs=k.SummarisingBufferKnobs,
        old_names=("SummarizingMemoryBuffer",),
    ),
    Strategy(
        id=SUMMARY_MEMORY,
        title="Summary memory (tutorial)",
        keeps="the newest messages in full, older ones in a running summary with a cap",
        forgets="what the capped summary leaves out, two messages at a time",
        calls="1 for every two messages",
        embeddings="0",
        tokens="even: so many messages in full, and the cap",
        choose="long chats at a steady cost",
        knobs=k.SummaryMemoryKnobs,
        old_names=("ConversationSummaryMemory",),
    ),
    Strategy(
        id=HYBRID,
        title="Hybrid (tutorial)",
        keeps="the newest messages, and statements of the user near the question",
        forgets="answers that left the buffer, and questions",
        calls="0",
        embeddings="1 for each statement of the user, 1 for each request",
        tokens="the buffer's limit, and top_k statements",
        choose="assistants that must remember what people said of themselves",
        knobs=k.HybridKnobs,
        old_names=("hybrid memory",),
    ),
)

AGENTS: tuple[AgentKind, ...] = (
    AgentKind(
        id=FUNCTION_AGENT,
        title="FunctionAgent",
        about="calls tools through the model's own tool calls",
        question="without the question; with it after a tool call, and once more when it is done",
        tools=True,
        old_names=("FunctionCallingAgentWorker", "OpenAIAgent", "AgentRunner"),
    ),
    AgentKind(
        id=REACT_AGENT,
        title="ReActAgent",
        about="calls tools by writing thoughts and actions: for models without tool calls",
        question="without the question; with it after a tool call, and once more when it is done",
        tools=True,
        old_names=("ReActAgentWorker", "ReActAgent.from_tools"),
    ),
    AgentKind(
        id=SIMPLE_ENGINE,
        title="SimpleChatEngine",
        about="answers from the prompt alone",
        question="once, without the question, saying how long the system prompt is",
        old_names=("index.as_chat_engine(chat_mode='simple')",),
    ),
    AgentKind(
        id=CONTEXT_ENGINE,
        title="ContextChatEngine",
        about="searches a document index for the message and puts the hits in the system message",
        question="once, with the question, before the message is in the memory",
        documents=True,
        old_names=("index.as_chat_engine(chat_mode='context')",),
    ),
    AgentKind(
        id=CONDENSE_ENGINE,
        title="CondensePlusContextChatEngine",
        about="has the model write a question that stands alone, searches documents for that",
        question="once, with the question, before the message is in the memory",
        documents=True,
        old_names=("CondenseQuestionChatEngine", "chat_mode='condense_plus_context'"),
    ),
)

_SEARCHES_NOTHING = (
    "the agent asks this memory without the question, and it then returns nothing: the model "
    "would not see the message"
)
_NOTES: Mapping[tuple[str, str], Pairing] = {
    **{
        (VECTOR_MEMORY, agent): Pairing(works=False, note=_SEARCHES_NOTHING)
        for agent in (FUNCTION_AGENT, REACT_AGENT, SIMPLE_ENGINE)
    },
    **{
        (COMPOSABLE, agent): Pairing(
            note="the agent asks without the question at first, so vectors are searched only "
            "after a tool call"
        )
        for agent in (FUNCTION_AGENT, REACT_AGENT)
    },
    (COMPOSABLE, SIMPLE_ENGINE): Pairing(
        note="the engine asks without the question, so vectors are never searched"
    ),
    (LAYERED, REACT_AGENT): Pairing(
        note="the agent's own instructions come on top of the token limit"
    ),
    **{
        (strategy, REACT_AGENT): Pairing(
            note="without a system prompt of its own the agent would drop this memory's system "
            "message"
        )
        for strategy in (MEMORY_BLOCKS, SUMMARY_BUFFER, SUMMARY_MEMORY, HYBRID)
    },
}


@dataclass(frozen=True)
class Setup:
    """What a session runs: a strategy with its knobs, and an agent around it."""

    strategy: str = LAYERED
    agent: str = FUNCTION_AGENT
    knobs: Knobs = field(default_factory=k.LayeredKnobs)

    def to_json(self) -> dict[str, Json]:
        """Return the setup as a JSON object that :func:`setup_from_json` reads back."""
        return {"strategy": self.strategy, "agent": self.agent, "knobs": k.to_json(self.knobs)}


def find_strategy(strategy_id: str) -> Strategy:
    """Return a strategy of the catalogue; raise :class:`InvalidInput` for an unknown one."""
    for strategy in STRATEGIES:
        if strategy.id == strategy_id:
            return strategy
    raise InvalidInput(f"There is no memory strategy {strategy_id!r:.60}.")


def find_agent(agent_id: str) -> AgentKind:
    """Return an agent of the catalogue; raise :class:`InvalidInput` for an unknown one."""
    for agent in AGENTS:
        if agent.id == agent_id:
            return agent
    raise InvalidInput(f"There is no agent {agent_id!r:.60}.")


def pairing(strategy_id: str, agent_id: str) -> Pairing:
    """Return whether a strategy runs in an agent."""
    strategy, agent = find_strategy(strategy_id), find_agent(agent_id)
    return _NOTES.get((strategy.id, agent.id), Pairing())


def default_setup(strategy_id: str, agent_id: str = "") -> Setup:
    """Return a strategy with its default knobs, in the agent named or the first that it runs in."""
    strategy = find_strategy(strategy_id)
    agents = [agent.id for agent in AGENTS if pairing(strategy_id, agent.id).works]
    return Setup(strategy_id, agent_id or agents[0], strategy.knobs())


def setup_from_json(value: Mapping[str, Json]) -> Setup:
    """Return the setup in a JSON object; what is missing is the default.

    Raises :class:`InvalidInput` for an unknown strategy or agent, two that do not go together,
    or knobs that cannot be used.
    """
    strategy = find_strategy(str(value.get("strategy", LAYERED)))
    agent = find_agent(str(value.get("agent") or default_setup(strategy.id).agent))
    together = pairing(strategy.id, agent.id)
    if not together.works:
        raise InvalidInput(
            f"{strategy.title} does not run in {agent.title}: {together.note}.",
            next_step="Choose another agent or another strategy.",
        )
    knobs = k.from_json(strategy.knobs, value.get("knobs") or {})
    return Setup(strategy.id, agent.id, knobs)


@dataclass(frozen=True)
class Table:
    """A table for people: the first cell of each row names it. ``below`` are numbered notes."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    below: tuple[str, ...] = ()

    @property
    def markdown(self) -> str:
        """The table as Markdown."""
        lines = [f"| {' | '.join(self.head)} |", "|" + " --- |" * len(self.head)]
        lines += [f"| **{name}** | {' | '.join(cells)} |" for name, *cells in self.rows]
        notes = [f"{number}. {note}" for number, note in enumerate(self.below, 1)]
        return "\n".join([*lines, *(["", *notes] if notes else [])])


def table() -> Table:
    """Return what each strategy keeps, forgets and costs, and when to choose it."""
    return Table(
        (
            "Strategy",
            "Keeps",
            "Forgets, and when",
            "Model calls",
            "Embeddings",
            "Tokens a turn",
            "Choose it for",
            "Older names",
        ),
        tuple(
            (
                s.title,
                s.keeps,
                s.forgets,
                s.calls,
                s.embeddings,
                s.tokens,
                s.choose,
                ", ".join(s.old_names),
            )
            for s in STRATEGIES
        ),
    )


def agent_table() -> Table:
    """Return what each agent does and how it asks its memory."""
    return Table(
        ("Agent", "What it does", "Asks its memory", "Older names"),
        tuple((a.title, a.about, a.question, ", ".join(a.old_names)) for a in AGENTS),
    )


def pairing_table() -> Table:
    """Return which strategy runs in which agent, with notes below it."""
    notes: dict[str, int] = {}
    rows = []
    for strategy in STRATEGIES:
        cells = [strategy.title]
        for agent in AGENTS:
            together = pairing(strategy.id, agent.id)
            mark = "yes" if together.works else "no"
            if together.note:
                mark += f" ({notes.setdefault(together.note, len(notes) + 1)})"
            cells.append(mark)
        rows.append(tuple(cells))
    return Table(
        ("Strategy", *(agent.title for agent in AGENTS)),
        tuple(rows),
        tuple(f"{note[0].upper()}{note[1:]}." for note in notes),
    )
