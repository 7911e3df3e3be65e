"""Opens the store that one setting names.

=====================================  ====================================================
nothing                                SQLite, ``memory.db`` in the given folder
``sqlite:///path``                     SQLite at that path (``sqlite:////path`` from the root)
``postgresql://user@host/database``    PostgreSQL
``redis://host:port/0?ttl_days=30``    Redis; ``rediss://`` for TLS
``files:///path``                      plain JSON files in that folder
=====================================  ====================================================

What a backend needs is imported when it is chosen.
"""

from __future__ import annotations

from pathlib import Path

from memory_core.errors import InvalidInput, StoreUnavailable
from memory_core.stores.encoding import Cipher, Encoding
from memory_core.stores.protocols import Store

DEFAULT_FILE = "memory.db"


def open_store(url: str | None, *, folder: Path, cipher: Cipher | None = None) -> Store:
    """Return the store behind a URL, ready for use; SQLite in ``folder`` when there is none.

    With a ``cipher`` all text is sealed (see :mod:`memory_core.stores.encryption`).

    Raises :class:`InvalidInput` for a URL of no known kind, :class:`StoreUnavailable` when the
    store cannot be reached, :class:`~memory_core.errors.StoreTooNew` when it is too new.
    """
    where = (url or "").strip() or f"sqlite:///{folder / DEFAULT_FILE}"
    scheme, _, rest = where.partition("://")
    kind, encoding = scheme.partition("+")[0].lower(), Encoding(cipher)
    try:
        if kind == "sqlite":
            from memory_core.stores.sql import SqlStore

            _make_folder(Path(rest.partition("?")[0].removeprefix("/")).parent)
            return SqlStore.open(where, encoding=encoding)
        if kind in ("postgresql", "postgres"):
            from memory_core.stores.sql import SqlStore

            return SqlStore.open(f"postgresql://{rest}", encoding=encoding)
        if kind in ("redis", "rediss"):
            from memory_core.stores.redis import RedisStore

            return RedisStore.open(where, encoding=encoding)
        if kind == "files":
            from memory_core.stores.files import FileStore

            _make_folder(Path(rest))
            return FileStore.open(Path(rest), encoding=encoding)
    except ImportError as exc:
        raise StoreUnavailable(
            f"The driver for {kind} is not installed: {exc.name}.",
            next_step="Install the packages in requirements-servers.txt.",
        ) from exc
    raise InvalidInput(
        f"No store is known for {kind!r}.",
        next_step="Use a URL that begins with sqlite:///, postgresql://, redis:// or files:///.",
    )


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise StoreUnavailable(f"{folder} cannot be made: {exc.strerror}.") from exc
