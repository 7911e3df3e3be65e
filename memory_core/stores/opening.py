"""Opens the store that one setting names.

=====================================  ====================================================
nothing                                SQLite, ``memory.db`` in the given folder
``sqlite:///path``                     SQLite at that path
``postgresql://user@host/database``    PostgreSQL
=====================================  ====================================================
"""

from __future__ import annotations

from pathlib import Path

from memory_core.errors import InvalidInput, StoreUnavailable
from memory_core.stores.protocols import Store

DEFAULT_FILE = "memory.db"


def open_store(url: str | None, *, folder: Path) -> Store:
    """Return the store behind a URL, ready for use; SQLite in ``folder`` when there is none.

    Raises :class:`InvalidInput` for a URL of no known kind, :class:`StoreUnavailable` when the
    store cannot be reached, :class:`~memory_core.errors.StoreTooNew` when it is too new.
    """
    where = (url or "").strip() or f"sqlite:///{folder / DEFAULT_FILE}"
    scheme = where.partition("://")[0].partition("+")[0]
    if scheme in ("sqlite", "postgresql", "postgres"):
        from memory_core.stores.sql import SqlStore

        if scheme == "sqlite":
            _make_folder(Path(where.partition(":///")[2]).parent)
        return SqlStore.open(where)
    raise InvalidInput(
        f"No store is known for {scheme}://.", next_step="Use sqlite:/// or postgresql://."
    )


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise StoreUnavailable(f"{folder} cannot be made: {exc.strerror}.") from exc
