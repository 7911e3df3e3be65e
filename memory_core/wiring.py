"""The store of an engine, in layers, and what an operator does with all of an engine's parts.

From the outside in: measured (:mod:`~memory_core.stores.metered`), redacted where that is asked
for, buffered against outages (:mod:`~memory_core.stores.buffered`, with a spool file), and the
backend itself, sealed where there is a key.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from pathlib import Path

from memory_core.backups import BackupIndex
from memory_core.config import EngineConfig
from memory_core.errors import InvalidInput, StoreUnavailable
from memory_core.metrics import Meter
from memory_core.redaction import KINDS, Redactor
from memory_core.stores.buffered import BufferedStore
from memory_core.stores.encoding import Encoding
from memory_core.stores.encryption import cipher_from
from memory_core.stores.metered import MeteredStore
from memory_core.stores.opening import open_store
from memory_core.stores.protocols import Store
from memory_core.stores.redacting import RedactingStore
from memory_core.stores.spool import Spool

log = logging.getLogger("memory_core.wiring")

ALL_KINDS = "all"
_NOBODY = "nobody"  # asked for to see what is wrong before anybody is shown a page


@dataclass(frozen=True)
class OpenedStore:
    """The layers that others need to name. ``spooled`` says whether waiting writes are on disk."""

    store: Store
    buffered: BufferedStore
    meter: Meter
    backups: BackupIndex
    redactor: Redactor | None = None
    sealed: bool = False
    spooled: bool = True


def open_layers(config: EngineConfig) -> OpenedStore:
    """Open the configured store with its layers.

    A store that is away is no error: the chat goes on from memory, the banner says so. Raises
    :class:`~memory_core.errors.InvalidInput` for settings that cannot be used and
    :class:`~memory_core.errors.StoreTooNew`.
    """
    cipher, redactor, meter = cipher_from(config.encryption_key), redactor_of(config), Meter()
    spool = _spool(config.folder / "waiting", Encoding(cipher))
    buffered = BufferedStore(
        lambda: open_store(config.store_url or None, folder=config.folder, cipher=cipher),
        spool=spool,
    )
    buffered.sessions(_NOBODY)
    store: Store = buffered
    if redactor is not None:
        store = RedactingStore(store, redactor=redactor, told=meter.redacted)
    return OpenedStore(
        MeteredStore(store, meter=meter),
        buffered,
        meter,
        BackupIndex(config.folder / "backups", cipher=cipher),
        redactor,
        sealed=cipher is not None,
        spooled=spool is not None,
    )


def redactor_of(config: EngineConfig) -> Redactor | None:
    """Return what redacts before anything is stored, ``None`` where nothing is to be.

    Raises :class:`~memory_core.errors.InvalidInput` for kinds or patterns that are none.
    """
    if not config.redact and not config.redact_patterns:
        return None
    kinds = KINDS if ALL_KINDS in config.redact else config.redact
    return Redactor(kinds, patterns=_patterns(config.redact_patterns))


def _patterns(text: str) -> dict[str, str]:
    if not text:
        return {}
    try:
        given = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise InvalidInput(f"MEMORY_REDACT_PATTERNS is no JSON: {exc}.") from exc
    if not isinstance(given, dict):
        raise InvalidInput('MEMORY_REDACT_PATTERNS must look like {"ticket": "TCK-[0-9]+"}.')
    return {str(name): str(pattern) for name, pattern in given.items()}


def _spool(folder: Path, encoding: Encoding) -> Spool | None:
    try:
        return Spool.open(folder, encoding=encoding)
    except (OSError, StoreUnavailable) as exc:
        log.warning("waiting writes cannot be kept on disk: %s", exc)
        return None
