"""The engine of one process: what its visitors share, wired together.

An :class:`Engine` holds the store, the vector database and the embedding model, and opens a
:class:`~memory_core.chat.Chat` per visitor on them. Nothing here plans or explains; it only
connects.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Mapping
from functools import partial

from memory_core.agent import Runner
from memory_core.background import Background
from memory_core.chat import Chat, Memory
from memory_core.config import EngineConfig
from memory_core.copying import copy_session
from memory_core.errors import MemoryInspectorError
from memory_core.forgetting import ForgetReport, forget_me
from memory_core.forking import fork_session, visible
from memory_core.lab.comparison_folder import forget_comparisons
from memory_core.lab.sweep_folder import forget_sweeps
from memory_core.longterm import LongTermMemory
from memory_core.memory import LayeredMemory
from memory_core.messages import Json
from memory_core.metrics import Endpoint, serve
from memory_core.models.build import build_llm
from memory_core.models.catalogue import EmbeddingChoice, ModelChoice
from memory_core.models.embeddings import Embedder, LlamaIndexEmbedding, build_embedder
from memory_core.native.agents import runner_of
from memory_core.native.documents import open_documents
from memory_core.native.opening import (
    copy_strategies,
    forget_session,
    forget_strategies,
    open_observed,
)
from memory_core.opening import open_vectors
from memory_core.records import Sees
from memory_core.session import Session, utc_now
from memory_core.settings import MemorySettings
from memory_core.stores.protocols import SessionInfo, SessionKey, Store
from memory_core.stores.vectors.base import VectorDatabase
from memory_core.strategies import LAYERED, Setup
from memory_core.tokens import TokenCounter, encoding_for
from memory_core.wiring import OpenedStore, open_layers

log = logging.getLogger("memory_core.engine")


class Engine:
    """What one process shares: store, vector database, embedding model."""

    def __init__(
        self,
        *,
        store: Store,
        vectors: VectorDatabase,
        embedder: Embedder,
        opened: OpenedStore | None = None,
        config: EngineConfig | None = None,
        endpoint: Endpoint | None = None,
    ) -> None:
        self.store = store
        self.opened = opened
        self.config = config
        self.endpoint = endpoint
        self.vectors = vectors
        self.embedder = embedder
        self.longterm = LongTermMemory(
            vectors=vectors, embedder=embedder, store=store, clock=utc_now
        )
        self._by_choice: dict[EmbeddingChoice, LongTermMemory] = {}
        self._background = Background()

    @property
    def banner(self) -> str:
        """What to tell every visitor while the store is away, empty when all is well."""
        return self.opened.buffered.banner if self.opened is not None else ""

    def sessions(self, user: str) -> list[SessionInfo]:
        """Return a user's sessions, last used first."""
        return self.store.sessions(user)

    def create(self, user: str, title: str, *, settings: Mapping[str, Json]) -> SessionInfo:
        """Add an empty session."""
        key = SessionKey(user, uuid.uuid4().hex)
        now = utc_now()
        info = SessionInfo(key, title, now, now, strategy="layered", settings=settings)
        self.store.create(info)
        return info

    def chat(
        self,
        key: SessionKey,
        *,
        settings: MemorySettings,
        model: ModelChoice,
        key_text: str | None = None,
    ) -> Chat:
        """Open a session for chatting; raise :class:`NotFound` when the user has no such one."""
        counter = TokenCounter(encoding_for(model.model), image_tokens=settings.image_tokens)
        session = Session.open(
            store=self.store,
            key=key,
            counter=counter,
            settings=settings,
            longterm=self.longterm,
        )
        session.look = partial(self._sight, session)
        session.sees = session.look()
        return Chat(
            session, model=model, llm=build_llm(model, key=key_text), opens=self._open_strategy
        )

    def fork(self, key: SessionKey, turn: int, title: str) -> SessionInfo:
        """Start a session that goes on from after a turn of another one, with its memories.

        Raises :class:`NotFound` when there is no such turn. Memories that cannot be indexed now
        are indexed later.
        """
        info = fork_session(self.store, key, turn, title=title)
        self._copy_strategies(key, info, last=turn)
        try:
            self.longterm.catch_up(key.user)
        except MemoryInspectorError as exc:
            log.warning("the fork's memories wait to be indexed: %s", exc)
        return info

    def copy(self, key: SessionKey, title: str) -> SessionInfo:
        """Copy a session with what its strategies keep of it.

        Raises :class:`NotFound` when the user has no such session.
        """
        info = copy_session(self.store, key, title=title)
        self._copy_strategies(key, info, last=info.turns)
        return info

    def _copy_strategies(self, key: SessionKey, copy: SessionInfo, *, last: int) -> None:
        if self.config is None:
            return
        try:
            copy_strategies(self.config.folder, key, copy.key, last=last)
        except BaseException:
            self.purge(copy.key)
            raise

    def _sight(self, session: Session) -> Sees | None:
        """Return which of the user's memories a session sees now: forks are made meanwhile."""
        user = session.key.user
        try:
            known = [*self.store.sessions(user), *self.store.sessions(user, deleted=True)]
        except MemoryInspectorError as exc:
            log.warning("forks are not looked for: %s", exc)
            return session.sees
        return visible(known, session.key.session)

    def _open_strategy(self, session: Session, setup: Setup) -> tuple[Memory, Runner | None]:
        """Open a strategy on a session: its memory, and what answers with it if not our agent."""
        longterm = session.longterm or self.longterm
        embedding = LlamaIndexEmbedding(longterm.embedder)
        runner = runner_of(setup.agent, lambda: open_documents(embedding))
        if setup.strategy != LAYERED:
            opened = self.opened
            guarded = opened is not None and (opened.sealed or opened.redactor is not None)
            kept = self.config is not None and not guarded  # strategies keep text as it is
            memory = open_observed(
                session,
                setup,
                embedder=longterm.embedder,
                vectors=None if guarded else self.vectors,
                folder=self.config.folder if self.config is not None and kept else None,
            )
            return memory, runner
        session.strategy, session.knobs = LAYERED, {"setup": setup.to_json()}
        return LayeredMemory(session), None if setup == Setup() else runner

    def recall_with(
        self, choice: EmbeddingChoice | None, *, key_text: str | None = None
    ) -> LongTermMemory:
        """Return long-term memory by an embedding model, each with collections of its own.

        Without a choice, or with the configured one, that is :attr:`longterm`.
        """
        configured = self.config.embedding if self.config is not None else None
        if choice is None or choice == configured:
            return self.longterm
        if choice not in self._by_choice:
            self._by_choice[choice] = LongTermMemory(
                vectors=self.vectors,
                embedder=build_embedder(choice, key=key_text),
                store=self.store,
                clock=utc_now,
            )
        return self._by_choice[choice]

    def index_soon(self, user: str) -> None:
        """Index in the background what waits of a user, as an import leaves it; return at once.

        What cannot be done, or not before the engine closes, waits in the store as before.
        """

        def index(stopping: Callable[[], None]) -> None:
            if self.store.records(user, pending=True):
                self.longterm.catch_up(user, lambda _done, _total: stopping())

        self._background.start(user, index)

    def settle(self) -> None:
        """Wait until nothing is done in the background any more."""
        self._background.wait()

    def forget_user(self, user: str) -> ForgetReport:
        """Erase everything of a user: store, vectors, backups, what this process remembers."""
        self._background.stop(user)  # or it would index on what is erased here
        config, opened = self.config, self.opened
        local = config is not None and not config.chroma_url
        report = forget_me(
            user,
            store=self.store,
            vectors=self.vectors,
            vector_folder=config.vectors if config is not None and local else None,
            backups=opened.backups if opened is not None else None,
        )
        for longterm in (self.longterm, *self._by_choice.values()):
            longterm.erase(user)
        if config is not None:
            forget_strategies(config.folder, user)
            forget_sweeps(config.folder, user)
            forget_comparisons(config.folder, user)
        return report

    def purge(self, key: SessionKey) -> None:
        """Erase a session for good, with what strategies keep of it."""
        self.store.purge(key)
        if self.config is not None:
            forget_session(self.config.folder, key, self.vectors)

    def close(self) -> None:
        """Let go of the store."""
        self._background.close()
        if self.endpoint is not None:
            self.endpoint.close()
        self.store.close()


def open_engine(config: EngineConfig, *, key_text: str | None = None) -> Engine:
    """Open store, vectors and embedding model as configured."""
    opened = open_layers(config)
    endpoint = (
        serve(config.metrics, opened.meter, waiting=lambda: opened.buffered.waiting)
        if config.metrics
        else None
    )
    return Engine(
        store=opened.store,
        vectors=open_vectors(config, sealed=opened.sealed),
        embedder=build_embedder(config.embedding, key=key_text),
        opened=opened,
        config=config,
        endpoint=endpoint,
    )
