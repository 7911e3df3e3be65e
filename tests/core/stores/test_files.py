"""The store in plain files: what a killed program leaves behind."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from memory_core.errors import StoreError, StoreTooNew, StoreUnavailable
from memory_core.stores.files import FileStore
from memory_core.stores.files_disk import Edit, Journal, dump_line, load_line, replace_file
from memory_core.stores.files_log import Log
from memory_core.stores.files_records import RecordsFile
from memory_core.stores.protocols import SessionKey
from tests.core.stores.making import KEY, memory, start, texts, turn


@pytest.fixture
def store(tmp_path):
    """Open a file store in an empty folder."""
    return FileStore.open(tmp_path)


def log_of(root):
    """Return the one log file below a folder."""
    [path] = root.rglob("sessions/*.jsonl")
    return path


def test_a_log_cut_anywhere_holds_whole_turns(store, tmp_path):
    """Wherever the newest line was cut off, the turns before it are there and writing goes on."""
    start(store)
    store.commit(KEY, turn(1, "one", "ok"))
    path = log_of(tmp_path)
    whole = path.stat().st_size
    store.commit(KEY, turn(2, "two", "ok"))
    data = path.read_bytes()
    for cut in (*range(whole, len(data), 37), len(data) - 1):
        path.write_bytes(data[:cut])
        again = FileStore.open(tmp_path)
        assert again.head(KEY).turn == 1
        assert texts(again) == ["one", "ok"]
        again.commit(KEY, turn(2, "anew"))
        assert texts(FileStore.open(tmp_path)) == ["one", "ok", "anew"]


def test_garbage_at_the_end_is_passed_over(store, tmp_path):
    """A last line whose bytes never reached the disk does not hide the turns before it."""
    start(store)
    store.commit(KEY, turn(1, "one", "ok"))
    path = log_of(tmp_path)
    for garbage in (b"\0" * 5000, b'{"crc":"00000000","kind":"turn"}\n', b"\n", b"\xff\n"):
        data = path.read_bytes()
        path.write_bytes(data + garbage)
        assert texts(store) == ["one", "ok"]
        path.write_bytes(data)


def test_damage_in_the_middle_names_the_place(store, tmp_path):
    """A damaged older line is an error that says where, not a silent loss."""
    start(store)
    for n in (1, 2, 3):
        store.commit(KEY, turn(n, f"q{n}", "ok"))
    path = log_of(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    lines[1] = lines[1].replace(b"q2", b"xx")
    path.write_bytes(b"".join(lines))
    with pytest.raises(StoreError, match=f"damaged at byte {len(lines[0])}"):
        store.messages(KEY)
    assert texts(store, first=4) == ["q3", "ok"]


def test_a_turn_killed_between_its_files_is_finished(store, tmp_path, monkeypatch):
    """Once the journal is on disk a turn and its memories come together, after any kill."""
    start(store)
    store.commit(KEY, turn(1, "one", "ok", records=(memory("r1"),)))

    original = Journal._do
    for done in range(4):
        number = done + 2
        record = turn(
            number,
            f"q{number}",
            "ok",
            title=f"T{number}",
            records=(memory(f"r{number}", turn=number),),
        )

        def killed(self, edits, done=done):
            assert len(edits) == 3
            original(self, edits[:done])
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(Journal, "_do", killed)
            with pytest.raises(KeyboardInterrupt):
                store.commit(KEY, record)
        again = FileStore.open(tmp_path)
        assert again.head(KEY).turn == number
        assert [r.id for r in again.records(KEY.user)] == [f"r{n}" for n in range(1, number + 1)]
        assert again.session(KEY).title == f"T{number}"
        store.commit(KEY, record)  # the writer tries again and is told that all is well
        assert store.session(KEY).messages == 2 * number


def test_a_torn_journal_changes_nothing(store, tmp_path):
    """A journal that was not finished is thrown away."""
    start(store)
    store.commit(KEY, turn(1, "one", records=(memory("r1"),)))
    [journal] = tmp_path.rglob("journal")
    journal.write_bytes(b'12345678 99\n[{"name": "user.json", "text": "gone", "at": null}]')
    assert FileStore.open(tmp_path).head(KEY).turn == 1
    assert journal.read_bytes() == b""


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    """A file is written beside its place and moved there: a failure keeps what was saved."""
    path = tmp_path / "chat.json"
    replace_file(path, b"an older saved chat")

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        replace_file(path, b"new")
    assert path.read_bytes() == b"an older saved chat"


def test_a_full_disk_keeps_the_log_whole(store, tmp_path, monkeypatch):
    """A turn that cannot be written raises StoreUnavailable and leaves no part of it."""
    start(store)
    store.commit(KEY, turn(1, "one", "ok"))
    before = log_of(tmp_path).read_bytes()

    def full(_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        with pytest.raises(StoreUnavailable, match="No space left"):
            store.commit(KEY, turn(2, "two", "ok"))
    assert log_of(tmp_path).read_bytes() == before
    store.commit(KEY, turn(2, "two", "ok"))


def test_names_are_safe_and_readable(store, tmp_path):
    """Folders are named by harmless letters and a digest, so no id can lead elsewhere."""
    for user in ("Dana Müller", "dana-m-ller", "..%2f..", "CON", "x" * 200):
        start(store, SessionKey(user, "s"))
    names = sorted(p.name for p in (tmp_path / "users").iterdir())
    assert len(names) == 5
    assert all(set(n) <= set("abcdefghijklmnopqrstuvwxyz0123456789-") for n in names)
    assert any(n.startswith("dana-m-ller-") for n in names)


def test_a_newer_layout_is_refused(store, tmp_path):
    """A folder of a newer program is left alone."""
    (tmp_path / "version.json").write_text(json.dumps({"version": 99}))
    with pytest.raises(StoreTooNew):
        FileStore.open(tmp_path)


def test_the_records_log_is_compacted(tmp_path):
    """Out-of-date operations are dropped in time, and other programs notice the new file."""
    (tmp_path / "records.jsonl").touch()
    (tmp_path / "records.jsonl").unlink()
    mine, theirs, journal = RecordsFile(tmp_path), RecordsFile(tmp_path), Journal(tmp_path)
    row = {"id": "a", "session_id": "s", "turn": 1, "status": "active", "indexed": 0, "body": ""}
    for n in range(1100):
        journal.apply([mine.edit(mine.put([{**row, "body": str(n)}]))])
        if n % 100 == 0:
            assert [r["body"] for r in theirs.rows()] == [str(n)]
    lines = (tmp_path / "records.jsonl").read_bytes().count(b"\n")
    assert lines < 150
    assert [r["body"] for r in theirs.rows(pending=True)] == ["1099"]


def test_a_log_is_read_backwards_across_blocks(tmp_path):
    """Lines far longer than a block are read whole, newest first, each at its place."""
    path = tmp_path / "log.jsonl"
    values = [{"kind": "turn", "text": "é" * size} for size in (1, 70_000, 3, 200_000, 0)]
    path.write_text("".join(dump_line(v) for v in values), encoding="utf-8")
    log = Log(path)
    entries = list(log.backwards())
    assert [len(e.value["text"]) for e in entries] == [0, 200_000, 3, 70_000, 1]
    assert all(log.at(e.start) == e.value for e in entries)
    assert [e.end for e in entries][1:] == [e.start for e in entries][:-1]


def test_a_line_carries_its_checksum():
    """A changed byte anywhere in a line is noticed."""
    line = dump_line({"a": "text"}).encode()
    assert json.loads(line)["a"] == "text"
    for place in range(len(line) - 1):
        changed = line[:place] + bytes([line[place] ^ 1]) + line[place + 1 :]
        assert load_line(changed) is None


def test_edits_are_relative(tmp_path):
    """An edit may delete, replace and append; a single one needs no journal."""
    journal = Journal(tmp_path)
    journal.apply([Edit("a", "one")])
    journal.apply([Edit("a", "two", 3)])
    assert not (tmp_path / "journal").exists()
    journal.apply([Edit("a", None), Edit("b", "x")])
    assert [p.name for p in sorted(tmp_path.iterdir())] == ["b", "journal"]


def test_the_next_turn_reads_only_the_end(store, tmp_path, monkeypatch):
    """Committing and resuming read the same number of entries however long the log is."""
    start(store)
    read = []
    original = Log.backwards

    def counted(self):
        for entry in original(self):
            read.append(entry.start)
            yield entry

    monkeypatch.setattr(Log, "backwards", counted)
    costs = []
    for n in range(1, 41):
        read.clear()
        head = store.head(KEY)
        state = replace(head.state, version=n, step=str(n)) if n == 1 else None
        store.commit(KEY, turn(n, "q", "a", state=state, supersedes=n - 1 if n > 1 else 0,
                               position=head.messages))  # fmt: skip
        costs.append(len(read))
    assert max(costs) == costs[1] == costs[-1]
