"""Parts of an engine opened on their own: a vector database, a session kept in a folder."""

from __future__ import annotations

from pathlib import Path

from memory_core.config import EngineConfig
from memory_core.longterm import LongTermMemory
from memory_core.models.embeddings import build_embedder
from memory_core.session import Session, utc_now
from memory_core.settings import MemorySettings
from memory_core.stores.protocols import SessionInfo, SessionKey, Store
from memory_core.stores.vectors.base import VectorDatabase
from memory_core.stores.vectors.chroma import open_chroma
from memory_core.tokens import TokenCounter
from memory_core.wiring import open_layers


def open_vectors(config: EngineConfig, *, sealed: bool) -> VectorDatabase:
    """Open the vector database as configured; a sealed store keeps its texts out of it.

    A Chroma server may be away: it is looked for when it is first needed.
    """
    if config.chroma_url:
        return open_chroma(url=config.chroma_url, keep_text=not sealed, at_once=False)
    return open_chroma(path=config.vectors, keep_text=not sealed)


def open_session(
    folder: Path, key: SessionKey, *, counter: TokenCounter, settings: MemorySettings
) -> Session:
    """Open (or begin) a session kept in a folder, with its long-term memory."""
    config = EngineConfig(folder=folder)
    opened = open_layers(config)
    longterm = LongTermMemory(
        vectors=open_vectors(config, sealed=opened.sealed),
        embedder=build_embedder(config.embedding),
        store=opened.store,
        clock=utc_now,
    )
    create_session(opened.store, key, settings=settings)
    return Session.open(
        store=opened.store, key=key, counter=counter, settings=settings, longterm=longterm
    )


def create_session(
    store: Store, key: SessionKey, *, settings: MemorySettings, origin: str = ""
) -> None:
    """Add a session to the catalogue unless it is there."""
    if any(info.key == key for info in store.sessions(key.user)):
        return
    now = utc_now()
    store.create(
        SessionInfo(key, key.session, now, now, settings=settings.to_json(), origin=origin)
    )
