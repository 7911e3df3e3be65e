"""Encryption at rest on every backend, proven by looking at the raw bytes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from memory_core.errors import InvalidInput, StoreError
from memory_core.state import AgentState
from memory_core.stores.encryption import Sealed, cipher_from, new_key
from memory_core.stores.opening import open_store
from memory_core.summary import Summary
from tests.core.stores.contract import TestTurns as _Turns
from tests.core.stores.making import KEY, memory, start, texts, turn

OLD, NEW = new_key(), new_key()


def write_zebras(store):
    """Write a marker into everything a person or a model can say."""
    start(store, title="zebra title", settings={"system_prompt": "zebra prompt"})
    store.commit(KEY, turn(
        1, "zebra question", "zebra answer", title="zebra again", trace='{"query":"zebra trace"}',
        state=AgentState(KEY.user, KEY.session, slots={"zebra": "zebra"}, version=1),
        summary=Summary(1, "zebra summary", 2, 1), records=(memory("r1", text="zebra text"),),
    ))  # fmt: skip
    store.update(replace(store.session(KEY), settings={"system_prompt": "zebra two"}))
    store.put_records([memory("r2", text="zebra fact", kind="fact")])


def test_no_word_is_readable_at_rest(backend):
    """With a key no byte of what was said is in any file, table or key; with it all comes back."""
    store = backend.open(cipher=Sealed.of([NEW]))
    write_zebras(store)
    assert b"zebra" not in backend.raw_bytes()
    backend.close()
    assert b"zebra" not in backend.raw_bytes()
    again = backend.open(cipher=Sealed.of([NEW]))
    assert texts(again) == ["zebra question", "zebra answer"]
    assert again.head(KEY).state.slots == {"zebra": "zebra"}
    assert again.head(KEY).summary.text == "zebra summary"
    assert again.turns(KEY)[0].trace == '{"query":"zebra trace"}'
    assert again.session(KEY).title == "zebra again"
    assert [r.text for r in again.records(KEY.user)] == ["zebra text", "zebra fact"]


def test_the_proof_would_notice(backend):
    """Without a key the marker is found, so looking for it proves something."""
    write_zebras(backend.open())
    assert backend.raw_bytes().count(b"zebra") >= 8


def test_without_the_key_nothing_is_read(backend):
    """No key and another key are refused with what to do; no text shows, nothing is changed."""
    write_zebras(backend.open(cipher=Sealed.of([NEW])))
    for cipher in (None, Sealed.of([OLD])):
        store = backend.open(cipher=cipher)
        with pytest.raises(StoreError) as caught:
            store.messages(KEY)
        assert "MEMORY_ENCRYPTION_KEY" in caught.value.next_step
    assert len(backend.open(cipher=Sealed.of([NEW])).messages(KEY)) == 2


def test_keys_can_be_changed(backend):
    """A new key in front seals what is new, the old one still opens what is old."""
    start(backend.open(cipher=Sealed.of([OLD])))
    backend.open(cipher=Sealed.of([OLD])).commit(KEY, turn(1, "old", "ok"))
    both = backend.open(cipher=Sealed.of([NEW, OLD]))
    both.commit(KEY, turn(2, "new", "ok"))
    assert texts(both) == ["old", "ok", "new", "ok"]
    assert texts(backend.open(cipher=Sealed.of([NEW])), first=2) == ["new", "ok"]
    with pytest.raises(StoreError):
        backend.open(cipher=Sealed.of([NEW])).messages(KEY)


def test_a_key_can_be_set_later(backend):
    """What was written before there was a key stays readable; what comes after is sealed."""
    start(backend.open())
    backend.open().commit(KEY, turn(1, "plain", "ok"))
    sealed = backend.open(cipher=Sealed.of([NEW]))
    sealed.commit(KEY, turn(2, "zebra", "ok"))
    assert texts(sealed) == ["plain", "ok", "zebra", "ok"]
    assert b"zebra" not in backend.raw_bytes()
    assert sealed.facts().notes != backend.open().facts().notes


def test_text_that_looks_sealed_is_only_text(backend):
    """A person may write what sealed text begins with, with a key and without."""
    for number, cipher in ((1, None), (2, Sealed.of([NEW]))):
        store = backend.open(cipher=cipher)
        if number == 1:
            start(store, title="enc1:title")
        said = [f"enc1:{number}", "txt1:enc1:x"]
        store.commit(KEY, turn(number, *said, trace="enc1:trace", title="txt1:t",
                               records=(memory(f"r{number}", text="enc1:rec"),)))  # fmt: skip
        assert texts(store, first=2 * number - 2) == said
        assert store.turns(KEY, first=number)[0].trace == "enc1:trace"
        assert store.session(KEY).title == "txt1:t"
        assert store.records(KEY.user)[-1].text == "enc1:rec"


def test_odd_text_survives_sealing(backend):
    """Sealed or not, every character comes back, NUL included; half characters are refused."""
    store = backend.open(cipher=Sealed.of([NEW]))
    _Turns().test_a_turn_comes_back_as_it_was_given(store, _Reopened(store))
    with pytest.raises(InvalidInput):
        store.commit(KEY, turn(2, "half \ud83d"))


def test_changed_bytes_are_noticed(tmp_path):
    """Sealed text that was tampered with is refused, not shown."""
    store = open_store(None, folder=tmp_path, cipher=Sealed.of([NEW]))
    write_zebras(store)
    with store.engine.begin() as conn:
        conn.exec_driver_sql("UPDATE messages SET body = substr(body, 1, length(body) - 2) || 'AA'")
    with pytest.raises(StoreError, match="changed"):
        store.messages(KEY)
    store.close()


def test_settings_that_are_no_key():
    """Nothing set means no cipher; a bad key is refused by its place and never shown."""
    assert cipher_from(None) is None
    assert cipher_from(" , ") is None
    assert cipher_from(f" {NEW} , {OLD},").unseal(Sealed.of([OLD]).seal("x")) == "x"
    with pytest.raises(InvalidInput) as caught:
        cipher_from(f"{NEW},hunter2")
    assert "Key 2" in str(caught.value)
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None


class _Reopened:
    """A backend whose every opening is the store that is open already."""

    def __init__(self, store):
        self.store = store

    def open(self):
        """Return the store."""
        return self.store
