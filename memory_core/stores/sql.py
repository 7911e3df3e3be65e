"""The store on SQLite and PostgreSQL, by the same code.

Each session has one row of counters (newest turn, next position, active messages, tokens, state
version). A commit locks that row, compares, inserts what the turn brought and updates the
counters: what it costs does not depend on how long the session is. Nothing is overwritten but
the counters and the marks that say by which turn an older one was superseded.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Self

from sqlalchemy import (
    Connection,
    Engine,
    and_,
    delete,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import insert as upsert_postgresql
from sqlalchemy.dialects.sqlite import insert as upsert_sqlite

from memory_core.messages import StoredMessage
from memory_core.state import AgentState
from memory_core.stores import checks, sql_upkeep
from memory_core.stores.encoding import Encoding
from memory_core.stores.ids import check_id, check_key
from memory_core.stores.protocols import (
    Erased,
    Head,
    MemoryRecord,
    SessionInfo,
    SessionKey,
    StoredState,
    StoredTurn,
    StoreFacts,
    TurnRecord,
)
from memory_core.stores.rows import Row, Rows, Values
from memory_core.stores.schema import (
    MESSAGES,
    MIGRATIONS,
    RECORDS,
    SESSIONS,
    STATES,
    TURNS,
)
from memory_core.stores.sql_engine import connect, migrate_engine, translated
from memory_core.stores.sql_statements import (
    ADD_MESSAGES,
    ADD_STATE,
    ADD_TURN,
    ADVANCE,
    FIND,
    LOCK_AT_STATE,
    named,
    supersede,
    upsert_records,
)

TIMEOUT = 30.0  # seconds to wait for a lock, a connection or an answer

_BATCH = 500  # ids in one statement


class SqlStore:
    """A :class:`~memory_core.stores.protocols.Store` on a migrated database."""

    def __init__(self, engine: Engine, *, encoding: Encoding) -> None:
        self.engine = engine
        self._encoding = encoding
        self._rows = Rows(encoding)
        lite = engine.dialect.name == "sqlite"
        self._upsert = upsert_sqlite if lite else upsert_postgresql
        self._put_records = upsert_records(self._upsert)
        options: dict[str, Any] = {} if lite else {"isolation_level": "REPEATABLE READ"}
        self._reader = engine.execution_options(**options)
        self._writer = engine.execution_options(writes=True)
        # SQLite polls for its write lock, and who polls can starve: here threads queue instead.
        self._queue: AbstractContextManager[Any] = threading.Lock() if lite else nullcontext()

    @classmethod
    def open(
        cls,
        url: str,
        *,
        encoding: Encoding | None = None,
        timeout: float = TIMEOUT,
        migrations: Sequence[Sequence[str]] = MIGRATIONS,
    ) -> Self:
        """Connect to a database by its SQLAlchemy URL and bring its schema to the newest.

        Raises :class:`~memory_core.errors.StoreUnavailable` when it cannot be reached and
        :class:`~memory_core.errors.StoreTooNew` when a newer program wrote it.
        """
        engine = connect(url, timeout=timeout)
        try:
            with translated():
                migrate_engine(engine, migrations)
        except BaseException:
            engine.dispose()
            raise
        return cls(engine, encoding=encoding or Encoding())

    def commit(self, key: SessionKey, record: TurnRecord) -> None:
        """Write a turn whole or not at all; the very same turn again changes nothing."""
        checks.check_turn(key, record)
        turn = self._rows.new_turn(record)
        messages = [self._rows.new_message(m) for m in record.messages]
        records = [self._rows.new_record(r) for r in record.records]
        state = None
        if record.state is not None:
            state = self._rows.new_state(record.state, record.number)
        first = record.messages[0].position if record.messages else None
        advance: Values = {
            **named(key),
            "number": record.number,
            "first": first,
            "base": None if record.state is None else checks.base_of(record),
            "count": len(messages),
            "more": sum(m.tokens or 0 for m in record.messages),
            "at": max((row["created"] for row in messages), default=0),
            "new_title": self._rows.title(record.title) if record.title else None,
            "version": None if state is None else state["version"],
            "summary_at": None if record.summary is None else record.number,
        }
        with self._write() as conn:
            no = conn.execute(ADVANCE, advance).scalar()
            if no is None:
                self._refuse(conn, key, record)
                return
            if record.supersedes or record.replaces_all:
                supersede(conn, no, key, record)
            self._insert(conn, no, ADD_MESSAGES, messages)
            self._insert(conn, no, ADD_TURN, [turn])
            self._insert(conn, no, ADD_STATE, [state] if state else [])
            self._put(conn, records)

    def head(self, key: SessionKey) -> Head:
        """Return where the session stands."""
        with self._read() as conn:
            session = self._session(conn, key)
            state = self._state(conn, session, session["state_version"])
            summary = None
            if session["summary_turn"]:
                summary = conn.execute(
                    select(TURNS.c.summary).where(
                        TURNS.c.session_no == session["no"],
                        TURNS.c.number == session["summary_turn"],
                    )
                ).scalar_one()
        return Head(
            session["turn"], session["next_position"], state, self._encoding.read_summary(summary)
        )

    def messages(
        self,
        key: SessionKey,
        *,
        first: int = 0,
        last: int | None = None,
        superseded: bool = False,
    ) -> list[StoredMessage]:
        """Return the messages at positions ``first`` to ``last``, exclusive."""
        place = MESSAGES.c.position
        query = select(MESSAGES).where(place >= first)
        if last is not None:
            query = query.where(place < last)
        if not superseded:
            query = query.where(MESSAGES.c.superseded_by == 0)
        with self._read() as conn:
            session = self._session(conn, key)
            rows = (
                conn.execute(query.where(MESSAGES.c.session_no == session["no"]).order_by(place))
                .mappings()
                .all()
            )
        return [self._rows.message(row) for row in rows]

    def turns(
        self, key: SessionKey, *, first: int = 1, last: int | None = None
    ) -> list[StoredTurn]:
        """Return the turns numbered ``first`` to ``last``, inclusive, oldest first."""
        number = TURNS.c.number
        query = select(TURNS).where(number >= first)
        if last is not None:
            query = query.where(number <= last)
        with self._read() as conn:
            session = self._session(conn, key)
            rows = (
                conn.execute(query.where(TURNS.c.session_no == session["no"]).order_by(number))
                .mappings()
                .all()
            )
        return [self._rows.turn(row) for row in rows]

    def state(self, key: SessionKey, version: int | None = None) -> AgentState:
        """Return the newest state, or one version of it."""
        with self._read() as conn:
            session = self._session(conn, key)
            return self._state(
                conn, session, session["state_version"] if version is None else version
            )

    def states(self, key: SessionKey) -> list[StoredState]:
        """Return every version that was saved, oldest first."""
        with self._read() as conn:
            session = self._session(conn, key)
            query = select(STATES).where(STATES.c.session_no == session["no"])
            rows = conn.execute(query.order_by(STATES.c.version)).mappings().all()
        return [self._rows.state(row) for row in rows]

    def save_state(self, key: SessionKey, state: AgentState, *, base: int | None = None) -> None:
        """Save ``state`` as the next version."""
        checks.check_owner(key, state)
        row = self._rows.new_state(state, 0)
        with self._write() as conn:
            expected = state.version - 1 if base is None else base
            at = {**named(key), "expected": expected}
            locked = conn.execute(LOCK_AT_STATE, at).mappings().first()
            session = self._session(conn, key) if locked is None else locked
            checks.check_state(state, base, newest=session["state_version"])
            self._insert(conn, session["no"], ADD_STATE, [{**row, "turn": session["turn"]}])
            conn.execute(
                update(SESSIONS)
                .where(SESSIONS.c.no == session["no"])
                .values(state_version=state.version)
            )

    def create(self, info: SessionInfo) -> None:
        """Add an empty session; raise :class:`InvalidInput` when its id is in use."""
        check_key(info.key)
        row = self._rows.new_session(info)
        new = self._upsert(SESSIONS).values(row).on_conflict_do_nothing().returning(SESSIONS.c.no)
        with self._write() as conn:
            if conn.execute(new).first() is None:
                raise checks.id_in_use()

    def session(self, key: SessionKey) -> SessionInfo:
        """Return one session as the catalogue lists it."""
        with self._read() as conn:
            return self._rows.session(self._session(conn, key))

    def sessions(self, user: str, *, deleted: bool = False) -> list[SessionInfo]:
        """Return a user's sessions, last used first."""
        check_id(user, "user id")
        query = (
            select(SESSIONS)
            .where(SESSIONS.c.user_id == user, SESSIONS.c.deleted == int(deleted))
            .order_by(SESSIONS.c.used.desc(), SESSIONS.c.no.desc())
        )
        with self._read() as conn:
            rows = conn.execute(query).mappings().all()
        return [self._rows.session(row) for row in rows]

    def update(self, info: SessionInfo) -> None:
        """Change title, settings, strategy, archived or deleted of a session."""
        check_key(info.key)
        change = (
            update(SESSIONS)
            .where(SESSIONS.c.user_id == info.key.user, SESSIONS.c.session_id == info.key.session)
            .values(self._rows.editable(info))
        )
        with self._write() as conn:
            if not conn.execute(change).rowcount:
                raise checks.no_session()

    def purge(self, key: SessionKey) -> None:
        """Erase a session for good; its records stay, without text, until unindexed."""
        with self._write() as conn:
            session = self._session(conn, key)
            conn.execute(delete(SESSIONS).where(SESSIONS.c.no == session["no"]))  # cascades
            conn.execute(
                update(RECORDS)
                .where(RECORDS.c.user_id == key.user, RECORDS.c.session_id == key.session)
                .values(
                    body="",
                    message_ids="[]",
                    session_id="",
                    status=checks.FORGOTTEN,
                    indexed=0,
                )
            )

    def records(self, user: str, *, pending: bool = False) -> list[MemoryRecord]:
        """Return a user's records, oldest first; with ``pending`` those to be indexed."""
        check_id(user, "user id")
        query = select(RECORDS).where(RECORDS.c.user_id == user).order_by(RECORDS.c.no)
        if pending:
            query = query.where(RECORDS.c.indexed == 0)
        with self._read() as conn:
            rows = conn.execute(query).mappings().all()
        return [self._rows.record(row) for row in rows]

    def put_records(self, records: Sequence[MemoryRecord]) -> None:
        """Add or replace records by id."""
        rows = [self._rows.new_record(record) for record in records]
        if rows:
            with self._write() as conn:
                self._put(conn, rows)

    def mark_indexed(
        self, user: str, ids: Sequence[str], *, status: str | None = None
    ) -> list[str]:
        """Note that the index knows these records; return the ids that were marked."""
        check_id(user, "user id")
        marked: list[str] = []
        with self._write() as conn:
            for start in range(0, len(ids), _BATCH):
                these = and_(
                    RECORDS.c.user_id == user, RECORDS.c.id.in_(ids[start : start + _BATCH])
                )
                mark = update(RECORDS).where(these).values(indexed=1).returning(RECORDS.c.id)
                if status is not None:
                    mark = mark.where(RECORDS.c.status == status)
                marked += conn.execute(mark).scalars()
                gone = RECORDS.c.session_id == "", RECORDS.c.indexed == 1
                conn.execute(delete(RECORDS).where(these, *gone))
        return marked

    def users(self) -> list[str]:
        """Return every user that has something stored."""
        with self._read() as conn:
            return sql_upkeep.users(conn)

    def erase_user(self, user: str) -> Erased:
        """Erase everything of a user, also from free pages and from copies of migrations."""
        check_id(user, "user id")
        with self._write() as conn:
            counts = sql_upkeep.erase(conn, user)
        with translated():
            sql_upkeep.scrub(self.engine)
        return Erased(user, counts)

    def facts(self) -> StoreFacts:
        """Return what the database is and holds."""
        with self._read() as conn:
            return sql_upkeep.facts(conn, sealed=self._encoding.cipher is not None)

    def close(self) -> None:
        """Let go of all connections."""
        self.engine.dispose()

    @contextmanager
    def _read(self) -> Iterator[Connection]:
        with translated(), self._reader.begin() as conn:
            yield conn

    @contextmanager
    def _write(self) -> Iterator[Connection]:
        with translated(), self._queue, self._writer.begin() as conn:
            yield conn

    def _session(self, conn: Connection, key: SessionKey) -> Row:
        check_key(key)
        row = conn.execute(FIND, named(key)).mappings().first()
        if row is None:
            raise checks.no_session()
        return row

    def _insert(self, conn: Connection, no: int, statement: Any, rows: Sequence[Values]) -> None:
        if rows:
            conn.execute(statement, [{**row, "session_no": no} for row in rows])

    def _put(self, conn: Connection, rows: Sequence[Values]) -> None:
        if rows:
            conn.execute(self._put_records, list(rows))

    def _refuse(self, conn: Connection, key: SessionKey, record: TurnRecord) -> None:
        """Say why a turn does not fit; return when this very turn was committed before."""
        session = self._session(conn, key)
        if record.messages and record.number <= session["turn"]:
            places = and_(
                MESSAGES.c.session_no == session["no"],
                MESSAGES.c.position >= record.messages[0].position,
                MESSAGES.c.position <= record.messages[-1].position,
            )
            query = select(MESSAGES.c.id).where(places).order_by(MESSAGES.c.position)
            if list(conn.execute(query).scalars()) == [m.id for m in record.messages]:
                turn = and_(TURNS.c.session_no == session["no"], TURNS.c.number == record.number)
                trace = conn.execute(select(TURNS.c.trace).where(turn)).scalar_one()
                if self._encoding.read_text(trace) == record.trace:
                    return  # its answer was lost on the way
        checks.check_next(record, turn=session["turn"], position=session["next_position"])
        if record.state is not None:
            newest = session["state_version"]
            checks.check_state(record.state, record.state_base, newest=newest)
        raise checks.too_late(record)  # somebody was writing just now and gave up

    def _state(self, conn: Connection, session: Row, version: int) -> AgentState:
        if version == 0:
            return AgentState(user=session["user_id"], session=session["session_id"])
        body = conn.execute(
            select(STATES.c.body).where(
                STATES.c.session_no == session["no"], STATES.c.version == version
            )
        ).scalar()
        if body is None:
            raise checks.no_state(version)
        return self._encoding.read_state(body)
