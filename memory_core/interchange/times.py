"""Times as files write them, read to aware UTC.

Numbers are seconds since 1970, or milli-, micro- or nanoseconds where they are too large for
that; texts are ISO 8601 or one of the forms that the supported files use. A text without a zone
is taken as UTC, and the caller is told.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache

from memory_core.messages import Json

_FORMS = (
    "%I:%M %p on %d %B, %Y",  # LoCoMo: 1:56 pm on 8 May, 2023
    "%Y/%m/%d (%a) %H:%M",  # LongMemEval: 2023/05/20 (Sat) 02:21
    "%Y/%m/%d %H:%M:%S",
    "%Y/%m/%d %H:%M",
    "%Y/%m/%d",
    "%d.%m.%Y, %H:%M:%S",
    "%d.%m.%Y, %H:%M",
    "%d.%m.%Y %H:%M",
    "%a, %d %b %Y %H:%M:%S",
)
_NUMBER = re.compile(r"\d{9,19}(\.\d+)?", re.ASCII)
_SCALES = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3))


def read_time(value: Json) -> tuple[datetime | None, bool]:
    """Return a time in UTC (``None`` when it cannot be read) and whether its zone was told."""
    if isinstance(value, str):
        text = value.strip()
        if not _NUMBER.fullmatch(text):
            return _in_utc(_from_text(text))
        value = float(text)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None, False
    return _from_number(value), True


def _in_utc(time: datetime | None) -> tuple[datetime | None, bool]:
    if time is None or time.tzinfo is None:
        return time and time.replace(tzinfo=UTC), False
    try:
        return time.astimezone(UTC), True
    except OverflowError:
        return None, False


def _from_number(value: float) -> datetime | None:
    scale = next((scale for above, scale in _SCALES if value > above), 1)
    try:
        return datetime.fromtimestamp(value / scale, tz=UTC)
    except (ValueError, OverflowError, OSError):
        return None


@lru_cache(maxsize=256)
def _from_text(text: str) -> datetime | None:
    if len(text) > 64:
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        pass
    for form in _FORMS:
        try:
            return datetime.strptime(text, form)  # noqa: DTZ007 (the zone is added by the caller)
        except ValueError:
            continue
    return None
