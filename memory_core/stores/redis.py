"""The store on Redis, for several app servers that share sessions for a limited time.

A write watches the session's counters, compares, and queues all its changes in one ``MULTI``:
Redis runs them together or, when somebody else wrote meanwhile, not at all, and the write looks
again. Lists are only appended to, so a turn costs the same however long the session is.

Every key carries a time to live (30 days after the last write, by default). A session whose keys
have run out is no longer listed. What survives a crash of the *server* is decided by its own
``appendonly`` setting; :meth:`RedisStore.facts` tells when it is off.

Keys, after ``<prefix>:{<user>}:`` (the braces keep a user's keys on one node)::

    sessions                 sorted set of session ids by last use
    s:<session>:info         hash: catalogue fields and counters
    s:<session>:messages     list by position        s:<session>:turns    list by number
    s:<session>:states       hash by version         s:<session>:sizes    hash: active per turn
    s:<session>:superseded   hash: turn -> by turn
    records, status          hashes by record id     order, count         in which order they came
    pending                  set of record ids       made:<session>:<n>   ids that a turn made
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

from memory_core.messages import Json, StoredMessage
from memory_core.state import AgentState
from memory_core.stores import checks, redis_upkeep
from memory_core.stores.encoding import Encoding, to_micros
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
from memory_core.stores.redis_client import (
    Address,
    SessionKeys,
    UserKeys,
    connect,
    translated,
)
from memory_core.stores.redis_turns import (
    is_written,
    numbers,
    records_made,
    replaced_turns,
    sizes_of,
)
from memory_core.stores.rows import COUNTERS, Rows, Values

TIMEOUT = 5.0  # seconds to wait for a connection or an answer
VERSION = 1  # of the layout above


class RedisStore:
    """A :class:`~memory_core.stores.protocols.Store` on a Redis server."""

    def __init__(self, client: Any, address: Address, *, encoding: Encoding) -> None:
        self._client = client
        self._address = address
        self._encoding = encoding
        self._rows = Rows(encoding)
        self._users = f"{address.prefix}:users"

    @classmethod
    def open(cls, url: str, *, encoding: Encoding | None = None, timeout: float = TIMEOUT) -> Self:
        """Connect to the server in a URL (see :mod:`memory_core.stores.redis_client`).

        Raises :class:`~memory_core.errors.StoreUnavailable` when it cannot be reached and
        :class:`~memory_core.errors.StoreTooNew` when a newer program wrote there.
        """
        address = Address.parse(url)
        client = connect(address, timeout=timeout)
        name = f"{address.prefix}:version"
        try:
            with translated():
                client.setnx(name, VERSION)
                checks.check_version(int(client.get(name)), VERSION)
        except BaseException:
            client.close()
            raise
        return cls(client, address, encoding=encoding or Encoding())

    def commit(self, key: SessionKey, record: TurnRecord) -> None:
        """Write a turn whole or not at all; the very same turn again changes nothing."""
        checks.check_turn(key, record)
        turn = self._rows.new_turn(record)
        messages = [self._rows.new_message(m) for m in record.messages]
        records = [self._rows.new_record(r) for r in record.records]
        state = None
        if record.state is not None:
            state = self._rows.new_state(record.state, record.number)
        changes: Values = {"turn": record.number}
        if record.title:
            changes["title"] = self._rows.title(record.title)
        sizes = sizes_of(record.messages)
        names = SessionKeys(self._address.prefix, key)

        def write(pipe: Any) -> None:
            info = self._info(pipe, names)
            if is_written(pipe, names, info, record, self._encoding):
                pipe.multi()
                return
            checks.check_next(record, turn=info["turn"], position=info["next_position"])
            if record.state is not None:
                checks.check_state(record.state, record.state_base, newest=info["state_version"])
                changes["state_version"] = record.state.version
            replaced = replaced_turns(pipe, names, info, record)
            made = records_made(pipe, names, key, replaced)
            pipe.multi()
            active = info["active"] - sum(count for count, _ in replaced.values())
            tokens = info["tokens"] - sum(tokens for _, tokens in replaced.values())
            if replaced:
                pipe.hset(names.superseded, mapping=dict.fromkeys(replaced, record.number))
            for ident in made:
                pipe.hset(names.status, ident, checks.FORGOTTEN)
                pipe.sadd(names.pending, ident)
            if messages:
                pipe.rpush(names.messages, *(json.dumps(row) for row in messages))
            for number, (count, more) in sizes.items():
                pipe.hset(names.sizes, number, f"{count} {more}")
            pipe.rpush(names.turns, json.dumps(turn))
            if state is not None:
                pipe.hset(names.states, state["version"], json.dumps(state))
            self._put(pipe, names, records)
            used = max([info["used"], *(to_micros(m.created) for m in record.messages)])
            changes.update(
                next_position=info["next_position"] + len(messages),
                active=active + len(messages),
                tokens=tokens + sum(more for _, more in sizes.values()),
                used=used,
            )
            if record.summary is not None:
                changes["summary_turn"] = record.number
            pipe.hset(names.info, mapping=changes)
            pipe.zadd(names.sessions, {key.session: used})
            self._keep(pipe, [*names.own, *names.shared])

        self._transaction(write, names.info, names.records)

    def head(self, key: SessionKey) -> Head:
        """Return where the session stands."""
        with translated():
            names = self._names(key)
            info = self._info(self._client, names)
            state = self._state(key, names, info["state_version"])
            summary = None
            if info["summary_turn"]:
                turn = json.loads(self._client.lindex(names.turns, info["summary_turn"] - 1))
                summary = turn["summary"]
        return Head(
            info["turn"], info["next_position"], state, self._encoding.read_summary(summary)
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
        names = self._names(key)
        if last is not None and last <= first:
            self.session(key)
            return []
        with translated(), self._client.pipeline(transaction=True) as pipe:
            pipe.hgetall(names.info)
            pipe.hgetall(names.superseded)
            pipe.lrange(names.messages, first, -1 if last is None else last - 1)
            info, by, found = pipe.execute()
        if not info:
            raise checks.no_session()
        rows = [json.loads(text) for text in found]
        return [self._rows.message(row) for row in rows if superseded or str(row["turn"]) not in by]

    def turns(
        self, key: SessionKey, *, first: int = 1, last: int | None = None
    ) -> list[StoredTurn]:
        """Return the turns numbered ``first`` to ``last``, inclusive, oldest first."""
        names = self._names(key)
        with translated(), self._client.pipeline(transaction=True) as pipe:
            pipe.hgetall(names.info)
            pipe.hgetall(names.superseded)
            pipe.lrange(names.turns, max(first, 1) - 1, -1 if last is None else last - 1)
            info, by, found = pipe.execute()
        if not info:
            raise checks.no_session()
        rows = [json.loads(text) for text in found] if last is None or last >= first else []
        return [
            self._rows.turn({**row, "superseded_by": int(by.get(str(row["number"]), 0))})
            for row in rows
        ]

    def state(self, key: SessionKey, version: int | None = None) -> AgentState:
        """Return the newest state, or one version of it."""
        with translated():
            names = self._names(key)
            info = self._info(self._client, names)
            return self._state(key, names, info["state_version"] if version is None else version)

    def states(self, key: SessionKey) -> list[StoredState]:
        """Return every version that was saved, oldest first."""
        with translated():
            names = self._names(key)
            self._info(self._client, names)
            found = self._client.hgetall(names.states)
        return [self._rows.state(json.loads(found[v])) for v in sorted(found, key=int)]

    def save_state(self, key: SessionKey, state: AgentState, *, base: int | None = None) -> None:
        """Save ``state`` as the next version."""
        checks.check_owner(key, state)
        row = self._rows.new_state(state, 0)
        names = self._names(key)

        def write(pipe: Any) -> None:
            info = self._info(pipe, names)
            checks.check_state(state, base, newest=info["state_version"])
            pipe.multi()
            pipe.hset(names.states, state.version, json.dumps({**row, "turn": info["turn"]}))
            pipe.hset(names.info, "state_version", state.version)
            self._keep(pipe, [*names.own, *names.shared])

        self._transaction(write, names.info)

    def create(self, info: SessionInfo) -> None:
        """Add an empty session; raise :class:`InvalidInput` when its id is in use."""
        names = self._names(info.key)
        row = {**self._rows.new_session(info), **COUNTERS}

        def write(pipe: Any) -> None:
            if pipe.exists(names.info):
                raise checks.id_in_use()
            pipe.sadd(self._users, info.key.user)  # before the session: never one without it
            pipe.multi()
            pipe.hset(names.info, mapping=row)
            pipe.zadd(names.sessions, {info.key.session: row["used"]})
            self._keep(pipe, [*names.own, *names.shared])

        self._transaction(write, names.info)

    def session(self, key: SessionKey) -> SessionInfo:
        """Return one session as the catalogue lists it."""
        with translated():
            return self._rows.session(self._info(self._client, self._names(key)))

    def sessions(self, user: str, *, deleted: bool = False) -> list[SessionInfo]:
        """Return a user's sessions, last used first."""
        check_id(user, "user id")
        names = UserKeys(self._address.prefix, user)
        with translated():
            ids = self._client.zrevrange(names.sessions, 0, -1)
            keys = [SessionKeys(self._address.prefix, SessionKey(user, i)) for i in ids]
            with self._client.pipeline(transaction=False) as pipe:
                for key in keys:
                    pipe.hgetall(key.info)
                found = pipe.execute()
            gone = [i for i, row in zip(ids, found, strict=True) if not row]
            if gone:
                self._client.zrem(names.sessions, *gone)
        rows = [numbers(row) for row in found if row]
        return [self._rows.session(row) for row in rows if bool(row["deleted"]) == deleted]

    def update(self, info: SessionInfo) -> None:
        """Change title, settings, strategy, archived or deleted of a session."""
        names = self._names(info.key)
        row = self._rows.editable(info)

        def write(pipe: Any) -> None:
            self._info(pipe, names)
            pipe.multi()
            pipe.hset(names.info, mapping=row)
            self._keep(pipe, [*names.own, *names.shared])

        self._transaction(write, names.info)

    def purge(self, key: SessionKey) -> None:
        """Erase a session for good; its records stay, without text, until unindexed."""
        names = self._names(key)

        def write(pipe: Any) -> None:
            info = self._info(pipe, names)
            rows = [json.loads(text) for text in pipe.hvals(names.records)]
            pipe.multi()
            pipe.delete(*names.own, *(names.made(key.session, n) for n in range(info["turn"] + 1)))
            pipe.zrem(names.sessions, key.session)
            for row in rows:
                if row["session_id"] == key.session:
                    blank = {**row, "body": "", "message_ids": "[]", "session_id": ""}
                    pipe.hset(names.records, row["id"], json.dumps(blank))
                    pipe.hset(names.status, row["id"], checks.FORGOTTEN)
                    pipe.sadd(names.pending, row["id"])

        self._transaction(write, names.info, names.records)

    def records(self, user: str, *, pending: bool = False) -> list[MemoryRecord]:
        """Return a user's records, oldest first; with ``pending`` those to be indexed."""
        check_id(user, "user id")
        names = UserKeys(self._address.prefix, user)
        with translated(), self._client.pipeline(transaction=True) as pipe:
            pipe.zrange(names.order, 0, -1)
            pipe.hgetall(names.records)
            pipe.hgetall(names.status)
            pipe.smembers(names.pending)
            order, found, status, waiting = pipe.execute()
        rows = [json.loads(found[i]) for i in order if not pending or i in waiting]
        return [
            self._rows.record(
                {**row, "status": status[row["id"]], "indexed": row["id"] not in waiting}
            )
            for row in rows
        ]

    def put_records(self, records: Sequence[MemoryRecord]) -> None:
        """Add or replace records by id."""
        rows = [self._rows.new_record(record) for record in records]
        by_user: dict[str, list[Values]] = {}
        for row in rows:
            by_user.setdefault(row["user_id"], []).append(row)
        for user, mine in by_user.items():
            names = UserKeys(self._address.prefix, user)
            with translated():
                self._client.sadd(self._users, user)
                with self._client.pipeline(transaction=True) as pipe:
                    self._put(pipe, names, mine)
                    self._keep(pipe, names.shared)
                    pipe.execute()

    def mark_indexed(
        self, user: str, ids: Sequence[str], *, status: str | None = None
    ) -> list[str]:
        """Note that the index knows these records; return the ids that were marked."""
        check_id(user, "user id")
        names = UserKeys(self._address.prefix, user)
        marked: list[str] = []
        if not ids:
            return marked

        def write(pipe: Any) -> None:
            rows = pipe.hmget(names.records, ids)
            found = pipe.hmget(names.status, ids)
            pipe.multi()
            marked.clear()
            for ident, text, now in zip(ids, rows, found, strict=True):
                if text is None or (status is not None and now != status):
                    continue
                marked.append(ident)
                pipe.srem(names.pending, ident)
                if json.loads(text)["session_id"] == "":
                    pipe.hdel(names.records, ident)
                    pipe.hdel(names.status, ident)
                    pipe.zrem(names.order, ident)

        self._transaction(write, names.records, names.status)
        return marked

    def users(self) -> list[str]:
        """Return every user that has something stored, sorted."""
        with translated():
            return redis_upkeep.users(self._client, self._address, self._users)

    def erase_user(self, user: str) -> Erased:
        """Erase every key of a user."""
        check_id(user, "user id")
        with translated():
            counts = redis_upkeep.erase(self._client, self._address, user)
            self._client.srem(self._users, user)
        return Erased(user, counts)

    def facts(self) -> StoreFacts:
        """Return what the server is and holds."""
        with translated():
            return redis_upkeep.facts(
                self._client, self._address, VERSION, sealed=self._encoding.cipher is not None
            )

    def close(self) -> None:
        """Let go of all connections."""
        self._client.close()
        self._client.connection_pool.disconnect()

    def _names(self, key: SessionKey) -> SessionKeys:
        return SessionKeys(self._address.prefix, check_key(key))

    def _transaction(self, write: Callable[[Any], None], *watched: str) -> None:
        with translated():
            self._client.transaction(write, *watched)

    def _info(self, client: Any, names: SessionKeys) -> Values:
        row = client.hgetall(names.info)
        if not row:
            raise checks.no_session()
        return numbers(row)

    def _state(self, key: SessionKey, names: SessionKeys, version: int) -> AgentState:
        if version == 0:
            return AgentState(user=key.user, session=key.session)
        text = self._client.hget(names.states, version)
        if text is None:
            raise checks.no_state(version)
        return self._rows.state(json.loads(text)).state

    def _put(self, pipe: Any, names: UserKeys, rows: Sequence[Mapping[str, Json]]) -> None:
        if not rows:
            return
        last = self._client.incrby(names.count, len(rows))
        for place, row in enumerate(rows, last - len(rows) + 1):
            ident = row["id"]
            pipe.hset(names.records, ident, json.dumps(row))
            pipe.hset(names.status, ident, row["status"])
            pipe.zadd(names.order, {ident: place}, nx=True)
            (pipe.srem if row["indexed"] else pipe.sadd)(names.pending, ident)
            made = names.made(row["session_id"], row["turn"])
            pipe.sadd(made, ident)
            self._keep(pipe, [made])

    def _keep(self, pipe: Any, names: Sequence[str]) -> None:
        if self._address.ttl is not None:
            for name in names:
                pipe.expire(name, self._address.ttl)
