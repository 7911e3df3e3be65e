"""The panel column: budget always in sight, the other panels one at a time or all at once.

Each panel is a fragment of its own, so turning a page in one of them draws nothing else. All of
them read the same :class:`~ui.scene.Scene`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import streamlit as st

from ui import dialogs, problems
from ui.panels import blocks, budget, buffer, doctor, prompt, retrieved, state, summary, turn
from ui.past import Past
from ui.scene import Scene, scene_of
from ui.state import ALL, NEXT, SENT, PageState, keyed, mine, seed, value_of
from ui.view_models.blocks import blocks_view
from ui.view_models.buffer import buffer_view
from ui.view_models.retrieved import retrieved_view
from ui.view_models.text import plural

REDRAW = ("budget", "panels")  # keys of the fragments that a change of settings redraws
BUFFER, BLOCKS, RETRIEVED, SUMMARY, STATE, PROMPT, TURN, DOCTOR = (
    "Buffer",
    "Blocks",
    "Retrieved",
    "Summary",
    "State",
    "Prompt",
    "Turn",
    "Doctor",
)

_SHOWING, _PANEL = "showing", "panel"
_LABELS = {NEXT: "Next prompt", SENT: "As sent"}

Draw = Callable[[Scene, Past, bool], None]

PANELS: Mapping[str, Draw] = {
    BUFFER: lambda scene, past, brief: buffer.draw(scene, past, brief=brief),
    BLOCKS: lambda scene, past, brief: blocks.draw(scene, past, brief=brief),
    RETRIEVED: lambda scene, *_: retrieved.draw(scene, _ask_about),
    SUMMARY: lambda scene, past, _: summary.draw(scene, past),
    STATE: lambda scene, *_: state.draw(scene, dialogs.open_state),
    PROMPT: lambda scene, _, brief: prompt.draw(scene, brief=brief),
    TURN: lambda scene, *_: turn.draw(scene),
    DOCTOR: lambda scene, past, _: doctor.draw(scene, past),
}


def draw() -> None:
    """Draw the whole column."""
    _budget()
    _panels()


@st.fragment(key="budget")
def _budget() -> None:
    page = mine()
    scene = _scene(page)
    if scene is None:
        st.caption("The token budget of the next prompt will stand here, by source.")
        return
    showing = keyed(page, f"{_SHOWING}-{page.showing}")
    seed(showing, page.showing)
    st.segmented_control(
        "Prompt",
        [NEXT, SENT] if scene.trace is not None else [NEXT],
        key=showing,
        required=True,
        format_func=lambda which: _label(which, scene),
        label_visibility="collapsed",
        on_change=_show,
    )
    with problems.guarded("the budget bar"):
        budget.draw(scene, _past(page).bars())


@st.fragment(key="panels")
def _panels() -> None:
    page = mine()
    scene = _scene(page)
    if scene is None:
        st.caption(
            "And here: the buffer, what was retrieved, the running summary, the state, the exact "
            "prompt, and what each turn did."
        )
        return
    shown = panels_of(scene, PANELS)
    if page.panel not in (*shown, ALL):
        page.panel = BUFFER
    seed(_PANEL, page.panel)
    st.segmented_control(
        "Panel",
        [*shown, ALL],
        key=_PANEL,
        required=True,
        format_func=lambda name: _title(name, scene, _past(page)),
        label_visibility="collapsed",
        wrap=True,
        on_change=_turn_to,
    )
    if page.panel != ALL:
        _panel(page.panel)
        return
    for name in shown:
        with st.container(border=True):
            st.markdown(f"**{_title(name, scene, _past(page))}**")
            _panel(name)


@st.fragment
def _panel(name: str) -> None:
    page = mine()
    scene = _scene(page)
    if scene is not None:
        with problems.guarded(f"the panel {name}"):
            PANELS[name](scene, _past(page), page.panel == ALL)


def panels_of(scene: Scene, panels: Iterable[str]) -> list[str]:
    """Return the panels that have something to show: blocks only where the strategy has some."""
    return [name for name in panels if name != BLOCKS or scene.blocks]


def _scene(page: PageState) -> Scene | None:
    """Return the scene; while a turn runs, the one from before it."""
    if page.live is not None and page.scene is not None:
        return page.scene[1]
    return scene_of(page)


def _past(page: PageState) -> Past:
    if page.chat is None:
        raise ValueError("no chat is open")
    if page.past is None or page.past.chat is not page.chat:
        page.past = Past(page.chat)
    return page.past


def _label(which: str, scene: Scene) -> str:
    if which != SENT:
        return _LABELS[which]
    replies = scene.trace.replies if scene.trace is not None else ()
    failed = bool(replies and replies[-1].error)  # refused, here or there, or nobody answered
    return f"Turn {scene.turn}, unanswered" if failed else f"Turn {scene.turn}, as sent"


def _title(name: str, scene: Scene, past: Past) -> str:
    """Return a panel's name with what is most worth knowing of it."""
    told: Mapping[str, Callable[[], str]] = {
        BUFFER: lambda: buffer_view(scene.messages, scene.assembly, turn=scene.turn, size=1).label,
        BLOCKS: lambda: blocks_view(scene.assembly, scene.blocks).label,
        RETRIEVED: lambda: retrieved_view(scene.assembly, threshold=scene.settings.threshold).label,
        SUMMARY: lambda: f"{name} v{scene.summary.version}" if scene.summary.version else name,
        STATE: lambda: f"{name} v{scene.state.version}",
        DOCTOR: lambda: _notes(scene, past),
    }
    return told[name]() if name in told else name


def _notes(scene: Scene, past: Past) -> str:
    notes = len(past.doctor(scene.trace).notes) if scene.trace is not None else 0
    return f"{DOCTOR} · {plural(notes, 'note')}" if notes else DOCTOR


def _show() -> None:
    page = mine()
    page.showing = str(value_of(keyed(page, f"{_SHOWING}-{page.showing}")))
    st.rerun(list(REDRAW))


def _ask_about(question: str) -> None:
    page = mine()
    page.probe, page.showing = question, NEXT
    st.rerun(list(REDRAW))


def _turn_to() -> None:
    page = mine()
    before, page.panel = page.panel, str(value_of(_PANEL))
    if ALL in (before, page.panel):
        st.rerun()  # the chat makes room for all panels, or takes it back
