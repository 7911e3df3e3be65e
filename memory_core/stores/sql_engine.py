"""Connections to SQLite and PostgreSQL: how they are made, migrated, and how they fail.

SQLite runs in WAL mode with ``synchronous=FULL`` (a commit survives a power cut) and takes its
write lock at the start of a transaction, so that two writers wait instead of failing halfway.
Deleted bytes are overwritten. PostgreSQL connections come from a pool that tests them before use
and gives up on a statement after the same time as SQLite on a lock.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, cast

from sqlalchemy import Connection, Engine, create_engine, event, exc, inspect, make_url, text

from memory_core.errors import (
    InvalidInput,
    MemoryInspectorError,
    StoreError,
    StoreUnavailable,
)
from memory_core.stores.locking import locked
from memory_core.stores.schema import migrate

_ADVISORY_LOCK = 0x6D656D6F  # names our migrations among PostgreSQL's advisory locks
_POOL = {"pool_size": 8, "max_overflow": 24}


def connect(url: str, *, timeout: float) -> Engine:
    """Return an engine for a SQLite or PostgreSQL URL; nothing is opened yet."""
    try:
        parsed = make_url(url)
    except exc.ArgumentError as error:
        raise InvalidInput("This is no database URL.") from error
    if parsed.get_backend_name() == "sqlite":
        if not parsed.database or parsed.database == ":memory:":
            raise InvalidInput("SQLite needs a file: an in-memory database loses everything.")
        arguments = {"timeout": timeout, "check_same_thread": False}
        lite = create_engine(parsed, pool_timeout=timeout, connect_args=arguments, **_POOL)
        event.listen(lite, "connect", _prepare_sqlite)
        event.listen(lite, "begin", _begin_sqlite)
        return lite
    parsed = parsed.set(drivername="postgresql+psycopg")
    arguments = {"connect_timeout": max(2, int(timeout))}
    engine = create_engine(
        parsed, pool_timeout=timeout, pool_pre_ping=True, connect_args=arguments, **_POOL
    )

    def prepare(connection: Any, _: Any) -> None:
        connection.execute(f"SET statement_timeout = {int(timeout * 1000)}")
        connection.execute(f"SET lock_timeout = {int(timeout * 1000)}")
        connection.commit()

    event.listen(engine, "connect", prepare)
    return engine


def migrate_engine(engine: Engine, migrations: Sequence[Sequence[str]]) -> int:
    """Bring a database to the newest schema; return the version it had.

    Programs that start together wait for each other. An older database is copied first: SQLite
    to ``<file>.v<n>.backup``, PostgreSQL to the schema ``<schema>_v<n>_backup``.
    """
    if engine.dialect.name != "sqlite":
        with engine.begin() as conn:
            conn.execute(text("SELECT pg_advisory_xact_lock(:n)"), {"n": _ADVISORY_LOCK})
            return migrate(conn, migrations=migrations, backup=lambda v: _copy_schema(conn, v))
    path = file_of(engine)
    with locked(path.with_name(path.name + ".lock")):
        with engine.connect() as conn:
            driver = cast("sqlite3.Connection", conn.connection.driver_connection)
            driver.execute("PRAGMA journal_mode=WAL")
        with engine.execution_options(writes=True).begin() as conn:
            return migrate(conn, migrations=migrations, backup=lambda v: _copy_file(path, v))


def file_of(engine: Engine) -> Path:
    """Return the file of a SQLite engine."""
    return Path(cast("str", engine.url.database))


def backups_of(engine: Engine) -> list[Path]:
    """Return the copies that migrations made of a SQLite file."""
    path = file_of(engine)
    return sorted(path.parent.glob(f"{path.name}.v*.backup"))


def backup_schemas(conn: Connection) -> list[str]:
    """Return the schemas that migrations copied the tables to, on PostgreSQL."""
    current = conn.execute(text("SELECT current_schema()")).scalar_one()
    names = inspect(conn).get_schema_names()
    return [n for n in names if n.startswith(f"{current}_v") and n.endswith("_backup")]


@contextmanager
def translated() -> Iterator[None]:
    """Turn the database's errors into ours, without statements or values in them."""
    try:
        yield
    except MemoryInspectorError:
        raise
    except (exc.OperationalError, exc.InterfaceError, exc.TimeoutError, exc.InternalError) as error:
        raise StoreUnavailable(f"The store does not answer: {_reason(error)}.") from error
    except exc.SQLAlchemyError as error:
        raise StoreError(f"The store cannot be used: {_reason(error)}.") from error
    except OSError as error:
        raise StoreUnavailable(f"The store cannot be opened: {error.strerror}.") from error


def _prepare_sqlite(connection: sqlite3.Connection, _: Any) -> None:
    connection.isolation_level = None  # we say BEGIN ourselves
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("PRAGMA foreign_keys=ON")
    connection.execute("PRAGMA secure_delete=ON")


def _begin_sqlite(conn: Connection) -> None:
    writes = conn.get_execution_options().get("writes")
    conn.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _copy_file(path: Path, version: int) -> None:
    copy = path.with_name(f"{path.name}.v{version}.backup")
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)


def _copy_schema(conn: Connection, version: int) -> None:
    current = conn.execute(text("SELECT current_schema()")).scalar_one()
    name = f"{current}_v{version}_backup"
    conn.execute(text(f'CREATE SCHEMA "{name}"'))
    for table in inspect(conn).get_table_names():
        conn.execute(text(f'CREATE TABLE "{name}"."{table}" AS TABLE "{table}"'))


def _reason(error: exc.SQLAlchemyError) -> str:
    lines = str(getattr(error, "orig", None) or error).strip().splitlines()
    return lines[0].rstrip(".") if lines else "no reason given"
