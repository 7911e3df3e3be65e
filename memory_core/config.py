"""Where things are kept and which embedding model is used: one frozen value, read once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from memory_core.models.catalogue import EmbeddingChoice

DEFAULT_FOLDER = "data"


@dataclass(frozen=True)
class EngineConfig:
    """Places and choices of one running engine.

    ``store_url`` names the session store (SQLite in ``folder`` when empty), ``chroma_url`` a
    Chroma server; without one, vectors are kept in ``chroma_path`` or in ``folder``.
    """

    folder: Path
    store_url: str = ""
    chroma_url: str = ""
    chroma_path: str = ""
    embedding: EmbeddingChoice = field(default_factory=EmbeddingChoice)

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
    )
