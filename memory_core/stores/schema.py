"""The SQL schema as numbered migrations, and how a database is brought to the newest one.

Migration ``n`` turns schema version ``n - 1`` into ``n`` and is never edited once released. The
tables below are what the newest version looks like; a test compares them with what the
migrations build. Each is one short list of statements that both SQLite and PostgreSQL accept,
apart from the three words in :data:`_WORDS`.

Times are microseconds since 1970. Text that a person or a model wrote is stored as
:mod:`memory_core.stores.encoding` writes it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    ForeignKey,
    Integer,
    MetaData,
    Table,
    Text,
    inspect,
    text,
)

from memory_core.stores.checks import check_version

METADATA = MetaData()

SESSIONS = Table(
    "sessions",
    METADATA,
    Column("no", BigInteger, primary_key=True),
    Column("user_id", Text),
    Column("session_id", Text),
    Column("title", Text),
    Column("created", BigInteger),
    Column("used", BigInteger),
    Column("strategy", Text),
    Column("settings", Text),
    Column("archived", Integer),
    Column("deleted", Integer),
    Column("origin", Text),
    Column("turn", Integer),  # the newest turn
    Column("next_position", Integer),
    Column("active", Integer),  # messages that are not superseded, and their tokens
    Column("tokens", BigInteger),
    Column("state_version", Integer),
    Column("summary_turn", Integer),  # the turn that made the newest summary
)

MESSAGES = Table(
    "messages",
    METADATA,
    Column("session_no", BigInteger, ForeignKey("sessions.no"), primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("id", Text),
    Column("turn", Integer),
    Column("created", BigInteger),
    Column("body", Text),
    Column("tokens", Integer, nullable=True),
    Column("counter", Text),
    Column("superseded_by", Integer),
)

TURNS = Table(
    "turns",
    METADATA,
    Column("session_no", BigInteger, ForeignKey("sessions.no"), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("trace", Text),
    Column("summary", Text, nullable=True),
    Column("superseded_by", Integer),
)

STATES = Table(
    "states",
    METADATA,
    Column("session_no", BigInteger, ForeignKey("sessions.no"), primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("turn", Integer),
    Column("body", Text),
)

RECORDS = Table(
    "records",
    METADATA,
    Column("no", BigInteger, primary_key=True),
    Column("user_id", Text),
    Column("id", Text),
    Column("session_id", Text),
    Column("turn", Integer),
    Column("kind", Text),
    Column("body", Text),
    Column("message_ids", Text),
    Column("created", BigInteger),
    Column("times", Integer),
    Column("status", Text),
    Column("expires", BigInteger, nullable=True),
    Column("indexed", Integer),
)

_WORDS = {
    "sqlite": {"SERIAL": "INTEGER PRIMARY KEY AUTOINCREMENT", "BYTEWISE": ""},
    "postgresql": {
        "SERIAL": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
        "BYTEWISE": 'COLLATE "C"',
    },
}

_V1 = (
    """CREATE TABLE sessions (
        no {SERIAL},
        user_id TEXT {BYTEWISE} NOT NULL,
        session_id TEXT {BYTEWISE} NOT NULL,
        title TEXT NOT NULL,
        created BIGINT NOT NULL,
        used BIGINT NOT NULL,
        strategy TEXT NOT NULL,
        settings TEXT NOT NULL,
        archived INTEGER NOT NULL DEFAULT 0,
        deleted INTEGER NOT NULL DEFAULT 0,
        origin TEXT NOT NULL DEFAULT '',
        turn INTEGER NOT NULL DEFAULT 0,
        next_position INTEGER NOT NULL DEFAULT 0,
        active INTEGER NOT NULL DEFAULT 0,
        tokens BIGINT NOT NULL DEFAULT 0,
        state_version INTEGER NOT NULL DEFAULT 0,
        summary_turn INTEGER NOT NULL DEFAULT 0,
        UNIQUE (user_id, session_id))""",
    "CREATE INDEX sessions_by_use ON sessions (user_id, deleted, used)",
    """CREATE TABLE messages (
        session_no BIGINT NOT NULL REFERENCES sessions (no) ON DELETE CASCADE,
        position INTEGER NOT NULL,
        id TEXT {BYTEWISE} NOT NULL,
        turn INTEGER NOT NULL,
        created BIGINT NOT NULL,
        body TEXT NOT NULL,
        tokens INTEGER,
        counter TEXT NOT NULL,
        superseded_by INTEGER NOT NULL DEFAULT 0,
        PRIMARY KEY (session_no, position))""",
    "CREATE INDEX messages_by_turn ON messages (session_no, turn)",
    """CREATE TABLE turns (
        session_no BIGINT NOT NULL REFERENCES sessions (no) ON DELETE CASCADE,
        number INTEGER NOT NULL,
        trace TEXT NOT NULL,
        summary TEXT,
        superseded_by INTEGER NOT NULL DEFAULT 0,
        PRIMARY KEY (session_no, number))""",
    """CREATE TABLE states (
        session_no BIGINT NOT NULL REFERENCES sessions (no) ON DELETE CASCADE,
        version INTEGER NOT NULL,
        turn INTEGER NOT NULL,
        body TEXT NOT NULL,
        PRIMARY KEY (session_no, version))""",
    """CREATE TABLE records (
        no {SERIAL},
        user_id TEXT {BYTEWISE} NOT NULL,
        id TEXT {BYTEWISE} NOT NULL,
        session_id TEXT {BYTEWISE} NOT NULL,
        turn INTEGER NOT NULL,
        kind TEXT NOT NULL,
        body TEXT NOT NULL,
        message_ids TEXT NOT NULL,
        created BIGINT NOT NULL,
        times INTEGER NOT NULL,
        status TEXT NOT NULL,
        expires BIGINT,
        indexed INTEGER NOT NULL,
        UNIQUE (user_id, id))""",
    "CREATE INDEX records_by_turn ON records (user_id, session_id, turn)",
    "CREATE INDEX records_pending ON records (user_id, no) WHERE indexed = 0",
)

MIGRATIONS: tuple[Sequence[str], ...] = (_V1,)


def schema_version(connection: Connection) -> int:
    """Return the schema version of a database, 0 when it has none yet."""
    if not inspect(connection).has_table("schema_version"):
        return 0
    return int(connection.execute(text("SELECT version FROM schema_version")).scalar_one())


def migrate(
    connection: Connection,
    *,
    migrations: Sequence[Sequence[str]] = MIGRATIONS,
    backup: Callable[[int], None] = lambda _: None,
) -> int:
    """Bring a database to the newest schema and return the version it had.

    ``connection`` holds the lock of a write transaction. ``backup`` is called with the old
    version before an existing database is changed.

    Raises :class:`~memory_core.errors.StoreTooNew` for a version this program does not know.
    """
    found, newest = schema_version(connection), len(migrations)
    check_version(found, newest)
    if found == newest:
        return found
    if found:
        backup(found)
    else:
        connection.execute(text("CREATE TABLE schema_version (version INTEGER NOT NULL)"))
        connection.execute(text("INSERT INTO schema_version VALUES (0)"))
    words = _WORDS[connection.dialect.name]
    for statements in migrations[found:]:
        for statement in statements:
            connection.execute(text(statement.format(**words)))
    connection.execute(text("UPDATE schema_version SET version = :v"), {"v": newest})
    return found
