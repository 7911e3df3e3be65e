"""One contract for every vector index, and what is special about Chroma's places."""

from __future__ import annotations

import logging
import shutil
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import chromadb
import numpy as np
import pytest
from chromadb.config import Settings
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core import VectorStoreIndex
from llama_index.core.embeddings import MockEmbedding
from llama_index.core.vector_stores.simple import SimpleVectorStore
from llama_index.vector_stores.chroma import ChromaVectorStore

from memory_core.errors import (
    CollectionGone,
    CollectionMismatch,
    IdInUse,
    InvalidInput,
    PartialWrite,
    VectorError,
)
from memory_core.stores.vectors.base import (
    CollectionSpec,
    Entry,
    VectorDatabase,
    reembed,
    safe_name,
)
from memory_core.stores.vectors.chroma import ChromaDatabase, ChromaIndex, open_chroma
from memory_core.stores.vectors.simple import SimpleDatabase

SPEC = CollectionSpec(title="Dana's notes", model="model A", dimension=4, user="dana")


def entry(name: str, *numbers: float, text: str = "", **metadata: Any) -> Entry:
    """Return a record."""
    return Entry(name, text or f"text of {name}", np.array(numbers, dtype=np.float32), metadata)


def unit(seed: int, dimension: int = 4) -> np.ndarray:
    """Return a random direction."""
    vector = np.random.default_rng(seed).standard_normal(dimension)
    return (vector / np.linalg.norm(vector)).astype(np.float32)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start a real Chroma server on a free port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = tmp_path_factory.mktemp("chroma-server")
    program = Path(sys.executable).parent / "chroma"
    command = [program, "run", "--host", "127.0.0.1", "--port", str(port), "--path", folder]
    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        url = f"http://127.0.0.1:{port}"
        try:
            _await_port(port, process)
            yield url
        finally:
            process.terminate()
            process.wait(10)


def _await_port(port: int, process: subprocess.Popen[bytes]) -> None:
    for _ in range(200):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        assert process.poll() is None, "the Chroma server ended at once"
        time.sleep(0.1)
    pytest.fail("the Chroma server did not start")


@pytest.fixture(scope="session")
def on_server(server: str) -> ChromaDatabase:
    """Return one client of the server for all tests."""
    return open_chroma(url=server)


