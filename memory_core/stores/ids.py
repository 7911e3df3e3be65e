"""Which ids a store accepts: opaque, of modest length, and harmless wherever they are written.

An id may be anything a login gives (an e-mail address, ``provider|123``, a name in any script).
What could mean something to a file system, a terminal or a key scheme is refused, in every
backend alike, so that a store can be moved from one to another.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from memory_core.errors import InvalidInput
from memory_core.stores.protocols import SessionKey

MAX_ID_CHARACTERS = 200

_REFUSED = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})  # controls, invisibles, surrogates, breaks


def check_id(value: object, what: str) -> str:
    """Return an id unchanged; raise :class:`InvalidInput` when it cannot be one."""
    if not isinstance(value, str):
        raise InvalidInput(f"The {what} must be text, not {type(value).__name__}.")
    if not value:
        raise InvalidInput(f"The {what} is empty.")
    if len(value) > MAX_ID_CHARACTERS:
        raise InvalidInput(
            f"The {what} has {len(value):,} characters; at most {MAX_ID_CHARACTERS} are allowed."
        )
    if not value.isprintable() and any(unicodedata.category(c) in _REFUSED for c in value):
        raise InvalidInput(f"The {what} holds control or invisible characters.")
    if value != value.strip():
        raise InvalidInput(f"The {what} begins or ends with a blank.")
    if "/" in value or "\\" in value or value in {".", ".."}:
        raise InvalidInput(f"The {what} looks like a path; slashes and dots alone are not allowed.")
    return value


def check_key(key: SessionKey) -> SessionKey:
    """Return a session key unchanged; raise :class:`InvalidInput` when it cannot be one."""
    check_id(key.user, "user id")
    check_id(key.session, "session id")
    return key


def check_ids(values: Iterable[object], what: str) -> None:
    """Raise :class:`InvalidInput` for the first value that cannot be an id."""
    for value in values:
        check_id(value, what)
