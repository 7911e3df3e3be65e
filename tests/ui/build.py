"""Histories and assemblies for the tests of the view-models, made by the engine's own planner."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from memory_core.assemble import Layers, assemble
from memory_core.buffer import History
from memory_core.messages import Message, StoredMessage
from memory_core.prompt import Assembly, Gate, Hit, Omission, Recall, Source
from memory_core.settings import MemorySettings
from memory_core.state import AgentState
from memory_core.summary import NO_SUMMARY, Summary
from memory_core.tokens import TokenCounter

START = datetime(2025, 3, 1, 9, tzinfo=UTC)
COUNTER = TokenCounter()


def store(messages: list[Message]) -> list[StoredMessage]:
    """Return messages as a store would hand them out; a user message opens a turn."""
    stored, turn = [], 0
    for position, message in enumerate(messages):
        turn += message.role == "user"
        stored.append(
            StoredMessage(
                id=f"m{position}",
                position=position,
                turn=turn,
                created=START + timedelta(minutes=position),
                message=message,
                tokens=COUNTER.message(message),
                counter=COUNTER.id,
            )
        )
    return stored


def chat(turns: int) -> list[StoredMessage]:
    """Return a plain chat of so many turns."""
    said: list[Message] = []
    for n in range(1, turns + 1):
        said += [Message.of("user", f"Question {n}?"), Message.of("assistant", f"Answer {n}.")]
    return store(said)


def tool_chat() -> list[StoredMessage]:
    """Return one turn with a tool call and its result."""
    call = {"block_type": "tool_call", "tool_call_id": "c1", "tool_name": "get_weather"}
    return store(
        [
            Message.of("user", "Weather in Porto?"),
            Message("assistant", ({**call, "tool_kwargs": {"city": "Porto"}},)),
            Message.of("tool", "sunny, 21 °C", tool_call_id="c1"),
            Message.of("assistant", "It is sunny."),
        ]
    )


def prompt(
    messages: list[StoredMessage],
    settings: MemorySettings | None = None,
    *,
    state: AgentState | None = None,
    summary: Summary = NO_SUMMARY,
    recall: Recall | None = None,
) -> Assembly:
    """Return the prompt these messages give."""
    history = History(COUNTER.text)
    for stored in messages:
        history.append(stored.message, stored.tokens or 0)
    layers = Layers(
        messages=messages,
        history=history,
        state=state or AgentState("local", "s"),
        summary=summary,
        rank=(lambda *_: recall) if recall else None,
    )
    return assemble(layers, settings or MemorySettings(), COUNTER)


def hit(rank: int, similarity: float, text: str = "I can't eat nuts.", **more) -> Hit:
    """Return a memory that a search found."""
    given = {
        "id": f"h{rank}",
        "text": text,
        "similarity": similarity,
        "distance": 1 - similarity,
        "score": similarity,
        "rank": rank,
        "tokens": 12,
        "turn": rank,
        "message_ids": (f"m{2 * (rank - 1)}",),
    }
    return Hit(**(given | more))


def recall() -> Recall:
    """Return a search with one hit and two near misses."""
    low, fourth = hit(2, 0.21), hit(3, 0.55)
    near = (
        (
            low,
            Omission(
                Gate.THRESHOLD,
                Source.RETRIEVED,
                (low.id,),
                "score 0.21 under threshold 0.30",
                0.3,
                0.21,
            ),
        ),
        (
            fourth,
            Omission(Gate.TOP_K, Source.RETRIEVED, (fourth.id,), "rank 3, top_k is 1", 1, 3),
        ),
    )
    return Recall("What can't I eat?", (hit(1, 0.82),), near, model="hash", searched=3)
