"""Who may see and do what concerns everybody: backups, the machines that work is sent to."""

from __future__ import annotations

import os

from ui import resources
from ui.visitor import LOCAL


def is_operator(user: str) -> bool:
    """Return whether a user is the local one or named in ``MEMORY_OPERATORS``."""
    named = str(
        resources.secrets().get("MEMORY_OPERATORS") or os.environ.get("MEMORY_OPERATORS") or ""
    )
    return user == LOCAL or user in {name.strip() for name in named.split(",") if name.strip()}
