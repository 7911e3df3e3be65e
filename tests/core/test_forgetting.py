"""Forget me: no byte of a planted marker is left anywhere, and nobody else loses anything."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

from memory_core.backups import BackupIndex
from memory_core.errors import InvalidInput
from memory_core.forgetting import SERVERS, forget_me
from memory_core.portable import export_user
from memory_core.scrubbing import scrub_chroma
from memory_core.stores.encryption import Sealed, new_key
from memory_core.stores.protocols import SessionKey
from memory_core.stores.vectors.base import CollectionSpec, Entry
from memory_core.stores.vectors.chroma import open_chroma
from memory_core.stores.vectors.simple import SimpleDatabase
from tests.core.stores.backends import NAMES, place
from tests.core.stores.making import NOON, memory, start, texts, turn

USERS = ("zebra-user", "other")


def chat(store, user):
    """Let a user say their name, three turns long."""
    key = start(store, SessionKey(user, f"{user}-session"), title=f"{user} title")
    for n in (1, 2, 3):
        record = memory(f"r{n}", key, turn=n, text=f"{user} fact {n}")
        store.commit(key, turn(n, f"{user} says {n}", "ok", records=(record,)))
    return key


def embed(database, user):
    """Fill a collection of a user."""
    spec = CollectionSpec(title=f"{user} / m", model="m", dimension=8, user=user)
    rng = np.random.default_rng(len(user))
    database.open(spec).add(
        [
            Entry(f"{user}-{n}", f"{user} text {n}", rng.random(8, "float32"), {"session": user})
            for n in range(30)
        ]
    )
    return spec


def bytes_below(folder) -> bytes:
    """Return the names and contents of all files, backups unpacked."""
    parts = []
    for path in sorted(folder.rglob("*")):
        parts.append(str(path.relative_to(folder)).encode())
        if path.is_file():
            data = path.read_bytes()
            parts += [data, gzip.decompress(data) if path.suffix == ".gz" else b""]
    return b"\n".join(parts)


@pytest.mark.parametrize("name", NAMES)
def test_no_byte_is_left_anywhere(tmp_path, name):
    """Rows, vectors and backups of a user go; those of others are as they were."""
    (tmp_path / "store").mkdir()
    with place(name, tmp_path / "store") as backend:
        store = backend.open()
        vectors = open_chroma(path=tmp_path / "chroma")
        backups = BackupIndex(tmp_path / "backups")
        for user in USERS:
            chat(store, user)
            embed(vectors, user)
        backups.create(store, now=NOON)
        others = export_user(store, "other")
        assert b"zebra" in bytes_below(tmp_path / "chroma")
        report = forget_me(
            "zebra-user",
            store=store,
            vectors=vectors,
            vector_folder=tmp_path / "chroma",
            backups=backups,
        )
        assert report.rows == {"sessions": 1, "messages": 6, "turns": 3, "states": 0, "records": 3}
        assert (report.collections, report.vectors, len(report.backups)) == (1, 30, 1)
        assert (SERVERS in report.notes) == (name in ("postgresql", "redis"))
        assert b"zebra" not in backend.raw_bytes()
        assert b"zebra" not in bytes_below(tmp_path)
        assert export_user(store, "other") == others
        spec = CollectionSpec(title="other / m", model="m", dimension=8, user="other")
        kept = vectors.open(spec)
        assert kept.count() == 30
        assert len(kept.query(np.ones(8, "float32"), 5)) == 5
        restored = backups.restore(backups.all()[0].path, store)
        assert [k.user for k in restored.kept] == ["other"]
        assert restored.sessions == ()
        backend.close()
        assert b"zebra" not in backend.raw_bytes()
        again = forget_me("zebra-user", store=backend.open(), vectors=vectors, backups=backups)
        assert again.nothing


def test_vectors_on_plain_files_go_too(tmp_path):
    """The store for people without Chroma is forgotten in as well."""
    with place("files", tmp_path) as backend:
        store, vectors = backend.open(), SimpleDatabase(tmp_path / "vectors")
        for user in USERS:
            chat(store, user)
            embed(vectors, user)
        report = forget_me("zebra-user", store=store, vectors=vectors)
        assert report.collections == 1
        assert b"zebra" not in bytes_below(tmp_path)
        assert texts(store, SessionKey("other", "other-session"))[0] == "other says 1"


def test_an_id_that_cannot_be_one_is_refused(tmp_path):
    """Asking for the impossible is refused before anything is touched."""
    with place("files", tmp_path) as backend:
        store = backend.open()
        chat(store, "other")
        for bad in ("", "..", "a/b"):
            with pytest.raises(InvalidInput):
                forget_me(bad, store=store)
        assert store.users() == ["other"]


def test_a_sealed_backup_forgets_without_its_key(tmp_path):
    """A user can be taken out of old backups by somebody who cannot read them."""
    with place("sqlite", tmp_path) as backend:
        store = backend.open()
        for user in USERS:
            chat(store, user)
        backup = BackupIndex(tmp_path / "b", cipher=Sealed.of([new_key()])).create(store, now=NOON)
        assert BackupIndex(tmp_path / "b").forget("zebra-user") == (backup.path.name,)
        lines = gzip.decompress(backup.path.read_bytes()).splitlines()
        assert [json.loads(line).get("user") for line in lines] == [None, "other", None]
        assert json.loads(lines[0])["users"] == 1


def test_scrubbing_leaves_strange_files_alone(tmp_path):
    """A folder that is no database, and index files of another layout, are not touched."""
    scrub_chroma(tmp_path)
    vectors = open_chroma(path=tmp_path)
    embed(vectors, "other")
    [header] = tmp_path.rglob("header.bin")
    strange = header.parent / "data_level0.bin"
    strange.write_bytes(strange.read_bytes() + b"?")
    before = strange.read_bytes()
    (tmp_path / "my notes").mkdir()
    scrub_chroma(tmp_path)
    header.write_bytes(b"short")
    scrub_chroma(tmp_path)
    assert strange.read_bytes() == before
    assert (tmp_path / "my notes").is_dir()
