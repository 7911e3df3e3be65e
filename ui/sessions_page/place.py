"""What a visitor has open on the Sessions page; kept with the page state."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from memory_core.errors import MemoryInspectorError
from memory_core.interchange.values import ImportPreview
from memory_core.portable_format import Bundle
from memory_core.stores.protocols import SessionInfo
from ui.state import PageState

if TYPE_CHECKING:
    from memory_core.listing import Found

SESSIONS, ARCHIVED, DELETED, IMPORT, EXPORT = (
    "Sessions",
    "Archived",
    "Deleted",
    "Import",
    "Export",
)
VIEWS = (SESSIONS, ARCHIVED, DELETED, IMPORT, EXPORT)
AT_ONCE = 20  # sessions drawn before "Show more"


@dataclass(frozen=True)
class Uploaded:
    """A file that was read and not stored yet: one of the two is there."""

    file: str
    data: bytes = field(repr=False)
    preview: ImportPreview | None = None
    bundle: Bundle | None = None


@dataclass(frozen=True)
class Prepared:
    """A file that waits to be downloaded, and what was told while it was made."""

    name: str
    mime: str
    data: bytes = field(repr=False)
    notices: tuple[str, ...] = ()


@dataclass
class SessionsPlace:
    """Where a visitor stands on the page.

    ``gone`` is the session that was deleted last, ``renaming`` and ``erasing`` the ids of those
    whose form or question is open, ``comparing`` that of the one to be compared on; ``sizes`` are
    bytes by session and what they were taken of.
    """

    view: str = SESSIONS
    shown: int = AT_ONCE
    search: str = ""
    found: tuple[Found, ...] = ()
    gone: SessionInfo | None = None
    renaming: str = ""
    erasing: str = ""
    comparing: str = ""
    export_id: str = ""
    uploaded: Uploaded | None = None
    prepared: Prepared | None = None
    said: str = ""
    error: MemoryInspectorError | None = None
    sizes: dict[tuple[str, int, int], int] = field(default_factory=dict)


def place_of(page: PageState) -> SessionsPlace:
    """Return a visitor's place, made at the first call."""
    if page.sessions_place is None:
        page.sessions_place = SessionsPlace()
    return page.sessions_place
