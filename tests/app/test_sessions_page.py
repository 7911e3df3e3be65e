"""The Sessions page: search, tidy up with undo, export, import, merge; one user's only."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from memory_core.errors import NotFound
from memory_core.models.catalogue import ModelChoice
from memory_core.portable_format import read_bundle
from memory_core.settings import MemorySettings
from memory_core.state import set_preference, update_workflow
from memory_core.stores.outbox import Conflict
from memory_core.stores.writes import SaveState
from tests.app.conftest import checked, page_of
from tests.app.played import open_page, play
from ui.sessions_page import exporting
from ui.sessions_page.place import DELETED, EXPORT, IMPORT, place_of

PAGE = "4_Sessions.py"
HOSTILE = "<b>x</b> **y** `z` 🥖"


def click(at, key):
    """Press a button by its key."""
    at.button(key=key).click()
    return checked(at.run())


def choose(at, id_, option):
    """Choose from a session's menu."""
    at.menu_button(key=f"do-{id_}").set_value(option)
    return checked(at.run())


def shown(at):
    """Return the texts on the page."""
    return [text.value for text in at.text]


def view(at, name):
    """Turn to another view."""
    at.segmented_control(key="sessions-view").set_value(name)
    return checked(at.run())


def test_an_empty_page_teaches(engine):
    """Without a chat the page says what it will show and offers the way there."""
    at = open_page(PAGE)
    assert any("Every chat is a session" in info.value for info in at.info)
    assert not at.error


def test_every_session_has_its_line_and_text_as_stored(engine):
    """Title as it was typed; turns, messages, tokens, size, strategy and last use beside it."""
    info = play(engine, turns=2, title=HOSTILE)
    at = open_page(PAGE)
    assert HOSTILE in shown(at)
    line = next(c.value for c in at.caption if "2 turns" in c.value)
    for part in (f"{info.messages:,} messages", f"{info.tokens:,} tokens", "kB", "layered", "used"):
        assert part in line


def test_search_finds_words_in_messages_and_none_of_other_users(engine):
    """What was said is found with the words around it; a miss says so; empty is refused."""
    play(engine, turns=3)
    engine.create("bob", "Bob's rye secret", settings={})
    at = open_page(PAGE)
    at.text_input(key="sessions-search").set_value("BAKERY")
    checked(next(b for b in at.button if b.label == "Search").click().run())
    assert any(text.startswith("“BAKERY”: 1 session") for text in shown(at))
    at.text_input(key="sessions-search").set_value("Bob's rye secret")
    checked(next(b for b in at.button if b.label == "Search").click().run())
    assert any("0 sessions" in text for text in shown(at))
    at.text_input(key="sessions-search").set_value("  ")
    checked(next(b for b in at.button if b.label == "Search").click().run())
    assert any("at least one character" in error.value for error in at.error)


def test_rename_duplicate_archive_and_delete_with_undo(engine):
    """Each is one choice; what was deleted comes back with one press, whole."""
    info = play(engine, turns=2)
    id_ = info.key.session
    at = open_page(PAGE)
    choose(at, id_, "Rename")
    at.text_input(key="sessions-title").set_value(HOSTILE)
    checked(next(b for b in at.button if b.label == "Rename").click().run())
    assert engine.store.session(info.key).title == HOSTILE
    choose(at, id_, "Duplicate")
    assert len(engine.sessions("local")) == 2
    choose(at, id_, "Archive")
    assert engine.store.session(info.key).archived
    view(at, "Archived")
    choose(at, id_, "Back from the archive")
    assert not engine.store.session(info.key).archived
    view(at, "Sessions")
    choose(at, id_, "Delete")
    assert id_ not in {i.key.session for i in engine.sessions("local")}
    click(at, "sessions-undo")
    assert engine.store.session(info.key).turns == 2
    assert not engine.store.session(info.key).deleted


def test_erasing_for_good_asks_first(engine):
    """A deleted session is erased only after a second press, and is gone then."""
    info = play(engine, turns=1)
    engine.store.update(replace(info, deleted=True))
    at = view(open_page(PAGE), DELETED)
    click(at, f"erase-{info.key.session}")
    assert engine.store.session(info.key).turns == 1
    click(at, f"sure-{info.key.session}")
    with pytest.raises(NotFound):
        engine.store.session(info.key)


def test_an_export_comes_back_as_it_was_and_is_noticed_when_it_is_here(engine):
    """Export, erase, import: the same messages; again: kept, or stored as a copy on request."""
    info = play(engine, turns=3)
    before = [m.message.text for m in engine.store.messages(info.key)]
    at = view(open_page(PAGE), EXPORT)
    at.selectbox(key="export-what").set_value(info.key.session)
    checked(at.run())
    click(at, "export-make")
    made = place_of(page_of(at)).prepared
    assert read_bundle(made.data.decode()).sessions[0].info.title == "The bakery"
    engine.store.purge(info.key)
    at = view(open_page(PAGE), IMPORT)
    at.file_uploader(key="import-file").set_value((made.name, made.data, made.mime))
    checked(at.run())
    assert any(text.startswith("Memory Inspector export") for text in shown(at))
    assert info.key.session not in {i.key.session for i in engine.sessions("local")}
    click(at, "import-store")
    assert [m.message.text for m in engine.store.messages(info.key)] == before
    view(at, IMPORT)
    at.file_uploader(key="import-file").set_value((made.name, made.data, made.mime))
    checked(at.run())
    assert any("here already" in warning.value for warning in at.warning)
    at.checkbox(key="import-again").set_value(True)
    count = len(engine.sessions("local"))
    click(at, "import-store")
    assert len(engine.sessions("local")) == count + 1


