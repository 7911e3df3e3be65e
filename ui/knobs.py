"""The knobs in the sidebar: each change is kept and the panels are drawn anew, nothing else.

A knob's value lives in the settings of the open session; its widget is seeded from there, so it
survives a change of page and is always the value that the engine uses.
"""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from memory_core.buffer import EXACT, LLAMA_INDEX
from memory_core.errors import InvalidInput
from memory_core.messages import Json
from memory_core.settings import ALL_SESSIONS, BM25, DENSE, HYBRID, THIS_SESSION, MemorySettings
from ui import resources, sessions, strategy_knobs
from ui.state import keyed, mine, seed, value_of

OURS = "layered"  # the strategy whose knobs stand here; the catalogue is loaded later
_STEP = 16  # tokens
_LEAST_LIMIT = 64  # tokens, of the slider; a link may set less

_SCOPES = {ALL_SESSIONS: "all my sessions", THIS_SESSION: "this session"}
_METHODS = {HYBRID: "meaning and words", DENSE: "meaning (cosine)", BM25: "words (BM25)"}
_WEIGHTS = {
    "weight_dense": ("Likeness of meaning", 10.0, 0.1, "Cosine of question and memory."),
    "weight_bm25": ("Words in common", 10.0, 0.1, "BM25, as a share of a word for word match."),
    "weight_neighbours": (
        "Neighbours",
        2.0,
        0.1,
        "How much of their score the turns before and after lend a memory.",
    ),
    "weight_recency": ("Recency", 1.0, 0.05, "How much a new memory gains over an old one."),
    "recency_days": ("Half-life of recency, days", 36_500.0, 1.0, "The age at which it is half."),
    "diversity": ("Diversity", 1.0, 0.05, "How much likeness to a better hit costs."),
}
_RULES = {EXACT: "exact count", LLAMA_INDEX: "ChatMemoryBuffer's"}


@st.fragment(key="knobs")
def draw(*, redraw: Sequence[str], disabled: bool = False) -> None:
    """Draw the knobs; a change reruns only them and the fragments of these keys."""
    page = mine()
    settings = page.settings
    args = (("knobs", *redraw),)
    setup = page.chat.setup if page.chat is not None else None
    if setup is not None and setup.strategy != OURS:
        strategy_knobs.draw(setup, args[0], disabled=disabled)
        with st.expander("More settings", key="more-settings"):
            _switch("tools", "Tools", settings, args, disabled=disabled)
            _system_prompt(settings, args, disabled=disabled)
        return
    _slider(
        "token_limit",
        "Token limit",
        (
            min(_LEAST_LIMIT, settings.token_limit),
            max(settings.context_window, settings.token_limit),
        ),
        settings.token_limit,
        args,
        step=_STEP if settings.token_limit % _STEP == 0 else 1,
        help="For the whole prompt: system prompt, tools and memory.",
        disabled=disabled,
    )
    _slider(
        "top_k",
        "top_k",
        (0, max(20, settings.top_k)),
        settings.top_k,
        args,
        help="How many memories may come back.",
        disabled=disabled,
    )
    _slider(
        "threshold",
        "Score threshold",
        (-1.0, 1.0),
        settings.threshold,
        args,
        step=0.01,
        help="A memory with a lower score stays out.",
        disabled=disabled,
    )
    _shares(settings, args, disabled=disabled)
    _slider(
        "summary_every",
        "Summarise every",
        (1, max(40, settings.summary_every)),
        settings.summary_every,
        args,
        help="So many messages must have left the buffer before a summary round starts.",
        disabled=disabled or not settings.summarise,
        format="%d messages",
    )
    more = st.expander("More settings", key="more-settings", on_change="rerun")
    if more.open:
        with more:
            _more(settings, args, disabled=disabled)


