"""What is done to a session of the list. Errors are the family; deleting can be undone."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from memory_core.errors import InvalidInput, NotFound
from memory_core.stores.protocols import SessionInfo, SessionKey
from ui import sessions
from ui.sessions_page.place import place_of
from ui.state import PageState

if TYPE_CHECKING:
    from memory_core.engine import Engine


def find(page: PageState, engine: Engine, id_: str) -> SessionInfo:
    """Return a session of this user; raise :class:`NotFound` for any other id."""
    return engine.store.session(SessionKey(page.user, id_))


def lists(
    page: PageState, engine: Engine
) -> tuple[list[SessionInfo], list[SessionInfo], list[SessionInfo]]:
    """Return the user's sessions in use, archived and deleted, last used first."""
    live = engine.sessions(page.user)
    return (
        [info for info in live if not info.archived],
        [info for info in live if info.archived],
        engine.store.sessions(page.user, deleted=True),
    )


def open_in_playground(page: PageState, engine: Engine, id_: str) -> None:
    """Open a session; an archived one comes back from the archive."""
    info = find(page, engine, id_)
    if info.archived:
        info = replace(info, archived=False)
        engine.store.update(info)
    sessions.open_session(page, engine, info)


def rename(page: PageState, engine: Engine, id_: str, title: str) -> None:
    """Give a session another title; raise :class:`InvalidInput` for an empty one."""
    line = " ".join(title.split())
    if not line:
        raise InvalidInput("A session needs a title of at least one character.")
    _update(page, engine, replace(find(page, engine, id_), title=line[: sessions.MAX_TITLE]))


def duplicate(page: PageState, engine: Engine, id_: str) -> SessionInfo:
    """Copy a session with all its turns and return the copy."""
    info = find(page, engine, id_)
    title = f"{info.title[: sessions.MAX_TITLE - 7]} (copy)"
    return engine.copy(info.key, title)


def archive(page: PageState, engine: Engine, id_: str, *, archived: bool) -> None:
    """Put a session into the archive, or bring it back."""
    info = replace(find(page, engine, id_), archived=archived)
    _update(page, engine, info)
    if archived:
        _leave(page, info)


def delete(page: PageState, engine: Engine, id_: str) -> None:
    """Delete a session so that it can come back."""
    info = find(page, engine, id_)
    engine.store.update(replace(info, deleted=True))
    place_of(page).gone = info
    _leave(page, info)


def bring_back(page: PageState, engine: Engine, id_: str) -> None:
    """Undo a deletion."""
    engine.store.update(replace(find(page, engine, id_), deleted=False))
    place = place_of(page)
    if place.gone is not None and place.gone.key.session == id_:
        place.gone = None
    if page.deleted is not None and page.deleted.key.session == id_:
        page.deleted = None


def erase(page: PageState, engine: Engine, ids: Sequence[str]) -> None:
    """Erase deleted sessions for good, with the memories they made."""
    place = place_of(page)
    for id_ in ids:
        info = find(page, engine, id_)
        if not info.deleted:
            raise NotFound("Only a deleted session can be erased.", next_step="Delete it first.")
        engine.purge(info.key)
        for held, name in ((place, "gone"), (page, "deleted")):
            one = getattr(held, name)
            if one is not None and one.key == info.key:
                setattr(held, name, None)
    engine.longterm.catch_up(page.user)


def new_id() -> str:
    """Return an id for an imported session."""
    return uuid.uuid4().hex


def _update(page: PageState, engine: Engine, info: SessionInfo) -> None:
    engine.store.update(info)
    if page.info is not None and page.info.key == info.key:
        page.info = replace(page.info, title=info.title, archived=info.archived)


def _leave(page: PageState, info: SessionInfo) -> None:
    """Close a session that is open in the Playground; the next page opens another."""
    if page.info is not None and page.info.key == info.key:
        page.info = page.chat = page.scene = page.past = None
