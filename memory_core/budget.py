"""Shares of the context window become token allotments.

The window holds, in this order of precedence: the reserve for the reply, the fixed part (system
prompt and tool definitions), and memory. Memory is split by shares between retrieved memories,
state with summary, and the buffer; what the first two leave unused flows to the buffer.

Worked example: window 4,096, reserve 512, token limit 1,600, fixed 400. Memory has
``min(1600, 4096 - 512) - 400 = 1200`` tokens. Shares 60/20/20 give 720 to the buffer and 240 to
each of the others; state and summary need 100, retrieval 240, so the buffer gets 860.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Shares:
    """How memory's tokens are split, as fractions that sum to 1."""

    buffer: float = 0.6
    retrieved: float = 0.2
    state: float = 0.2

    def __post_init__(self) -> None:
        values = (self.buffer, self.retrieved, self.state)
        if min(values) < 0 or abs(sum(values) - 1) > 1e-6:
            raise ValueError(f"shares must be at least 0 and sum to 1, not {values}")


@dataclass(frozen=True)
class Allotment:
    """Token allotments of one prompt; all in tokens.

    ``limit`` is what the whole prompt may hold: the smaller of the token limit and the window
    less the reserve. ``memory`` may be negative: then the fixed part alone is over the limit.
    """

    window: int
    reserve: int
    limit: int
    fixed: int
    memory: int
    buffer: int
    retrieved: int
    state: int


def allocate_budget(
    *,
    window: int,
    reserve: int,
    token_limit: int,
    fixed: int,
    shares: Shares,
    state_needs: int,
    retrieved_needs: int,
) -> Allotment:
    """Split a prompt's tokens between the layers.

    ``state_needs`` and ``retrieved_needs`` are the tokens those layers would use if they could;
    each gets at most its share, and the rest of its share flows to the buffer.
    """
    limit = max(0, min(token_limit, window - reserve))
    memory = limit - fixed
    room = max(0, memory)
    state = min(state_needs, int(room * shares.state))
    retrieved = min(retrieved_needs, int(room * shares.retrieved))
    return Allotment(
        window=window,
        reserve=reserve,
        limit=limit,
        fixed=fixed,
        memory=memory,
        buffer=room - state - retrieved,
        retrieved=retrieved,
        state=state,
    )


def collisions(allotment: Allotment, *, state_needs: int, retrieved_needs: int) -> tuple[str, ...]:
    """Return a sentence for each layer that needs more than it may use, with the numbers.

    ``allotment`` is the one for needs without end: it holds the full shares.
    """
    notes = []
    if allotment.limit < 1:
        notes.append(
            f"The reply reserve of {allotment.reserve:,} tokens leaves nothing of the window of "
            f"{allotment.window:,} tokens."
        )
    if allotment.memory <= 0:
        notes.append(
            f"Fixed part larger than the limit: system prompt and tools need "
            f"{allotment.fixed:,} tokens, the limit is {allotment.limit:,}; no room is left for "
            "history."
        )
    for name, needs, given in (
        ("State and summary", state_needs, allotment.state),
        ("Retrieved memories", retrieved_needs, allotment.retrieved),
    ):
        if needs > given:
            notes.append(f"{name} need {needs:,} tokens, their share is {given:,}.")
    return tuple(notes)
