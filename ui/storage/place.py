"""What a visitor has open on the Storage page; kept with the page state."""

from __future__ import annotations

from dataclasses import dataclass

from memory_core.errors import MemoryInspectorError
from memory_core.forgetting import ForgetReport
from ui.state import PageState


@dataclass
class StoragePlace:
    """``asking`` is the backup whose restoring is asked about; ``report`` what was forgotten."""

    asking: str = ""
    report: ForgetReport | None = None
    said: str = ""
    error: MemoryInspectorError | None = None


def place_of(page: PageState) -> StoragePlace:
    """Return a visitor's place, made at the first call."""
    if page.storage_place is None:
        page.storage_place = StoragePlace()
    return page.storage_place
