"""The Redis store: how long sessions live, and what it says about the server."""

from __future__ import annotations

from datetime import timedelta

import pytest

from memory_core.errors import InvalidInput, NotFound, StoreTooNew
from memory_core.stores.redis_client import Address
from tests.core.stores.backends import place
from tests.core.stores.making import KEY, memory, start, turn


@pytest.fixture
def backend(tmp_path):
    """Make an empty place on the Redis server."""
    with place("redis", tmp_path) as found:
        yield found


def client_of(store):
    """Return the client and every key that the store wrote."""
    client = store._client
    return client, sorted(client.scan_iter(f"{store._address.prefix}:*"))


def test_every_key_of_a_user_runs_out(backend):
    """By default all that a turn touches lives for 30 days from then on."""
    store = backend.open()
    start(store)
    store.commit(KEY, turn(1, "q", "a", records=(memory("r1"),)))
    client, names = client_of(store)
    shared = {f"{store._address.prefix}:users", f"{store._address.prefix}:version"}
    days = {n: client.ttl(n) / 86_400 for n in names if n not in shared}
    assert len(days) >= 9
    assert all(29.9 < d <= 30 for d in days.values()), days
    assert "30 days" in " ".join(store.facts().notes)


def test_a_session_that_ran_out_is_gone_everywhere(backend):
    """An expired session is not found and not listed, and its user not either."""
    store = backend.open()
    start(store)
    store.commit(KEY, turn(1, "q", "a", records=(memory("r1"),)))
    client, names = client_of(store)
    for name in names:
        if not name.endswith((":users", ":version", ":sessions")):
            client.delete(name)
    with pytest.raises(NotFound):
        store.head(KEY)
    assert store.sessions(KEY.user) == []
    assert store.users() == []
    start(store)
    assert store.head(KEY).turn == 0


def test_sessions_can_live_for_ever(backend):
    """With ttl_days=0 no key runs out."""
    backend.url += "&ttl_days=0"
    store = backend.open()
    start(store)
    store.commit(KEY, turn(1, "q", "a"))
    client, names = client_of(store)
    assert {client.ttl(n) for n in names} == {-1}


def test_addresses():
    """The options of a URL are read, checked, and the password is never shown."""
    found = Address.parse("redis://me:hunter2@host:1/2?prefix=app-1&ttl_days=0.5&db=3")
    assert (found.prefix, found.ttl) == ("app-1", timedelta(hours=12))
    assert found.url == "redis://me:hunter2@host:1/2?db=3"
    assert found.shown == "redis://host:1/2"
    assert Address.parse("redis://host").ttl == timedelta(days=30)
    for bad in ("ttl_days=x", "ttl_days=-1", "ttl_days=nan", "ttl_days=1e999", "prefix=a:*"):
        with pytest.raises(InvalidInput):
            Address.parse(f"redis://host?{bad}")


def test_a_newer_layout_is_refused(backend):
    """Keys of a newer program are left alone."""
    store = backend.open()
    store._client.set(f"{store._address.prefix}:version", 2)
    with pytest.raises(StoreTooNew):
        backend.open()
    store._client.set(f"{store._address.prefix}:version", 1)
