"""What an operator needs of a Redis store: its users, its size, and erasing without a trace."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from memory_core.stores.protocols import SessionKey, StoreFacts
from memory_core.stores.redis_client import Address, SessionKeys, UserKeys
from memory_core.stores.rows import PLAIN

_BATCH = 500


def users(client: Any, address: Address, members: str) -> list[str]:
    """Return every user with live keys, sorted; those whose keys ran out are dropped."""
    found = sorted(client.smembers(members))
    living = []
    for user in found:
        names = UserKeys(address.prefix, user)
        if client.exists(names.sessions, names.records):
            living.append(user)
        else:
            client.srem(members, user)
    return living


def erase(client: Any, address: Address, user: str) -> dict[str, int]:
    """Delete a user's keys; return how many values they held, by kind."""
    names = UserKeys(address.prefix, user)
    counts = dict.fromkeys(("sessions", "messages", "turns", "states", "records"), 0)
    counts["records"] = client.hlen(names.records)
    for session in client.zrange(names.sessions, 0, -1):
        own = SessionKeys(address.prefix, SessionKey(user, session))
        counts["sessions"] += client.exists(own.info)
        counts["messages"] += client.llen(own.messages)
        counts["turns"] += client.llen(own.turns)
        counts["states"] += client.hlen(own.states)
    for batch in _batches(client.scan_iter(match=f"{names.base}:*", count=_BATCH)):
        client.delete(*batch)
    return counts


def facts(client: Any, address: Address, version: int, *, sealed: bool) -> StoreFacts:
    """Return what the server is and holds under this prefix."""
    rows = dict.fromkeys(
        ("sessions", "messages", "turns", "states", "records", "pending records"), 0
    )
    counters = {
        ":info": ("sessions", None),
        ":messages": ("messages", client.llen),
        ":turns": ("turns", client.llen),
        ":states": ("states", client.hlen),
        "}:records": ("records", client.hlen),
        "}:pending": ("pending records", client.scard),
    }
    size = 0
    for batch in _batches(client.scan_iter(match=f"{address.prefix}:*", count=_BATCH)):
        with client.pipeline(transaction=False) as pipe:
            for name in batch:
                pipe.memory_usage(name)
            size += sum(used or 0 for used in pipe.execute())
        for name in batch:
            for ending, (kind, count) in counters.items():
                if name.endswith(ending):
                    rows[kind] += 1 if count is None else count(name)
    notes = [] if sealed else [PLAIN]
    if address.ttl is not None:
        days = address.ttl.total_seconds() / 86_400
        notes.append(f"Sessions expire {days:g} days after their last turn.")
    return StoreFacts("Redis", address.shown, version, rows, size, (*notes, *_durability(client)))


def _durability(client: Any) -> list[str]:
    from redis.exceptions import ResponseError

    try:
        setting = client.config_get("appendonly").get("appendonly")
    except ResponseError:
        return ["The server does not say whether it keeps writes on disk."]
    if setting == "yes":
        return []
    return ["appendonly is off: a crash of the Redis server loses what it took since its snapshot."]


def _batches(names: Iterator[str]) -> Iterator[list[str]]:
    while batch := list(islice(names, _BATCH)):
        yield batch
