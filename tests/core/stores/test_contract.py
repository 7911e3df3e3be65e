"""The contract suite over every session backend."""

from tests.core.stores.contract import (  # noqa: F401
    TestCatalogue,
    TestIsolation,
    TestRecords,
    TestState,
    TestTogether,
    TestTurns,
)
