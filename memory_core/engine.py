"""The engine of one process and the chats opened on it: everything wired together.

An :class:`Engine` holds what visitors may share: the store, the vector database, the embedding
model. A :class:`Chat` is one open session of one visitor: it streams turns, previews prompts,
supersedes the last turn. Nothing here plans or explains; it only connects.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.llms import LLM
from llama_index.core.tools import FunctionTool

from memory_core.agent import Event, Runner, run_turn
from memory_core.background import Background
from memory_core.config import EngineConfig
from memory_core.copying import copy_session
from memory_core.errors import MemoryInspectorError, NotFound
from memory_core.forgetting import ForgetReport, forget_me
from memory_core.forking import fork_session, visible
from memory_core.lab.comparison_folder import forget_comparisons
from memory_core.lab.sweep_folder import forget_sweeps
from memory_core.longterm import LongTermMemory
from memory_core.loop import iterate
from memory_core.memory import LayeredMemory
from memory_core.messages import Json, StoredMessage
from memory_core.metrics import Endpoint, serve
from memory_core.models.build import build_llm
from memory_core.models.catalogue import EmbeddingChoice, ModelChoice, cost
from memory_core.models.embeddings import Embedder, LlamaIndexEmbedding, build_embedder
from memory_core.models.failures import explain
from memory_core.native.agents import runner_of
from memory_core.native.documents import open_documents
from memory_core.native.knobs import Knobs
from memory_core.native.observed import ObservedMemory
from memory_core.native.opening import (
    copy_strategies,
    forget_session,
    forget_strategies,
    open_observed,
)
from memory_core.on_request import OnRequest
from memory_core.prompt import Assembly
from memory_core.recording import RecordingLLM
from memory_core.records import Sees
from memory_core.session import Session, utc_now
from memory_core.settings import MemorySettings
from memory_core.state import AgentState
from memory_core.stores.protocols import SessionInfo, SessionKey, Store
from memory_core.stores.vectors.base import VectorDatabase
from memory_core.stores.vectors.chroma import open_chroma
from memory_core.strategies import LAYERED, Setup
from memory_core.summary import Summary
from memory_core.tokens import TokenCounter, encoding_for
from memory_core.tools import build_functions
from memory_core.trace import TurnTrace, trace_from_json
from memory_core.wiring import OpenedStore, open_layers

log = logging.getLogger("memory_core.engine")

Memory = LayeredMemory | ObservedMemory


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


class Chat:
    """One open session: what the page talks to. Not shared between visitors."""

    def __init__(
        self,
        session: Session,
        *,
        model: ModelChoice,
        llm: LLM,
        opens: Callable[[Session, Setup], tuple[Memory, Runner | None]] | None = None,
    ) -> None:
        self.session = session
        self.model = model
        self.setup = Setup()
        self.memory: Memory = LayeredMemory(session)
        self._opens = opens
        self._runner: Runner | None = None
        self._llm = self._watched(llm, model)
        functions = build_functions(session.change_state, OnRequest(session))
        self._tools = [FunctionTool.from_defaults(fn=function) for function in functions]
        self._offer()

    @property
    def key(self) -> SessionKey:
        """The user and session this is."""
        return self.session.key

    @property
    def settings(self) -> MemorySettings:
        """The knobs that hold now."""
        return self.session.settings

    @property
    def messages(self) -> list[StoredMessage]:
        """The active messages, oldest first."""
        return self.session.messages

    @property
    def state(self) -> AgentState:
        """The structured state."""
        return self.session.state

    @property
    def summary(self) -> Summary:
        """The running summary (version 0: none yet)."""
        return self.session.summary

    @property
    def turns(self) -> int:
        """How many turns were committed, superseded ones included."""
        return self.session.last_turn

    def trace(self, number: int) -> TurnTrace:
        """Read the trace of one turn."""
        last = self.session.last_trace
        if last is not None and last.number == number:
            return last
        store = self.session.store
        rows = store.turns(self.key, first=number, last=number) if store is not None else []
        if not rows:
            raise NotFound(f"This session has no turn {number}.")
        return trace_from_json(rows[0].trace, self.session.find)

    def stream(self, text: str) -> Iterator[Event]:
        """Run a turn with this user message and yield what happens."""
        run = run_turn(self.memory, self._llm, self._tools, text, runner=self._runner)
        return iterate(run)

    def play(self, text: str, answer: str) -> TurnTrace:
        """Take in a turn whose answer is known: all of memory works, no model answers."""
        if isinstance(self.memory, ObservedMemory):
            return self.memory.play(text, answer)
        self.memory.put(ChatMessage(role="user", content=text))
        self.memory.get(input=text)
        self.memory.put(ChatMessage(role="assistant", content=answer))
        return self.trace(self.turns)

    def regenerate(self) -> Iterator[Event]:
        """Answer the last user message again; the new turn supersedes the last one."""
        last = self._last()
        return self._replace(last, last.query)

    def edit_last(self, text: str) -> Iterator[Event]:
        """Send the last user message anew with another text, superseding the last turn."""
        return self._replace(self._last(), text)

    def retry(self) -> Iterator[Event]:
        """Try the last, failed turn again."""
        return self.regenerate()

    def preview(
        self,
        settings: MemorySettings | None = None,
        query: str = "",
        *,
        knobs: Knobs | None = None,
    ) -> Assembly:
        """Return what the next prompt would be, without a model call.

        ``knobs`` are other ones of the strategy in use, where it is one of LlamaIndex's.
        """
        if knobs is not None and isinstance(self.memory, ObservedMemory):
            return self.memory.preview(settings or self.settings, query, knobs=knobs)
        return self.memory.preview(settings or self.settings, query)

    def configure(self, settings: MemorySettings) -> None:
        """Use these knobs from the next turn on and keep them with the session."""
        self.session.settings = settings
        counter = self.session.counter
        if settings.image_tokens != counter.image_tokens:
            self.session.recount(TokenCounter(counter.encoding, image_tokens=settings.image_tokens))
        self._offer()

    def use(self, model: ModelChoice, *, key_text: str | None = None) -> None:
        """Answer with another model from the next turn on."""
        self._llm = self._watched(build_llm(model, key=key_text), model)
        self.model = model
        self.session.recount(
            TokenCounter(encoding_for(model.model), image_tokens=self.settings.image_tokens)
        )
        self._offer()

    def recall_by(self, longterm: LongTermMemory) -> None:
        """Search and remember by another embedding model from the next turn on."""
        self.session.longterm = longterm
        if isinstance(self.memory, LayeredMemory):
            self.memory.forget_searches()
        else:
            self.run_as(self.setup)

    def run_as(self, setup: Setup) -> None:
        """Remember by another strategy, in another agent, from the next turn on.

        The messages stay: a strategy of LlamaIndex's is handed what was said so far.
        """
        if self._opens is None:
            raise ValueError("this chat was opened without an engine")
        self.memory, self._runner = self._opens(self.session, setup)
        self.setup = setup
        self._llm = self._watched(self._llm.inner, self.model)
        self._offer()

    def edit_state(self, state: AgentState, *, expect: int) -> AgentState:
        """Save a state edited by hand.

        Raises :class:`~memory_core.errors.StaleVersion` when version ``expect``, which the edit
        started from, is no longer the newest.
        """
        saved = replace(state, version=expect + 1, updated=self.session.clock())
        if self.session.store is not None:
            self.session.store.save_state(self.key, saved)
        self.session.saved(saved)
        return saved

    def _last(self) -> TurnTrace:
        if not self.turns:
            raise NotFound("There is no turn yet.", next_step="Say something first.")
        return self.trace(self.turns)

    def _replace(self, last: TurnTrace, text: str) -> Iterator[Event]:
        run = run_turn(
            self.memory,
            self._llm,
            self._tools,
            text,
            supersedes=last.number,
            runner=self._runner,
        )
        return iterate(run)

    def _watched(self, llm: LLM, model: ModelChoice) -> RecordingLLM:
        def translate(exc: Exception) -> MemoryInspectorError:
            return explain(exc, model)

        return RecordingLLM(
            llm,
            recorder=self.memory.recorder(),
            translate=translate,
            price=lambda usage: cost(model, usage),
        )

    def _offer(self) -> None:
        self.memory.watch(self._llm)
        offered = self._tools if self.settings.tools else []
        callable_ = self._llm.metadata.is_function_calling_model
        self.memory.offer(self._llm.tool_specs(offered if callable_ else []))


def open_engine(config: EngineConfig, *, key_text: str | None = None) -> Engine:
    """Open store, vectors and embedding model as configured."""
    opened = open_layers(config)
    keep_text = not opened.sealed
    vectors = (
        open_chroma(url=config.chroma_url, keep_text=keep_text, at_once=False)
        if config.chroma_url
        else open_chroma(path=config.vectors, keep_text=keep_text)
    )
    endpoint = (
        serve(config.metrics, opened.meter, waiting=lambda: opened.buffered.waiting)
        if config.metrics
        else None
    )
    return Engine(
        store=opened.store,
        vectors=vectors,
        embedder=build_embedder(config.embedding, key=key_text),
        opened=opened,
        config=config,
        endpoint=endpoint,
    )


def open_session(
    folder: Path, key: SessionKey, *, counter: TokenCounter, settings: MemorySettings
) -> Session:
    """Open (or begin) a session kept in a folder, with its long-term memory."""
    engine = open_engine(EngineConfig(folder=folder))
    create_session(engine.store, key, settings=settings)
    return Session.open(
        store=engine.store,
        key=key,
        counter=counter,
        settings=settings,
        longterm=engine.longterm,
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
