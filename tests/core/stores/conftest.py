"""A fixture of every session backend."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from tests.core.stores.backends import NAMES, place

_MEMORY = Path("/dev/shm")  # noqa: S108  Linux keeps these files in memory


@pytest.fixture
def tmp_path(tmp_path):
    """Make a folder in memory where that is possible: how fast the disk syncs is not tested."""
    if not _MEMORY.is_dir():
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=_MEMORY) as folder:
        yield Path(folder)


@pytest.fixture(params=NAMES)
def backend(request, tmp_path):
    """Make an empty place for a store, once for every backend."""
    with place(request.param, tmp_path) as found:
        yield found


@pytest.fixture
def store(backend):
    """Open a store in an empty place, once for every backend."""
    return backend.open()
