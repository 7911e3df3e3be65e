"""The store on SQLite and PostgreSQL, by the same code.

Each session has one row of counters (newest turn, next position, active messages, tokens, state
version). A commit locks that row, compares, inserts what the turn brought and updates the
counters: what it costs does not depend on how long the session is. Nothing is overwritten but
the counters and the marks that say by which turn an older one was superseded.

SQLite runs in WAL mode with ``synchronous=FULL`` (a commit survives a power cut) and takes its
write lock at the start of a transaction, so two writers wait instead of failing halfway.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Self, cast

from sqlalchemy import (
    Connection,
    Engine,
    Row,
    and_,
    create_engine,
    delete,
    event,
    exc,
    func,
    insert,
    inspect,
    make_url,
    select,
    text,
    update,
)
from sqlalchemy.dialects.postgresql import insert as upsert_postgresql
from sqlalchemy.dialects.sqlite import insert as upsert_sqlite

from memory_core.errors import (
    InvalidInput,
    MemoryInspectorError,
    NotFound,
    StaleVersion,
    StoreError,
    StoreUnavailable,
)
from memory_core.messages import Json, StoredMessage, repair_text
from memory_core.state import AgentState
from memory_core.stores.encoding import Encoding, from_micros, to_micros
from memory_core.stores.ids import check_id, check_ids, check_key
from memory_core.stores.locking import locked
from memory_core.stores.protocols import (
    Head,
    MemoryRecord,
    SessionInfo,
    SessionKey,
    StoredTurn,
    TurnRecord,
)
from memory_core.stores.schema import (
    MESSAGES,
    MIGRATIONS,
    RECORDS,
    SESSIONS,
    STATES,
    SUMMARIES,
    TURNS,
    migrate,
)

TIMEOUT = 10.0  # seconds to wait for a lock, a connection or an answer

_CHILDREN = (MESSAGES, TURNS, STATES, SUMMARIES)
_ADVISORY_LOCK = 0x6D656D6F  # names our migrations among PostgreSQL's advisory locks

_Row = Row[Any]


class SqlStore:
    """A :class:`~memory_core.stores.protocols.Store` on a migrated database."""

    def __init__(self, engine: Engine, *, encoding: Encoding | None = None) -> None:
        self._engine = engine
        self._encoding = encoding or Encoding()
        self._lite = engine.dialect.name == "sqlite"
        self._upsert = upsert_sqlite if self._lite else upsert_postgresql
        options: dict[str, Json] = {} if self._lite else {"isolation_level": "REPEATABLE READ"}
        self._reader = engine.execution_options(**options)
        self._writer = engine.execution_options(writes=True)

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

        Raises :class:`StoreUnavailable` when it cannot be reached and
        :class:`~memory_core.errors.StoreTooNew` when a newer program wrote it.
        """
        engine = connect(url, timeout=timeout)
        try:
            with _translated():
                _migrate(engine, migrations)
        except BaseException:
            engine.dispose()
            raise
        return cls(engine, encoding=encoding)

    # --- turns -----------------------------------------------------------------------------

    def commit(self, key: SessionKey, record: TurnRecord) -> None:
        """Write a turn whole or not at all; a turn that is already there as given is left."""
        rows = self._turn_rows(key, record)
        with self._write() as conn:
            session = self._session(conn, key, lock=True)
            if record.number != session.turn + 1:
                if self._is_written(conn, session, record):
                    return
                raise StaleVersion(
                    f"Turn {record.number} of this session cannot be saved: "
                    f"its newest turn is {session.turn}.",
                    expected=record.number - 1,
                    found=session.turn,
                )
            if record.messages and record.messages[0].position != session.next_position:
                raise ValueError(f"the next position is {session.next_position}")
            if record.state is not None:
                _check_state(record.state, record.state_base, session.state_version)
            changes = self._supersede(conn, session, key, record) if record.supersedes else {}
            active = changes.get("active", session.active) + len(record.messages)
            tokens = changes.get("tokens", session.tokens)
            for table, values in rows:
                if values:
                    conn.execute(insert(table), [{**v, "session_no": session.no} for v in values])
            self._put(conn, record.records)
            counters: dict[str, Json] = {
                "turn": record.number,
                "next_position": session.next_position + len(record.messages),
                "active": active,
                "tokens": tokens + sum(m.tokens or 0 for m in record.messages),
                "used": max([session.used, *(to_micros(m.created) for m in record.messages)]),
            }
            if record.state is not None:
                counters["state_version"] = record.state.version
            if record.title:
                counters["title"] = self._title(record.title)
            conn.execute(update(SESSIONS).where(SESSIONS.c.no == session.no).values(counters))

    def head(self, key: SessionKey) -> Head:
        """Return where the session stands."""
        with self._read() as conn:
            session = self._session(conn, key)
            state = self._state(conn, key, session, session.state_version)
            summary = conn.execute(
                select(SUMMARIES.c.body)
                .where(SUMMARIES.c.session_no == session.no)
                .order_by(SUMMARIES.c.turn.desc())
                .limit(1)
            ).scalar()
        return Head(
            session.turn, session.next_position, state, self._encoding.read_summary(summary)
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
        column = MESSAGES.c
        with self._read() as conn:
            session = self._session(conn, key)
            query = select(MESSAGES).where(
                column.session_no == session.no, column.position >= first
            )
            if last is not None:
                query = query.where(column.position < last)
            if not superseded:
                query = query.where(column.superseded_by == 0)
            rows = conn.execute(query.order_by(column.position)).all()
        return [
            StoredMessage(
                id=row.id,
                position=row.position,
                turn=row.turn,
                created=from_micros(row.created),
                message=self._encoding.read_message(row.body),
                tokens=row.tokens,
                counter=row.counter,
            )
            for row in rows
        ]

    def turns(
        self, key: SessionKey, *, first: int = 1, last: int | None = None
    ) -> list[StoredTurn]:
        """Return the turns numbered ``first`` to ``last``, inclusive, oldest first."""
        with self._read() as conn:
            session = self._session(conn, key)
            query = select(TURNS).where(TURNS.c.session_no == session.no, TURNS.c.number >= first)
            if last is not None:
                query = query.where(TURNS.c.number <= last)
            rows = conn.execute(query.order_by(TURNS.c.number)).all()
        return [
            StoredTurn(row.number, self._encoding.read_text(row.trace), row.superseded_by)
            for row in rows
        ]

    # --- state -----------------------------------------------------------------------------

    def state(self, key: SessionKey, version: int | None = None) -> AgentState:
        """Return the newest state, or one version of it."""
        with self._read() as conn:
            session = self._session(conn, key)
            wanted = session.state_version if version is None else version
            return self._state(conn, key, session, wanted)

    def save_state(self, key: SessionKey, state: AgentState) -> None:
        """Save ``state`` as the next version."""
        _check_owner(key, state)
        body = self._encoding.state(state)
        with self._write() as conn:
            session = self._session(conn, key, lock=True)
            _check_state(state, None, session.state_version)
            row = {
                "session_no": session.no,
                "version": state.version,
                "turn": session.turn,
                "body": body,
            }
            conn.execute(insert(STATES), row)
            conn.execute(
                update(SESSIONS)
                .where(SESSIONS.c.no == session.no)
                .values(state_version=state.version)
            )

    # --- sessions --------------------------------------------------------------------------

    def create(self, info: SessionInfo) -> None:
        """Add an empty session; raise :class:`InvalidInput` when its id is in use."""
        check_key(info.key)
        row = {
            "user_id": info.key.user,
            "session_id": info.key.session,
            "created": to_micros(info.created),
            "used": to_micros(info.used),
            "origin": self._encoding.text(info.origin, "origin"),
            **self._editable(info),
        }
        with self._write() as conn:
            exists = select(SESSIONS.c.no).where(_is(info.key))
            if conn.execute(exists).first() is not None:
                raise InvalidInput("A session with this id exists already.")
            conn.execute(insert(SESSIONS), row)

    def session(self, key: SessionKey) -> SessionInfo:
        """Return one session as the catalogue lists it."""
        with self._read() as conn:
            return self._info(self._session(conn, key))

    def sessions(self, user: str, *, deleted: bool = False) -> list[SessionInfo]:
        """Return a user's sessions, last used first."""
        check_id(user, "user id")
        query = (
            select(SESSIONS)
            .where(SESSIONS.c.user_id == user, SESSIONS.c.deleted == int(deleted))
            .order_by(SESSIONS.c.used.desc(), SESSIONS.c.no.desc())
        )
        with self._read() as conn:
            return [self._info(row) for row in conn.execute(query)]

    def update(self, info: SessionInfo) -> None:
        """Change title, settings, strategy, archived or deleted of a session."""
        check_key(info.key)
        with self._write() as conn:
            done = conn.execute(update(SESSIONS).where(_is(info.key)).values(self._editable(info)))
            if not done.rowcount:
                raise _not_found()

    def purge(self, key: SessionKey) -> None:
        """Erase a session for good; its records stay as empty tombstones until unindexed."""
        with self._write() as conn:
            session = self._session(conn, key, lock=True)
            for table in _CHILDREN:
                conn.execute(delete(table).where(table.c.session_no == session.no))
            conn.execute(delete(SESSIONS).where(SESSIONS.c.no == session.no))
            conn.execute(
                update(RECORDS)
                .where(RECORDS.c.user_id == key.user, RECORDS.c.session_id == key.session)
                .values(
                    body=self._encoding.text("", "text"),
                    message_ids="[]",
                    status="forgotten",
                    indexed=0,
                )
            )

    # --- long-term records -----------------------------------------------------------------

    def records(self, user: str, *, pending: bool = False) -> list[MemoryRecord]:
        """Return a user's records, oldest first; with ``pending`` those to be indexed."""
        check_id(user, "user id")
        query = select(RECORDS).where(RECORDS.c.user_id == user).order_by(RECORDS.c.no)
        if pending:
            query = query.where(RECORDS.c.indexed == 0)
        with self._read() as conn:
            return [self._record(row) for row in conn.execute(query)]

    def put_records(self, records: Sequence[MemoryRecord]) -> None:
        """Add or replace records by id."""
        rows = [self._record_row(record) for record in records]
        if rows:
            with self._write() as conn:
                self._put_rows(conn, rows)

    def mark_indexed(self, user: str, ids: Sequence[str]) -> None:
        """Note that the index knows these records in their present status."""
        check_id(user, "user id")
        with self._write() as conn:
            for batch in _batches(ids, 500):
                conn.execute(
                    update(RECORDS)
                    .where(RECORDS.c.user_id == user, RECORDS.c.id.in_(batch))
                    .values(indexed=1)
                )

    def close(self) -> None:
        """Let go of all connections."""
        self._engine.dispose()

    # --- inside ----------------------------------------------------------------------------

    @contextmanager
    def _read(self) -> Iterator[Connection]:
        with _translated(), self._reader.begin() as conn:
            yield conn

    @contextmanager
    def _write(self) -> Iterator[Connection]:
        with _translated(), self._writer.begin() as conn:
            yield conn

    def _session(self, conn: Connection, key: SessionKey, *, lock: bool = False) -> _Row:
        check_key(key)
        query = select(SESSIONS).where(_is(key))
        row = conn.execute(query.with_for_update() if lock else query).first()
        if row is None:
            raise _not_found()
        return row

    def _turn_rows(
        self, key: SessionKey, record: TurnRecord
    ) -> list[tuple[Any, list[dict[str, Json]]]]:
        """Return what a turn inserts, encoded; whatever cannot be stored fails here."""
        check_turn(key, record)
        messages = [
            {
                "position": m.position,
                "id": m.id,
                "turn": m.turn,
                "created": to_micros(m.created),
                "body": self._encoding.message(m.message, f"message at {m.position}"),
                "tokens": m.tokens,
                "counter": m.counter,
                "superseded_by": 0,
            }
            for m in record.messages
        ]
        number = record.number
        trace = self._encoding.text(record.trace, "trace")
        turn: list[dict[str, Json]] = [{"number": number, "trace": trace, "superseded_by": 0}]
        states: list[dict[str, Json]] = []
        if record.state is not None:
            body = self._encoding.state(record.state)
            states = [{"version": record.state.version, "turn": number, "body": body}]
        summaries: list[dict[str, Json]] = []
        if record.summary is not None:
            summaries = [{"turn": number, "body": self._encoding.summary(record.summary)}]
        return [(MESSAGES, messages), (TURNS, turn), (STATES, states), (SUMMARIES, summaries)]

    def _is_written(self, conn: Connection, session: _Row, record: TurnRecord) -> bool:
        """Return whether this very turn was committed before (its answer was lost on the way)."""
        if not record.messages or record.number > session.turn:
            return False
        ids = conn.execute(
            select(MESSAGES.c.id)
            .where(
                MESSAGES.c.session_no == session.no,
                MESSAGES.c.position >= record.messages[0].position,
                MESSAGES.c.position <= record.messages[-1].position,
            )
            .order_by(MESSAGES.c.position)
        ).scalars()
        trace = conn.execute(
            select(TURNS.c.trace).where(
                TURNS.c.session_no == session.no, TURNS.c.number == record.number
            )
        ).scalar_one()
        same = list(ids) == [m.id for m in record.messages]
        return same and self._encoding.read_text(trace) == record.trace

    def _supersede(
        self, conn: Connection, session: _Row, key: SessionKey, record: TurnRecord
    ) -> dict[str, int]:
        """Mark a turn, its messages and its records as replaced; return the new counters."""
        turn = and_(TURNS.c.session_no == session.no, TURNS.c.number == record.supersedes)
        messages = and_(
            MESSAGES.c.session_no == session.no,
            MESSAGES.c.turn == record.supersedes,
            MESSAGES.c.superseded_by == 0,
        )
        count, tokens = conn.execute(
            select(func.count(), func.coalesce(func.sum(MESSAGES.c.tokens), 0)).where(messages)
        ).one()
        conn.execute(update(MESSAGES).where(messages).values(superseded_by=record.number))
        conn.execute(
            update(TURNS)
            .where(turn, TURNS.c.superseded_by == 0)
            .values(superseded_by=record.number)
        )
        conn.execute(
            update(RECORDS)
            .where(
                RECORDS.c.user_id == key.user,
                RECORDS.c.session_id == key.session,
                RECORDS.c.turn == record.supersedes,
            )
            .values(status="forgotten", indexed=0)
        )
        return {"active": session.active - count, "tokens": session.tokens - int(tokens)}

    def _state(self, conn: Connection, key: SessionKey, session: _Row, version: int) -> AgentState:
        if version == 0:
            return AgentState(user=key.user, session=key.session)
        body = conn.execute(
            select(STATES.c.body).where(
                STATES.c.session_no == session.no, STATES.c.version == version
            )
        ).scalar()
        if body is None:
            raise NotFound(f"This session has no state version {version}.")
        return self._encoding.read_state(body)

    def _editable(self, info: SessionInfo) -> dict[str, Json]:
        return {
            "title": self._title(info.title),
            "strategy": self._encoding.text(info.strategy, "strategy"),
            "settings": self._encoding.json(dict(info.settings), "settings"),
            "archived": int(info.archived),
            "deleted": int(info.deleted),
        }

    def _title(self, title: str) -> str:
        return self._encoding.text(repair_text(title)[0], "title")

    def _info(self, row: _Row) -> SessionInfo:
        return SessionInfo(
            key=SessionKey(row.user_id, row.session_id),
            title=self._encoding.read_text(row.title),
            created=from_micros(row.created),
            used=from_micros(row.used),
            turns=row.turn,
            messages=row.active,
            tokens=row.tokens,
            strategy=self._encoding.read_text(row.strategy),
            settings=self._encoding.read_json(row.settings),
            archived=bool(row.archived),
            deleted=bool(row.deleted),
            origin=self._encoding.read_text(row.origin),
        )

    def _record(self, row: _Row) -> MemoryRecord:
        return MemoryRecord(
            id=row.id,
            user=row.user_id,
            session=row.session_id,
            turn=row.turn,
            kind=row.kind,
            text=self._encoding.read_text(row.body),
            message_ids=tuple(self._encoding.read_json(row.message_ids)),
            created=from_micros(row.created),
            count=row._mapping["count"],
            status=row.status,
            expires=None if row.expires is None else from_micros(row.expires),
            indexed=bool(row.indexed),
        )

    def _record_row(self, record: MemoryRecord) -> dict[str, Json]:
        check_id(record.user, "user id")
        check_ids([record.id, *record.message_ids], "record id")
        return {
            "user_id": record.user,
            "id": record.id,
            "session_id": record.session,
            "turn": record.turn,
            "kind": record.kind,
            "body": self._encoding.text(record.text, "text to remember"),
            "message_ids": self._encoding.json(list(record.message_ids), "message ids"),
            "created": to_micros(record.created),
            "count": record.count,
            "status": record.status,
            "expires": None if record.expires is None else to_micros(record.expires),
            "indexed": int(record.indexed),
        }

    def _put(self, conn: Connection, records: Sequence[MemoryRecord]) -> None:
        self._put_rows(conn, [self._record_row(record) for record in records])

    def _put_rows(self, conn: Connection, rows: Sequence[Mapping[str, Json]]) -> None:
        for row in rows:
            changed = {k: v for k, v in row.items() if k not in ("user_id", "id")}
            conn.execute(
                self._upsert(RECORDS)
                .values(row)
                .on_conflict_do_update(index_elements=["user_id", "id"], set_=changed)
            )


def check_turn(key: SessionKey, record: TurnRecord) -> None:
    """Raise for a turn that no store may take, before anything is written."""
    check_key(key)
    check_ids((m.id for m in record.messages), "message id")
    if record.number < 1 or not 0 <= record.supersedes < record.number:
        raise ValueError("turns count from 1 and supersede earlier ones")
    first = record.messages[0].position if record.messages else 0
    if any(m.position != first + i for i, m in enumerate(record.messages)):
        raise ValueError("the positions of a turn's messages must follow each other")
    if record.state is not None:
        _check_owner(key, record.state)
    if any(r.user != key.user for r in record.records):
        raise ValueError("the records of a turn must belong to its user")


def _check_owner(key: SessionKey, state: AgentState) -> None:
    if (state.user, state.session) != (key.user, key.session):
        raise ValueError("the state belongs to another session")


def _check_state(state: AgentState, base: int | None, newest: int) -> None:
    expected = state.version - 1 if base is None else base
    if expected != newest or state.version <= newest:
        raise StaleVersion(
            f"The state was changed meanwhile: version {newest} is saved, "
            f"this change is based on version {expected}.",
            expected=expected,
            found=newest,
        )


def _is(key: SessionKey) -> Any:
    return and_(SESSIONS.c.user_id == key.user, SESSIONS.c.session_id == key.session)


def _not_found() -> NotFound:
    return NotFound("There is no such session.")


def _batches(values: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    return (values[i : i + size] for i in range(0, len(values), size))


def connect(url: str, *, timeout: float = TIMEOUT) -> Engine:
    """Return an engine with held connections for a SQLite or PostgreSQL URL."""
    parsed = make_url(url)
    if parsed.get_backend_name() == "sqlite":
        engine = create_engine(
            parsed,
            pool_size=8,
            max_overflow=24,
            pool_timeout=timeout,
            connect_args={"timeout": timeout, "check_same_thread": False},
        )
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
        return engine
    engine = create_engine(
        parsed.set(drivername="postgresql+psycopg"),
        pool_size=8,
        max_overflow=24,
        pool_timeout=timeout,
        pool_pre_ping=True,
        connect_args={"connect_timeout": max(2, int(timeout))},
    )

    def prepare(connection: Any, _: Any) -> None:
        milliseconds = int(timeout * 1000)
        connection.execute(f"SET statement_timeout = {milliseconds}")
        connection.execute(f"SET lock_timeout = {milliseconds}")
        connection.commit()

    event.listen(engine, "connect", prepare)
    return engine


def _prepare_sqlite(connection: sqlite3.Connection, _: Any) -> None:
    connection.isolation_level = None  # we say BEGIN ourselves
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("PRAGMA foreign_keys=ON")
    connection.execute("PRAGMA secure_delete=ON")


def _begin_sqlite(conn: Connection) -> None:
    writes = conn.get_execution_options().get("writes")
    conn.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _migrate(engine: Engine, migrations: Sequence[Sequence[str]]) -> None:
    if engine.dialect.name != "sqlite":
        with engine.begin() as conn:
            conn.execute(text("SELECT pg_advisory_xact_lock(:n)"), {"n": _ADVISORY_LOCK})
            migrate(conn, migrations=migrations, backup=lambda v: _copy_postgresql(conn, v))
        return
    path = Path(cast("str", engine.url.database))
    with locked(path.with_name(path.name + ".lock")):
        with engine.connect() as conn:
            driver = cast("sqlite3.Connection", conn.connection.driver_connection)
            driver.execute("PRAGMA journal_mode=WAL")
        with engine.execution_options(writes=True).begin() as conn:
            migrate(conn, migrations=migrations, backup=lambda v: _copy_sqlite(path, v))


def _copy_sqlite(path: Path, version: int) -> None:
    """Copy the file beside itself; other connections may go on reading."""
    copy = path.with_name(f"{path.name}.v{version}.backup")
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)


def _copy_postgresql(conn: Connection, version: int) -> None:
    """Copy all tables into a schema of their own, in the migration's transaction."""
    current = conn.execute(text("SELECT current_schema()")).scalar_one()
    name = f"{current}_v{version}_backup"
    conn.execute(text(f'CREATE SCHEMA "{name}"'))
    for table in inspect(conn).get_table_names():
        conn.execute(text(f'CREATE TABLE "{name}"."{table}" AS TABLE "{table}"'))


@contextmanager
def _translated() -> Iterator[None]:
    """Turn the database's errors into ours."""
    try:
        yield
    except MemoryInspectorError:
        raise
    except exc.IntegrityError as error:
        raise InvalidInput("A message with this id is in the session already.") from error
    except (exc.OperationalError, exc.InterfaceError, exc.TimeoutError, exc.InternalError) as error:
        raise StoreUnavailable(f"The store does not answer: {_reason(error)}.") from error
    except exc.SQLAlchemyError as error:
        raise StoreError(f"The store cannot be used: {_reason(error)}.") from error
    except OSError as error:
        raise StoreUnavailable(f"The store cannot be opened: {error.strerror}.") from error


def _reason(error: exc.SQLAlchemyError) -> str:
    """Return the database's own words, without statement and values."""
    cause = getattr(error, "orig", None) or error
    return str(cause).strip().splitlines()[0].rstrip(".") if str(cause).strip() else "no reason"
