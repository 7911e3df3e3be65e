"""One column planned from a session's record: every prompt again, under other settings.

No model is needed and nothing is written: summaries, state and memories are those that the
session has. Under the settings a turn ran with its prompt is the one that was sent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from llama_index.core.llms import LLM

from memory_core.forking import visible
from memory_core.lab.comparison import (
    PLANNED,
    TURNS,
    Asked,
    Column,
    Configuration,
    Conversation,
    Spent,
)
from memory_core.lab.holding import kept_of
from memory_core.lab.past import Embed, PastMemories
from memory_core.lab.recalled import Prompted, answered, measured, total
from memory_core.lab.replay import LAYERED, Replay, ReplayedTurn
from memory_core.lab.script import Said
from memory_core.prompt import Assembly
from memory_core.questions import RecallQuestion
from memory_core.stores.protocols import Store
from memory_core.strategies import Setup
from memory_core.tokens import encoding_for

FROM_RECORD = (
    "Planned from the session's record: summaries, state and memories are those that were "
    "written, and nothing is written anew."
)


def can_plan(one: Configuration, conversation: Conversation, mode: str) -> bool:
    """Return whether a configuration may be planned, as far as it tells by itself."""
    return conversation.key is not None and mode != TURNS and one.setup == Setup()


def record_of(
    conversation: Conversation,
    said: Sequence[Said],
    *,
    store: Store,
    one: Configuration,
    embed: Embed,
    model: str,
) -> Replay | None:
    """Return the record to plan from, ``None`` when a turn of it cannot be planned.

    That is so for turns of another strategy, or counted as another model counts. ``embed`` and
    ``model`` are those of the session's long-term memory. Raises :class:`NotFound`.
    """
    key = conversation.key
    if key is None:
        return None
    sessions = [*store.sessions(key.user), *store.sessions(key.user, deleted=True)]
    sees = visible(sessions, key.session)
    memories = PastMemories(store.records(key.user), embed=embed, model=model, sees=sees)
    replay = Replay.read(store, key, memories=memories)
    traces = [replay.trace(turn.turn) for turn in said]
    counters = {t.assembly.counter.rpartition("/")[0] for t in traces if t.assembly is not None}
    same = counters <= {encoding_for(one.model.model)}
    return replay if same and all(trace.strategy == LAYERED for trace in traces) else None


def planned(
    one: Configuration,
    replay: Replay,
    conversation: Conversation,
    said: Sequence[Said],
    questions: Sequence[RecallQuestion],
    *,
    places: dict[str, int],
    llm: LLM | None,
    tell: Callable[[int], None],
) -> Column:
    """Plan every turn and every question; with ``llm`` the questions are answered too."""
    kept, unchanged, as_sent = [], 0, 0
    for done, turn_said in enumerate(said, start=1):
        turn = replay.at(turn_said.turn)
        assembly = _under(turn, one)
        kept.append(kept_of(assembly, places, turn=turn_said.turn, first=turn_said.first))
        if turn.settings == one.settings and turn.trace.assembly is not None:
            unchanged, as_sent = unchanged + 1, as_sent + turn.as_recorded
        tell(done)
    asked: list[Asked] = []
    spent: list[Spent] = []
    now = datetime.now(UTC)
    for done, question in enumerate(questions, start=1):
        turn = replay.next(question.question, now=now)
        assembly = _under(turn, one)
        prompted = Prompted(assembly, places, turn.layers.summary.covers)
        result = measured(question, prompted, conversation.messages)
        if llm is not None:
            result, cost = answered(
                result, question, assembly, one=one, llm=llm, counter=turn.counter
            )
            spent.append(cost)
        asked.append(result)
        tell(len(said) + done)
    notices = [FROM_RECORD]
    if unchanged:
        notices.append(
            f"{as_sent:,} of the {unchanged:,} turns that ran under just these settings have the "
            "prompt that was sent, byte for byte."
        )
    return Column(one, PLANNED, tuple(kept), tuple(asked), total(spent), tuple(notices))


def _under(turn: ReplayedTurn, one: Configuration) -> Assembly:
    """Return the prompt of a recorded turn under a configuration."""
    if not one.settings.tools and turn.layers.tool_tokens:
        turn = replace(turn, layers=replace(turn.layers, tool_tokens=0))
    return turn.plan(one.settings)
