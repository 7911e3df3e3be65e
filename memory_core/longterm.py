"""Long-term memory: what is remembered of all sessions, recalled through gates one can see.

A turn's records are *planned* here (:mod:`memory_core.records`), committed by the caller together
with the turn, and *caught up* into the vector index afterwards (:mod:`memory_core.indexing`). So
nothing acknowledged is lost by a crash in between, and what was forgotten does not come back.

A search embeds the query once and returns all :class:`~memory_core.ranking.Candidates`;
:func:`~memory_core.ranking.rank_hits` does the rest without any effect. Similarity is computed
here from the vectors, exactly, and the index's own answer is the cross-check: what it missed is
told. Without an embedding model or an index, words alone are searched, and the recall says so.

Each user has one collection per embedding model.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable
from datetime import datetime
from typing import TypeVar

import numpy as np

from memory_core.errors import MemoryInspectorError, NotFound
from memory_core.indexing import CaughtUp, Embedder, Standing, Steps, UserIndex
from memory_core.messages import StoredMessage, repair_text
from memory_core.prompt import Recall
from memory_core.ranking import Candidates, CountTokens, rank_hits
from memory_core.records import (
    FACT,
    Candidate,
    Find,
    Plan,
    Told,
    checked_fact,
    matching,
    plan_correction,
    plan_forget,
    plan_records,
    turn_candidate,
)
from memory_core.settings import MemorySettings
from memory_core.shelf import EXACT_UP_TO
from memory_core.stores.protocols import MemoryRecord, RecordStore
from memory_core.stores.vectors.base import COSINE, VectorDatabase, Vectors

__all__ = ["Candidates", "CaughtUp", "Embedder", "LongTermMemory", "Standing", "rank_hits"]

log = logging.getLogger("memory_core.longterm")

T = TypeVar("T")

LONGEST_QUERY = 10_000  # characters; the rest is not searched for


class LongTermMemory:
    """Remembers for all users of one store; safe to use from several threads."""

    def __init__(
        self,
        *,
        vectors: VectorDatabase,
        embedder: Embedder,
        store: RecordStore,
        clock: Callable[[], datetime],
        exact_up_to: int = EXACT_UP_TO,
    ) -> None:
        self.embedder = embedder
        self._vectors = vectors
        self._store = store
        self._clock = clock
        self._exact_up_to = exact_up_to
        self._users: dict[str, UserIndex] = {}
        self._catching: dict[str, bool] = {}  # who is caught up now, and whether once more
        self._lock = threading.RLock()

    def plan_turn(
        self,
        *,
        user: str,
        session: str,
        turn: int,
        messages: Iterable[StoredMessage],
        now: datetime,
        facts: Iterable[Candidate] = (),
        supersedes: int = 0,
        planned: Collection[MemoryRecord] = (),
    ) -> Plan:
        """Return the records a turn leaves, to be committed with it, and what became of each.

        ``supersedes`` is the turn this one replaces, whose memories are forgotten with it;
        ``planned`` are records planned earlier in this turn.
        """
        told = Told(user, session, turn, now)
        find = self._find(user, planned, session=session, supersedes=supersedes)
        return plan_records([turn_candidate(messages), *facts], told, find)

    def plan_fact(
        self,
        text: str,
        *,
        user: str,
        session: str,
        turn: int,
        now: datetime,
        message_ids: tuple[str, ...] = (),
        expires: datetime | None = None,
        planned: Collection[MemoryRecord] = (),
    ) -> Plan:
        """Return the record of a fact kept word for word, to be committed by the caller.

        Raises :class:`~memory_core.errors.InvalidInput` for blank or overlong text.
        """
        candidate = Candidate(checked_fact(text), FACT, message_ids, expires)
        told = Told(user, session, turn, now)
        return plan_records([candidate], told, self._find(user, planned))

    def plan_forget(self, text: str = "", *, user: str, ids: Collection[str] = ()) -> Plan:
        """Return the records, to be committed by the caller, that forget memories.

        They are named by id, or by a text they hold. Raises
        :class:`~memory_core.errors.NotFound` for an id that is not this user's,
        :class:`~memory_core.errors.InvalidInput` when neither is given.
        """
        with self._lock:
            shelf = self._user(user).shelf
            if not ids:
                return plan_forget(matching(shelf.records, text))
            found = {i: shelf.find(i) for i in ids}
        return plan_forget(_known(i, record) for i, record in found.items())

    def plan_correction(
        self,
        record: str,
        text: str,
        *,
        user: str,
        now: datetime,
        planned: Collection[MemoryRecord] = (),
    ) -> Plan:
        """Return the records, to be committed by the caller, that make ``text`` stand instead.

        Raises :class:`~memory_core.errors.NotFound` for an id that is not this user's,
        :class:`~memory_core.errors.InvalidInput` for blank or overlong text.
        """
        find = self._find(user, planned)
        old = _known(record, find(record))
        return plan_correction(old, text, Told(user, old.session, old.turn, now), find)

    def records(self, user: str) -> list[MemoryRecord]:
        """Return a user's live memories, superseded ones included, oldest first."""
        with self._lock:
            return self._user(user).shelf.records

    def catch_up(
        self, user: str, progress: Callable[[int, int], None] = lambda _done, _total: None
    ) -> CaughtUp:
        """Embed and index what was committed since, and take out what was forgotten.

        Raises the error of the index or the embedding model; what is not done waits in the
        store for the next call. ``progress`` is told how many of how many texts are done. While
        one call works, as after a large import, another returns at once and leaves its part to it.
        """
        with self._lock:
            if user in self._catching:
                self._catching[user] = True  # there is more by now
                return CaughtUp(waiting=len(self._user(user).shelf.lacking))
            self._catching[user] = False
        done, more = CaughtUp(), True
        try:
            while more:
                part = self._run(self._user(user).catch_up(), progress)
                done = CaughtUp(
                    done.embedded + part.embedded, done.deleted + part.deleted, part.waiting
                )
                with self._lock:
                    more = self._catching.pop(user)
                    if more:
                        self._catching[user] = False
        except BaseException:
            with self._lock:
                self._catching.pop(user, None)
            raise
        return done

    def rebuild(
        self, user: str, progress: Callable[[int, int], None] = lambda _done, _total: None
    ) -> int:
        """Fill this model's collection from all memories; return how many were embedded.

        For another embedding model, or after the index was lost. An interrupted run goes on
        where it stopped; ``progress`` is told how many of how many texts are done.
        """
        return self._run(self._user(user).rebuild(), progress)

    def standing(self, user: str) -> Standing:
        """Return how a user's memory stands: counts, collections, and what to do about them."""
        with self._lock:
            return self._user(user).standing()

    def problem(self, user: str) -> str:
        """Return what keeps a user's vector index from being used, nothing when all is well.

        An index that failed is tried again, at most every few seconds.
        """
        with self._lock:
            memory = self._users.get(user)
            if memory is None or not memory.problem:
                return ""
            memory.refresh()
            return memory.problem

    def reload(self) -> None:
        """Open the vector database anew and forget what this process knew of it."""
        with self._lock:
            self._users.clear()
            self._vectors.reload()

    def erase(self, user: str) -> int:
        """Drop all collections of a user; return how many. The records are the store's."""
        with self._lock:
            self._users.pop(user, None)
            names = [found.name for found in self._vectors.collections(user)]
            for name in names:
                self._vectors.drop(name)
            return len(names)

    def embed_query(self, query: str) -> Vectors:
        """Return the embedding of a query."""
        return np.asarray(self.embedder.embed([query])[0], dtype=np.float32)

    def search(
        self,
        query: str,
        *,
        user: str,
        vector: Vectors | None = None,
        sees: Callable[[MemoryRecord], bool] | None = None,
    ) -> Candidates:
        """Return all memories of a user with what is known of each for this query.

        ``vector`` is the query's embedding if there is one already. With ``sees`` only those
        memories count, as if there were no other, and the index is not asked. When the model
        or the index fails, what is left is searched and the note says so; an error of the
        store is raised.
        """
        began = time.perf_counter()
        query = repair_text(query)[0][:LONGEST_QUERY]
        if not query.strip():
            return Candidates.skipped(query, "There is nothing to search for.")
        notes = []
        if vector is None:
            try:
                vector = self.embed_query(query)
            except MemoryInspectorError as exc:
                notes.append(f"Searched by words only: {exc}")
        with self._lock:
            memory = self._user(user)
            memory.refresh()
            shelf = memory.shelf if sees is None else memory.shelf.only(sees)
            words = shelf.lexicon.shares(query, shelf.rows)
            metric = memory.metric or COSINE
            answers, fetched = (
                memory.ask(vector, words) if vector is not None and sees is None else (None, {})
            )
            found = shelf.look(words, vector, metric=metric, fetched=fetched, answers=answers or ())
            disagreement = memory.missed(answers, found) if answers is not None else ()
            waiting = len(shelf.lacking)
        if memory.problem:
            notes.append(f"The vector index cannot be used: {memory.problem}")
        elif waiting:
            what = "text has" if waiting == 1 else "texts have"
            were = "was" if waiting == 1 else "were"
            notes.append(f"{waiting:,} {what} no vector yet and {were} found by words only.")
        milliseconds = (time.perf_counter() - began) * 1000
        log.info("searched %d memories in %.1f ms", len(shelf), milliseconds)
        return Candidates(
            query=query,
            found=found,
            metric=metric,
            model=self.embedder.name,
            note=" ".join(notes),
            disagreement=disagreement,
            milliseconds=milliseconds,
        )

    def recall(
        self,
        query: str,
        *,
        user: str,
        session: str,
        settings: MemorySettings,
        in_buffer: frozenset[str] = frozenset(),
        budget: int | None = None,
        count: CountTokens = lambda _hit: 0,
        sees: Callable[[MemoryRecord], bool] | None = None,
    ) -> Recall:
        """Search and rank at once (see :meth:`search` and :func:`rank_hits`)."""
        recall = rank_hits(
            self.search(query, user=user, sees=sees),
            settings=settings,
            session=session,
            in_buffer=in_buffer,
            budget=budget,
            count=count,
            now=self._clock(),
        )
        for hit in recall.hits:
            log.info("recalled %s with score %.3f", hit.id, hit.score)
        return recall

    def _user(self, user: str) -> UserIndex:
        with self._lock:
            memory = self._users.get(user)
            if memory is None:
                memory = self._users[user] = UserIndex(
                    user,
                    vectors=self._vectors,
                    embedder=self.embedder,
                    store=self._store,
                    exact_up_to=self._exact_up_to,
                )
            memory.load()
            return memory

    def _run(
        self, steps: Steps[T], progress: Callable[[int, int], None] = lambda _done, _total: None
    ) -> T:
        """Run work in steps, searches going on in between."""
        while True:
            with self._lock:
                try:
                    at = next(steps)
                except StopIteration as end:
                    result: T = end.value
                    return result
            progress(*at)

    def _find(
        self,
        user: str,
        planned: Collection[MemoryRecord],
        *,
        session: str = "",
        supersedes: int = 0,
    ) -> Find:
        fresh = {record.id: record for record in planned}

        def find(record: str) -> MemoryRecord | None:
            with self._lock:
                found = fresh.get(record) or self._user(user).shelf.find(record)
            if found is None or (
                supersedes and (found.session, found.turn) == (session, supersedes)
            ):
                return None
            return found

        return find


def _known(name: str, record: MemoryRecord | None) -> MemoryRecord:
    if record is None:
        raise NotFound(
            f"There is no memory {name!r:.80}.", next_step="It may have been forgotten already."
        )
    return record
