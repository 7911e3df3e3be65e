"""The SQL statements of a turn, made once: to build one costs more than to run it on SQLite."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, and_, bindparam, func, insert, select, update

from memory_core.messages import Json
from memory_core.stores.checks import FORGOTTEN
from memory_core.stores.protocols import SessionKey, TurnRecord
from memory_core.stores.rows import COUNTERS, Row
from memory_core.stores.schema import MESSAGES, RECORDS, SESSIONS, STATES, TURNS

FIND = select(SESSIONS).where(
    SESSIONS.c.user_id == bindparam("user"), SESSIONS.c.session_id == bindparam("session")
)
LOCK_AT_TURN = FIND.where(SESSIONS.c.turn == bindparam("expected")).with_for_update()
LOCK_AT_STATE = FIND.where(SESSIONS.c.state_version == bindparam("expected")).with_for_update()
ADD_MESSAGES, ADD_TURN, ADD_STATE = insert(MESSAGES), insert(TURNS), insert(STATES)
SET_COUNTERS = (
    update(SESSIONS)
    .where(SESSIONS.c.no == bindparam("same_no"))
    .values({name: bindparam(name) for name in ("title", "used", *COUNTERS)})
)


def named(key: SessionKey) -> dict[str, str]:
    """Return the parameters that name a session."""
    return {"user": key.user, "session": key.session}


def upsert_records(upsert: Any) -> Any:
    """Return the statement that adds records or takes the place of those with their ids."""
    new = upsert(RECORDS)
    ids = ["user_id", "id"]
    changed = {c.name: new.excluded[c.name] for c in RECORDS.c if c.name not in ("no", *ids)}
    return new.on_conflict_do_update(index_elements=ids, set_=changed)


def supersede(conn: Connection, session: Row, record: TurnRecord) -> tuple[int, int]:
    """Mark turns, their messages and records as replaced; return how many and the tokens."""

    def replaced(turn: Any) -> Any:
        return turn < record.number if record.replaces_all else turn == record.supersedes

    by: dict[str, Json] = {"superseded_by": record.number}
    messages = and_(
        MESSAGES.c.session_no == session["no"],
        MESSAGES.c.superseded_by == 0,
        replaced(MESSAGES.c.turn),
    )
    turns = and_(
        TURNS.c.session_no == session["no"],
        TURNS.c.superseded_by == 0,
        replaced(TURNS.c.number),
    )
    records = and_(
        RECORDS.c.user_id == session["user_id"],
        RECORDS.c.session_id == session["session_id"],
        replaced(RECORDS.c.turn),
    )
    tokens = func.coalesce(func.sum(MESSAGES.c.tokens), 0)
    found = conn.execute(select(func.count(), tokens).where(messages)).one()
    conn.execute(update(MESSAGES).where(messages).values(by))
    conn.execute(update(TURNS).where(turns).values(by))
    conn.execute(update(RECORDS).where(records).values(status=FORGOTTEN, indexed=0))
    return int(found[0]), int(found[1])
