"""The backends that the contract suite runs over, each in a place of its own.

SQLite and files live in a temporary folder; PostgreSQL and Redis are used where
``TEST_POSTGRES_URL`` and ``TEST_REDIS_URL`` name a server (each test in its own schema or key
prefix, removed afterwards). With ``CI=true`` a missing server is a failure.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from memory_core.stores.opening import open_store
from memory_core.stores.protocols import Store

NAMES = ("sqlite", "files", "postgresql", "redis")
_SERVERS = {"postgresql": "TEST_POSTGRES_URL", "redis": "TEST_REDIS_URL"}


@dataclass
class Backend:
    """A place for one store; every :meth:`open` is a program of its own to it."""

    name: str
    url: str
    folder: Path
    opened: list[Store] = field(default_factory=list)

    def open(self, **options) -> Store:
        """Open the store anew, as another process would."""
        store = open_store(self.url, folder=self.folder, **options)
        self.opened.append(store)
        return store

    def close(self) -> None:
        """Close everything that was opened."""
        while self.opened:
            self.opened.pop().close()

    def raw_bytes(self) -> bytes:
        """Return every byte the backend holds, as far as a client can see it."""
        if self.name in ("sqlite", "files"):
            found = [p for p in sorted(self.folder.rglob("*")) if p.is_file()]
            names = "\n".join(str(p) for p in self.folder.rglob("*")).encode()
            return names + b"\n".join(p.read_bytes() for p in found)
        return _dump_redis(self.url) if self.name == "redis" else _dump_postgres(self.url)


@contextmanager
def place(name: str, folder: Path) -> Iterator[Backend]:
    """Make an empty place for one backend and remove it afterwards."""
    with _url(name, folder) as url:
        backend = Backend(name, url, folder)
        try:
            yield backend
        finally:
            backend.close()


def server_url(name: str) -> str:
    """Return the URL of a test server; skip (or fail under CI) where there is none."""
    url = os.environ.get(_SERVERS[name], "")
    if not url:
        reason = f"{_SERVERS[name]} is not set"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return url


@contextmanager
def _url(name: str, folder: Path) -> Iterator[str]:
    tag = f"t{uuid.uuid4().hex}"
    if name == "sqlite":
        yield f"sqlite:///{folder}/memory.db"
    elif name == "files":
        yield f"files://{folder}/store"
    elif name == "redis":
        url = f"{server_url(name)}?prefix={tag}"
        try:
            yield url
        finally:
            client = _redis(url)
            for key in client.scan_iter(f"{tag}:*"):
                client.delete(key)
            client.close()
    else:
        import psycopg

        url = server_url(name)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {tag}")
        try:
            yield f"{url}?options=-csearch_path%3D{tag}"
        finally:
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute("SET lock_timeout = '20s'")
                connection.execute(f"DROP SCHEMA {tag} CASCADE")


def _redis(url: str):
    import redis

    return redis.Redis.from_url(url.partition("?")[0])


def _dump_redis(url: str) -> bytes:
    client, prefix = _redis(url), url.partition("prefix=")[2]
    parts = []
    for key in client.scan_iter(f"{prefix}:*"):
        parts += [key, client.dump(key)]
        readers = {
            b"string": lambda k: [client.get(k)],
            b"hash": lambda k: [x for pair in client.hgetall(k).items() for x in pair],
            b"list": lambda k: client.lrange(k, 0, -1),
            b"set": lambda k: list(client.smembers(k)),
            b"zset": lambda k: client.zrange(k, 0, -1),
        }
        parts += readers[client.type(key)](key)
    client.close()
    return b"\n".join(parts)


def _dump_postgres(url: str) -> bytes:
    import psycopg

    schema = url.partition("search_path%3D")[2]
    tables = "SELECT table_name FROM information_schema.tables WHERE table_schema = %s"
    with psycopg.connect(url.partition("?")[0]) as connection:
        names = [row[0] for row in connection.execute(tables, (schema,))]
        rows = [
            str(row)
            for name in names
            for row in connection.execute(f'SELECT * FROM {schema}."{name}"')
        ]
    return "\n".join(rows).encode()
