"""Export, import, backup and restore, from any backend onto any other."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from memory_core.backups import SUFFIX, BackupIndex, open_backup
from memory_core.errors import InvalidInput, StoreError, StoreUnavailable
from memory_core.messages import Message
from memory_core.portable import (
    export_session,
    export_user,
    import_bundle,
    read_session,
)
from memory_core.portable_format import Bundle, checksum, compact, read_bundle, write_bundle
from memory_core.redaction import Redactor
from memory_core.state import AgentState, KeyFact, set_preference
from memory_core.stores.encryption import Sealed, new_key
from memory_core.stores.files import FileStore
from memory_core.stores.protocols import SessionKey
from memory_core.stores.sql import SqlStore
from memory_core.summary import Summary
from tests.core.stores.backends import NAMES, place
from tests.core.stores.flaky import FlakyStore
from tests.core.stores.making import KEY, NOON, memory, start, texts, turn

NOW = datetime(2026, 4, 1, 9, 30, tzinfo=UTC)
OTHER = SessionKey(KEY.user, "s-2")
EVE = SessionKey("eve", "s-1")


@pytest.fixture
def store(tmp_path):
    """Open a store that holds two users, superseded turns, states and memories."""
    found = SqlStore.open(f"sqlite:///{tmp_path}/memory.db")
    fill(found)
    yield found
    found.close()


def fill(store) -> None:
    """Chat with everything a session can hold."""
    start(store, title="Bäckerei", settings={"top_k": 4}, strategy="layered", origin="s-0")
    by_hand = set_preference(AgentState(KEY.user, KEY.session), "cake", "lemon")
    store.save_state(KEY, by_hand)
    jumped = replace(by_hand, version=4, key_facts=(KeyFact("f", "no nuts", 1),), updated=NOON)
    seed = turn(1, "seed", "dana@example.org", "ok")
    seed = replace(seed, messages=(replace(seed.messages[0], turn=0), *seed.messages[1:]))
    trace = compact({"number": 1, "session": KEY.session, "query": "dana@example.org"})
    store.commit(KEY, replace(seed, state=jumped, state_base=1, trace=trace,
                              records=(memory("r1"),)))  # fmt: skip
    store.save_state(KEY, set_preference(jumped, "tea", "+49 171 1234567"))
    summary = Summary(1, "dana@example.org asked", 4, 2, folded=("a",), turn=2)
    store.commit(KEY, turn(2, "q2", "bad", position=3, summary=summary))
    call = {"block_type": "tool_call", "tool_call_id": "c", "tool_name": "f", "tool_kwargs": {}}
    # fmt: off
    store.commit(KEY, turn(3, "q2", Message("assistant", (call,), {"x": [1]}), position=5,
                           supersedes=2, records=(memory("r3", turn=3, text="x@y.example"),)))
    # fmt: on
    store.mark_indexed(KEY.user, ["r1"])
    start(store, OTHER, used=NOW)
    store.commit(OTHER, turn(1, "one", "two"))
    store.commit(OTHER, turn(2, "all new", replaces_all=True))
    store.update(replace(store.session(OTHER), deleted=True))
    start(store, EVE)
    store.commit(EVE, turn(1, "hers"))


def everything(store, user=KEY.user):
    """Return all that a store knows of a user, in a form to compare."""
    infos = [*store.sessions(user), *store.sessions(user, deleted=True)]
    return {
        "sessions": [read_session(store, info.key) for info in infos],
        "active": [store.messages(info.key) for info in infos],
        "turns": [store.turns(info.key) for info in infos],
        "heads": [store.head(info.key) for info in infos],
        "records": [replace(r, indexed=False) for r in store.records(user)],
    }


@pytest.mark.parametrize("name", NAMES)
def test_a_user_moves_to_any_backend_and_back(store, tmp_path, name):
    """What is exported from one backend is the same after an import into another, and back."""
    with place(name, tmp_path / "there") as there:
        (tmp_path / "there").mkdir(exist_ok=True)
        middle = there.open()
        text = write_bundle(export_user(store, KEY.user), now=NOW)
        done = import_bundle(middle, read_bundle(text))
        assert (len(done.sessions), done.turns, done.records) == (2, 5, 2)
        assert everything(middle) == everything(store)
        assert [r.id for r in middle.records(KEY.user, pending=True)] == ["r1", "r3"]
        assert write_bundle(export_user(middle, KEY.user), now=NOW) == text
    again = SqlStore.open(f"sqlite:///{tmp_path}/again.db")
    import_bundle(again, read_bundle(text))
    assert everything(again) == everything(store)
    again.close()


def test_the_file_is_documented_json(store):
    """One session is one JSON object with a version and a checksum anyone can compute."""
    text = write_bundle(export_session(store, KEY), now=NOW)
    value = json.loads(text)
    assert (value["format"], value["version"], value["user"]) == ("memory-inspector", 1, KEY.user)
    assert value["checksum"] == checksum(value)
    [session] = value["sessions"]
    assert session["turns"][2]["messages"][1]["blocks"][0]["tool_name"] == "f"
    assert session["turns"][0]["trace"]["query"] == "dana@example.org"
    assert [r["id"] for r in value["records"]] == ["r1", "r3"]
    assert "Bäckerei" in text


def test_an_import_keeps_what_is_there(store):
    """A session whose id is in use is not touched; with new ids it is a copy beside it."""
    before = everything(store)
    bundle = export_session(store, KEY)
    done = import_bundle(store, bundle)
    assert (done.sessions, done.kept, done.records) == ((), (KEY,), 0)
    assert everything(store) == before
    copied = import_bundle(store, bundle, new_id=lambda: "copy")
    [key] = copied.sessions
    assert key == SessionKey(KEY.user, "copy")
    assert texts(store, key) == texts(store, KEY)
    assert store.head(key).state == replace(store.head(KEY).state, session="copy")
    assert json.loads(store.turns(key)[0].trace)["session"] == "copy"


def test_a_session_can_be_given_to_another_user(store):
    """An import for another user is theirs in every part, and leaves the first one alone."""
    import_bundle(store, export_session(store, KEY), user="bob")
    bob = SessionKey("bob", KEY.session)
    assert texts(store, bob) == texts(store, KEY)
    assert store.head(bob).state.user == "bob"
    assert {r.user for r in store.records("bob")} == {"bob"}


def test_an_export_can_be_redacted(store, tmp_path):
    """No part of a redacted export holds what was redacted; what was found is counted."""
    bundle = export_user(store, KEY.user, redactor=Redactor())
    text = write_bundle(bundle, now=NOW)
    assert "example.org" not in text.replace(KEY.user, "")
    assert "1234567" not in text
    assert "y.example" not in text
    assert bundle.redacted
    assert bundle.counts["e-mail"] >= 1
    assert json.loads(text)["redacted"] is True
    target = FileStore.open(tmp_path / "redacted")
    assert import_bundle(target, read_bundle(text)).turns == 5
    assert texts(store)[1] == "dana@example.org"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda v: v.update(format="x"), "not exported by"),
        (lambda v: v.update(version=2), "reads version 1"),
        (lambda v: v.update(user="../up"), "looks like a path"),
        (lambda v: v.pop("user"), "'user' is missing"),
        (lambda v: v["sessions"][0].pop("title"), "session 1: the field 'title'"),
        (lambda v: v["sessions"][0].update(created="noon"), "session 1"),
        (lambda v: v["sessions"][0].update(created="2026-01-01T00:00:00"), "no time zone"),
        (lambda v: v["sessions"][0]["turns"][1].update(number=7), "turn 2: It has the number 7"),
        (lambda v: v["sessions"][0]["turns"].pop(0), "turn 1"),
        (lambda v: v["sessions"][0]["turns"][0]["messages"].pop(0), "positions"),
        (lambda v: v["sessions"][0]["turns"][0]["messages"][0].update(id="a\nb"), "control"),
        (lambda v: v["sessions"][0]["turns"][0]["messages"][0].update(tokens="x"), "turn 1"),
        (lambda v: v["sessions"][0]["states"][0]["state"].update(user="eve"), "another session"),
        (lambda v: v["sessions"][0]["states"].reverse(), "versions"),
        (lambda v: v["sessions"].append(v["sessions"][0]), "same id"),
        (lambda v: v["records"][0].update(text=5), "record 1: text is expected"),
        (lambda v: v.update(sessions=5), "the file"),
    ],
)
def test_a_file_that_cannot_be_right_is_refused(store, change, words):
    """Whatever is wrong in a file is told with its place, before anything is written."""
    value = json.loads(write_bundle(export_session(store, KEY), now=NOW))
    change(value)
    text = json.dumps({**value, "checksum": checksum(value)})
    with pytest.raises(InvalidInput, match=words):
        read_bundle(text)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", "[" * 100_000, '{"format": "x"}', "\ufeff{}"]
)
def test_files_of_another_kind_are_refused(text):
    """What is no export at all gets one sentence, never a traceback of the JSON reader."""
    with pytest.raises(InvalidInput):
        read_bundle(text)


def test_a_changed_file_is_noticed(store):
    """A file edited by hand or cut on the way does not fit its checksum."""
    text = write_bundle(export_session(store, KEY), now=NOW)
    for changed in (text.replace("seed", "sead"), text.replace('"tokens": 3', '"tokens": 4', 1)):
        with pytest.raises(InvalidInput, match="checksum"):
            read_bundle(changed)
    value = json.loads(text)
    value["sessions"][0]["title"] = "\ud83d"
    with pytest.raises(InvalidInput, match="half of a character"):
        read_bundle(json.dumps(value))


def test_an_import_that_breaks_off_leaves_no_half_session(store, tmp_path):
    """When the store goes away in the middle, the session that was being written is erased."""
    flaky = FlakyStore(SqlStore.open(f"sqlite:///{tmp_path}/target.db"))
    commit, left = flaky.inner.commit, [2]

    def breaks_off(key, record):
        if not left[0]:
            raise StoreUnavailable("gone")
        left[0] -= 1
        commit(key, record)

    flaky.inner.commit = breaks_off
    with pytest.raises(StoreUnavailable):
        import_bundle(flaky, export_session(store, KEY))
    assert flaky.sessions(KEY.user) == []
    flaky.inner.close()


def test_a_backup_is_restored_onto_another_backend(store, tmp_path):
    """Everything of everybody comes back elsewhere, and restoring twice changes nothing."""
    index = BackupIndex(tmp_path / "backups")
    assert index.all() == []
    heard = []
    backup = index.create(store, now=NOW, progress=lambda done, of: heard.append((done, of)))
    assert heard == [(1, 2), (2, 2)]
    assert index.all() == [backup] == [open_backup(backup.path)]
    assert (backup.users, backup.created) == (2, NOW)
    target = FileStore.open(tmp_path / "files")
    done = index.restore(backup.path, target)
    assert (len(done.sessions), done.turns, len(done.kept)) == (3, 6, 0)
    for user in (KEY.user, "eve"):
        assert everything(target, user) == everything(store, user)
    again = index.restore(backup.path, target)
    assert (len(again.sessions), len(again.kept), again.records) == (0, 3, 0)
    assert everything(target) == everything(store)


def test_a_damaged_backup_is_refused_before_anything_is_written(store, tmp_path):
    """A backup that was cut off or changed is told so; a later one is listed all the same."""
    index = BackupIndex(tmp_path / "backups")
    backup = index.create(store, now=NOW)
    data = backup.path.read_bytes()
    target = FileStore.open(tmp_path / "files")
    for damaged in (data[:-20], data[: len(data) // 2], b"", b"no gzip"):
        backup.path.write_bytes(damaged)
        with pytest.raises(StoreError):
            index.restore(backup.path, target)
    assert target.users() == []
    index.create(store, now=NOW.replace(hour=10))
    (tmp_path / "backups" / f"x{SUFFIX}").write_bytes(b"junk")
    assert [b.created.hour for b in index.all() if b.users] == [10]


def test_a_failed_backup_leaves_nothing(tmp_path, store):
    """A backup that breaks off is not there; the ones before stay."""
    index = BackupIndex(tmp_path / "backups")
    kept = index.create(store, now=NOW)
    flaky = FlakyStore(store)
    with pytest.raises(StoreUnavailable):
        index.create(
            flaky,
            now=NOW.replace(hour=11),
            progress=lambda done, of: setattr(flaky, "mode", "down"),
        )
    assert [p.name for p in (tmp_path / "backups").iterdir()] == [kept.path.name]


def test_a_sealed_backup_needs_its_key(store, tmp_path):
    """With a key no word of a chat is in the file, and without it nothing can be restored."""
    key = new_key()
    backup = BackupIndex(tmp_path / "b", cipher=Sealed.of([key])).create(store, now=NOW)
    plain = gzip.decompress(backup.path.read_bytes())
    assert b"hers" not in plain
    assert b"Bakery" not in plain
    target = FileStore.open(tmp_path / "files")
    with pytest.raises(StoreError, match="no key is set"):
        BackupIndex(tmp_path / "b").restore(backup.path, target)
    BackupIndex(tmp_path / "b", cipher=Sealed.of([new_key(), key])).restore(backup.path, target)
    assert everything(target) == everything(store)


def test_an_empty_user_is_an_empty_file(store):
    """A user without anything exports and imports as nothing."""
    bundle = export_user(store, "nobody")
    assert bundle == Bundle("nobody", ())
    assert read_bundle(write_bundle(bundle, now=NOW)) == bundle
    assert import_bundle(store, bundle).sessions == ()
