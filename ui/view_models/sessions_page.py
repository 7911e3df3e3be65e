"""What the Sessions page shows: a line per session, a conflict field by field, an import."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from memory_core.forking import forked_from
from memory_core.interchange.values import ImportPreview
from memory_core.messages import Json
from memory_core.portable_format import Bundle
from memory_core.state import AgentState, diff
from memory_core.stores.protocols import SessionInfo
from ui.view_models.text import excerpt, plural

UNITS = ("bytes", "kB", "MB", "GB")
_VALUE = 200  # characters of a value in a conflict
_ROWS = 200  # conversations shown of an import


@dataclass(frozen=True)
class SessionRow:
    """One session of the list. ``line`` says all numbers in words."""

    id: str
    title: str
    line: str
    archived: bool = False
    excerpt: str = ""


@dataclass(frozen=True)
class ConflictField:
    """One field that differs: our value and theirs as JSON text, ``(nothing)`` where absent."""

    path: str
    ours: str
    theirs: str


@dataclass(frozen=True)
class Incoming:
    """What a file would bring: a headline, a row per conversation, what is changed or left out."""

    headline: str
    rows: Sequence[Mapping[str, object]]
    notices: tuple[str, ...]
    hidden: int = 0


def size_text(count: int) -> str:
    """Return bytes as people read them.

    >>> size_text(999), size_text(1_500), size_text(2_000_000)
    ('999 bytes', '1.5 kB', '2.0 MB')
    """
    value, unit = float(count), 0
    while value >= 1000 and unit < len(UNITS) - 1:
        value, unit = value / 1000, unit + 1
    return f"{value:.1f} {UNITS[unit]}" if unit else f"{count} bytes"


def ago(then: datetime, now: datetime) -> str:
    """Return how long ago something was, in words.

    >>> from datetime import UTC
    >>> now = datetime(2026, 3, 1, tzinfo=UTC)
    >>> ago(now, now), ago(now - timedelta(hours=5), now), ago(now - timedelta(days=40), now)
    ('just now', '5 hours ago', 'on 2026-01-20')
    """
    seconds = (now - then).total_seconds()
    if seconds < 60:
        return "just now"
    if seconds < 3600:
        return f"{plural(int(seconds // 60), 'minute')} ago"
    if seconds < 86_400:
        return f"{plural(int(seconds // 3600), 'hour')} ago"
    if now - then < timedelta(days=30):
        return f"{plural(int(seconds // 86_400), 'day')} ago"
    return f"on {then:%Y-%m-%d}"


def session_row(
    info: SessionInfo, *, now: datetime, size: int | None = None, found: str = ""
) -> SessionRow:
    """Return the line of a session; ``found`` is the text around what was searched for."""
    fork = forked_from(info)
    parts = [
        plural(info.turns, "turn"),
        plural(info.messages, "message"),
        plural(info.tokens, "token"),
        size_text(size) if size is not None else "",
        info.strategy,
        f"forked after turn {fork[1]}" if fork else "",
        f"used {ago(info.used, now)}",
    ]
    return SessionRow(
        info.key.session, info.title, " · ".join(filter(None, parts)), info.archived, found
    )


def conflict_fields(ours: AgentState, theirs: AgentState) -> tuple[ConflictField, ...]:
    """Return the fields in which two versions of a state differ."""
    return tuple(
        ConflictField(change.path, _shown(change.after), _shown(change.before))
        for change in diff(theirs, ours)
    )


def incoming_file(preview: ImportPreview) -> Incoming:
    """Return what a file of another program would bring."""
    rows = [
        {
            "title": row.title,
            "messages": row.messages,
            "questions": row.questions,
            "began": f"{row.began:%Y-%m-%d}" if row.began else "",
        }
        for row in preview.conversations[:_ROWS]
    ]
    headline = (
        f"{preview.format_title}, {size_text(preview.size)}: "
        f"{plural(len(preview.conversations), 'conversation')}, "
        f"{plural(preview.messages, 'message')}"
    )
    if preview.branches:
        headline += f", other branches: {preview.branches:,}"
    notices = tuple(str(notice) for notice in preview.notices)
    return Incoming(headline, rows, notices, max(0, len(preview.conversations) - _ROWS))


def incoming_bundle(bundle: Bundle, size: int, here: Iterable[str]) -> Incoming:
    """Return what an export of this program would bring; ``here`` are the ids in use."""
    known = set(here)
    rows = [
        {
            "title": session.info.title,
            "messages": sum(len(turn.messages) for turn in session.turns),
            "turns": len(session.turns),
            "here": "yes" if session.info.key.session in known else "",
        }
        for session in bundle.sessions[:_ROWS]
    ]
    headline = (
        f"Memory Inspector export, {size_text(size)}: "
        f"{plural(len(bundle.sessions), 'session')}, "
        f"{plural(len(bundle.records), 'long-term record')}"
    )
    notices = ("The file was redacted when it was exported.",) if bundle.redacted else ()
    return Incoming(headline, rows, notices, max(0, len(bundle.sessions) - _ROWS))


def counts_text(counts: Iterable[tuple[str, int]]) -> str:
    """Return what was redacted, by kind.

    >>> counts_text([("e-mail", 2), ("IBAN", 1)])
    'e-mail: 2, IBAN: 1'
    """
    return ", ".join(f"{kind}: {count:,}" for kind, count in counts if count)


def _shown(value: Json) -> str:
    if value is None:
        return "(nothing)"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return excerpt(text, _VALUE)
