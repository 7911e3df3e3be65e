"""What an operator needs of a SQL store: its users, its size, and erasing without a trace."""

from __future__ import annotations

from typing import Any, cast

from sqlalchemy import Connection, Engine, Table, delete, func, select, text, union

from memory_core.errors import StoreUnavailable
from memory_core.stores.protocols import StoreFacts
from memory_core.stores.rows import PLAIN
from memory_core.stores.schema import (
    MESSAGES,
    RECORDS,
    SESSIONS,
    STATES,
    TURNS,
    schema_version,
)
from memory_core.stores.sql_engine import backup_schemas, backups_of, file_of

_PARTS = (("messages", MESSAGES), ("turns", TURNS), ("states", STATES))


def users(conn: Connection) -> list[str]:
    """Return every user in the database, sorted."""
    found = union(select(SESSIONS.c.user_id), select(RECORDS.c.user_id))
    return sorted(conn.execute(found).scalars())


def erase(conn: Connection, user: str) -> dict[str, int]:
    """Delete a user's rows; return how many by kind."""
    mine = select(SESSIONS.c.no).where(SESSIONS.c.user_id == user)
    counts = {name: _count(conn, table, table.c.session_no.in_(mine)) for name, table in _PARTS}
    counts["sessions"] = conn.execute(delete(SESSIONS).where(SESSIONS.c.user_id == user)).rowcount
    counts["records"] = conn.execute(delete(RECORDS).where(RECORDS.c.user_id == user)).rowcount
    return counts


def scrub(engine: Engine) -> None:
    """Rid files of deleted bytes, and remove the copies made before migrations.

    PostgreSQL frees the rows but keeps write-ahead logs and replicas as its operator set up.
    """
    if engine.dialect.name != "sqlite":
        with engine.begin() as conn:
            for name in backup_schemas(conn):
                conn.execute(text(f'DROP SCHEMA "{name}" CASCADE'))
        with engine.execution_options(isolation_level="AUTOCOMMIT").connect() as conn:
            for table in (SESSIONS, MESSAGES, TURNS, STATES, RECORDS):
                conn.execute(text(f"VACUUM {table.name}"))
        return
    for copy in backups_of(engine):
        copy.unlink()
    with engine.connect() as conn:
        driver = cast("Any", conn.connection.driver_connection)
        driver.execute("VACUUM")
        busy = driver.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    if busy:
        raise StoreUnavailable(
            "The rows are gone, but another program keeps the write-ahead log open.",
            next_step="Close it and run this again to rid the file of old bytes.",
        )


def facts(conn: Connection, *, sealed: bool) -> StoreFacts:
    """Return what the database is and holds."""
    rows = {name: _count(conn, table) for name, table in (("sessions", SESSIONS), *_PARTS)}
    rows["superseded messages"] = _count(conn, MESSAGES, MESSAGES.c.superseded_by > 0)
    rows["records"] = _count(conn, RECORDS)
    rows["pending records"] = _count(conn, RECORDS, RECORDS.c.indexed == 0)
    notes = () if sealed else (PLAIN,)
    engine = conn.engine
    if engine.dialect.name == "sqlite":
        path = file_of(engine)
        files = [path, *path.parent.glob(f"{path.name}-*")]
        size = sum(f.stat().st_size for f in files if f.exists())
        return StoreFacts("SQLite", str(path), schema_version(conn), rows, size, notes)
    tables = (SESSIONS, MESSAGES, TURNS, STATES, RECORDS)
    measure = text("SELECT pg_total_relation_size(to_regclass(:name))")
    size = sum(conn.execute(measure, {"name": t.name}).scalar_one() for t in tables)
    where = engine.url.render_as_string(hide_password=True)
    return StoreFacts("PostgreSQL", where, schema_version(conn), rows, size, notes)


def _count(conn: Connection, table: Table, *where: Any) -> int:
    return int(conn.execute(select(func.count()).select_from(table).where(*where)).scalar_one())
