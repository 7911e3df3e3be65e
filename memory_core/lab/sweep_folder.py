"""Where a user's saved sweeps are kept, and how they are erased with everything of a user."""

from __future__ import annotations

import shutil
from pathlib import Path

from memory_core.stores.vectors.base import safe_name


def sweeps_of(data: Path, user: str) -> Path:
    """Return the folder of a user's saved sweeps, under the data folder."""
    return data / "sweeps" / safe_name(user)


def forget_sweeps(data: Path, user: str) -> None:
    """Erase a user's saved sweeps: they hold the words of questions."""
    shutil.rmtree(sweeps_of(data, user), ignore_errors=True)
