"""A session's strategy, opened: the real object, its log and table, and a way to preview it.

Everything a strategy keeps stands under ``native`` in the data folder, in a folder for each user
and session whose names are digests, and in Chroma collections of the session's own.
:func:`forget_session` and :func:`forget_strategies` erase it.
"""

from __future__ import annotations

import hashlib
import shutil
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from llama_index.vector_stores.chroma import ChromaVectorStore

from memory_core.buffer import WindowPlan
from memory_core.errors import MemoryInspectorError, StrategyFailed
from memory_core.explain import explain_sent
from memory_core.llama import from_chat, to_chat
from memory_core.messages import Message, StoredMessage
from memory_core.models.embeddings import Embedder, LlamaIndexEmbedding
from memory_core.native.adapter import Adapter, Asked, State
from memory_core.native.building import Bench, Collection, build
from memory_core.native.knobs import Knobs
from memory_core.native.log import StateLog, copy_log
from memory_core.native.observed import ObservedMemory
from memory_core.native.queue import MemoryAdapter
from memory_core.prompt import Assembly
from memory_core.session import Session
from memory_core.settings import MemorySettings
from memory_core.stores.protocols import SessionKey
from memory_core.stores.vectors.base import CollectionSpec, VectorDatabase
from memory_core.stores.vectors.chroma import ChromaDatabase, ChromaIndex, open_chroma
from memory_core.strategies import CONDENSE_ENGINE, CONTEXT_ENGINE, SIMPLE_ENGINE, Setup

NATIVE = "native"
_ADDS = "The agent adds its instructions, documents or question when the prompt is really sent."


class CountingEmbedder:
    """Passes texts on to a shared embedder and counts those of one session."""

    def __init__(self, inner: Embedder) -> None:
        self._inner = inner
        self._lock = threading.Lock()
        self.embedded = 0

    @property
    def name(self) -> str:
        """The name of the embedder behind."""
        return self._inner.name

    @property
    def dimension(self) -> int:
        """How many numbers one vector has."""
        return self._inner.dimension

    def embed(self, texts: Sequence[str]) -> Any:
        """Return the vectors of texts."""
        vectors = self._inner.embed(texts)
        with self._lock:
            self.embedded += len(texts)
        return vectors


def open_observed(
    session: Session,
    setup: Setup,
    *,
    embedder: Embedder,
    vectors: VectorDatabase | None = None,
    folder: Path | None = None,
) -> ObservedMemory:
    """Return the memory of a session under a strategy of LlamaIndex's.

    Without ``folder`` its state lives in this object only. Vector blocks use Chroma: the one
    given, else one in memory that is filled from the log.
    """
    counting = CountingEmbedder(embedder)
    database = vectors if isinstance(vectors, ChromaDatabase) else open_chroma()
    place = folder_of(folder, session.key) if folder is not None else None
    if place is not None:
        place.mkdir(parents=True, exist_ok=True)

    def collection(block: str) -> Collection:
        return _open_collection(database, session.key, block, embedder)

    bench = Bench(
        session=session,
        embedding=LlamaIndexEmbedding(counting),
        collection=collection,
        table=place / f"{setup.strategy}.db" if place is not None else None,
    )
    session.strategy, session.knobs = setup.strategy, {"setup": setup.to_json()}

    async def preview(
        state: State | None,
        given: Sequence[StoredMessage],
        settings: MemorySettings,
        query: str,
        knobs: Knobs | None,
    ) -> Assembly:
        copy = _copy_of(session, settings)
        apart = replace(bench, session=copy, table=None, preview=True)
        adapter = build(setup.strategy, knobs or setup.knobs, apart)
        return await _preview(adapter, setup.agent, state, given, query)

    return ObservedMemory(
        session,
        build(setup.strategy, setup.knobs, bench),
        states=StateLog(place / f"{setup.strategy}.jsonl" if place is not None else None),
        preview=preview,
        embedded=lambda: counting.embedded,
    )


def folder_of(folder: Path, key: SessionKey) -> Path:
    """Return where the strategies of a session keep their state."""
    return folder / NATIVE / _digest(key.user) / _digest(key.session)


def copy_strategies(folder: Path, source: SessionKey, copy: SessionKey, *, last: int) -> None:
    """Give a copy of a session what strategies kept of it up to turn ``last``.

    Tables and vectors are made again from it when the copy is opened.
    """
    for path in sorted(folder_of(folder, source).glob("*.jsonl")):
        target = folder_of(folder, copy) / path.name
        copy_log(path, target, last=last, rename=(source.session, copy.session))


