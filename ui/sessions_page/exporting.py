"""Export: one session or all of a user's, as this program's file or for another program."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import streamlit as st

from memory_core.interchange import EXPORTS, Conversation, export
from memory_core.portable import export_session, export_user
from memory_core.portable_format import write_bundle
from memory_core.redaction import KINDS, Redactor
from memory_core.session import utc_now
from memory_core.stores.protocols import SessionInfo, SessionKey
from memory_core.wiring import redactor_of
from ui.sessions_page import actions
from ui.sessions_page.place import Prepared, place_of
from ui.sessions_page.rows import act
from ui.state import PageState, mine, seed, value_of
from ui.view_models.sessions_page import counts_text, size_text

if TYPE_CHECKING:
    from memory_core.engine import Engine

WHOLE = "Memory Inspector (everything, comes back whole)"
LABELS = {
    "llamaindex": "LlamaIndex chat store",
    "openai": "OpenAI messages",
    "openai-jsonl": "OpenAI messages, JSON Lines",
    "openai-responses": "OpenAI Responses items",
    "langchain": "LangChain messages",
}
_ALL = ""
_WHAT, _AS, _REDACT = "export-what", "export-as", "export-redact"


def draw(page: PageState, infos: Sequence[SessionInfo]) -> None:
    """Draw the choice of what, as what and redacted or not; then the file."""
    place = place_of(page)
    titles = {info.key.session: f"{info.title} · {info.turns}" for info in infos}
    chosen = place.export_id if place.export_id in titles else _ALL
    seed(_WHAT, chosen)
    st.selectbox(
        "What",
        [_ALL, *titles],
        key=_WHAT,
        format_func=lambda id_: titles.get(id_, "All my sessions and memories"),
        on_change=_choose,
    )
    kinds = [WHOLE, *EXPORTS] if chosen else [WHOLE]
    st.selectbox("As", kinds, key=_AS, format_func=lambda k: LABELS.get(k, k), on_change=_anew)
    st.checkbox(
        "Redact: " + ", ".join(KINDS),
        key=_REDACT,
        on_change=_anew,
        help="Each find is replaced by its kind in brackets. Your stored session stays as it is.",
    )
    st.button("Make the file", key="export-make", type="primary", on_click=_make)
    if place.prepared is not None:
        made = place.prepared
        for notice in made.notices:
            st.text(notice)
        st.download_button(
            f"Download {made.name} ({size_text(len(made.data))})",
            made.data,
            made.name,
            made.mime,
            key="export-download",
            icon=":material/download:",
            on_click="ignore",
        )


def prepare(page: PageState, engine: Engine, *, id_: str, kind: str, redact: bool) -> Prepared:
    """Return the file of one session, or of everything where no id is given."""
    redactor = _redactor(engine) if redact else None
    if kind not in EXPORTS:
        store = engine.store
        bundle = (
            export_session(store, SessionKey(page.user, id_), redactor=redactor)
            if id_
            else export_user(store, page.user, redactor=redactor)
        )
        title = bundle.sessions[0].info.title if id_ else "all sessions"
        told = [f"Redacted: {counts_text(bundle.counts.items()) or 'nothing was found'}"]
        data = write_bundle(bundle, now=utc_now()).encode()
        return Prepared(
            f"{_slug(title)}.memory.json", "application/json", data, tuple(told) if redact else ()
        )
    info = actions.find(page, engine, id_)
    counts: Counter[str] = Counter()
    messages = []
    stored = engine.store.messages(info.key)
    for m in stored:
        message, found = redactor.message(m.message) if redactor else (m.message, {})
        counts.update(found)
        messages.append(message)
    title = redactor.text(info.title).text if redactor else info.title
    times = tuple(m.created for m in stored)
    written = export(kind, [Conversation(title, tuple(messages), times)])
    told = [str(notice) for notice in written.notices]
    if redact:
        told.insert(0, f"Redacted: {counts_text(counts.items()) or 'nothing was found'}")
    ending = "jsonl" if kind == "openai-jsonl" else "json"
    return Prepared(
        f"{_slug(title)}.{kind}.{ending}", "application/json", written.data, tuple(told)
    )


def _redactor(engine: Engine) -> Redactor:
    """Return the operator's redactor where one is configured, else one for every kind."""
    own = redactor_of(engine.config) if engine.config is not None else None
    return own or Redactor()


def _slug(title: str) -> str:
    return re.sub(r"[^\w-]+", "-", title).strip("-")[:60] or "session"


def _choose() -> None:
    place = place_of(mine())
    place.export_id, place.prepared = str(value_of(_WHAT) or _ALL), None


def _anew() -> None:
    place_of(mine()).prepared = None


def _make() -> None:
    def make(page: PageState, engine: Engine) -> None:
        place = place_of(page)
        place.prepared = prepare(
            page,
            engine,
            id_=place.export_id,
            kind=str(value_of(_AS) or WHOLE),
            redact=bool(value_of(_REDACT)),
        )

    act(make)
