"""C14 on each local store: what was saved stays, text comes back exactly as it was."""

from __future__ import annotations

import sqlite3

import pytest

from memory_core.errors import StoreUnavailable
from memory_core.stores.files import FileStore
from memory_core.stores.sql import SqlStore
from tests.core.stores.making import KEY, start, turn

OPEN = {
    "files": lambda folder: FileStore.open(folder / "chats"),
    "sqlite": lambda folder: SqlStore.open(f"sqlite:///{folder / 'memory.db'}"),
}


@pytest.mark.parametrize("kind", sorted(OPEN))
def test_c14_saving_never_damages_what_is_there(case, tmp_path, monkeypatch, kind):
    """C14: a failed save leaves the old chat; any script comes back character for character."""
    data = case("C14")["input"]
    old = [m["content"] for m in data["file_before"]["store"]["chat"]]
    new = [m["content"] for m in data["messages"]]
    store = OPEN[kind](tmp_path)
    start(store)
    store.commit(KEY, turn(1, *old))

    full = OSError(28, "No space left on device")
    if kind == "sqlite":
        full = sqlite3.OperationalError("database or disk is full")

    def fail(*_, **__):
        raise full

    with monkeypatch.context() as patch:
        if kind == "files":
            patch.setattr("os.fsync", fail)
        else:
            patch.setattr(store.engine.dialect, "do_commit", fail)
        with pytest.raises(StoreUnavailable):
            store.commit(KEY, turn(2, *new, position=len(old)))
    assert [m.message.text for m in OPEN[kind](tmp_path).messages(KEY)] == old
    store.commit(KEY, turn(2, *new, position=len(old)))
    assert [m.message.text for m in OPEN[kind](tmp_path).messages(KEY)] == old + new
