"""What the panel shows, what the real object returned and what was sent are the same messages.

``NATIVE_HISTORIES=300`` runs as many random histories for each strategy.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, given, settings

from memory_core.llama import from_chat
from memory_core.messages import Message, repair
from memory_core.prompt import Source
from memory_core.stores.vectors.chroma import open_chroma
from tests.core.native.histories import HISTORIES, SEEDS
from tests.core.native.rig import STRATEGIES, Rig, setup_of

EXAMPLES = int(os.environ.get("NATIVE_HISTORIES", "8"))
_count = iter(range(10**9))


@pytest.fixture(scope="module")
def vectors():
    """One Chroma in memory for all histories; each session has collections of its own."""
    return open_chroma()


@pytest.mark.timeout(180 + 10 * EXAMPLES)
@pytest.mark.parametrize("strategy", STRATEGIES)
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(seed=SEEDS, history=HISTORIES)
def test_shown_is_returned_is_sent(strategy, vectors, seed, history):
    """For any history, seeded or not, three records made apart agree, and parts sum to tokens."""
    rig = Rig(setup_of(strategy), vectors=vectors, name=f"f{next(_count)}")
    for message in seed:
        rig.session.append(from_chat(message))
    if seed:
        rig.session.close_turn()
    for turn in history:
        *said, answer = turn
        rig.memory.put(said[0])
        prompt = rig.memory.get()
        assert rig.memory.known.messages == rig.returned[-1]
        assert tuple(from_chat(message) for message in prompt) == rig.returned[-1]
        trace = rig.ask()
        assert trace.assembly.messages[1:] == rig.returned[-1]
        assert rig.replies() == [trace.assembly.messages]
        _explained(trace.assembly, rig)
        if len(said) > 1:
            rig.memory.put_messages(said[1:])
        rig.memory.put(answer)
        rig.memory.close_turn()
    record = [stored.message for stored in rig.session.messages]
    wanted = [repair(from_chat(m))[0] for m in [*seed, *(m for turn in history for m in turn)]]
    assert [m for m in record if not _echo(m)] == [m for m in wanted if not _echo(m)]


def _explained(assembly, rig):
    """Every token has a source, every stored message its id, and nothing is attributed twice."""
    counter = rig.session.counter
    assert assembly.tokens == counter.messages(assembly.messages)
    for index, message in enumerate(assembly.messages):
        parts = [part for part in assembly.parts if part.message == index]
        assert sum(part.tokens for part in parts) == counter.message(message)
        assert [part.end for part in parts[:-1]] == [part.start for part in parts[1:]]
        assert (parts[0].start, parts[-1].end) == (0, len(message.text))
    stored = rig.session.find(set(filter(None, assembly.message_ids)))
    for place, message in zip(assembly.message_ids, assembly.messages, strict=True):
        if place:
            assert stored[place] == message
    assert not [part for part in assembly.parts if part.source is Source.UNKNOWN]
    given = [message.id for message in rig.memory.adapter.given.messages]
    left_out = {i for out in assembly.omissions for i in out.ids}
    inside = {i for part in assembly.parts if part.source is Source.BUFFER for i in part.ids}
    assert not inside & {i for i in left_out if i in given}


def _echo(message: Message) -> bool:
    return message.role == "assistant" and message.text.startswith("Noted ")
