"""What the panels look at: one prompt and everything around it, gathered once per change.

Two prompts can be looked at: the one that was *sent* in the last turn, and the *next* one as the
present settings would make it (planned anew, without a model call). Both are an Assembly, so
every panel draws either in the same way. The what-if line compares the next prompt under the
settings of the last turn with the next prompt under the settings of now.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memory_core import reading
from memory_core.errors import MemoryInspectorError
from memory_core.messages import Json, StoredMessage
from memory_core.prompt import Assembly
from memory_core.settings import MemorySettings, settings_from_json
from memory_core.state import AgentState
from memory_core.summary import NO_SUMMARY, Summary
from memory_core.trace import TurnTrace
from ui.state import NEXT, SENT, PageState
from ui.view_models.whatif import WhatIf, what_if

if TYPE_CHECKING:
    from memory_core.chat import Chat
    from memory_core.native.knobs import Knobs


@dataclass(frozen=True)
class Scene:
    """One prompt and its surroundings; ``trace`` is the last turn's, ``None`` before the first.

    ``sent`` tells whether ``assembly`` was sent or is a plan. ``messages`` are the active ones,
    oldest first; ``blocks`` the knobs of the memory blocks, where the strategy has some.
    """

    sent: bool
    turn: int
    assembly: Assembly
    settings: MemorySettings
    messages: Sequence[StoredMessage]
    state: AgentState
    summary: Summary
    trace: TurnTrace | None
    what_if: WhatIf | None
    blocks: Sequence[Mapping[str, Json]] = ()

    @property
    def stored(self) -> Mapping[str, StoredMessage]:
        """The messages by id."""
        return {m.id: m for m in self.messages}


def scene_of(page: PageState) -> Scene | None:
    """Return what the panels look at now, ``None`` while no chat is open."""
    chat = page.chat
    if chat is None:
        return None
    key = (
        chat.key,
        chat.turns,
        len(chat.messages),
        chat.state.version,
        page.settings,
        chat.setup,
        page.showing,
        page.probe,
    )
    if page.scene is None or page.scene[0] != key:
        page.scene = (key, _gather(page, chat))
    return page.scene[1]


def _gather(page: PageState, chat: Chat) -> Scene:
    trace = last_trace(chat)
    sent = trace.assembly if trace is not None else None
    looking_back = page.showing == SENT and sent is not None
    if looking_back and sent is not None and trace is not None:
        assembly, settings, what = sent, settings_of(trace, page.settings), None
    else:
        settings = page.settings
        assembly = chat.preview(settings, page.probe)
        what = _compare(page, chat, trace, assembly)
    return Scene(
        sent=looking_back,
        turn=chat.turns,
        assembly=assembly,
        settings=settings,
        messages=tuple(chat.messages),
        state=chat.state,
        summary=chat.summary or NO_SUMMARY,
        trace=trace,
        what_if=what,
        blocks=reading.blocks(trace) if trace is not None and looking_back else _blocks_of(chat),
    )


def _blocks_of(chat: Chat) -> Sequence[Mapping[str, Json]]:
    """Return the knobs of the memory blocks that the session has now."""
    blocks: Sequence[Mapping[str, Json]] = chat.setup.to_json()["knobs"].get("blocks") or ()
    return blocks


def _compare(
    page: PageState, chat: Chat, trace: TurnTrace | None, after: Assembly
) -> WhatIf | None:
    if trace is None:
        return None
    before, knobs = settings_of(trace, page.settings), _former_knobs(chat, trace)
    if before == page.settings and knobs is None:
        return None
    stored = {m.id: m for m in chat.messages}
    return what_if(chat.preview(before, page.probe, knobs=knobs), after, stored)


def _former_knobs(chat: Chat, trace: TurnTrace) -> Knobs | None:
    """Return the knobs a turn's strategy had, ``None`` where they are those of now."""
    was = reading.setup(trace)
    if was.get("strategy") != chat.setup.strategy:
        return None
    from memory_core.strategies import setup_from_json

    knobs = setup_from_json(was).knobs
    return knobs if knobs != chat.setup.knobs else None


def last_trace(chat: Chat) -> TurnTrace | None:
    """Return the trace of the last turn, ``None`` before the first."""
    return chat.trace(chat.turns) if chat.turns else None


def settings_of(trace: TurnTrace, otherwise: MemorySettings) -> MemorySettings:
    """Return the settings a turn was made with (``otherwise`` where they cannot be read)."""
    try:
        return settings_from_json(trace.settings)
    except MemoryInspectorError:
        return otherwise


__all__ = ["NEXT", "SENT", "Scene", "last_trace", "scene_of", "settings_of"]
