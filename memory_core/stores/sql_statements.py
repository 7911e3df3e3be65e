"""The SQL statements of a turn, made once: to build one costs more than to run it on SQLite."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, and_, bindparam, case, func, insert, select, update

from memory_core.messages import Json
from memory_core.stores.checks import FORGOTTEN
from memory_core.stores.protocols import SessionKey, TurnRecord
from memory_core.stores.schema import MESSAGES, RECORDS, SESSIONS, STATES, TURNS

FIND = select(SESSIONS).where(
    SESSIONS.c.user_id == bindparam("user"), SESSIONS.c.session_id == bindparam("session")
)
LOCK_AT_STATE = FIND.where(SESSIONS.c.state_version == bindparam("expected")).with_for_update()
ADD_MESSAGES, ADD_TURN, ADD_STATE = insert(MESSAGES), insert(TURNS), insert(STATES)
_ACTIVE, _USED = SESSIONS.c.active, SESSIONS.c.used
ADVANCE = (  # one turn further, if the session stands where the writer thinks; locks the row
    update(SESSIONS)
    .where(
        SESSIONS.c.user_id == bindparam("user"),
        SESSIONS.c.session_id == bindparam("session"),
        SESSIONS.c.turn == bindparam("number") - 1,
        SESSIONS.c.next_position == func.coalesce(bindparam("first"), SESSIONS.c.next_position),
        SESSIONS.c.state_version == func.coalesce(bindparam("base"), SESSIONS.c.state_version),
    )
    .values(
        turn=bindparam("number"),
        next_position=SESSIONS.c.next_position + bindparam("count"),
        active=_ACTIVE + bindparam("count"),
        tokens=SESSIONS.c.tokens + bindparam("more"),
        used=case((bindparam("at") > _USED, bindparam("at")), else_=_USED),
        title=func.coalesce(bindparam("new_title"), SESSIONS.c.title),
        state_version=func.coalesce(bindparam("version"), SESSIONS.c.state_version),
        summary_turn=func.coalesce(bindparam("summary_at"), SESSIONS.c.summary_turn),
    )
    .returning(SESSIONS.c.no)
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


def supersede(conn: Connection, no: int, key: SessionKey, record: TurnRecord) -> None:
    """Mark the turns that one replaces, with their messages and records."""

    def replaced(turn: Any) -> Any:
        return turn < record.number if record.replaces_all else turn == record.supersedes

    by: dict[str, Json] = {"superseded_by": record.number}
    messages = and_(
        MESSAGES.c.session_no == no, MESSAGES.c.superseded_by == 0, replaced(MESSAGES.c.turn)
    )
    turns = and_(TURNS.c.session_no == no, TURNS.c.superseded_by == 0, replaced(TURNS.c.number))
    records = and_(
        RECORDS.c.user_id == key.user,
        RECORDS.c.session_id == key.session,
        replaced(RECORDS.c.turn),
    )
    tokens = func.coalesce(func.sum(MESSAGES.c.tokens), 0)
    count, fewer = conn.execute(select(func.count(), tokens).where(messages)).one()
    conn.execute(update(MESSAGES).where(messages).values(by))
    conn.execute(update(TURNS).where(turns).values(by))
    conn.execute(update(RECORDS).where(records).values(status=FORGOTTEN, indexed=0))
    counters = {"active": _ACTIVE - count, "tokens": SESSIONS.c.tokens - int(fewer)}
    conn.execute(update(SESSIONS).where(SESSIONS.c.no == no).values(counters))
