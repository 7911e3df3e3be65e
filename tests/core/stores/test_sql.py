"""The SQL store: migrations, what it costs, and what it does when the file is not usable."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import textwrap
from contextlib import closing

import pytest
from sqlalchemy import create_engine, event, inspect

from memory_core.errors import InvalidInput, StoreError, StoreTooNew, StoreUnavailable
from memory_core.stores.opening import open_store
from memory_core.stores.protocols import SessionKey
from memory_core.stores.schema import METADATA, MIGRATIONS
from memory_core.stores.sql import SqlStore
from tests.core.stores.backends import place
from tests.core.stores.making import KEY, memory, start, texts, turn

_NEXT = (*MIGRATIONS, ("ALTER TABLE sessions ADD COLUMN colour TEXT NOT NULL DEFAULT 'blue'",))


@pytest.fixture(params=["sqlite", "postgresql"])
def backend(request, tmp_path):
    """Make an empty place for each kind of database."""
    with place(request.param, tmp_path) as found:
        yield found


def test_an_older_database_is_migrated_after_a_backup(backend):
    """The newest schema is reached with all rows kept, and a copy of the old one is beside it."""
    store = backend.open()
    start(store)
    store.commit(KEY, turn(1, "kept", "ok"))
    backend.close()
    newer = SqlStore.open(backend.url, migrations=_NEXT)
    backend.opened.append(newer)
    assert texts(newer) == ["kept", "ok"]
    assert newer.facts().version == len(_NEXT)
    with newer.engine.connect() as conn:
        assert conn.exec_driver_sql("SELECT colour FROM sessions").scalar() == "blue"
        if backend.name == "postgresql":
            schema = conn.exec_driver_sql("SELECT current_schema()").scalar()
            old = conn.exec_driver_sql(f'SELECT * FROM "{schema}_v1_backup".sessions')
            assert "colour" not in old.keys()  # noqa: SIM118
            assert old.one().session_id == KEY.session
    if backend.name == "sqlite":
        with closing(sqlite3.connect(backend.folder / "memory.db.v1.backup")) as copy:
            assert copy.execute("SELECT version FROM schema_version").fetchone() == (1,)
            assert copy.execute("SELECT count(*) FROM messages").fetchone() == (2,)
    newer.erase_user(KEY.user)
    assert not list(backend.folder.glob("*.backup"))
    with newer.engine.connect() as conn:
        assert not [s for s in inspect(conn).get_schema_names() if s.endswith("_v1_backup")]


def test_a_failed_migration_changes_nothing(backend):
    """A migration that breaks off leaves the old schema and all rows."""
    start(backend.open())
    backend.close()
    broken = (*MIGRATIONS, ("CREATE TABLE extra (a INTEGER)", "CREATE TABLE messages (x INTEGER)"))
    with pytest.raises(StoreError):
        SqlStore.open(backend.url, migrations=broken)
    store = backend.open()
    assert store.facts().version == 1
    assert not inspect(store.engine).has_table("extra")
    assert store.head(KEY).turn == 0


def test_a_newer_database_is_refused(backend):
    """A database of a newer program is refused by both numbers and left alone."""
    backend.opened.append(SqlStore.open(backend.url, migrations=_NEXT))
    backend.close()
    with pytest.raises(StoreTooNew, match=r"version 2.*up to 1"):
        backend.open()


def test_the_tables_are_what_the_migrations_build(backend):
    """The columns that the code names are exactly those in the database."""
    store = backend.open()
    found = inspect(store.engine)
    for name, table in METADATA.tables.items():
        assert [c["name"] for c in found.get_columns(name)] == [c.name for c in table.columns]


def test_a_turn_is_one_transaction_of_few_statements(backend):
    """A turn is one transaction, and takes the same statements at any length of the session."""
    store = backend.open()
    start(store)
    statements, transactions = [], []
    event.listen(store.engine, "before_cursor_execute", lambda *a: statements.append(a[2]))
    event.listen(store.engine, "commit", lambda _: transactions.append(1))
    counts = []
    for n in range(1, 31):
        statements.clear()
        transactions.clear()
        store.commit(KEY, turn(n, "q", "a", records=(memory(f"r{n}", turn=n),)))
        counts.append(len(statements))
        assert transactions == [1]
    assert set(counts) == {counts[0]}
    assert counts[0] <= 7
    assert not [s for s in statements if "count(" in s.lower()]


def test_every_lookup_of_a_turn_uses_an_index(tmp_path):
    """No statement of a turn reads a table from end to end (SQLite's own plan)."""
    store = open_store(None, folder=tmp_path)
    start(store)
    seen = []
    event.listen(store.engine, "before_cursor_execute", lambda *a: seen.append((a[2], a[3])))
    for n in range(1, 4):
        store.commit(KEY, turn(n, "q", "a", supersedes=n - 1, records=(memory("r"),)))
    store.head(KEY)
    store.messages(KEY, first=1, last=3)
    store.turns(KEY, first=2)
    with closing(sqlite3.connect(tmp_path / "memory.db")) as db:
        for statement, values in seen:
            if statement.startswith(("SELECT", "UPDATE")):
                given = values[0] if isinstance(values, list) else values
                plan = db.execute(f"EXPLAIN QUERY PLAN {statement}", given).fetchall()
                assert not [row for row in plan if row[3].startswith("SCAN")], (statement, plan)
    store.close()


def test_sqlite_is_set_up_to_survive(tmp_path):
    """The file is in WAL mode, commits reach the disk, deleted bytes are overwritten."""
    store = open_store(None, folder=tmp_path / "new" / "folder")
    with store.engine.connect() as conn:
        settings = {
            name: conn.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys", "secure_delete")
        }
    assert settings == {
        "journal_mode": "wal",
        "synchronous": 2,
        "foreign_keys": 1,
        "secure_delete": 1,
    }
    store.close()


def test_a_locked_file_is_unavailable_and_nothing_is_written(tmp_path):
    """A writer that waited its time raises StoreUnavailable; the turn can be tried again."""
    store = SqlStore.open(f"sqlite:///{tmp_path}/memory.db", timeout=0.1)
    start(store)
    with closing(sqlite3.connect(tmp_path / "memory.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable, match="locked"):
            store.commit(KEY, turn(1, "q", "a"))
        assert texts(store) == []
    store.commit(KEY, turn(1, "q", "a"))
    store.close()


def test_a_file_of_another_kind_is_refused(tmp_path):
    """A file that is no database is refused and stays as it was."""
    path = tmp_path / "memory.db"
    path.write_bytes(b"my diary, not a database" * 100)
    with pytest.raises(StoreError, match="not a database"):
        open_store(None, folder=tmp_path)
    assert path.read_bytes().startswith(b"my diary")


@pytest.mark.parametrize(
    "url", ["sqlite://", "sqlite:///:memory:", "nonsense", "mysql://x/y", "://"]
)
def test_urls_that_name_no_store_are_refused(tmp_path, url):
    """An in-memory database and unknown kinds are refused with what to use instead."""
    with pytest.raises(InvalidInput):
        open_store(url, folder=tmp_path)


def test_a_server_that_is_not_there_is_unavailable(tmp_path):
    """Nothing listening is StoreUnavailable, and no password is in its text."""
    for url in ("postgresql://me:hunter2@127.0.0.1:1/x", "redis://:hunter2@127.0.0.1:1/0"):
        with pytest.raises(StoreUnavailable) as caught:
            open_store(url, folder=tmp_path)
        assert "hunter2" not in str(caught.value)


def test_the_program_ends_by_itself(tmp_path):
    """A script that opens a store, writes and just ends leaves no thread and no lock behind."""
    script = f"""
        from pathlib import Path
        from memory_core.stores.opening import open_store
        from tests.core.stores.making import *
        store = open_store(None, folder=Path({str(tmp_path)!r}))
        start(store)
        store.commit(KEY, turn(1, "favourite colour: teal", "noted"))
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=True, timeout=20)
    store = open_store(None, folder=tmp_path)
    assert texts(store, SessionKey(*(KEY.user, KEY.session)))[0] == "favourite colour: teal"
    store.close()


def test_nothing_of_a_server_is_imported_for_sqlite(tmp_path):
    """The drivers of other backends are imported when those are chosen, not before."""
    script = f"""
        import sys
        from pathlib import Path
        from memory_core.stores.opening import open_store
        open_store(None, folder=Path({str(tmp_path)!r})).close()
        heavy = {{"psycopg", "redis", "cryptography", "llama_index", "chromadb", "numpy"}}
        sys.exit(" ".join(heavy & set(sys.modules)) or 0)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=True, timeout=20)


def test_a_statement_never_shows_in_an_error(tmp_path):
    """What goes wrong inside the database is told without SQL and without values."""
    store = open_store(None, folder=tmp_path)
    start(store)
    with store.engine.begin() as conn:
        conn.exec_driver_sql("DROP TABLE turns")
    with pytest.raises(StoreError) as caught:
        store.commit(KEY, turn(1, "private words", "a"))
    assert "no such table" in str(caught.value)
    assert "INSERT" not in str(caught.value)
    assert "private" not in str(caught.value)
    store.close()


def test_an_engine_of_ours_reads_a_plain_url(tmp_path):
    """A file made here is an ordinary SQLite file for every other tool."""
    store = open_store(None, folder=tmp_path)
    start(store)
    store.commit(KEY, turn(1, "q", "a"))
    store.close()
    with create_engine(f"sqlite:///{tmp_path}/memory.db").connect() as conn:
        assert conn.exec_driver_sql("SELECT count(*) FROM messages").scalar() == 2
