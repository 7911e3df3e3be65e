"""What lists of sessions show: size, found words, strain."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from memory_core.errors import InvalidInput
from memory_core.listing import search_sessions, session_size, strain
from memory_core.messages import Message, StoredMessage
from memory_core.stores.opening import open_store
from memory_core.stores.protocols import SessionInfo, SessionKey, TurnRecord

NOW = datetime(2026, 3, 1, tzinfo=UTC)
CAPPED = '{"gate":"token limit","degradations":["no index"]}'


@pytest.fixture
def store(tmp_path: Path):
    """Open a store with two sessions of Ann's."""
    opened = open_store(None, folder=tmp_path)
    for name, texts in (("one", ["Straße nach Ürzig", "x" * 500 + " Needle"]), ("two", ["tea"])):
        key = SessionKey("ann", name)
        opened.create(SessionInfo(key, f"Title {name}", NOW, NOW))
        for number, text in enumerate(texts, 1):
            said = StoredMessage(
                f"{name}{number}", number - 1, number, NOW, Message.of("user", text)
            )
            opened.commit(key, TurnRecord(number, CAPPED, (said,)))
    yield opened
    opened.close()


@pytest.mark.parametrize(
    ("text", "found"),
    [("STRASSE", {"one"}), ("needle", {"one"}), ("title", {"one", "two"}), ("%", set())],
)
def test_text_is_found_in_any_case_and_taken_literally(store, text, found):
    """Letter case does not matter; nothing is a wildcard."""
    hits = list(search_sessions(store, store.sessions("ann"), text))
    assert {hit.info.key.session for hit in hits} == found


def test_the_excerpt_shows_the_place(store):
    """A find far into a long message is shown with what stands around it."""
    hit = next(search_sessions(store, store.sessions("ann"), "needle"))
    assert hit.excerpt.endswith("x Needle")
    assert hit.excerpt.startswith("…")
    assert len(hit.excerpt) < 100


@pytest.mark.parametrize("text", ["", "  ", "x" * 501])
def test_an_empty_or_endless_search_is_refused(store, text):
    """The message says what to enter."""
    with pytest.raises(InvalidInput):
        list(search_sessions(store, store.sessions("ann"), text))


def test_size_counts_messages_and_traces_in_bytes(store):
    """A session is at least as large as what was said in it."""
    assert session_size(store, SessionKey("ann", "one")) > len("Straße nach Ürzig".encode()) + 500


def test_strain_looks_at_the_newest_turns(store):
    """Turns at the cap and degraded turns are counted; two turns are too few for a warning."""
    found = strain(store, store.session(SessionKey("ann", "one")))
    assert (found.turns, found.capped, found.degraded) == (2, 2, 2)
    assert not found.always