def forget_session(folder: Path, key: SessionKey, vectors: VectorDatabase | None = None) -> None:
    """Erase what strategies keep of a session."""
    shutil.rmtree(folder_of(folder, key), ignore_errors=True)
    if vectors is None:
        return
    for found in vectors.collections(key.user):
        if found.title.startswith(_title_start(key)):
            vectors.drop(found.name)


def forget_strategies(folder: Path, user: str) -> None:
    """Erase what strategies keep of a user in files; collections go with the user's others."""
    shutil.rmtree(folder / NATIVE / _digest(user), ignore_errors=True)


async def _preview(
    adapter: Adapter,
    agent: str,
    state: State | None,
    given: Sequence[StoredMessage],
    query: str,
) -> Assembly:
    """Run the real object on a copy of its state and return the prompt it would give.

    Without a state it is a fresh one that is given the history.
    """
    session = adapter.session
    system = Message.of("system", session.settings.system_prompt)
    searches = agent in (CONTEXT_ENGINE, CONDENSE_ENGINE)
    kwargs: dict[str, Any] = {}
    tokenizer = getattr(adapter.memory, "tokenizer_fn", None)
    if agent == SIMPLE_ENGINE and tokenizer is not None:
        kwargs["initial_token_count"] = len(tokenizer(system.text))
    in_front = int(kwargs.get("initial_token_count", 0))
    try:
        if state is None:
            await adapter.seed(given)
        else:
            await adapter.restore(state, given)
        if query and not searches:
            question = Message.of("user", query)
            await adapter.memory.aput(to_chat(question))
            adapter.put([_not_stored(question, session)])
        returned = await adapter.ask(query if searches and query else None, **kwargs)
        plain = tuple(from_chat(chat) for chat in returned)
        known = adapter.explain(Asked(query if searches else "", in_front, plain))
    except Exception as exc:  # noqa: BLE001 - a preview says what would go wrong
        known = _impossible(adapter, exc, in_front)
    finally:
        if isinstance(adapter, MemoryAdapter):
            await adapter.close()
    sent = [system, *known.messages]
    if searches and query:
        sent.append(Message.of("user", query))
    assembly = explain_sent(sent, known=known, tool_tokens=0, counter=session.counter)
    return replace(assembly, notes=(*assembly.notes, _ADDS))


def _impossible(adapter: Adapter, exc: Exception, in_front: int) -> Assembly:
    """Return a prompt without history, and why there is none."""
    limit = int(getattr(adapter.memory, "token_limit", 0))
    total = len(adapter.given.messages)
    text = str(exc) if isinstance(exc, MemoryInspectorError) else (
        f"{adapter.title} gives no prompt: {exc}"
    )  # fmt: skip
    if in_front > limit > 0:
        text = (
            f"Fixed part larger than the limit: the system prompt needs {in_front:,} tokens, the "
            f"limit is {limit:,}; no room is left for history."
        )
    plan = WindowPlan("", limit, in_front, total, total, 0, over_limit=in_front > limit)
    return Assembly((), (), (), window=plan, notes=(text,), counter=adapter.counter.id)


def _copy_of(session: Session, settings: MemorySettings) -> Session:
    """Return a session for a preview: same record and summary, nothing behind it."""
    copy = Session(key=session.key, counter=session.counter, settings=settings)
    copy.summary = session.summary
    copy.last_turn = session.last_turn
    return copy


def _not_stored(message: Message, session: Session) -> StoredMessage:
    """Return a message that is only tried out: it has no id."""
    return StoredMessage(
        id="",
        position=len(session.messages),
        turn=session.last_turn + 1,
        created=session.clock(),
        message=message,
        tokens=session.counter.message(message),
        counter=session.counter.id,
    )


def _open_collection(
    database: ChromaDatabase, key: SessionKey, block: str, embedder: Embedder
) -> Collection:
    spec = CollectionSpec(
        title=f"{_title_start(key)}{block} / {embedder.name} / {_digest(key.user)}",
        model=embedder.name,
        dimension=embedder.dimension,
        user=key.user,
    )
    index = database.open(spec)
    if not isinstance(index, ChromaIndex):
        raise StrategyFailed("Memory blocks that search need a Chroma database.")
    return Collection(ChromaVectorStore(chroma_collection=index.collection), index.metric)


def _title_start(key: SessionKey) -> str:
    return f"strategy of session {key.session}, block "


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:32]
