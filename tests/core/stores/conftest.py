"""A fixture of every session backend."""

from __future__ import annotations

import pytest

from tests.core.stores.backends import NAMES, place


@pytest.fixture(params=NAMES)
def backend(request, tmp_path):
    """Make an empty place for a store, once for every backend."""
    with place(request.param, tmp_path) as found:
        yield found


@pytest.fixture
def store(backend):
    """Open a store in an empty place, once for every backend."""
    return backend.open()
