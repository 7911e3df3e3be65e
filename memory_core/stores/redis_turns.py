"""What a turn reads of a session on Redis before it writes, while the keys are watched."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from memory_core.messages import StoredMessage
from memory_core.stores.encoding import Encoding
from memory_core.stores.protocols import SessionKey, TurnRecord
from memory_core.stores.redis_client import SessionKeys
from memory_core.stores.rows import COUNTERS, Row, Values

_NUMBERS = (*COUNTERS, "created", "used", "archived", "deleted")


def numbers(row: Mapping[str, str]) -> Values:
    """Return a session's row with its whole numbers as such."""
    return {name: int(v) if name in _NUMBERS else v for name, v in row.items()}


def sizes_of(messages: Sequence[StoredMessage]) -> dict[int, tuple[int, int]]:
    """Return how many messages of each turn there are, and their tokens."""
    sizes: dict[int, tuple[int, int]] = {}
    for m in messages:
        count, tokens = sizes.get(m.turn, (0, 0))
        sizes[m.turn] = count + 1, tokens + (m.tokens or 0)
    return sizes


def is_written(
    client: Any, names: SessionKeys, info: Row, record: TurnRecord, encoding: Encoding
) -> bool:
    """Return whether this very turn was committed before, its answer lost on the way."""
    if not record.messages or record.number > info["turn"]:
        return False
    places = record.messages[0].position, record.messages[-1].position
    found = client.lrange(names.messages, *places)
    if [json.loads(text)["id"] for text in found] != [m.id for m in record.messages]:
        return False
    trace = json.loads(client.lindex(names.turns, record.number - 1))["trace"]
    return encoding.read_text(trace) == record.trace


def replaced_turns(
    client: Any, names: SessionKeys, info: Row, record: TurnRecord
) -> dict[int, tuple[int, int]]:
    """Return the turns that one replaces, with their messages and tokens."""
    if record.replaces_all:
        candidates: Sequence[int] = range(info["turn"] + 1)
    elif record.supersedes:
        candidates = [record.supersedes]
    else:
        return {}
    done = client.hkeys(names.superseded)
    turns = [n for n in candidates if str(n) not in done]
    found = client.hmget(names.sizes, turns) if turns else []
    return {n: _size(text) for n, text in zip(turns, found, strict=True)}


def records_made(
    client: Any, names: SessionKeys, key: SessionKey, turns: Mapping[int, Any]
) -> list[str]:
    """Return the ids of the records that these turns made and no later one made again."""
    ids = [i for n in turns for i in client.smembers(names.made(key.session, n))]
    rows = [json.loads(t) for t in client.hmget(names.records, ids) if t] if ids else []
    return [r["id"] for r in rows if r["session_id"] == key.session and r["turn"] in turns]


def _size(text: str | None) -> tuple[int, int]:
    count, _, tokens = (text or "0 0").partition(" ")
    return int(count), int(tokens)