def _more(settings: MemorySettings, args: tuple[Sequence[str]], *, disabled: bool) -> None:
    for name, label in (
        ("recall", "Recall from long-term memory"),
        ("remember_turns", "Remember turns"),
        ("summarise", "Summarise"),
        ("tools", "Tools"),
    ):
        _switch(name, label, settings, args, disabled=disabled)
    for name, label, choices in (
        ("scope", "Recall from", _SCOPES),
        ("recall_method", "Recall by", _METHODS),
        ("window_rule", "Window counted by", _RULES),
    ):
        seed(_key(name), getattr(settings, name))
        st.selectbox(
            label,
            list(choices),
            key=_key(name),
            format_func=choices.__getitem__,
            on_change=_changed,
            args=(name, *args),
            disabled=disabled,
        )
    _signals(settings, args, disabled=disabled)
    for name, label in (
        ("context_window", "Context window, tokens"),
        ("reply_reserve", "Kept for the reply, tokens"),
        ("summary_tokens", "Summary at most, tokens"),
        ("near_misses", "Near misses shown"),
        ("image_tokens", "Tokens a picture"),
    ):
        seed(_key(name), getattr(settings, name))
        st.number_input(
            label,
            min_value=0,
            step=1,
            key=_key(name),
            on_change=_changed,
            args=(name, *args),
            disabled=disabled,
        )
    _system_prompt(settings, args, disabled=disabled)


def _signals(settings: MemorySettings, args: tuple[Sequence[str]], *, disabled: bool) -> None:
    """Draw what a memory's score is made of; the weights count where both signals are searched."""
    with st.popover("Weights of a search", icon=":material/balance:", key="search-weights"):
        for name, (label, most, step, told) in _WEIGHTS.items():
            seed(_key(name), getattr(settings, name))
            st.number_input(
                label,
                min_value=0.0 if name != "recency_days" else 0.01,
                max_value=most,
                step=step,
                key=_key(name),
                help=told,
                on_change=_changed,
                args=(name, *args),
                disabled=disabled or (settings.recall_method != HYBRID and name != "diversity"),
            )
        if settings.recall_method != HYBRID:
            st.caption("The weights count for recall by meaning and words.")


def _switch(
    name: str, label: str, settings: MemorySettings, args: tuple[Sequence[str]], *, disabled: bool
) -> None:
    seed(_key(name), getattr(settings, name))
    st.toggle(label, key=_key(name), on_change=_changed, args=(name, *args), disabled=disabled)


def _system_prompt(settings: MemorySettings, args: tuple[Sequence[str]], *, disabled: bool) -> None:
    seed(_key("system_prompt"), settings.system_prompt)
    st.text_area(
        "System prompt",
        key=_key("system_prompt"),
        on_change=_changed,
        args=("system_prompt", *args),
        disabled=disabled,
    )


def _slider(
    name: str,
    label: str,
    span: tuple[float, float],
    value: float,
    args: tuple[Sequence[str]],
    **more: Json,
) -> None:
    seed(_key(name), value)
    st.slider(label, *span, key=_key(name), on_change=_changed, args=(name, *args), **more)


def _shares(settings: MemorySettings, args: tuple[Sequence[str]], *, disabled: bool) -> None:
    """Draw the three shares as one slider with two handles, in per cent."""
    shares = settings.shares
    first = round(shares.buffer * 100)
    second = min(100, first + round(shares.retrieved * 100))
    seed(_key("shares"), (first, second))
    st.slider(
        f"Shares: buffer {first} · retrieved {second - first} · state {100 - second} %",
        0,
        100,
        step=5 if first % 5 == 0 and second % 5 == 0 else 1,
        key=_key("shares"),
        on_change=_shares_changed,
        args=args,
        help="How memory's tokens are split. What a layer leaves unused flows to the buffer.",
        disabled=disabled,
    )


def _key(name: str) -> str:
    return keyed(mine(), f"knob-{name}")


def _changed(name: str, redraw: Sequence[str]) -> None:
    value = value_of(_key(name))
    if isinstance(getattr(MemorySettings, name), float):
        value = round(float(value), 4)  # a slider's steps are not exact
    _apply(redraw, **{name: value})


def _shares_changed(redraw: Sequence[str]) -> None:
    first, second = value_of(_key("shares"))
    _apply(
        redraw,
        share_buffer=first / 100,
        share_retrieved=(second - first) / 100,
        share_state=(100 - second) / 100,
    )


def _apply(redraw: Sequence[str], **changes: Json) -> None:
    page, engine = mine(), resources.engine()
    try:
        settings = page.settings.with_(**changes)
    except InvalidInput as exc:
        page.notice = str(exc)
        st.rerun()
    if engine is not None:
        sessions.use_settings(page, engine, settings)
    st.rerun(list(redraw))
