"""The one state object of a visitor; the only file that names ``st.session_state``.

Everything that must outlive a rerun or a change of page is a field of :class:`PageState`.
Widgets are keyed; a widget that is not drawn loses its value, so a knob's value lives here and
is put back under the widget's key before it is drawn (:func:`seed`).

subtle: a browser sends all its widgets' values with every rerun it asks for, also with those a
fragment asks for by the clock. One that is on its way while the page gives a widget another value
carries the old one, which then looks like a choice. So where the page itself changes values (a
session is opened, a turn ends) the widgets get new keys (:func:`keyed`), and old values mean
nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import streamlit as st

from memory_core.models.catalogue import EmbeddingChoice, ModelChoice
from memory_core.settings import MemorySettings

if TYPE_CHECKING:
    from memory_core.chat import Chat
    from memory_core.errors import MemoryInspectorError
    from memory_core.state import AgentState
    from memory_core.stores.protocols import SessionInfo
    from ui.compare.place import ComparePlace
    from ui.lab.place import LabPlace
    from ui.live import LiveTurn
    from ui.past import Past
    from ui.player import Player
    from ui.scene import Scene
    from ui.sessions_page.place import SessionsPlace
    from ui.storage.place import StoragePlace
    from ui.time_travel.chronicle import Chronicle
    from ui.time_travel.place import Place
    from ui.why.asking import Asking

_KEY = "memory_inspector"

Draft = dict[str, Any]  # a thing while it is edited in a form

NEXT, SENT = "next", "sent"  # which prompt the panels show
ALL = "All"  # the name of all panels at once


@dataclass
class PageState:
    """What one visitor has open.

    ``settings`` and ``model`` are those of the open session; ``baseline`` are the settings
    that changes are compared with (those of the last turn). ``outbox`` is text that was sent
    before the engine was ready. ``api_key`` lives here and nowhere else. ``parted`` is a state
    edited by hand that somebody else's save came before; the Sessions page merges it.
    """

    user: str
    settings: MemorySettings = field(default_factory=MemorySettings)
    model: ModelChoice = field(default_factory=ModelChoice)
    model_ready: bool = True
    api_key: str = field(default="", repr=False)
    embedding: EmbeddingChoice | None = None
    embedding_key: str = field(default="", repr=False)
    strategy_kept: dict[str, Any] = field(default_factory=dict)
    blocks: list[Draft] | None = None
    info: SessionInfo | None = None
    chat: Chat | None = None
    live: LiveTurn | None = None
    player: Player | None = None
    outbox: str = ""
    error: MemoryInspectorError | None = None
    notice: str = ""
    deleted: SessionInfo | None = None
    showing: str = NEXT
    probe: str = ""
    chat_ends: tuple[int, ...] = ()
    opened: frozenset[str] = frozenset()
    editing: bool = False
    panel: str = "Buffer"
    dialog: str = ""
    dialog_error: MemoryInspectorError | None = None
    state_base: int = 0
    scene: tuple[object, Scene] | None = None
    past: Past | None = None
    link_read: bool = False
    epoch: int = 0
    chronicle: Chronicle | None = None
    place: Place | None = None
    lost: MemoryInspectorError | None = None
    asking: Asking | None = None
    sessions_place: SessionsPlace | None = None
    storage_place: StoragePlace | None = None
    parted: AgentState | None = None
    lab: LabPlace | None = None
    compare: ComparePlace | None = None

    def fail(self, error: MemoryInspectorError) -> None:
        """Keep an error for the page to show."""
        self.error = error


def mine() -> PageState:
    """Return this visitor's state, made at the first call."""
    if _KEY not in st.session_state:
        from ui.visitor import who

        st.session_state[_KEY] = PageState(user=who())
    state: PageState = st.session_state[_KEY]
    return state


def keyed(page: PageState, name: str) -> str:
    """Return the key of a widget whose value the page itself may change."""
    return f"{name}-{page.epoch}"


def seed(key: str, value: Any) -> None:
    """Put a value under a widget's key before the widget is drawn.

    A value that is there already is left alone: writing it again would send it to the browser
    and could undo what a person is dragging.
    """
    if key not in st.session_state or st.session_state[key] != value:
        st.session_state[key] = value


def value_of(key: str, default: Any = None) -> Any:
    """Return the present value of a keyed widget."""
    return st.session_state.get(key, default)