def test_a_redacted_export_says_what_and_holds_none_of_it(engine):
    """Redaction counts by kind; the address is in no byte of either kind of file."""
    info = play(engine, turns=1)
    chat = engine.chat(info.key, settings=MemorySettings(tools=False), model=ModelChoice())
    chat.play("Write to ann@example.org", "I will.")
    at = open_page(PAGE)
    for kind in (exporting.WHOLE, "openai"):
        made = exporting.prepare(page_of(at), engine, id_=info.key.session, kind=kind, redact=True)
        assert b"example.org" not in made.data
        assert "e-mail: 1" in made.notices[0]


def test_other_peoples_chats_are_previewed_then_stored_once(engine):
    """An OpenAI file is told before anything is stored; the very same file is noticed."""
    chat = [{"role": "user", "content": "Hi, I am Ann."}, {"role": "assistant", "content": "Hi!"}]
    data = json.dumps({"messages": chat}).encode()
    at = view(open_page(PAGE), IMPORT)
    at.file_uploader(key="import-file").set_value(("chat.json", data, "application/json"))
    checked(at.run())
    assert any("1 conversation, 2 messages" in text for text in shown(at))
    before = len(engine.sessions("local"))
    click(at, "import-store")
    assert len(engine.sessions("local")) == before + 1
    view(at, IMPORT)
    at.file_uploader(key="import-file").set_value(("other.json", data, "application/json"))
    checked(at.run())
    assert any("imported before" in warning.value for warning in at.warning)
    click(at, "import-store")
    assert len(engine.sessions("local")) == before + 1


@pytest.mark.parametrize("remember", [True, False])
def test_imported_turns_are_remembered_unless_that_is_not_wanted(engine, remember):
    """What a file tells can be recalled in other sessions, without a rebuild; a tick decides."""
    told = "The spare key of the boathouse hangs behind the blue barometer."
    data = json.dumps([{"role": "user", "content": told}]).encode()
    at = view(open_page(PAGE), IMPORT)
    at.file_uploader(key="import-file").set_value(("chat.json", data, "application/json"))
    checked(at.run())
    assert at.checkbox(key="import-remember").value
    at.checkbox(key="import-remember").set_value(remember)
    checked(at.run())
    click(at, "import-store")
    engine.index_soon("local")
    engine.settle()
    found = engine.longterm.recall(
        "Where is the spare key of the boathouse?",
        user="local",
        session="another",
        settings=MemorySettings(),
    )
    assert any(told in hit.text for hit in found.hits) is remember
    assert engine.store.records("local", pending=True) == []


@pytest.mark.parametrize(
    "data",
    [b"", b"\xff\xfe\x00", b'{"format": "memory-inspector", "version": 99}', b'{"a": [1]}'],
)
def test_a_file_that_cannot_be_used_is_refused_in_words(engine, data):
    """Empty, damaged, newer or foreign: one clear message, nothing stored."""
    at = view(open_page(PAGE), IMPORT)
    count = len(engine.sessions("local"))
    at.file_uploader(key="import-file").set_value(("x.json", data, "application/json"))
    checked(at.run())
    assert len(at.error) == 1
    assert len(engine.sessions("local")) == count


def parted(engine, info):
    """Make two versions of one state: theirs is stored, ours waited for the store."""
    base = engine.store.state(info.key)
    theirs = update_workflow(
        set_preference(base, "bread", "rye"), workflow=None, step="b", slots={}
    )
    theirs = replace(theirs, version=base.version + 1)
    ours = replace(set_preference(base, "bread", "oats"), version=base.version + 1)
    engine.store.save_state(info.key, theirs)
    conflict = Conflict(SaveState(info.key, ours, base.version), "Changed meanwhile.", ours, theirs)
    engine.opened.buffered._outbox._conflicts.append(conflict)
    return ours, theirs


def test_two_versions_are_shown_and_one_is_made_of_them(engine):
    """Both values of each field are on the page; the choice is saved as the next version."""
    info = play(engine, turns=1)
    ours, theirs = parted(engine, info)
    at = open_page(PAGE)
    codes = [code.value for code in at.code]
    assert {"oats", "rye", "b"} <= set(codes)
    name = f"{info.key.session}-{ours.version}"
    at.segmented_control(key=f"choice-{name}-step").set_value("theirs")
    checked(at.run())
    click(at, f"merge-{name}")
    saved = engine.store.state(info.key)
    assert (saved.preferences["bread"], saved.step) == ("oats", "b")
    assert saved.version == theirs.version + 1
    assert engine.opened.buffered.conflicts == ()


def test_a_third_save_in_between_is_no_lost_update(engine):
    """Somebody saves again while the choice is on screen: refused, shown anew, nothing lost."""
    info = play(engine, turns=1)
    ours, theirs = parted(engine, info)
    at = open_page(PAGE)
    third = replace(set_preference(theirs, "tea", "mint"), version=theirs.version + 1)
    engine.store.save_state(info.key, third)
    click(at, f"merge-{info.key.session}-{ours.version}")
    assert any("once more" in error.value for error in at.error)
    assert engine.store.state(info.key) == third
    click(at, f"merge-{info.key.session}-{ours.version}")
    assert engine.store.state(info.key).preferences["bread"] == "oats"


def test_a_conflict_of_another_user_is_not_here(engine):
    """Isolation holds for conflicts as for sessions: neither shown nor settled."""
    bob = engine.create("bob", "Bob's", settings={})
    parted(engine, bob)
    at = open_page(PAGE)
    assert not at.code
    assert len(engine.opened.buffered.conflicts) == 1


def test_the_banner_says_on_every_page_that_two_versions_wait(engine):
    """Whoever is elsewhere hears of the conflict too."""
    info = play(engine, turns=1)
    parted(engine, info)
    at = open_page("5_Storage.py")
    assert any("two versions wait" in warning.value for warning in at.warning)
