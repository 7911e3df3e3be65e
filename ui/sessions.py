"""Opening, making, renaming, copying and deleting sessions, and what is kept with each.

With every session its knobs, its model and the sample it was played from are kept as one JSON
object. A key is never part of it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from memory_core.errors import InvalidInput, MemoryInspectorError, NotFound
from memory_core.messages import Json
from memory_core.models.catalogue import (
    OFFLINE,
    EmbeddingChoice,
    ModelChoice,
    embedding_from_json,
    find_key,
    model_from_json,
)
from memory_core.settings import MemorySettings, settings_from_json
from ui.resources import secrets
from ui.state import NEXT, SENT, PageState

if TYPE_CHECKING:
    from memory_core.engine import Engine
    from memory_core.stores.protocols import SessionInfo
    from memory_core.strategies import Setup

NEW_TITLE = "New chat"
MAX_TITLE = 80
_TITLE_FROM = 48  # characters of the first message that become the title


def open_newest(page: PageState, engine: Engine) -> None:
    """Open the session that was used last, a new one when there is none."""
    found = engine.sessions(page.user)
    if found:
        open_session(page, engine, found[0])
    else:
        open_new(page, engine)


def open_new(
    page: PageState, engine: Engine, *, settings: MemorySettings | None = None, sample: str = ""
) -> None:
    """Open an empty session: the newest one when it is still empty, else one more.

    It starts with the given settings, by default with those of the session that was open.
    """
    if settings is not None:
        page.settings = settings
    found = engine.sessions(page.user)
    if found and not found[0].turns and found[0].title == NEW_TITLE and not found[0].origin:
        info = found[0]
    else:
        info = engine.create(page.user, NEW_TITLE, settings={})
    kept = replace(info, settings=_kept(page.settings, page.model, sample))
    engine.store.update(kept)
    open_session(page, engine, kept)


def open_session(page: PageState, engine: Engine, info: SessionInfo) -> None:
    """Open a session with the settings and the model that were kept with it."""
    if page.error is not None and page.info is not None and page.info.key != info.key:
        page.outbox = ""  # what could not be sent there is not said here
    settings, model, notice = _read(info.settings)
    page.settings, page.model, page.notice = settings, model, notice
    page.embedding = None
    # Looking at a session needs no model, so a missing key or file does not keep it closed:
    # the model is made ready when something is sent.
    page.chat = engine.chat(info.key, settings=settings, model=ModelChoice())
    page.model_ready = model == ModelChoice()
    page.info = info
    _recall_as_kept(page, engine, info.settings)
    _remember_as_kept(page, info.settings)
    page.live = page.error = page.scene = page.past = None
    page.chat_ends = ()
    page.epoch += 1
    page.opened, page.editing, page.probe = frozenset(), False, ""
    page.showing = SENT if page.chat.turns else NEXT


def catch_up(page: PageState, engine: Engine) -> bool:
    """Take in what another tab or program said in the open session; return whether there was any.

    Raises :class:`NotFound` when the session was deleted meanwhile.
    """
    if page.chat is None or page.info is None:
        return False
    stored = engine.store.session(page.info.key)
    if stored.deleted:
        raise NotFound(
            "This session was deleted in another tab or program.",
            next_step="Bring it back on the Sessions page, or start a new chat.",
        )
    missed = stored.turns - page.chat.turns
    if missed <= 0:
        return False
    open_session(page, engine, stored)
    more = "1 more turn was" if missed == 1 else f"{missed:,} more turns were"
    page.notice = (
        f"This session went on in another tab or program: {more} taken in. {page.notice}".strip()
    )
    return True


def make_ready(page: PageState) -> None:
    """Let the open session answer with its model; raise what keeps the model from it."""
    if page.chat is not None and not page.model_ready:
        page.chat.use(page.model, key_text=key_for(page.model, page.api_key))
        page.model_ready = True


def key_for(model: ModelChoice, typed: str) -> str | None:
    """Return the key for a model: typed in this session, else from secrets or environment."""
    return find_key(model.kind, os.environ, secrets(), typed)


def use_settings(page: PageState, engine: Engine, settings: MemorySettings) -> None:
    """Use these knobs from now on and keep them with the session."""
    page.settings = settings
    page.showing = NEXT
    if page.chat is not None:
        page.chat.configure(settings)
        keep(page, engine)


def use_model(page: PageState, engine: Engine, model: ModelChoice) -> None:
    """Answer with this model from now on and keep the choice with the session."""
    before, page.model, page.model_ready = page.model, model, False
    try:
        make_ready(page)
    except MemoryInspectorError:
        page.model = before
        raise
    if model.kind != OFFLINE:
        page.settings = page.settings.with_(context_window=model.context_window)
        page.epoch += 1
        if page.chat is not None:
            page.chat.configure(page.settings)
    keep(page, engine)


def use_embedding(page: PageState, engine: Engine, choice: EmbeddingChoice) -> None:
    """Search and remember by this embedding model and keep the choice with the session."""
    if page.chat is None:
        return
    key = find_key(choice.kind, os.environ, secrets(), page.embedding_key)
    page.chat.recall_by(engine.recall_with(choice, key_text=key))
    page.embedding, page.scene = choice, None
    keep(page, engine)


def use_strategy(page: PageState, engine: Engine, setup: Setup) -> None:
    """Remember by this strategy from now on and keep the choice with the session."""
    if page.chat is None:
        return
    page.chat.run_as(setup)
    page.scene = None
    page.strategy_kept = setup.to_json()
    if page.info is not None:
        page.info = replace(page.info, strategy=setup.strategy)
    keep(page, engine)


def use_knob(page: PageState, engine: Engine, name: str, value: Json) -> None:
    """Set one knob of the strategy in use; raise :class:`InvalidInput` for a value it cannot be."""
    from memory_core.strategies import setup_from_json

    if page.chat is not None:
        plain = page.chat.setup.to_json()
        knobs = {**plain["knobs"], name: value}
        use_strategy(page, engine, setup_from_json({**plain, "knobs": knobs}))
        page.showing = NEXT


def _remember_as_kept(page: PageState, kept: Mapping[str, Json]) -> None:
    """Use the strategy kept with a session; say so when it cannot be used."""
    page.strategy_kept = {}
    setup = kept.get("strategy")
    if not setup or page.chat is None:
        return
    from memory_core.strategies import setup_from_json

    try:
        page.chat.run_as(setup_from_json(setup))
        page.strategy_kept = dict(setup)
    except (MemoryInspectorError, AttributeError, TypeError) as exc:
        page.notice = f"{page.notice} The strategy kept with this session: {exc}".strip()


def _recall_as_kept(page: PageState, engine: Engine, kept: Mapping[str, Json]) -> None:
    """Use the embedding model kept with a session; say so when it cannot be used."""
    if not kept.get("embedding"):
        return
    try:
        use_embedding(page, engine, embedding_from_json(kept["embedding"]))
    except (MemoryInspectorError, AttributeError) as exc:
        page.notice = f"{page.notice} The embedding model kept with this session: {exc}".strip()


def keep(page: PageState, engine: Engine, **changes: Json) -> None:
    """Write title, settings and model of the open session."""
    if page.info is None:
        return
    sample = str(page.info.settings.get("sample") or "")
    kept = _kept(page.settings, page.model, sample, page.embedding)
    if page.strategy_kept:
        kept["strategy"] = dict(page.strategy_kept)
    page.info = replace(page.info, settings=kept, **changes)
    engine.store.update(page.info)


def name_after(page: PageState, engine: Engine, text: str) -> None:
    """Name a session that has no name yet after what was said first."""
    if page.info is not None and page.info.title == NEW_TITLE and text.strip():
        line = " ".join(text.split())
        keep(page, engine, title=line if len(line) <= _TITLE_FROM else f"{line[:_TITLE_FROM]}…")


def rename(page: PageState, engine: Engine, title: str) -> None:
    """Give the open session another title; raise :class:`InvalidInput` for an empty one."""
    line = " ".join(title.split())
    if not line:
        raise InvalidInput("A session needs a title of at least one character.")
    keep(page, engine, title=line[:MAX_TITLE])
    page.epoch += 1  # the list of sessions shows the new title


def duplicate(page: PageState, engine: Engine) -> None:
    """Copy the open session with all its turns, and open the copy."""
    if page.info is None:
        return
    title = f"{page.info.title[: MAX_TITLE - 7]} (copy)"
    open_session(page, engine, engine.copy(page.info.key, title))


def delete(page: PageState, engine: Engine) -> None:
    """Delete the open session, so that it can come back, and open another."""
    if page.info is None:
        return
    gone = page.info
    engine.store.update(replace(gone, deleted=True))
    open_newest(page, engine)
    page.deleted = gone


def undelete(page: PageState, engine: Engine) -> None:
    """Bring back the session that was deleted last and open it."""
    if page.deleted is not None:
        back = replace(page.deleted, deleted=False)
        engine.store.update(back)
        page.deleted = None
        open_session(page, engine, back)


def kept_with(info: SessionInfo) -> tuple[MemorySettings, ModelChoice]:
    """Return the settings and the model kept with a session, the defaults for what is no use."""
    settings, model, _ = _read(info.settings)
    return settings, model


def sample_of(info: SessionInfo | None) -> str:
    """Return the id of the sample that was played into a session, if any."""
    return str(info.settings.get("sample") or "") if info is not None else ""


def _kept(
    settings: MemorySettings,
    model: ModelChoice,
    sample: str,
    embedding: EmbeddingChoice | None = None,
) -> dict[str, Json]:
    kept: dict[str, Json] = {"memory": settings.to_json(), "model": model.to_json()}
    if embedding is not None:
        kept["embedding"] = embedding.to_json()
    return {**kept, "sample": sample} if sample else kept


def _read(kept: Mapping[str, Json]) -> tuple[MemorySettings, ModelChoice, str]:
    """Read what was kept; what cannot be used any more falls back to the default, with notice."""
    settings, model, notices = MemorySettings(), ModelChoice(), []
    try:
        settings = settings_from_json(kept.get("memory") or kept)
    except (MemoryInspectorError, AttributeError) as exc:
        notices.append(f"The settings kept with this session cannot be used: {exc}")
    try:
        model = model_from_json(kept.get("model") or {})
    except (MemoryInspectorError, AttributeError) as exc:
        notices.append(f"The model kept with this session cannot be used: {exc}")
    return settings, model, " ".join(notices)
