"""What a strategy of LlamaIndex's would have done otherwise, asked of the real object itself.

:func:`as_if` gives a fresh object the history with one message left out or in other words, and
asks it for the prompt of the turn. That is the truth for a class whose state follows from the
messages alone; one that had a model write summaries or facts, or that archives as messages come
in, cannot be asked again without playing all of it, and says so.

:func:`limit_for` finds the smallest token limit at which ``ChatMemoryBuffer``'s rule keeps a
message, and tries it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from memory_core import reading
from memory_core.buffer import LLAMA_INDEX, History
from memory_core.errors import InvalidInput
from memory_core.gates import tokens_needed
from memory_core.messages import TEXT, Message, StoredMessage, repair_text
from memory_core.native.knobs import BufferKnobs, ComposableKnobs, HybridKnobs, Knobs
from memory_core.native.observed import ObservedMemory
from memory_core.prompt import Assembly, Gate
from memory_core.settings import MemorySettings
from memory_core.smallest import SettingChange
from memory_core.strategies import (
    BUFFER,
    COMPOSABLE,
    FULL_HISTORY,
    HYBRID,
    STATELESS,
    VECTOR_MEMORY,
    find_strategy,
    setup_from_json,
)
from memory_core.trace import TurnTrace

FROM_MESSAGES = (STATELESS, FULL_HISTORY, BUFFER, VECTOR_MEMORY, COMPOSABLE, HYBRID)
_MOST = 1_000_000  # tokens of a limit


@dataclass(frozen=True)
class Planned:
    """A prompt as the real object gives it for a history."""

    assembly: Assembly


@dataclass(frozen=True)
class AsIf:
    """The prompt of a turn with the history as it was and as it would have been."""

    before: Planned
    after: Planned


def as_if(
    memory: ObservedMemory,
    trace: TurnTrace,
    messages: Sequence[StoredMessage],
    item: str,
    *,
    text: str | None = None,
) -> AsIf:
    """Return a turn's prompt with and without a message, or with other words in its place.

    ``messages`` were active when the turn began. Raises :class:`InvalidInput` where the class
    cannot be asked, or when the message is not among them.
    """
    setup = setup_from_json(reading.setup(trace))
    title = find_strategy(trace.strategy).title
    if setup.strategy not in FROM_MESSAGES:
        raise InvalidInput(
            f"{Gate.NOT_EXPLAINED.value.capitalize()}: {title} keeps what it made of earlier "
            "messages as they came in, and cannot be asked what it would be without one.",
            next_step="Fork the session before that message and say something else.",
        )
    if memory.session.strategy != setup.strategy:
        raise InvalidInput(
            f"This turn was made by {title}, which the session does not use any more.",
            next_step="Choose that strategy again to ask it.",
        )
    if item not in {stored.id for stored in messages}:
        raise InvalidInput(
            "This was not among the earlier messages of that turn.",
            next_step="Choose a message said before it, or a later turn.",
        )
    other = [m for m in (_changed(m, item, text) for m in messages) if m is not None]
    before, after = (
        Planned(memory.plan(given, trace.query, knobs=setup.knobs)) for given in (messages, other)
    )
    return AsIf(before, after)


def limit_for(
    memory: ObservedMemory,
    knobs: Knobs,
    item: str,
    *,
    settings: MemorySettings,
    query: str,
) -> SettingChange | None:
    """Return the smallest token limit that keeps a message in the next prompt, ``None``: none.

    It was tried: with it the message is in, with one token less it is not.
    """
    if not isinstance(knobs, (BufferKnobs, ComposableKnobs, HybridKnobs)):
        return None
    given = memory.adapter.given
    index = next((n for n, stored in enumerate(given.messages) if stored.id == item), None)
    if index is None:
        return None
    history = History(given.count)
    asked = [Message.of("user", query)] if query else []
    for message in (*(stored.message for stored in given.messages), *asked):
        history.append(message, 0)
    base = memory.preview(settings, query, knobs=knobs)
    in_front = base.window.initial if base.window is not None else 0
    limit = in_front + tokens_needed(history, index, LLAMA_INDEX)

    def kept(tried: int) -> bool:
        changed = replace(knobs, token_limit=tried)
        return item in memory.preview(settings, query, knobs=changed).message_ids

    if not knobs.token_limit < limit <= _MOST or not kept(limit) or kept(limit - 1):
        return None
    return SettingChange("token_limit", limit, limit - 1, f"token_limit ≥ {limit:,}")


def _changed(stored: StoredMessage, item: str, text: str | None) -> StoredMessage | None:
    if stored.id != item:
        return stored
    if text is None:
        return None
    others = [block for block in stored.message.blocks if block.get("block_type") != TEXT]
    block = {"block_type": TEXT, "text": repair_text(text)[0]}
    message = Message(stored.message.role, (block, *others), stored.message.kwargs)
    return replace(stored, message=message)
