"""Any LlamaIndex memory as a strategy of a sweep: played for real, message by message.

For memories whose prompts depend on a model (a running summary, extracted facts) or on code that
is not ours. Each cell plays the whole conversation through a new memory, which is asked for the
prompt after every user message, as an agent does, and once more for every question at its
position. That is slow: run it in a :class:`~memory_core.lab.pool.Pool`.

Evidence counts as in the buffer when the prompt holds its message, and as *elsewhere* when some
other message of the prompt holds its text word for word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from memory_core.errors import InvalidInput, MemoryInspectorError
from memory_core.lab.axes import Point
from memory_core.lab.cells import BUFFER, ELSEWHERE, NOWHERE, Cell
from memory_core.lab.inputs import SweepInput
from memory_core.lab.prepare import Prepared
from memory_core.lab.strategy import Placed, Strategy
from memory_core.messages import Message

if TYPE_CHECKING:
    from llama_index.core.memory.types import BaseMemory


def _none() -> int:
    return 0


def _nothing() -> None:
    return


@dataclass(frozen=True, eq=False)
class Player:
    """A new memory to play a conversation through, and how often it asked its models so far.

    ``close`` lets go of what it holds once it was played.
    """

    memory: BaseMemory
    model_calls: Callable[[], int] = _none
    embeddings: Callable[[], int] = _none
    close: Callable[[], None] = _nothing


Make = Callable[[Point], Player]
"""Makes a new, empty memory for a point of the grid; must be importable by name."""


def played(title: str, about: str, make: Make) -> Strategy:
    """Return a strategy that really runs the memory that ``make`` makes."""
    return Strategy(title, about, _no_texts, partial(_plan, make), plays=True)


def _no_texts(_: SweepInput) -> tuple[str, ...]:
    return ()


def _plan(make: Make, prepared: Prepared, points: Sequence[Placed]) -> Iterator[Cell]:
    for x, y, point in points:
        try:
            player = make(point)
            try:
                yield _play(player, prepared, x, y)
            finally:
                player.close()
        except MemoryInspectorError:
            raise
        except Exception as exc:
            raise InvalidInput(
                f"The memory cannot be played with {point.settings.token_limit:,} tokens and "
                f"top_k {point.settings.top_k:,}: {type(exc).__name__}: {exc}",
                next_step="Leave this value out of the sweep.",
            ) from exc


def _play(player: Player, prepared: Prepared, x: int, y: int) -> Cell:
    """Play a conversation through a memory and read its prompt at every question."""
    from memory_core.llama import to_chat

    asked, memory = prepared.input.questions, player.memory
    waiting = sorted(range(len(asked)), key=lambda n: asked[n].position)
    where: dict[int, list[int]] = {}
    tokens = np.zeros(len(asked), np.int64)
    for position in range(len(prepared.input.messages) + 1):
        while waiting and asked[waiting[0]].position == position:
            number = waiting.pop(0)
            prompt = _prompt(memory, asked[number].text)
            said = [prepared.input.messages[index] for index in asked[number].evidence]
            where[number] = [_find(message, prompt) for message in said]
            question = Message.of("user", asked[number].text)
            tokens[number] = prepared.counter.messages([*prompt, question])
        if not waiting:
            break
        message = prepared.input.messages[position]
        memory.put(to_chat(message))
        if message.role == "user" and message.text.strip():
            _prompt(memory, message.text)
    turns = prepared.input.turns[-1]
    return Cell(
        x,
        y,
        where=np.array([code for n in range(len(asked)) for code in where[n]], np.int8),
        tokens=tokens,
        embeddings=player.embeddings() / turns,
        model_calls=1 + player.model_calls() / turns,
    )


def _prompt(memory: BaseMemory, query: str) -> list[Message]:
    from memory_core.llama import from_chat

    return [from_chat(chat) for chat in memory.get(input=query)]


def _find(message: Message, prompt: Sequence[Message]) -> int:
    text = " ".join(message.text.split())
    if any(one.role == message.role and one.text == message.text for one in prompt):
        return BUFFER
    held = text and any(text in " ".join(one.text.split()) for one in prompt)
    return ELSEWHERE if held else NOWHERE
