"""The connection to Redis: its URL, the names of the keys, and how it fails.

A URL is redis-py's own with two options of ours: ``prefix`` (in front of every key, ``memory``
by default) and ``ttl_days`` (how long a session lives after its last write, 30 by default, 0 for
ever).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from memory_core.errors import InvalidInput, StoreError, StoreUnavailable
from memory_core.stores.protocols import SessionKey

DEFAULT_TTL = timedelta(days=30)
DEFAULT_PREFIX = "memory"


@dataclass(frozen=True)
class Address:
    """Where a store lives in Redis. ``ttl`` of ``None`` keeps sessions for ever."""

    url: str
    prefix: str = DEFAULT_PREFIX
    ttl: timedelta | None = DEFAULT_TTL

    @classmethod
    def parse(cls, url: str) -> Address:
        """Return the address in a URL; raise :class:`InvalidInput` when it is none."""
        parts = urlsplit(url)
        query = dict(parse_qsl(parts.query))
        prefix, days = query.pop("prefix", DEFAULT_PREFIX), query.pop("ttl_days", "30")
        if not prefix.replace("-", "").replace("_", "").isalnum():
            raise InvalidInput("The Redis key prefix may hold letters, digits, - and _ only.")
        try:
            ttl = timedelta(days=float(days)) if float(days) else None
        except (ValueError, OverflowError) as exc:
            raise InvalidInput(f"ttl_days must be a number of days, not {days!r}.") from exc
        if ttl is not None and ttl < timedelta(seconds=1):
            raise InvalidInput("ttl_days must be at least one second, or 0 for ever.")
        return cls(urlunsplit(parts._replace(query=urlencode(query))), prefix, ttl)

    @property
    def shown(self) -> str:
        """The address without user name and password."""
        parts = urlsplit(self.url)
        return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], query=""))


class UserKeys:
    """The names of one user's keys."""

    def __init__(self, prefix: str, user: str) -> None:
        self.base = f"{prefix}:{{{quote(user, safe='')}}}"
        self.sessions = f"{self.base}:sessions"
        self.records = f"{self.base}:records"
        self.status = f"{self.base}:status"
        self.order = f"{self.base}:order"
        self.pending = f"{self.base}:pending"
        self.count = f"{self.base}:count"

    @property
    def shared(self) -> list[str]:
        """The keys that do not belong to one session."""
        return [self.sessions, self.records, self.status, self.order, self.pending, self.count]

    def made(self, session: str, turn: int) -> str:
        """Return the key of the ids of the records that a turn made."""
        return f"{self.base}:made:{quote(session, safe='')}:{turn}"


class SessionKeys(UserKeys):
    """The names of one session's keys."""

    def __init__(self, prefix: str, key: SessionKey) -> None:
        super().__init__(prefix, key.user)
        own = f"{self.base}:s:{quote(key.session, safe='')}"
        self.info = f"{own}:info"
        self.messages = f"{own}:messages"
        self.turns = f"{own}:turns"
        self.states = f"{own}:states"
        self.superseded = f"{own}:superseded"
        self.sizes = f"{own}:sizes"

    @property
    def own(self) -> list[str]:
        """The keys of the session itself."""
        return [
            self.info,
            self.messages,
            self.turns,
            self.states,
            self.superseded,
            self.sizes,
        ]


def connect(address: Address, *, timeout: float) -> Any:
    """Return a pooled client; nothing is opened yet."""
    import redis
    from redis.backoff import ConstantBackoff
    from redis.retry import Retry

    try:
        pool = redis.BlockingConnectionPool.from_url(
            address.url,
            max_connections=32,
            timeout=timeout,
            socket_timeout=timeout,
            socket_connect_timeout=timeout,
            decode_responses=True,
            retry=Retry(ConstantBackoff(0.05), 1),
        )
    except ValueError as exc:
        raise InvalidInput(f"This is no Redis URL: {exc}.") from exc
    return redis.Redis.from_pool(pool)


@contextmanager
def translated() -> Iterator[None]:
    """Turn Redis' errors into ours."""
    from redis import exceptions

    down = (
        exceptions.ConnectionError,
        exceptions.TimeoutError,
        exceptions.ReadOnlyError,
        exceptions.OutOfMemoryError,
        exceptions.ExecAbortError,
    )
    try:
        yield
    except down as exc:
        raise StoreUnavailable(f"The store does not answer: {str(exc).rstrip('.')}.") from exc
    except exceptions.ResponseError as exc:
        if str(exc).startswith(("MISCONF", "LOADING", "CLUSTERDOWN", "NOREPLICAS")):
            raise StoreUnavailable(
                f"The store does not take writes: {str(exc).rstrip('.')}."
            ) from exc
        raise StoreError(f"The store cannot be used: {str(exc).rstrip('.')}.") from exc
    except exceptions.RedisError as exc:
        raise StoreError(f"The store cannot be used: {str(exc).rstrip('.')}.") from exc
