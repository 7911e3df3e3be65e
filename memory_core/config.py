"""Where things are kept and which embedding model is used: one frozen value, read once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from memory_core.models.catalogue import EmbeddingChoice

DEFAULT_FOLDER = "data"
_PATTERNS = "MEMORY_REDACT_PATTERNS"


@dataclass(frozen=True)
class EngineConfig:
    """Places and choices of one running engine.

    ``store_url`` names the session store (SQLite in ``folder`` when empty), ``chroma_url`` a
    Chroma server; without one, vectors are kept in ``chroma_path`` or in ``folder``.
    ``encryption_key`` seals what is stored. ``redact`` names kinds of text that are taken out
    before (``all``, or those of :data:`memory_core.redaction.KINDS`), ``redact_patterns`` is a
    JSON object of names and regular expressions. ``metrics`` is the port of a Prometheus
    endpoint.
    """

    folder: Path
    store_url: str = ""
    chroma_url: str = ""
    chroma_path: str = ""
    embedding: EmbeddingChoice = field(default_factory=EmbeddingChoice)
    encryption_key: str = field(default="", repr=False)
    redact: tuple[str, ...] = ()
    redact_patterns: str = ""
    metrics: str = ""

    @property
    def vectors(self) -> Path:
        """The folder of the embedded vector database."""
        return Path(self.chroma_path) if self.chroma_path else self.folder / "chroma"


def read_config(environ: Mapping[str, str], secrets: Mapping[str, object]) -> EngineConfig:
    """Return the configuration that the environment and the secrets file give; secrets win."""

    def setting(name: str) -> str:
        return str(secrets.get(name) or environ.get(name) or "").strip()

    return EngineConfig(
        folder=Path(setting("MEMORY_INSPECTOR_DATA") or DEFAULT_FOLDER),
        store_url=setting("MEMORY_STORE_URL"),
        chroma_url=setting("CHROMA_URL"),
        chroma_path=setting("CHROMA_PATH"),
        encryption_key=setting("MEMORY_ENCRYPTION_KEY"),
        redact=tuple(kind.strip() for kind in setting("MEMORY_REDACT").split(",") if kind.strip()),
        redact_patterns=_as_text(secrets.get(_PATTERNS) or environ.get(_PATTERNS)),
        metrics=setting("MEMORY_METRICS_PORT"),
    )


def _as_text(given: object) -> str:
    """Return what was given as JSON text: it is that already, or a table of the secrets file."""
    if isinstance(given, Mapping):
        return json.dumps({str(name): str(pattern) for name, pattern in given.items()})
    return str(given or "").strip()
