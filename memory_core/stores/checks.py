"""What every backend checks alike before it writes."""

from __future__ import annotations

from memory_core.errors import InvalidInput, NotFound, StaleVersion, StoreTooNew
from memory_core.state import AgentState
from memory_core.stores.ids import check_id, check_ids, check_key
from memory_core.stores.protocols import MemoryRecord, SessionKey, TurnRecord

FORGOTTEN = "forgotten"


def check_turn(key: SessionKey, record: TurnRecord) -> None:
    """Raise for a turn that no store may take, whatever it holds already."""
    check_key(key)
    check_ids((m.id for m in record.messages), "message id")
    if record.number < 1 or not 0 <= record.supersedes < record.number:
        raise ValueError("turns count from 1 and supersede earlier ones")
    first = record.messages[0].position if record.messages else 0
    if any(m.position != first + i for i, m in enumerate(record.messages)):
        raise ValueError("the positions of a turn's messages must follow each other")
    if any(not 0 <= m.turn <= record.number for m in record.messages):
        raise ValueError("a message cannot be of a later turn than the one it is written in")
    if record.state is not None:
        check_owner(key, record.state)
        if record.state.version <= base_of(record):
            raise ValueError("a state has a higher version than the one it was made from")
    if any(r.user != key.user for r in record.records):
        raise ValueError("the records of a turn must belong to its user")
    for memory in record.records:
        check_record(memory)


def check_record(record: MemoryRecord) -> None:
    """Raise for a long-term record that no store may take."""
    check_id(record.user, "user id")
    check_id(record.id, "record id")
    check_ids(record.message_ids, "message id")


def check_owner(key: SessionKey, state: AgentState) -> None:
    """Raise when a state names another session than the one it is saved in."""
    if (state.user, state.session) != (key.user, key.session):
        raise ValueError("the state belongs to another session")


def base_of(record: TurnRecord) -> int:
    """Return the state version that a turn's state was made from."""
    if record.state_base is not None or record.state is None:
        return record.state_base or 0
    return record.state.version - 1


def too_late(record: TurnRecord) -> StaleVersion:
    """Return the error for a turn that another one came before."""
    return StaleVersion(
        f"Turn {record.number} of this session cannot be saved just now.",
        expected=record.number - 1,
        found=record.number - 1,
    )


def check_next(record: TurnRecord, *, turn: int, position: int) -> None:
    """Raise unless the turn follows the newest one and its messages the last one."""
    if record.number != turn + 1:
        raise StaleVersion(
            f"Turn {record.number} of this session cannot be saved: its newest turn is {turn}.",
            expected=record.number - 1,
            found=turn,
        )
    if record.messages and record.messages[0].position != position:
        raise ValueError(f"the next position of this session is {position}")


def check_state(state: AgentState, base: int | None, *, newest: int) -> None:
    """Raise :class:`StaleVersion` unless the state was made from the newest version."""
    expected = state.version - 1 if base is None else base
    if expected != newest or state.version <= newest:
        raise StaleVersion(
            f"The state was changed meanwhile: version {newest} is saved, "
            f"this change is based on version {expected}.",
            expected=expected,
            found=newest,
        )


def no_session() -> NotFound:
    """Return the error for a session that does not exist for this user."""
    return NotFound("There is no such session.")


def id_in_use() -> InvalidInput:
    """Return the error for a new session whose id is taken."""
    return InvalidInput("A session with this id exists already.")


def no_state(version: int) -> NotFound:
    """Return the error for a state version that was never saved."""
    return NotFound(f"This session has no state version {version}.")


def check_version(found: int, known: int) -> None:
    """Raise :class:`StoreTooNew` when a newer program laid out the store."""
    if found > known:
        raise StoreTooNew(
            f"The store has layout version {found}; this program knows versions up to {known}."
        )
