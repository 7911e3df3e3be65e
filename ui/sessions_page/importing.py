"""Import: a file is read and told first, and stored only when that is wanted.

Exports of this program come back whole, other people's chat files become sessions. What is here
already is noticed: an export's sessions by their ids, other files by their fingerprints.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any

import streamlit as st

from memory_core.errors import InvalidInput
from memory_core.interchange import conversations, preview
from memory_core.interchange.storing import imported_before, store_conversation
from memory_core.portable import import_bundle
from memory_core.portable_format import FORMAT, read_bundle
from memory_core.stores.protocols import SessionInfo, SessionKey
from memory_core.tokens import TokenCounter
from ui import problems
from ui.progress import bar
from ui.sessions_page.actions import new_id
from ui.sessions_page.place import SESSIONS, SessionsPlace, Uploaded, place_of
from ui.state import PageState, value_of
from ui.view_models.sessions_page import incoming_bundle, incoming_file
from ui.view_models.text import plural

if TYPE_CHECKING:
    from memory_core.engine import Engine
    from ui.view_models.sessions_page import Incoming

_AGAIN, _BRANCHES, _REMEMBER = "import-again", "import-branches", "import-remember"
_NATIVE = re.compile(rb'"format":\s*"' + FORMAT.encode() + b'"')
Move = Callable[[int, int], None]
_LOOK = 2_000  # bytes in which an export of this program names itself


def draw(page: PageState, engine: Engine) -> None:
    """Draw the upload, then what the file holds, then the button that stores it."""
    place = place_of(page)
    st.caption(
        "An export of this program, a LlamaIndex chat store, OpenAI or LangChain messages, a "
        "ChatGPT or Claude export (zip too), ShareGPT, LoCoMo, LongMemEval, a CSV with role and "
        'text, or lines of "Name: text". Nothing is stored before you have seen what it holds.'
    )
    file = st.file_uploader("File", key="import-file")
    if file is None:
        place.uploaded = None
        return
    st.checkbox(
        "Other branches of a conversation as sessions of their own",
        key=_BRANCHES,
        help="For exports in which answers were regenerated or messages edited.",
    )
    with problems.guarded("the import"):
        uploaded = _read(place, file, branches=bool(value_of(_BRANCHES)))
        _told(page, engine, uploaded)


def _read(place: SessionsPlace, file: Any, *, branches: bool) -> Uploaded:
    name = f"{file.file_id}-{branches}"
    if place.uploaded is None or place.uploaded.file != name:
        data = file.getvalue()
        if _NATIVE.search(data[:_LOOK]):
            place.uploaded = Uploaded(name, data, bundle=read_bundle(_text(data)))
        else:
            with bar("Reading the file") as move:
                told = preview(BytesIO(data), name=file.name, branches=branches, progress=move)
            place.uploaded = Uploaded(name, data, preview=told)
    return place.uploaded


def _told(page: PageState, engine: Engine, uploaded: Uploaded) -> None:
    known = [*engine.sessions(page.user), *engine.store.sessions(page.user, deleted=True)]
    if uploaded.bundle is not None:
        view = incoming_bundle(
            uploaded.bundle, len(uploaded.data), (info.key.session for info in known)
        )
        count = len(uploaded.bundle.sessions)
        here = sum(bool(row["here"]) for row in view.rows)
        same = f"{plural(here, 'session')} of this file are here already." if here else ""
    elif uploaded.preview is not None:
        view, told = incoming_file(uploaded.preview), uploaded.preview
        count = len(told.conversations)
        files = imported_before(known, file=told.fingerprint)
        same = f"This very file was imported before: {_titles(files)}." if files else ""
        if not files:
            equal = [
                info
                for row in told.conversations
                for info in imported_before(known, conversation=row.fingerprint)
            ]
            same = f"The same conversation is here already: {_titles(equal)}." if equal else ""
    else:
        return
    _draw(view)
    if same:
        st.warning(problems.plain(same))
        st.checkbox("Store it once more, as a copy", key=_AGAIN)
    if uploaded.bundle is None:
        st.checkbox(
            "Remember their turns for the long term",
            value=True,
            key=_REMEMBER,
            help="As the turns of a chat are: they are indexed in the background and can be "
            "recalled in other sessions.",
        )
    label = f"Store {plural(count, 'session')}"
    if st.button(label, key="import-store", type="primary", icon=":material/download:"):
        _store(page, engine, uploaded)


def _draw(view: Incoming) -> None:
    st.text(view.headline)
    if view.rows:
        st.dataframe(view.rows, key="import-rows", hide_index=True, width="stretch")
    if view.hidden:
        st.caption(f"and {view.hidden:,} more")
    if view.notices:
        with st.expander(f"Changed or left out: {len(view.notices):,}", expanded=True):
            for notice in view.notices:
                st.text(notice)


def _store(page: PageState, engine: Engine, uploaded: Uploaded) -> None:
    place, again = place_of(page), bool(value_of(_AGAIN))
    if uploaded.bundle is not None:
        with bar("Storing") as move:
            done = import_bundle(
                engine.store,
                uploaded.bundle,
                user=page.user,
                new_id=new_id if again else None,
                progress=move,
            )
        said = f"Stored {plural(len(done.sessions), 'session')}, {plural(done.turns, 'turn')}."
        if done.kept:
            said += f" Kept as they are: {len(done.kept):,}."
    else:
        with bar("Storing") as move:
            said = _store_conversations(page, engine, uploaded, again=again, move=move)
    engine.index_soon(page.user)
    place.said, place.view, place.uploaded = said, SESSIONS, None
    st.rerun()


def _store_conversations(
    page: PageState, engine: Engine, uploaded: Uploaded, *, again: bool, move: Move
) -> str:
    told = uploaded.preview
    if told is None:
        return ""
    known = [*engine.sessions(page.user), *engine.store.sessions(page.user, deleted=True)]
    counter, stored, skipped = TokenCounter(), 0, 0
    branches = bool(value_of(_BRANCHES))
    for conversation in conversations(BytesIO(uploaded.data), name=told.name, branches=branches):
        if not again and imported_before(known, conversation=conversation.fingerprint):
            skipped += 1
            continue
        store_conversation(
            conversation,
            store=engine.store,
            key=SessionKey(page.user, new_id()),
            counter=counter,
            file=told.fingerprint,
            remember=bool(value_of(_REMEMBER, default=True)),
            progress=_part(move, stored + skipped, len(told.conversations)),
        )
        stored += 1
    more = f" {plural(skipped, 'session')} were here already." if skipped else ""
    return f"Stored {plural(stored, 'session')}.{more}"


def _part(move: Move, done: int, count: int) -> Move:
    """Return what moves a bar through one of several conversations."""
    return lambda at, total: move(round(1_000 * (done + at / max(total, 1))), 1_000 * count)


def _titles(infos: Sequence[SessionInfo]) -> str:
    titles = [f"“{info.title}”" for info in infos]
    more = f" and {len(titles) - 3:,} more" if len(titles) > 3 else ""
    return ", ".join(titles[:3]) + more


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as exc:
        raise InvalidInput(f"The file is no UTF-8 text: {exc}.") from exc