@pytest.fixture(params=["files", "memory", "folder", "server"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[VectorDatabase]:
    """Return each kind of database, empty."""
    if request.param == "files":
        yield SimpleDatabase(tmp_path / "vectors")
    elif request.param == "memory":
        yield open_chroma()
    elif request.param == "folder":
        yield open_chroma(path=tmp_path / "chroma")
    else:
        shared = request.getfixturevalue("on_server")
        yield shared
        for found in shared.collections():
            shared.drop(found.name)


class TestContract:
    def test_what_was_added_comes_back(self, database: VectorDatabase) -> None:
        """Records come back with text, vector and metadata, in the order asked for."""
        index = database.open(SPEC)
        index.add([entry("a", 1, 0, 0, 0, turn=3, kind="turn"), entry("b", 0, 2, 0, 0, turn=4)])
        b, a = index.read(["b", "unknown", "a"])
        assert (a.id, a.text, dict(a.metadata)) == ("a", "text of a", {"turn": 3, "kind": "turn"})
        assert b.vector.tolist() == [0, 2, 0, 0]
        assert set(index.ids()) == {"a", "b"}
        assert index.count() == 2
        assert {i: v.tolist() for i, v in index.vectors(["a", "?"]).items()} == {"a": [1, 0, 0, 0]}

    def test_nearest_first_with_raw_distances(self, database: VectorDatabase) -> None:
        """A search returns the nearest first with the distance under the metric it names."""
        index = database.open(SPEC)
        index.add([entry("same", 3, 4, 0, 0), entry("across", -4, 3, 0, 0)])
        index.add([entry("opposite", -3, -4, 0, 0)])
        near = index.query(np.array([3, 4, 0, 0], dtype=np.float32), 10)
        assert [n.id for n in near] == ["same", "across", "opposite"]
        assert [n.distance for n in near] == pytest.approx([0, 1, 2], abs=1e-5)
        assert index.metric == "cosine"

    def test_empty_collection(self, database: VectorDatabase) -> None:
        """An empty collection answers everything with nothing."""
        index = database.open(SPEC)
        assert index.query(unit(0), 5) == []
        assert (index.ids(), index.read(["x"]), index.vectors(["x"]), index.count()) == (
            [],
            [],
            {},
            0,
        )
        index.delete(["x"])
        index.add([])
        assert index.describe().searchable == 0

    def test_c22_edit_with_same_id(self, database: VectorDatabase, case: Any) -> None:
        """An edit replaces text and vector; a new record with an id in use is refused."""
        given_case = case("C22")
        first, edited = given_case["input"]["first"], given_case["input"]["edited"]
        index = database.open(SPEC)
        index.add([entry(first["id"], 1, 0, 0, 0, text=first["text"])])
        changed = entry(edited["id"], 0, 1, 0, 0, text=edited["text"])
        with pytest.raises(IdInUse, match=edited["id"]):
            index.add([changed])
        index.add([changed], replace=True)
        check = given_case["expected"]["check"]
        assert index.count() == check["count"]
        assert index.read([edited["id"]])[0].text == check["text"]
        near = index.query(np.array([0, 1, 0, 0], dtype=np.float32), 1)
        assert near[0].distance == pytest.approx(0, abs=1e-5)

    def test_the_same_record_again_is_stored_already(self, database: VectorDatabase) -> None:
        """Adding the very same records again changes nothing, so a call can be repeated."""
        index = database.open(SPEC)
        records = [Entry(f"r{i}", f"text {i}", unit(i)) for i in range(5)]
        index.add(records[:3])
        index.add(records)
        assert index.count() == 5

    def test_records_no_index_can_hold(self, database: VectorDatabase) -> None:
        """An id twice in one call, no id, or numbers that are none are refused before writing."""
        index = database.open(SPEC)
        for bad in (
            [entry("a", 1, 0, 0, 0), entry("a", 0, 1, 0, 0)],
            [entry("", 1, 0, 0, 0)],
            [entry("n", float("nan"), 0, 0, 0)],
            [entry("empty")],
        ):
            with pytest.raises(InvalidInput):
                index.add(bad)
        assert index.count() == 0

    def test_c19_other_dimension_is_refused(self, database: VectorDatabase) -> None:
        """With another dimension search and add name both numbers and both models; all is kept."""
        database.open(SPEC).add([entry("a", 1, 0, 0, 0)])
        other = database.open(CollectionSpec(SPEC.title, "model B", 2, "dana"))
        for attempt in (
            lambda: other.query(np.ones(2, dtype=np.float32), 1),
            lambda: other.add([entry("b", 1, 0)]),
        ):
            with pytest.raises(CollectionMismatch, match=r"4 numbers.*model A.*model B made 2"):
                attempt()
        found = other.describe()
        assert (found.dimension, found.count, found.model) == (4, 1, "model A")
        assert "re-embed" in found.notices[0]
        assert "Re-embed" in CollectionMismatch.next_step

    def test_c19_same_dimension_other_model_warns(self, database: VectorDatabase) -> None:
        """The database cannot notice another model of the same size; the app says so."""
        database.open(SPEC).add([entry("a", 1, 0, 0, 0)])
        found = database.open(CollectionSpec(SPEC.title, "model B", 4, "dana")).describe()
        assert len(found.notices) == 1
        assert "model A" in found.notices[0]
        assert "model B" in found.notices[0]
        assert database.open(SPEC).describe().notices == ()

    def test_reembedding_goes_on_where_it_stopped(self, database: VectorDatabase) -> None:
        """Re-embedding fills another collection, resumes after a failure, changes no source."""
        source = database.open(SPEC)
        source.add([Entry(f"r{i}", f"text {i}", unit(i)) for i in range(7)])
        target = database.open(CollectionSpec("new", "model B", 2, "dana"))
        steps: list[tuple[int, int]] = []
        calls = 0

        def embed(texts: Sequence[str]) -> np.ndarray:
            nonlocal calls
            calls += 1
            if calls == 3:
                raise VectorError("the model went away")
            return np.array([[len(t), 1] for t in texts], dtype=np.float32)

        def run() -> int:
            return reembed(
                source, target, embed=embed, progress=lambda *at: steps.append(at), batch=2
            )

        with pytest.raises(VectorError):
            run()
        assert target.count() == 4
        assert run() == 3
        assert steps == [(0, 7), (2, 7), (4, 7), (4, 7), (6, 7), (7, 7)]
        assert (source.count(), target.count()) == (7, 7)
        assert {e.id: e.text for e in target.read(target.ids())} == {
            f"r{i}": f"text {i}" for i in range(7)
        }

    def test_c29_names_that_users_type(self, database: VectorDatabase, case: Any) -> None:
        """Any name but an empty one is kept as title; different names are different collections."""
        names = case("C29")["input"]["names"]
        for number, name in enumerate(n for n in names if n):
            database.open(CollectionSpec(name, "m", 1)).add([entry("a", 1 + number)])
        found = database.collections()
        assert sorted(c.title for c in found) == sorted(n for n in names if n)
        assert all(c.count == 1 for c in found)
        with pytest.raises(InvalidInput, match="needs at least one"):
            database.open(CollectionSpec("", "m", 1))

    def test_hostile_titles_and_texts(self, database: VectorDatabase) -> None:
        """Halves of emoji, path tricks and markup are carried, not obeyed."""
        for title in (
            "../../etc/passwd",
            "a\0b",
            "half \ud83d",
            "<b>x</b>",
            "日本語メモ",
            "x" * 2_000,
        ):
            index = database.open(CollectionSpec(title, "m", 1))
            index.add([entry("a", 1, text="<script>\u202e 你好")])
            assert index.read(["a"])[0].text == "<script>\u202e 你好"
        with pytest.raises(InvalidInput, match="2,001"):
            database.open(CollectionSpec("x" * 2_001, "m", 1))

    def test_dropping(self, database: VectorDatabase) -> None:
        """A dropped collection is gone, its index says so, an unknown name is ignored."""
        index = database.open(SPEC)
        index.add([entry("a", 1, 0, 0, 0)])
        database.drop(index.describe().name)
        database.drop("never-there")
        assert database.collections() == []
        with pytest.raises(CollectionGone):
            index.count()
        assert database.open(SPEC).count() == 0


@given(st.lists(st.text(min_size=1, max_size=30), min_size=2, max_size=20, unique=True))
def test_safe_names_are_safe_and_distinct(titles: list[str]) -> None:
    """Whatever people type becomes a name every backend takes, and never that of another title."""
    titles = [t for t in titles if t.strip()]
    names = [safe_name(t) for t in titles]
    assert len(set(names)) == len(titles)
    for name in names:
        assert 3 <= len(name) <= 512
        assert name.replace("-", "").isalnum()
        assert name.isascii()
        assert name[0] != "-" != name[-1]


def test_c29_pattern(case: Any) -> None:
    """Safe names have the form the case asks for."""
    import re

    given_case = case("C29")
    pattern = re.compile(given_case["expected"]["check"]["safe_name_pattern"])
    names = [safe_name(n) for n in given_case["input"]["names"] if n]
    assert all(pattern.fullmatch(n) for n in names)
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("metric", ["l2", "cosine", "ip"])
def test_c18_raw_distances(case: Any, metric: str) -> None:
    """The distances shown are Chroma's own under each metric, whose name is shown with them."""
    given_case = case("C18")
    index = open_chroma().open(CollectionSpec("c18", "m", 2, metric=metric))
    index.add([entry(i, *v) for i, v in given_case["input"]["records"].items()])
    near = index.query(np.array(given_case["input"]["query"], dtype=np.float32), 3)
    wanted = given_case["expected"]["check"]["raw_distance"][metric]
    assert {n.id: n.distance for n in near} == pytest.approx(wanted, abs=1e-4)
    assert index.describe().metric == metric


def test_c20_more_records_than_one_batch(case: Any) -> None:
    """Any number of records is stored, in steps the client allows."""
    total = case("C20")["input"]["records"]
    database = open_chroma()
    client = database.place.client
    assert client.get_max_batch_size() < total
    client.create_collection("many", embedding_function=None)  # by Chroma's cheaper defaults
    index = database.opened("many")
    index.add([entry(str(i), np.cos(i), np.sin(i)) for i in range(total)])
    assert index.count() == case("C20")["expected"]["check"]["count"]


def test_c20_a_failing_step_says_how_far_it_came(monkeypatch: pytest.MonkeyPatch) -> None:
    """When a later step fails the error counts what is stored, and the same call goes on."""
    index = open_chroma().open(CollectionSpec("many", "m", 2))
    records = [entry(str(i), np.cos(i), np.sin(i)) for i in range(10)]
    client = index._place.client
    monkeypatch.setattr(client, "get_max_batch_size", lambda: 4)
    write, calls = ChromaVectorStore.add, []

    def failing(self: Any, nodes: Any) -> Any:
        calls.append(len(nodes))
        if len(calls) == 2:
            raise ValueError("disk full")
        return write(self, nodes)

    monkeypatch.setattr(ChromaVectorStore, "add", failing)
    with pytest.raises(PartialWrite, match="4 of 10") as caught:
        index.add(records)
    assert (caught.value.stored, caught.value.total, index.count()) == (4, 10, 4)
    index.add(records)
    assert index.count() == 10
    assert calls == [4, 4, 4, 2]


def test_c27_metric_request_ignored(case: Any) -> None:
    """The metric shown is the collection's; that a wish was not applied is said, with the way."""
    given_case = case("C27")
    have, wish = given_case["input"]["created_with"], given_case["input"]["opened_with"]
    database = open_chroma()
    database.open(CollectionSpec("c27", "m", 2, metric=have)).add([entry("a", 3, 4)])
    index = database.open(CollectionSpec("c27", "m", 2, metric=wish))
    found = index.describe()
    assert found.metric == index.metric == given_case["expected"]["check"]["metric_shown"]
    assert "the wish for cosine was not applied" in found.notices[0]
    copy = database.open(CollectionSpec("c27 by cosine", "m", 2, metric=wish))
    assert reembed(index, copy) == 1
    assert (copy.describe().metric, copy.read(["a"])[0].vector.tolist()) == (wish, [3, 4])


def test_hnsw_parameters_are_set_at_creation() -> None:
    """New collections are made for exactness, since the parameters count only then."""
    collection = open_chroma().open(SPEC).collection
    assert collection.configuration["hnsw"] | {
        "space": "cosine",
        "ef_construction": 400,
        "ef_search": 400,
        "max_neighbors": 32,
    } == dict(collection.configuration["hnsw"])


def test_collections_of_other_programs(tmp_path: Path) -> None:
    """A collection that another program made is described as it is: l2, no model, its dimension."""
    database = open_chroma(path=tmp_path)
    made = database.place.client.create_collection("theirs", embedding_function=None)
    made.add(ids=["x"], embeddings=[[1.0, 2.0, 3.0]])
    (found,) = database.collections()
    assert (found.title, found.model, found.dimension, found.metric) == ("theirs", "", 3, "l2")
    assert database.opened("theirs").read(["x"])[0].vector.tolist() == [1, 2, 3]


def test_llama_index_opens_our_collections(tmp_path: Path) -> None:
    """What we write is what LlamaIndex reads, from Chroma and from files."""
    index = open_chroma(path=tmp_path / "chroma").open(SPEC)
    index.add([entry("a", 1, 0, 0, 0, turn=3)])
    index.add([entry("a", 0, 1, 0, 0, turn=5)], replace=True)
    store = ChromaVectorStore(chroma_collection=index.collection)
    retriever = VectorStoreIndex.from_vector_store(
        store, embed_model=MockEmbedding(embed_dim=4)
    ).as_retriever()
    (node,) = retriever.retrieve("anything")
    assert (node.node.node_id, node.node.get_content(), node.node.metadata) == (
        "a",
        "text of a",
        {"turn": 5},
    )
    files = SimpleDatabase(tmp_path / "files")
    simple = files.open(SPEC)
    simple.add([entry("a", 1, 0, 0, 0)])
    loaded = SimpleVectorStore.from_persist_path(str(simple._file))
    assert loaded.get("a") == [1, 0, 0, 0]


@pytest.mark.parametrize("kind", ["chroma", "files"])
def test_no_text_leaves_when_not_wanted(tmp_path: Path, kind: str) -> None:
    """Without ``keep_text`` no byte of a text or its metadata is in any file."""
    database: Any
    if kind == "chroma":
        database = open_chroma(path=tmp_path, keep_text=False)
    else:
        database = SimpleDatabase(tmp_path, keep_text=False)
    index = database.open(SPEC)
    index.add([entry("a", 1, 0, 0, 0, text="planted-marker", session="other-marker")])
    index.add([entry("a", 0, 1, 0, 0, text="planted-marker-2", session="x")], replace=True)
    index.add([entry("a", 0, 1, 0, 0, text="planted-marker-2")])
    assert index.read(["a"])[0].text == ""
    for file in tmp_path.rglob("*"):
        assert not file.is_file() or b"marker" not in file.read_bytes()


def test_c24_in_memory_databases_are_apart(case: Any) -> None:
    """Visitors with in-memory databases never see each other, whatever settings others use."""
    given_case = case("C24")
    theirs = chromadb.EphemeralClient()
    before = [found.name for found in theirs.list_collections()]  # of other tests, if any
    first, second = open_chroma(), open_chroma()
    spec = CollectionSpec(given_case["input"]["visitor_1"]["collection"], "m", 1)
    first.open(spec).add([entry("a", 1, text=given_case["input"]["visitor_1"]["document"])])
    seen = [e.text for e in second.open(spec).read(second.open(spec).ids())]
    assert seen == given_case["expected"]["check"]["visitor_2_documents"]
    for client in (theirs, chromadb.EphemeralClient()):
        assert [found.name for found in client.list_collections()] == before
    with pytest.raises(ValueError, match="different settings"):
        chromadb.EphemeralClient(settings=Settings(allow_reset=True))
    assert open_chroma().collections() == []
    first.reload()
    assert first.open(spec).count() == 1


def test_c24_a_folder_opened_with_other_settings(tmp_path: Path) -> None:
    """A folder that this process opened with other settings before is shared, not refused."""
    chromadb.PersistentClient(str(tmp_path), settings=Settings(allow_reset=True))
    open_chroma(path=tmp_path).open(SPEC).add([entry("a", 1, 0, 0, 0)])
    assert open_chroma(path=tmp_path).open(SPEC).count() == 1


def test_two_spellings_of_a_folder_are_one(tmp_path: Path) -> None:
    """A folder with and without a slash at its end is one database."""
    first = open_chroma(path=f"{tmp_path}/chroma").open(SPEC)
    second = open_chroma(path=f"{tmp_path}/x/../chroma/").open(SPEC)
    first.add([entry("a", 1, 0, 0, 0)])
    second.add([entry("b", 0, 1, 0, 0)])
    assert len(first.query(unit(1), 5)) == len(second.query(unit(1), 5)) == 2


def test_c25_reset_by_deleting_collections(tmp_path: Path) -> None:
    """A reset drops collections; the database goes on at once."""
    database = open_chroma(path=tmp_path)
    database.open(SPEC).add([entry("old", 1, 0, 0, 0)])
    for found in database.collections():
        database.drop(found.name)
    index = database.open(SPEC)
    index.add([entry("new", 0, 1, 0, 0)])
    assert [n.id for n in index.query(unit(1), 5)] == ["new"]


@pytest.mark.parametrize("kind", ["chroma", "files"])
def test_c25_a_vanished_folder_is_said_and_made_again(tmp_path: Path, kind: str) -> None:
    """When the folder vanished every call says so; after a reload everything works again."""
    folder = tmp_path / "vectors"
    database: Any = open_chroma(path=folder) if kind == "chroma" else SimpleDatabase(folder)
    index = database.open(SPEC)
    index.add([entry("old", 1, 0, 0, 0)])
    shutil.rmtree(folder)
    for attempt in (
        lambda: index.add([entry("new", 0, 1, 0, 0)]),
        lambda: index.query(unit(1), 1),
        index.count,
        index.describe,
        database.collections,
        lambda: database.open(SPEC),
    ):
        with pytest.raises(CollectionGone):
            attempt()
    database.reload()
    fresh = database.open(SPEC)
    fresh.add([entry("new", 0, 1, 0, 0)])
    assert (fresh.count(), [n.id for n in fresh.query(unit(1), 5)]) == (1, ["new"])


def test_c26_another_process_wrote(tmp_path: Path, case: Any) -> None:
    """When another process wrote, the difference is said, and after a reload all is found."""
    given_case = case("C26")["input"]
    database = open_chroma(path=tmp_path)
    index = database.open(SPEC)
    index.add([entry("seed", 1, 0, 0, 0)])
    assert index.describe().notices == ()
    code = f"""
        import chromadb, random
        client = chromadb.PersistentClient({str(tmp_path)!r})
        collection = client.get_collection({index.describe().name!r}, embedding_function=None)
        many = range({given_case["writer_adds"]})
        vectors = [[random.random() for _ in range(4)] for _ in many]
        collection.add(ids=[str(i) for i in many], embeddings=vectors)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)
    found = index.describe()
    assert found.count == case("C26")["expected"]["check"]["count"]
    assert found.searchable < found.count
    assert "Another process wrote" in found.notices[0]
    assert "Reload" in found.notices[0]
    database.reload()
    index = database.open(SPEC)
    assert len(index.query(unit(1), 200)) == case("C26")["expected"]["check"]["search_returns"]
    assert index.describe().notices == ()


def test_files_changed_by_another_process_are_read_again(tmp_path: Path) -> None:
    """Two users of the same files see each other's records."""
    first, second = SimpleDatabase(tmp_path).open(SPEC), SimpleDatabase(tmp_path).open(SPEC)
    first.add([entry("a", 1, 0, 0, 0)])
    second.add([entry("b", 0, 1, 0, 0)])
    assert sorted(first.ids()) == ["a", "b"]


def test_a_crash_while_writing_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that cannot be written whole leaves the old one and nothing beside it."""
    index = SimpleDatabase(tmp_path).open(SPEC)
    index.add([entry("a", 1, 0, 0, 0)])
    before = sorted(tmp_path.iterdir())

    def full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("os.fsync", full)
        with pytest.raises(VectorError, match="No space left"):
            index.add([entry("b", 0, 1, 0, 0)])
    assert sorted(tmp_path.iterdir()) == before
    assert SimpleDatabase(tmp_path).open(SPEC).ids() == ["a"]


def test_damaged_files_are_explained(tmp_path: Path) -> None:
    """A damaged file is named in one sentence, and other collections still open."""
    database = SimpleDatabase(tmp_path)
    index = database.open(SPEC)
    index._file.write_text("{broken", encoding="utf-8")
    with pytest.raises(VectorError, match="cannot be read"):
        index.count()
    assert database.open(CollectionSpec("other", "m", 1)).count() == 0


def test_a_server_that_is_not_there() -> None:
    """A URL nothing listens at, and one that is none, each give one clear sentence."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(CollectionGone, match="Nothing answers") as caught:
        open_chroma(url=f"http://user:secret@127.0.0.1:{port}")
    assert "secret" not in str(caught.value)
    assert "chroma run" in caught.value.next_step
    for url in ("localhost:8000", "ftp://x", "http://", "http://x:port", "http://[::1"):
        with pytest.raises(InvalidInput):
            open_chroma(url=url)


def test_a_slow_server_is_not_waited_for() -> None:
    """A server that accepts and then says nothing is given up after the stated timeout."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        with pytest.raises((VectorError, CollectionGone)):
            open_chroma(url=f"http://127.0.0.1:{silent.getsockname()[1]}", timeout=0.3)


def test_c41_no_network_and_no_telemetry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, case: Any
) -> None:
    """Making a client and a collection, adding and searching opens no outside connection."""
    asked: list[Any] = []

    def refused(_socket: socket.socket, address: Any) -> None:
        asked.append(address)
        raise OSError("no network in this test")

    def unresolved(host: Any, *_: Any, **__: Any) -> None:
        asked.append(host)
        raise OSError("no network in this test")

    monkeypatch.setattr(socket.socket, "connect", refused)
    monkeypatch.setattr(socket, "getaddrinfo", unresolved)
    with caplog.at_level(logging.INFO):
        index: ChromaIndex = open_chroma(path=tmp_path).open(SPEC)
        index.add([entry("a", 1, 0, 0, 0)])
        assert [n.id for n in index.query(unit(1), 1)] == ["a"]
    assert asked == []
    lines = [r for r in caplog.records if "telemetry" in (r.name + r.getMessage()).lower()]
    assert len(lines) == case("C41")["expected"]["check"]["log_lines_about_telemetry"]
