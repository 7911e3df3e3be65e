"""The store that redacts before anything is stored, proven by looking at the raw bytes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from memory_core.errors import NotFound
from memory_core.redaction import Redactor
from memory_core.state import AgentState, KeyFact
from memory_core.stores.in_front import StoreInFront
from memory_core.stores.redacting import RedactingStore
from memory_core.summary import Summary
from tests.core.stores.contract import TestRecords as _Records
from tests.core.stores.contract import TestTurns as _Turns
from tests.core.stores.making import KEY, memory, start, texts, turn

SECRET = "zebra@example.org"


def test_nothing_redacted_reaches_the_store(backend):
    """Whatever is written, the backend never sees what was redacted; the kinds are told."""
    told = []
    store = RedactingStore(
        backend.open(), redactor=Redactor(), told=lambda key, counts: told.append((key, counts))
    )
    start(store, title=f"to {SECRET}")
    store.commit(KEY, turn(
        1, f"I am {SECRET}", f"Hello {SECRET}, {SECRET}", title=SECRET,
        trace=f'{{"query":"I am {SECRET}"}}', summary=Summary(1, SECRET, 1, 1, turn=1),
        state=AgentState(KEY.user, KEY.session, slots={SECRET: [SECRET]}, version=1,
                         key_facts=(KeyFact("f1", SECRET, 1),)),
        records=(memory("r1", text=SECRET),),
    ))  # fmt: skip
    state = store.head(KEY).state
    store.save_state(KEY, replace(state, version=2, preferences={"mail": SECRET}))
    store.update(replace(store.session(KEY), title=f"again {SECRET}"))
    store.put_records([memory("r2", text=SECRET)])
    assert told == [(KEY, {"e-mail": 3})]
    assert texts(store) == ["I am [e-mail]", "Hello [e-mail], [e-mail]"]
    assert store.session(KEY).title == "again [e-mail]"
    assert store.head(KEY).state.preferences == {"mail": "[e-mail]"}
    assert store.head(KEY).state.key_facts[0].id == "f1"
    assert [r.text for r in store.records(KEY.user)] == ["[e-mail]", "[e-mail]"]
    assert b"zebra" not in backend.raw_bytes()
    backend.close()
    assert b"zebra" not in backend.raw_bytes()


def test_what_holds_nothing_to_redact_is_stored_as_it_is(store, backend):
    """A redacting store is a store like any other."""
    told = []
    redacting = RedactingStore(store, redactor=Redactor(), told=lambda *found: told.append(found))
    start(redacting)
    record = turn(1, "plain", "text", trace='{"a": [1, 2.5, null]}')
    redacting.commit(KEY, record)
    assert tuple(redacting.messages(KEY)) == record.messages
    assert redacting.sessions(KEY.user) == store.sessions(KEY.user)
    assert redacting.facts() == store.facts()
    assert redacting.users() == [KEY.user]
    assert told == []
    assert redacting.erase_user(KEY.user).counts["messages"] == 2
    with pytest.raises(NotFound):
        redacting.purge(KEY)
    redacting.close()


def test_a_store_in_front_hands_everything_on(store, backend):
    """With nothing of its own a store in front keeps the contract of the one behind it."""
    front = StoreInFront(store)
    _Turns().test_a_new_session_is_empty(front)
    _Records().test_what_changed_meanwhile_is_not_marked(front)
