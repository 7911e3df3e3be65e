"""The Storage page: what is stored where, how fast; backup, restore and forget me, asked first."""

from __future__ import annotations

from dataclasses import replace

import pytest

from memory_core.errors import StoreUnavailable
from memory_core.settings import MemorySettings
from tests.app.conftest import checked, page_of
from tests.app.played import open_page, play
from ui.operators import is_operator
from ui.storage.place import place_of

PAGE = "5_Storage.py"


def click(at, key):
    """Press a button by its key."""
    at.button(key=key).click()
    return checked(at.run())


def told(at):
    """Return everything in words on the page."""
    kinds = (at.text, at.caption, at.markdown, at.success, at.warning, at.error, at.info)
    return "\n".join(str(element.value) for kind in kinds for element in kind)


def test_an_empty_store_says_what_will_be_here(engine):
    """Backends and their state are there at once; numbers fill as one chats, and it says so."""
    at = open_page(PAGE)
    assert "reachable" in told(at)
    assert "SQLite" in told(at)
    assert "as you chat" in told(at)
    assert "There is no backup yet" in told(at)
    assert not at.error


def test_a_chat_shows_in_every_number(engine):
    """Rows, bytes, latencies, messages per session, the collection with its model."""
    info = play(engine, turns=3)
    at = open_page(PAGE)
    values = {metric.label: metric.value for metric in at.metric}
    assert values["Persist p50 / p95"].endswith(" ms")
    assert values["Load p50 / p95"].endswith(" ms")
    assert values["Messages, median / most"].endswith(f"/ {info.messages:,}")
    assert values["Degraded turns"] == "0"
    assert "3 turns" in told(at)
    click(at, "storage-reembed")
    assert engine.embedder.name in told(at)
    assert [d.value.iloc[0]["model"] for d in at.dataframe] == [engine.embedder.name]


def test_a_session_at_its_cap_in_every_turn_is_warned_of(engine):
    """A limit far too small is named, with the session and what to do."""
    play(
        engine,
        turns=14,
        settings=MemorySettings(token_limit=300, tools=False),
        title="Too <b>small",
    )
    at = open_page(PAGE)
    values = {metric.label: metric.value for metric in at.metric}
    assert values["Sessions at their cap"] == "100%"
    assert any("hit its token limit" in warning.value for warning in at.warning)


def test_a_store_that_is_away_is_a_message_and_the_rest_goes_on(engine, monkeypatch):
    """The backend's own reason is shown, and the page is drawn to its end."""
    play(engine, turns=1)

    def away():
        raise StoreUnavailable("The store gave no answer in 5 seconds.")

    monkeypatch.setattr(engine.store, "facts", away)
    at = open_page(PAGE)
    assert "not reachable" in told(at)
    assert any("no answer" in error.value for error in at.error)
    assert at.button(key="backup-make")


def test_the_banner_is_on_every_page_while_the_store_is_away(engine):
    """What waits is counted on top of the page; when all is well the banner is gone."""
    at = open_page(PAGE)
    assert "goes on from memory" not in told(at)
    buffered = engine.opened.buffered
    buffered._closed.set()  # nobody looks whether it is back while the test looks at the page
    buffered._down = "The store is away."
    try:
        assert "goes on from memory" in told(checked(at.run()))
    finally:
        buffered._down = ""


def test_a_backup_brings_back_what_was_lost_and_asks_first(engine):
    """Back up, lose a session, restore: it is there again; what was there is kept."""
    info, other = play(engine, turns=2), engine.create("bob", "Bob's", settings={})
    at = click(open_page(PAGE), "backup-make")
    assert "Backed up 2 users" in told(at)
    engine.store.purge(info.key)
    engine.store.update(replace(other, title="Changed since"))
    click(at, "backup-restore")
    assert info.key.session not in {i.key.session for i in engine.sessions("local")}
    click(at, "backup-sure")
    assert "Restored 1 session with 2 turns" in told(at)
    assert engine.store.session(info.key).turns == 2
    assert engine.store.session(other.key).title == "Changed since"


def test_a_damaged_backup_is_refused_and_changes_nothing(engine):
    """A file cut short is told by name; nothing of it is written."""
    info = play(engine, turns=1)
    at = click(open_page(PAGE), "backup-make")
    path = engine.opened.backups.all()[0].path
    path.write_bytes(path.read_bytes()[:-20])
    engine.store.purge(info.key)
    checked(at.run())
    click(at, "backup-restore")
    click(at, "backup-sure")
    assert any(path.stem[:10] in error.value.replace("\\", "") for error in at.error)
    assert info.key.session not in {i.key.session for i in engine.sessions("local")}


def test_forget_me_needs_the_words_and_leaves_nothing(engine, tmp_path):
    """A wrong word erases nothing; the right ones rows, vectors, backups, with a report."""
    play(engine, turns=3)
    engine.create("bob", "Bob's", settings={})
    at = click(open_page(PAGE), "backup-make")
    erase = next(b.key for b in at.button if b.label == "Erase it all")
    at.text_input(key="forget-words").set_value("forget")
    click(at, erase)
    assert any("Nothing was erased" in error.value for error in at.error)
    assert len(engine.sessions("local")) == 1
    at.text_input(key="forget-words").set_value("Forget me")
    click(at, erase)
    report = place_of(page_of(at)).report
    assert report.rows["messages"] == 6
    assert report.vectors > 0
    assert len(report.backups) == 1
    assert "Forgotten" in told(at)
    assert [i.turns for i in engine.sessions("local")] == [0]  # the new, empty one of the page
    assert [i.title for i in engine.sessions("bob")] == ["Bob's"]


def test_visitors_see_their_own_and_back_up_nothing(engine, monkeypatch):
    """Who is no operator sees no paths, no rows of others and no backups, and cannot make one."""
    monkeypatch.setattr("ui.visitor.who", lambda: "visitor-1")
    engine.create("bob", "Bob's", settings={})
    at = open_page(PAGE)
    assert "memory.db" not in told(at)
    assert "Backups" not in told(at)
    assert not [b for b in at.button if b.key == "backup-make"]
    assert is_operator("local")
    assert not is_operator("visitor-1")
    monkeypatch.setenv("MEMORY_OPERATORS", "ann@example.org, visitor-1")
    assert is_operator("visitor-1")
    assert not is_operator("")


@pytest.mark.parametrize("configured", [True, False])
def test_signing_in_is_offered_where_a_login_is_configured(engine, monkeypatch, configured):
    """The way in is drawn only with an [auth] section in the secrets."""
    real = {"auth": {"redirect_uri": "http://localhost:8501/oauth2callback"}} if configured else {}
    monkeypatch.setattr("ui.resources.secrets", lambda: real)
    at = open_page(PAGE)
    assert bool([b for b in at.button if b.key == "sign-in"]) == configured
