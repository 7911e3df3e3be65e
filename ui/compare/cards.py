"""One card a configuration: name, strategy, model and every knob, each change taken at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import streamlit as st

from memory_core.buffer import EXACT, LLAMA_INDEX
from memory_core.errors import MemoryInspectorError
from memory_core.lab.comparison import FEWEST, MOST, Configuration, Conversation
from memory_core.messages import Json
from memory_core.models.catalogue import (
    LOCAL,
    MODEL_KINDS,
    OFFLINE,
    OPENAI,
    OPENAI_LIKE,
    ModelChoice,
    find_key,
)
from memory_core.settings import ALL_SESSIONS, BM25, DENSE, HYBRID, THIS_SESSION
from memory_core.strategies import (
    AGENTS,
    LAYERED,
    STRATEGIES,
    default_setup,
    find_strategy,
    pairing,
    setup_from_json,
)
from ui import strategy_fields
from ui.compare.place import ComparePlace, Draft, place_of
from ui.resources import secrets
from ui.state import mine, seed, value_of
from ui.view_models.compare import LETTERS, before_words, is_short, short, unused

if TYPE_CHECKING:
    from memory_core.native.knobs import Knob

A_ROW = 3
_MOST_NAME = 60  # characters
_KINDS = {
    OFFLINE: "Offline reader (built in)",
    OPENAI: "OpenAI",
    OPENAI_LIKE: "OpenAI-compatible URL",
    LOCAL: "Local GGUF file",
}
_FIRST = {
    OPENAI: ModelChoice(OPENAI, "gpt-4o-mini", context_window=128_000),
    OPENAI_LIKE: ModelChoice(
        OPENAI_LIKE, "llama3.2", "http://localhost:11434/v1", context_window=8192
    ),
}
_CHOICES: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "scope": ("Recall from", {ALL_SESSIONS: "all my sessions", THIS_SESSION: "this session"}),
    "recall_method": (
        "Recall by",
        {HYBRID: "meaning and words", DENSE: "meaning (cosine)", BM25: "words (BM25)"},
    ),
    "window_rule": (
        "Window counted by",
        {EXACT: "exact count", LLAMA_INDEX: "ChatMemoryBuffer's"},
    ),
}
_NUMBERS: Mapping[str, tuple[str, int]] = {
    "summary_every": ("Summarise every, messages", 1),
    "summary_tokens": ("Summary at most, tokens", 16),
    "context_window": ("Context window, tokens", 256),
    "reply_reserve": ("Kept for the reply, tokens", 0),
}
_SWITCHES: Mapping[str, str] = {
    "recall": "Recall from long-term memory",
    "remember_turns": "Remember turns",
    "summarise": "Summarise",
    "tools": "Tools",
}


def draw(place: ComparePlace, conversation: Conversation | None) -> None:
    """Draw all cards, a few in a row."""
    for at in range(0, len(place.drafts), A_ROW):
        for number, (side, draft) in enumerate(
            zip(st.columns(A_ROW), place.drafts[at : at + A_ROW], strict=False), start=at
        ):
            with side, st.container(border=True, key=f"compare-card-{draft.uid}"):
                _card(place, number, draft, conversation)


def _card(
    place: ComparePlace, number: int, draft: Draft, conversation: Conversation | None
) -> None:
    one, uid = draft.configuration, draft.uid
    _seeded(place, uid, "name", one.name)
    st.text_input(
        f"Name of {LETTERS[number]}",
        key=_key(place, uid, "name"),
        max_chars=_MOST_NAME,
        on_change=_rename,
        args=(uid,),
    )
    _seeded(place, uid, "strategy", one.setup.strategy)
    titles = {strategy.id: strategy.title for strategy in STRATEGIES}
    st.selectbox(
        "Memory strategy",
        list(titles),
        key=_key(place, uid, "strategy"),
        format_func=titles.__getitem__,
        on_change=_to_strategy,
        args=(uid,),
    )
    if one.setup.strategy == LAYERED:
        _layered(place, uid, one)
    else:
        _native(place, uid, one)
    _model(place, uid, one.model)
    if conversation is not None:
        from memory_core.lab.planning import can_plan

        plans = can_plan(one, conversation, place.mode)
        st.caption(before_words(one, plans=plans, mode=place.mode).replace("$", "\\$"))
    with st.container(horizontal=True):
        st.button(
            "Copy",
            key=f"compare-copy-{uid}",
            icon=":material/content_copy:",
            disabled=len(place.drafts) >= MOST,
            on_click=_copy,
            args=(uid,),
        )
        st.button(
            "Remove",
            key=f"compare-remove-{uid}",
            icon=":material/close:",
            disabled=len(place.drafts) <= FEWEST,
            on_click=_remove,
            args=(uid,),
        )


def _layered(place: ComparePlace, uid: int, one: Configuration) -> None:
    settings = one.settings
    left, right = st.columns(2)
    with left:
        _number(place, uid, "token_limit", "Token limit", settings.token_limit, low=1, step=50)
    with right:
        _number(place, uid, "top_k", "top_k", settings.top_k, low=0)
    _seeded(place, uid, "threshold", settings.threshold)
    st.slider(
        "Score threshold",
        -1.0,
        1.0,
        step=0.01,
        key=_key(place, uid, "threshold"),
        on_change=_to_setting,
        args=(uid, "threshold"),
    )
    first = round(settings.shares.buffer * 100)
    second = min(100, first + round(settings.shares.retrieved * 100))
    _seeded(place, uid, "shares", (first, second))
    st.slider(
        f"Shares: buffer {first} · retrieved {second - first} · state {100 - second} %",
        0,
        100,
        key=_key(place, uid, "shares"),
        on_change=_to_shares,
        args=(uid,),
    )
    with st.expander("More settings", key=f"compare-more-{uid}"):
        for name, label in _SWITCHES.items():
            _seeded(place, uid, name, getattr(settings, name))
            st.toggle(label, key=_key(place, uid, name), on_change=_to_setting, args=(uid, name))
        for name, (label, choices) in _CHOICES.items():
            _seeded(place, uid, name, getattr(settings, name))
            st.selectbox(
                label,
                list(choices),
                key=_key(place, uid, name),
                format_func=choices.__getitem__,
                on_change=_to_setting,
                args=(uid, name),
            )
        for name, (label, low) in _NUMBERS.items():
            _number(place, uid, name, label, getattr(settings, name), low=low)
        _agent(place, uid, one)


def _native(place: ComparePlace, uid: int, one: Configuration) -> None:
    from memory_core.native import knobs

    strategy = find_strategy(one.setup.strategy)
    now = knobs.to_json(one.setup.knobs)
    with st.expander("Knobs", key=f"compare-knobs-{uid}"):
        st.caption(f"Keeps {strategy.keeps}. Forgets {strategy.forgets}.".replace("$", "\\$"))
        for knob in knobs.schema(strategy.knobs):
            strategy_fields.draw(
                knob,
                now[knob.name],
                _key(place, uid, f"{strategy.id}-{knob.name}"),
                on_change=_to_knob,
                args=(uid, knob),
            )
        _agent(place, uid, one)


def _agent(place: ComparePlace, uid: int, one: Configuration) -> None:
    strategy = one.setup.strategy
    agents = {agent.id: agent.title for agent in AGENTS if pairing(strategy, agent.id).works}
    _seeded(place, uid, f"agent-{strategy}", one.setup.agent)
    st.selectbox(
        "Agent",
        list(agents),
        key=_key(place, uid, f"agent-{strategy}"),
        format_func=agents.__getitem__,
        on_change=_to_agent,
        args=(uid,),
    )
    note = pairing(strategy, one.setup.agent).note
    if note:
        st.caption(note)


def _model(place: ComparePlace, uid: int, model: ModelChoice) -> None:
    kinds = [kind for kind in MODEL_KINDS if kind in _FIRST or kind in (OFFLINE, model.kind)]
    _seeded(place, uid, "kind", model.kind)
    st.selectbox(
        "Model",
        kinds,
        key=_key(place, uid, "kind"),
        format_func=_KINDS.__getitem__,
        on_change=_to_kind,
        args=(uid,),
    )
    if model.kind == OFFLINE:
        return
    _seeded(place, uid, "model", model.model)
    st.text_input(
        "Model name", key=_key(place, uid, "model"), on_change=_to_model, args=(uid, "model")
    )
    if model.kind == OPENAI_LIKE:
        _seeded(place, uid, "base_url", model.base_url)
        st.text_input(
            "Base URL",
            key=_key(place, uid, "base_url"),
            on_change=_to_model,
            args=(uid, "base_url"),
        )
    if model.kind == OPENAI and not find_key(model.kind, os.environ, secrets(), mine().api_key):
        st.caption("No key was found: enter one in the Playground's model settings.")


def _number(
    place: ComparePlace, uid: int, name: str, label: str, value: int, *, low: int, step: int = 1
) -> None:
    _seeded(place, uid, name, value)
    st.number_input(
        label,
        min_value=low,
        step=step,
        key=_key(place, uid, name),
        on_change=_to_setting,
        args=(uid, name),
    )


def _key(place: ComparePlace, uid: int, name: str) -> str:
    return f"compare-{place.version}-{uid}-{name}"


def _seeded(place: ComparePlace, uid: int, name: str, value: Any) -> None:
    seed(_key(place, uid, name), value)


def _changed(uid: int, change: Callable[[Configuration], Configuration]) -> None:
    """Take a change in; one that cannot be used is told and undone.

    A name that only says how a configuration is set goes on saying so.
    """
    place = place_of(mine())
    one = place.draft(uid)
    if one is None:
        return
    try:
        new = change(one)
        if new.name == one.name and is_short(one.name, one):
            others = [d.configuration.name for d in place.drafts if d.uid != uid]
            new = replace(new, name=unused(short(new), others))
        place.change(uid, new)
    except MemoryInspectorError as exc:
        place.error = exc
        place.version += 1


def _of(uid: int, name: str) -> Any:
    return value_of(_key(place_of(mine()), uid, name))


def _rename(uid: int) -> None:
    name = " ".join(str(_of(uid, "name") or "").split())
    _changed(uid, lambda one: replace(one, name=name or one.name))


def _to_strategy(uid: int) -> None:
    setup = default_setup(str(_of(uid, "strategy")))
    _changed(uid, lambda one: replace(one, setup=setup))


def _to_agent(uid: int) -> None:
    def change(one: Configuration) -> Configuration:
        agent = str(_of(uid, f"agent-{one.setup.strategy}"))
        return replace(one, setup=setup_from_json({**one.setup.to_json(), "agent": agent}))

    _changed(uid, change)


def _to_knob(uid: int, knob: Knob) -> None:
    def change(one: Configuration) -> Configuration:
        value = strategy_fields.read(knob, _of(uid, f"{one.setup.strategy}-{knob.name}"))
        now = one.setup.to_json()
        knobs = {**now["knobs"], knob.name: value}
        return replace(one, setup=setup_from_json({**now, "knobs": knobs}))

    _changed(uid, change)


def _to_setting(uid: int, name: str) -> None:
    def change(one: Configuration) -> Configuration:
        value: Json = _of(uid, name)
        value = round(value, 4) if isinstance(value, float) else value
        return replace(one, settings=one.settings.with_(**{name: value}))

    _changed(uid, change)


def _to_shares(uid: int) -> None:
    first, second = _of(uid, "shares")
    shares = {
        "share_buffer": first / 100,
        "share_retrieved": (second - first) / 100,
        "share_state": (100 - second) / 100,
    }
    _changed(uid, lambda one: replace(one, settings=one.settings.with_(**shares)))


def _to_kind(uid: int) -> None:
    kind = str(_of(uid, "kind"))

    def change(one: Configuration) -> Configuration:
        own = mine().model
        model = own if own.kind == kind else _FIRST.get(kind, ModelChoice())
        window = model.context_window if kind != OFFLINE else one.settings.context_window
        return replace(one, model=model, settings=one.settings.with_(context_window=window))

    _changed(uid, change)


def _to_model(uid: int, name: str) -> None:
    text = str(_of(uid, name) or "")

    def change(one: Configuration) -> Configuration:
        model = replace(one.model, model=text) if name == "model" else replace(
            one.model, base_url=text
        )  # fmt: skip
        return replace(one, model=model)

    _changed(uid, change)


def _copy(uid: int) -> None:
    place = place_of(mine())
    one = place.draft(uid)
    if one is not None and len(place.drafts) < MOST:
        name = unused(one.name, [draft.configuration.name for draft in place.drafts])
        place.add(replace(one, name=name))


def _remove(uid: int) -> None:
    place = place_of(mine())
    if len(place.drafts) > FEWEST:
        place.remove(uid)
