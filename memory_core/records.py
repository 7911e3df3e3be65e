"""What a turn leaves for the long term: candidates become records, equal ones counted. Pure.

A turn is remembered as what user and assistant said, together; facts as they are. A record's id
is made of two digests, ``<text>.<session>``: the same text told twice in one session is the same
record, counted; told in two sessions it is two records (each is forgotten with its session) that
share one vector, found in the index under the text's digest alone. Equal means: after case,
width and white space are evened out.

Nothing here writes. The caller commits the records with the turn, in one transaction.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from memory_core.errors import InvalidInput
from memory_core.messages import StoredMessage, repair_text
from memory_core.smalltalk import reason_to_skip
from memory_core.stores.protocols import MemoryRecord, SessionKey
from memory_core.trace import MemoryWrite

TURN, FACT = "turn", "fact"  # kinds
ACTIVE, SUPERSEDED, FORGOTTEN = "active", "superseded", "forgotten"  # statuses
REMEMBERED, SKIPPED, DUPLICATE, CORRECTED = "remembered", "skipped", "duplicate", "corrected"
MAX_MESSAGE_IDS = 32  # of a record told again and again, the newest are kept
MAX_FACT_CHARACTERS = 20_000

Plan = tuple[list[MemoryRecord], list[MemoryWrite]]
Find = Callable[[str], MemoryRecord | None]
Sees = Callable[[MemoryRecord], bool]  # whether a session sees a memory of its user


@dataclass(frozen=True)
class Told:
    """Where and when something was told."""

    user: str
    session: str
    turn: int
    at: datetime


@dataclass(frozen=True)
class Candidate:
    """Something that may be remembered; ``skip`` says why not."""

    text: str
    kind: str = FACT
    message_ids: tuple[str, ...] = ()
    expires: datetime | None = None
    skip: str = ""


def turn_candidate(messages: Iterable[StoredMessage]) -> Candidate:
    """Return what a turn's user and assistant said, as one candidate.

    Tool calls and their results are left out. A turn whose user said nothing but pleasantries is
    skipped.
    """
    said = [m for m in messages if m.message.role in ("user", "assistant") and m.message.text]
    asked = "\n".join(m.message.text for m in said if m.message.role == "user")
    return Candidate(
        text="\n".join(f"{m.message.role}: {m.message.text}" for m in said),
        kind=TURN,
        message_ids=tuple(m.id for m in said),
        skip=reason_to_skip(asked),
    )


def plan_records(candidates: Iterable[Candidate], told: Told, find: Find) -> Plan:
    """Return the records to commit and what happened to each candidate.

    ``find`` returns a live record of the user by id, those of the running turn included.
    """
    made: dict[str, MemoryRecord] = {}
    writes = []
    for candidate in candidates:
        text, _ = repair_text(candidate.text)
        reason = candidate.skip or ("" if text.strip() else "no text to remember")
        if reason:
            ids = candidate.message_ids
            writes.append(MemoryWrite(SKIPPED, "", text, candidate.kind, reason, ids))
            continue
        key = record_id(told.user, told.session, text)
        before = made.get(key) or find(key)
        made[key], write = _told(key, replace(candidate, text=text), told, before)
        writes.append(write)
    return list(made.values()), writes


def plan_forget(records: Iterable[MemoryRecord]) -> Plan:
    """Return the records to commit so that these are forgotten, their texts with them."""
    gone, writes = [], []
    for record in records:
        gone.append(replace(record, text="", message_ids=(), status=FORGOTTEN, indexed=False))
        writes.append(MemoryWrite(FORGOTTEN, record.id, record.text, record.kind))
    return gone, writes


def plan_correction(record: MemoryRecord, text: str, told: Told, find: Find) -> Plan:
    """Return the records to commit so that ``text`` stands for what ``record`` said.

    The old record stays to be seen as superseded. Raises :class:`InvalidInput` for blank text.
    """
    text = checked_fact(text)
    candidate = Candidate(text, record.kind, record.message_ids, record.expires)
    key = record_id(told.user, told.session, text)
    new, _ = _told(key, candidate, told, find(key))
    reason = f"replaces {record.text!r:.200}"
    write = MemoryWrite(
        CORRECTED, new.id, text, record.kind, reason, record.message_ids, replaces=record.id
    )
    if new.id == record.id:
        return [replace(record, text=text, indexed=False)], [write]
    return [replace(record, status=SUPERSEDED, indexed=False), new], [write]


def checked_fact(text: str) -> str:
    """Return a text to keep word for word; raise :class:`InvalidInput` when it cannot be kept."""
    text = repair_text(text)[0].strip()
    if not text:
        raise InvalidInput("There is no text to remember.")
    if len(text) > MAX_FACT_CHARACTERS:
        raise InvalidInput(
            f"The text has {len(text):,} characters; at most {MAX_FACT_CHARACTERS:,} are kept."
        )
    return text


def matching(records: Iterable[MemoryRecord], text: str) -> list[MemoryRecord]:
    """Return the records that hold a text, whatever its case and white space.

    Raises :class:`InvalidInput` for blank text, which every record would hold.
    """
    wanted = even(repair_text(text)[0])
    if not wanted:
        raise InvalidInput("Say which words the memories to forget hold.")
    return [record for record in records if wanted in even(record.text)]


def even(text: str) -> str:
    """Return a text with case, width and white space evened out."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def lines_of(text: str) -> Iterable[str]:
    """Yield the evened lines of a text, without the speaker of a remembered turn."""
    for line in text.split("\n"):
        yield even(line.removeprefix("user: ").removeprefix("assistant: "))


def record_id(user: str, session: str, text: str) -> str:
    """Return the id under which a text told in a session is kept."""
    return f"{_digest(user, even(text), size=12)}.{_digest(user, session, size=6)}"


def record_id_in(record: str, told: SessionKey, session: str) -> str:
    """Return the id of what was ``told`` in one session as told in another of the user's.

    Any id that is not of a record told there is returned as it is.
    """
    text, dot, place = record.partition(".")
    if place != _digest(told.user, told.session, size=6):
        return record
    return f"{text}{dot}{_digest(told.user, session, size=6)}"


def vector_id(record: str) -> str:
    """Return the id of a record's vector, which equal texts of a user share."""
    return record.partition(".")[0]


def _told(
    key: str, candidate: Candidate, told: Told, before: MemoryRecord | None
) -> tuple[MemoryRecord, MemoryWrite]:
    if before is None:
        record = MemoryRecord(
            id=key,
            user=told.user,
            session=told.session,
            turn=told.turn,
            kind=candidate.kind,
            text=candidate.text,
            message_ids=candidate.message_ids,
            created=told.at,
            expires=candidate.expires,
        )
        ids = candidate.message_ids
        return record, MemoryWrite(REMEMBERED, key, candidate.text, candidate.kind, message_ids=ids)
    record = replace(
        before,
        count=before.count + 1,
        status=ACTIVE,
        indexed=False,
        expires=candidate.expires,
        message_ids=_newest((*before.message_ids, *candidate.message_ids)),
    )
    reason = f"told {record.count} times, first in turn {before.turn}"
    ids = candidate.message_ids
    return record, MemoryWrite(DUPLICATE, key, candidate.text, candidate.kind, reason, ids)


def _newest(ids: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(ids))[-MAX_MESSAGE_IDS:]


def _digest(*parts: str, size: int) -> str:
    data = "\0".join(parts).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(data, digest_size=size).hexdigest()
