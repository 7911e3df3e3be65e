"""Long-term memory whole: planned, committed, caught up, searched, forgotten, rebuilt."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from memory_core import indexing
from memory_core.errors import InvalidInput, ModelRefused, ModelUnreachable, NotFound, VectorError
from memory_core.indexing import CaughtUp
from memory_core.longterm import LongTermMemory
from memory_core.messages import Message, StoredMessage
from memory_core.prompt import Gate, Recall
from memory_core.records import (
    ACTIVE,
    FORGOTTEN,
    SUPERSEDED,
    Candidate,
    record_id,
    vector_id,
)
from memory_core.settings import MemorySettings
from memory_core.stores.protocols import MemoryRecord
from memory_core.stores.vectors.base import CollectionSpec, Entry, VectorDatabase
from memory_core.stores.vectors.chroma import open_chroma
from memory_core.stores.vectors.simple import SimpleDatabase
from memory_core.testing import FrozenClock, HashEmbedder

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
OPEN = MemorySettings(threshold=-1, top_k=50)


class Records:
    """A record store in a dict."""

    def __init__(self) -> None:
        self.kept: dict[str, MemoryRecord] = {}
        self.reads = 0

    def records(self, user: str, *, pending: bool = False) -> list[MemoryRecord]:
        """Return a user's records, or those the index must learn."""
        self.reads += not pending
        mine = [r for r in self.kept.values() if r.user == user]
        return [r for r in mine if not (pending and r.indexed)]

    def put_records(self, records: Sequence[MemoryRecord]) -> None:
        """Add or replace records."""
        self.kept.update({r.id: r for r in records})

    def mark_indexed(
        self, user: str, ids: Sequence[str], *, status: str | None = None
    ) -> list[str]:
        """Mark those that still have the status."""
        marked = []
        for i in ids:
            record = self.kept.get(i)
            if record is not None and record.user == user and status in (None, record.status):
                self.kept[i] = replace(record, indexed=True)
                marked.append(i)
        return marked


class FailingEmbedder(HashEmbedder):
    """An embedder that can be switched off."""

    down = False

    def embed(self, texts: Sequence[str]) -> Any:
        """Embed, unless switched off."""
        if self.down:
            raise ModelUnreachable("Nothing listens at http://localhost:1.")
        return super().embed(texts)


class World:
    """A long-term memory with its store, index and model in reach."""

    def __init__(self, vectors: VectorDatabase | None = None, **more: Any) -> None:
        self.store = Records()
        self.vectors: Any = vectors if vectors is not None else open_chroma()
        self.embedder = FailingEmbedder()
        self.clock = FrozenClock(NOW)
        self.more = more
        self.memory = self.opened()

    def opened(self, embedder: HashEmbedder | None = None) -> LongTermMemory:
        """Open the same memory again, as another process would."""
        return LongTermMemory(
            vectors=self.vectors,
            embedder=embedder or self.embedder,
            store=self.store,
            clock=self.clock,
            **self.more,
        )

    def tell(
        self,
        *texts: str,
        user: str = "dana",
        session: str = "s",
        turn: int = 1,
        expires: datetime | None = None,
    ) -> list[MemoryRecord]:
        """Remember facts and catch up."""
        told = []
        for number, text in enumerate(texts):
            records, _ = self.memory.plan_fact(
                text,
                user=user,
                session=session,
                turn=turn + 3 * number,
                now=self.clock(),
                expires=expires,
            )
            self.store.put_records(records)
            told += records
        self.memory.catch_up(user)
        return told

    def recall(self, query: str, *, user: str = "dana", **more: Any) -> Recall:
        """Search with everything let through."""
        values = {"session": "s", "settings": OPEN}
        return self.memory.recall(query, user=user, **(values | more))

    def index(self, user: str = "dana") -> Any:
        """Return the user's collection."""
        name = self.embedder.name
        return self.vectors.open(
            CollectionSpec(f"{user} · {name}", name, self.embedder.dimension, user)
        )


def texts(recall: Recall) -> list[str]:
    """Return the texts of the hits."""
    return [hit.text for hit in recall.hits]


def said(*lines: tuple[str, str], turn: int = 1) -> list[StoredMessage]:
    """Return stored messages of a turn."""
    return [
        StoredMessage(f"t{turn}-{i}", i, turn, NOW, Message.of(role, text))
        for i, (role, text) in enumerate(lines)
    ]


@pytest.fixture
def world() -> World:
    """Return a memory on Chroma, in memory."""
    return World()


class TestPlanning:
    def plan(self, world: World, messages: list[StoredMessage], turn: int = 1, **more: Any) -> Any:
        """Plan a turn of one user and session."""
        values: dict[str, Any] = {"user": "dana", "session": "s", "turn": turn, "now": NOW}
        return world.memory.plan_turn(messages=messages, **(values | more))

    def test_a_turn_is_one_record(self, world: World) -> None:
        """User and assistant are remembered together, without tool messages."""
        messages = said(
            ("user", "I run a bakery in Porto"), ("tool", "22 °C"), ("assistant", "Lovely!")
        )
        (record,), (write,) = self.plan(world, messages)
        assert record.text == "user: I run a bakery in Porto\nassistant: Lovely!"
        assert record.message_ids == ("t1-0", "t1-2")
        assert (record.user, record.session, record.turn, record.kind) == ("dana", "s", 1, "turn")
        assert (record.status, record.indexed, record.count) == (ACTIVE, False, 1)
        assert (write.action, write.id, write.text) == ("remembered", record.id, record.text)

    def test_small_talk_and_blank_turns_are_skipped_with_the_reason(self, world: World) -> None:
        """Pleasantries leave no record; the write says why."""
        for text, reason in (("Hello!", "small talk"), ("", "no text to remember")):
            records, (write,) = self.plan(world, said(("user", text), ("assistant", "Hi Dana!")))
            assert (records, write.action, write.reason) == ([], "skipped", reason)

    def test_nothing_is_written_by_planning(self, world: World) -> None:
        """A plan is pure: the same again until the caller commits it."""
        messages = said(("user", "I run a bakery"))
        assert self.plan(world, messages) == self.plan(world, messages)
        assert world.store.kept == {}

    def test_equal_texts_are_counted(self, world: World) -> None:
        """The same fact again, in whatever case and spacing, is one record with a count."""
        world.tell("The cat is called Pixel")
        (record,), (write,) = world.memory.plan_fact(
            "the cat  is called PIXEL", user="dana", session="s", turn=9, now=NOW
        )
        assert (record.count, record.text, record.turn) == (2, "The cat is called Pixel", 1)
        assert (write.action, write.reason) == ("duplicate", "told 2 times, first in turn 1")
        world.store.put_records([record])
        assert world.memory.catch_up("dana").embedded == 0
        assert len(world.store.kept) == 1

    def test_twice_within_a_turn(self, world: World) -> None:
        """What was planned earlier in the running turn is known to the next plan."""
        first, _ = world.memory.plan_fact("a fact", user="dana", session="s", turn=1, now=NOW)
        again, _ = world.memory.plan_fact(
            "A fact", user="dana", session="s", turn=1, now=NOW, planned=first
        )
        assert [(r.id, r.count) for r in again] == [(first[0].id, 2)]
        facts = [Candidate("a fact"), Candidate("a fact "), Candidate("  ")]
        records, writes = self.plan(world, said(("user", "I said a fact")), facts=facts)
        assert [r.count for r in records] == [1, 2]
        assert [w.action for w in writes] == ["remembered", "remembered", "duplicate", "skipped"]

    def test_a_superseded_turn_is_not_counted(self, world: World) -> None:
        """A turn said again in place of another is told once, in the new turn."""
        first, _ = self.plan(world, said(("user", "I run a bakery")))
        world.store.put_records(first)
        world.memory.catch_up("dana")
        (again,), _ = self.plan(world, said(("user", "I run a bakery")), turn=2, supersedes=1)
        assert (again.id, again.turn, again.count) == (first[0].id, 2, 1)

    def test_hostile_text_is_carried(self, world: World) -> None:
        """Halves of emoji and NUL become U+FFFD; markup is text; nothing is refused for it."""
        ugly = "<script>x</script> \ud83d \0 ]]> ../../etc"
        (record,), _ = world.memory.plan_fact(ugly, user="dana", session="s", turn=1, now=NOW)
        assert record.text == "<script>x</script> \ufffd \ufffd ]]> ../../etc"
        world.store.put_records([record])
        world.memory.catch_up("dana")
        assert texts(world.recall("script \ud83d"))[0] == record.text

    def test_facts_that_cannot_be_kept(self, world: World) -> None:
        """Blank and overlong facts are refused in one sentence."""
        for text in ("", "  \n", "x" * 20_001):
            with pytest.raises(InvalidInput):
                world.memory.plan_fact(text, user="dana", session="s", turn=1, now=NOW)

    def test_ids_say_nothing_of_others(self) -> None:
        """Ids depend on user, session and text, so no two users' records can meet."""
        ids = {record_id(u, s, "text") for u in ("a", "b") for s in ("a", "b")}
        assert len(ids) == 4
        assert vector_id(record_id("a", "x", "Text")) == vector_id(record_id("a", "y", "text "))
        assert vector_id(record_id("a", "x", "text")) != vector_id(record_id("b", "x", "text"))


class TestRecall:
    def test_finds_what_was_told(self, world: World) -> None:
        """A question finds the memory that answers it first, with everything a panel shows."""
        world.tell("My bakery is in Porto", "I can't eat nuts", "The oven is from Italy")
        recall = world.recall("what can I not eat")
        hit = recall.hits[0]
        assert (hit.text, hit.rank, hit.session, hit.turn) == ("I can't eat nuts", 1, "s", 4)
        assert hit.distance == pytest.approx(1 - hit.similarity, abs=1e-4)
        assert (recall.metric, recall.model, recall.searched) == ("cosine", "hash-64", 3)
        assert recall.disagreement == ()
        assert recall.skipped == ""
        assert hit.created == NOW.isoformat()

    def test_one_embedding_and_no_search_for_other_settings(self, world: World) -> None:
        """A search embeds once; ranking again under other settings embeds nothing."""
        from memory_core.longterm import rank_hits

        world.tell("one key", "two keys", "three keys")
        before = world.embedder.embedded
        found = world.memory.search("keys", user="dana")
        for top_k in (1, 2, 3):
            recall = rank_hits(
                found,
                settings=MemorySettings(top_k=top_k, threshold=-1),
                session="s",
                in_buffer=frozenset(),
                budget=None,
                count=lambda hit: 1,
                now=NOW,
            )
            assert len(recall.hits) == top_k
        assert world.embedder.embedded == before + 1
        vector = world.memory.embed_query("keys")
        assert world.memory.search("keys", user="dana", vector=vector).note == ""
        assert world.embedder.embedded == before + 2

    def test_users_never_meet(self, world: World) -> None:
        """Another user's memories are in no search, plan or list, and not to be forgotten."""
        (secret,) = world.tell("the door code is 0000", user="eve")
        world.tell("the door is blue")
        assert texts(world.recall("door code")) == ["the door is blue"]
        assert [r.text for r in world.memory.records("dana")] == ["the door is blue"]
        with pytest.raises(NotFound):
            world.memory.plan_forget(user="dana", ids=[secret.id])
        assert world.memory.plan_forget("door code", user="dana") == ([], [])

    def test_sessions_of_one_user(self, world: World) -> None:
        """Both sessions are found, the same text once; scoped to one, only its own."""
        world.tell("the key is in the shed", session="a")
        world.tell("the key is in the shed", "the key is lost", session="b")
        both = world.recall("key", session="b")
        assert sorted(texts(both)) == ["the key is in the shed", "the key is lost"]
        assert [out.gate for _, out in both.near] == [Gate.DUPLICATE]
        only = world.recall("key", session="b", settings=OPEN.with_(scope="session"))
        assert {hit.session for hit in only.hits} == {"b"}
        assert len(only.hits) == 2
        assert world.index().count() == 2

    def test_blank_and_huge_queries(self, world: World) -> None:
        """A blank query searches nothing and says so; a huge one is searched by its beginning."""
        world.tell("the key is in the shed")
        assert world.recall(" \n").skipped == "There is nothing to search for."
        assert texts(world.recall("key " * 100_000)) == ["the key is in the shed"]
        assert texts(world.recall("?!")) == ["the key is in the shed"]

    def test_c23_many_equal_records_do_not_hide_others(self, world: World, case: Any) -> None:
        """Every note is found first by its own text beside hundreds of equal ones."""
        given_case = case("C23")["input"]
        told: list[MemoryRecord] = []
        for number in range(given_case["equal"]["count"]):
            told, _ = world.memory.plan_fact(
                given_case["equal"]["text"],
                user="dana",
                session="s",
                turn=number,
                now=NOW,
                planned=told,
            )
        world.store.put_records(told)
        world.tell(*given_case["distinct"])
        for note in given_case["distinct"]:
            recall = world.recall(note)
            assert recall.hits[0].text == note
            assert recall.disagreement == ()
        assert world.index().count() == len(given_case["distinct"]) + 1

    def test_c23_a_disagreement_is_told(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What the index should have returned and did not is named; the hit is there anyway."""
        world.tell("one key", "two keys", "three keys")
        found = world.recall("two keys").hits[0]
        kind = type(world.index())
        answer = kind.query
        monkeypatch.setattr(
            kind,
            "query",
            lambda self, v, n: [a for a in answer(self, v, n) if a.id != vector_id(found.id)],
        )
        recall = world.recall("two keys")
        assert recall.disagreement == (found.id,)
        assert recall.hits[0].id == found.id

    def test_expiry_follows_the_clock(self, world: World) -> None:
        """A fact with an expiry is a hit until then and a near miss after."""
        world.tell("the code is 4417", expires=NOW + timedelta(days=1))
        assert texts(world.recall("code")) == ["the code is 4417"]
        world.clock.advance(days=2)
        recall = world.recall("code")
        assert recall.hits == ()
        assert recall.near[0][1].reason == "expired 1 day ago"


class TestForgetting:
    def test_forget_by_text_and_by_id(self, world: World) -> None:
        """Forgotten memories are gone from store text, index and search, and stay away."""
        told = world.tell("I live in Porto", "I like Porto wine", "I have a cat")
        gone, writes = world.memory.plan_forget("porto", user="dana")
        assert sorted(w.text for w in writes) == ["I like Porto wine", "I live in Porto"]
        assert {w.action for w in writes} == {"forgotten"}
        world.store.put_records(gone)
        assert world.memory.catch_up("dana").deleted == 2
        assert texts(world.recall("Porto")) == ["I have a cat"]
        assert world.index().count() == 1
        kept = [world.store.kept[record.id] for record in gone]
        assert [(r.text, r.message_ids, r.status) for r in kept] == [("", (), FORGOTTEN)] * 2
        gone, _ = world.memory.plan_forget(user="dana", ids=[told[2].id])
        world.store.put_records(gone)
        world.memory.catch_up("dana")
        assert world.recall("cat").searched == 0
        assert texts(Reader(world).recall("cat")) == []

    def test_blank_forgets_nothing(self, world: World) -> None:
        """Blank text would match everything, so it is refused."""
        world.tell("a fact")
        with pytest.raises(InvalidInput):
            world.memory.plan_forget(" ", user="dana")
        with pytest.raises(NotFound):
            world.memory.plan_forget(user="dana", ids=["never"])

    def test_told_again_after_forgetting(self, world: World) -> None:
        """What is told again after it was forgotten is remembered anew."""
        (old,) = world.tell("I like tea")
        world.store.put_records(world.memory.plan_forget("tea", user="dana")[0])
        world.memory.catch_up("dana")
        (new,) = world.tell("I like tea")
        assert (new.id, new.count, new.status) == (old.id, 1, ACTIVE)
        assert texts(world.recall("tea")) == ["I like tea"]

    def test_a_shared_vector_stays_for_the_other_session(self, world: World) -> None:
        """Forgetting in one session leaves what another one told."""
        (here,) = world.tell("I like tea", session="a")
        world.tell("I like tea", session="b")
        world.store.put_records(world.memory.plan_forget(user="dana", ids=[here.id])[0])
        assert world.memory.catch_up("dana").deleted == 0
        assert [hit.session for hit in world.recall("tea").hits] == ["b"]
        assert world.recall("tea").hits[0].similarity > 0.5

    def test_correcting(self, world: World) -> None:
        """A correction stands instead of the old text, which is seen as superseded."""
        (old,) = world.tell("The meeting is on Monday")
        records, (write,) = world.memory.plan_correction(
            old.id, "The meeting is on Thursday", user="dana", now=NOW
        )
        world.store.put_records(records)
        world.memory.catch_up("dana")
        recall = world.recall("meeting")
        assert texts(recall) == ["The meeting is on Thursday"]
        assert [(h.text, o.gate) for h, o in recall.near] == [(old.text, Gate.SUPERSEDED)]
        assert (write.action, "Monday" in write.reason) == ("corrected", True)
        assert world.store.kept[old.id].status == SUPERSEDED

    def test_correcting_the_spelling_only(self, world: World) -> None:
        """A correction that is equal but for case changes the text of the same record."""
        (old,) = world.tell("the cat is called pixel")
        records, _ = world.memory.plan_correction(
            old.id, "The cat is called Pixel", user="dana", now=NOW
        )
        world.store.put_records(records)
        world.memory.catch_up("dana")
        assert texts(world.recall("cat")) == ["The cat is called Pixel"]
        for record, text, error in ((old.id, " ", InvalidInput), ("never", "x", NotFound)):
            with pytest.raises(error):
                world.memory.plan_correction(record, text, user="dana", now=NOW)


def Reader(world: World) -> World:  # noqa: N802 - reads like a class at the call
    """Return the same world seen by a process that has just started."""
    other = World.__new__(World)
    other.__dict__.update(world.__dict__)
    other.memory = world.opened()
    return other


class TestCatchingUp:
    def test_is_idempotent_and_batched(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        """Catching up embeds each text once, in batches; again it does nothing."""
        monkeypatch.setattr(indexing, "BATCH", 4)
        sizes = []
        embed = world.embedder.embed
        monkeypatch.setattr(
            world.embedder, "embed", lambda batch: sizes.append(len(batch)) or embed(batch)
        )
        records, _ = world.memory.plan_turn(
            user="dana",
            session="s",
            turn=1,
            messages=[],
            now=NOW,
            facts=[Candidate(f"fact {i}") for i in range(10)],
        )
        world.store.put_records(records)
        assert world.memory.catch_up("dana") == CaughtUp(embedded=10)
        assert sizes == [4, 4, 2]
        assert world.memory.catch_up("dana") == CaughtUp()
        assert all(r.indexed for r in world.store.kept.values())

    def test_the_model_is_down(self, world: World) -> None:
        """Without the model the turn is found by words at once and embedded later."""
        world.tell("the cat is called Pixel")
        world.embedder.down = True
        records, _ = world.memory.plan_fact(
            "the wifi is called Heron", user="dana", session="s", turn=9, now=NOW
        )
        world.store.put_records(records)
        with pytest.raises(ModelUnreachable):
            world.memory.catch_up("dana")
        recall = world.recall("wifi Heron")
        assert texts(recall)[0] == "the wifi is called Heron"
        assert recall.skipped.startswith("Searched by words only: Nothing listens")
        world.embedder.down = False
        assert "1 text has no vector yet" in world.recall("wifi").skipped
        assert world.memory.catch_up("dana").embedded == 1
        assert world.recall("wifi").hits[0].similarity > 0

    def test_a_text_the_model_refuses_keeps_no_other_back(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """One text without an embedding is found by words; the rest of its batch is embedded."""
        embed = world.embedder.embed

        def picky(batch: Sequence[str]) -> Any:
            if any("§" in text for text in batch):
                raise ModelRefused("a vector without a direction")
            return embed(batch)

        monkeypatch.setattr(world.embedder, "embed", picky)
        records, _ = world.memory.plan_turn(
            user="dana",
            session="s",
            turn=1,
            messages=[],
            now=NOW,
            facts=[Candidate("one key"), Candidate("§ key"), Candidate("two keys")],
        )
        world.store.put_records(records)
        assert world.memory.catch_up("dana") == CaughtUp(embedded=2, waiting=1)
        assert world.store.records("dana", pending=True) == []
        recall = world.recall("keys")
        assert len(recall.hits) == 3
        assert recall.skipped == "1 text has no vector yet and was found by words only."
        with pytest.raises(ModelRefused):
            world.tell("§ alone")

    def test_killed_anywhere(self, world: World) -> None:
        """After a death between any two steps, the next start embeds what is left, once each."""
        told = world.tell("one", "two")
        for record in told:  # the index has them, the store was not told
            world.store.kept[record.id] = replace(record, indexed=False)
        records, _ = world.memory.plan_fact("three", user="dana", session="s", turn=9, now=NOW)
        world.store.put_records(records)  # committed, never indexed
        before = world.embedder.embedded
        again = Reader(world)
        assert again.memory.catch_up("dana") == CaughtUp(embedded=1)
        assert world.embedder.embedded == before + 1
        assert again.index().count() == 3
        assert all(r.indexed for r in world.store.kept.values())

    def test_forgotten_while_being_indexed(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What somebody forgets while its vector is being made is taken out again."""
        records, _ = world.memory.plan_fact("a secret", user="dana", session="s", turn=1, now=NOW)
        world.store.put_records(records)
        embed = world.embedder.embed

        def meanwhile(batch: Sequence[str]) -> Any:
            gone = replace(records[0], text="", status=FORGOTTEN, indexed=False)
            world.store.put_records([gone])
            return embed(batch)

        monkeypatch.setattr(world.embedder, "embed", meanwhile)
        world.memory.catch_up("dana")
        monkeypatch.undo()
        assert world.index().count() == 0
        assert world.recall("secret").searched == 0
        assert world.store.records("dana", pending=True) == []

    def test_another_process_writes(self, world: World) -> None:
        """Memories that another process added or forgot are seen at the next search."""
        world.tell("the key is in the shed")
        assert len(world.recall("key").hits) == 1
        other = Reader(world)
        other.tell("the key is lost", turn=20)
        assert len(world.recall("key").hits) == 2
        gone, _ = other.memory.plan_forget("shed", user="dana")
        other.store.put_records(gone)
        other.memory.catch_up("dana")
        assert texts(world.recall("key")) == ["the key is lost"]

    def test_a_search_reads_no_store_while_nothing_changed(self, world: World) -> None:
        """The records are read once, whatever the number of searches and turns after."""
        world.tell("one key", "two keys")
        before = world.store.reads
        for number in range(3):
            world.recall("key")
            world.tell(f"key number {number}", turn=30 + number)
        assert world.store.reads == before

    def test_many_threads(self, world: World) -> None:
        """Threads that remember and search at once lose nothing."""

        def work(number: int) -> None:
            for step in range(5):
                world.tell(f"note {number} {step}", session=f"s{number}", turn=step)
                world.recall(f"note {number}")

        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert world.index().count() == len(world.memory.records("dana")) == 20
        assert world.memory.standing("dana").waiting == 0


class TestStanding:
    def test_another_model_opens_another_collection(self, world: World) -> None:
        """Under another model the old collection stays; re-embedding is offered and resumes."""
        world.tell(*(f"fact number {i}" for i in range(5)))
        other = HashEmbedder(16, name="other model")
        memory = world.opened(other)
        standing = memory.standing("dana")
        assert (standing.memories, standing.waiting, standing.pending) == (5, 5, 0)
        assert [c.model for c in standing.others] == ["hash-64"]
        assert "5 texts have no vector of other model yet" in standing.notices[0]
        assert "hash-64" in standing.notices[0]
        steps: list[tuple[int, int]] = []
        assert memory.rebuild("dana", lambda *at: steps.append(at)) == 5
        assert steps[-1] == (5, 5)
        assert memory.standing("dana").notices == ()
        assert memory.rebuild("dana") == 0
        assert other.embedded == 5
        assert world.index().count() == 5
        assert len(world.recall("fact").hits) == 5

    def test_c19_same_name_other_dimension(self, world: World) -> None:
        """A model that kept its name and changed its size is refused; words are still found."""
        world.tell("the key is in the shed")
        memory = world.opened(HashEmbedder(32, name=world.embedder.name))
        recall = memory.recall("key", user="dana", session="s", settings=OPEN)
        assert texts(recall) == ["the key is in the shed"]
        assert "64 numbers" in recall.skipped
        assert "made 32" in recall.skipped
        with pytest.raises(VectorError, match="64 numbers"):
            memory.rebuild("dana")
        assert world.index().count() == 1

    @pytest.mark.parametrize("kind", ["chroma", "files"])
    def test_c25_the_folder_vanished(self, tmp_path: Path, kind: str) -> None:
        """When the vectors vanished the chat goes on; a fresh place is filled from the records."""
        folder = tmp_path / "vectors"
        world = World(open_chroma(path=folder) if kind == "chroma" else SimpleDatabase(folder))
        world.tell("the key is in the shed", "the cat is called Pixel")
        shutil.rmtree(folder)
        recall = world.recall("where is the key")
        assert texts(recall)[0] == "the key is in the shed"
        assert "cannot be used" in recall.skipped
        assert world.memory.standing("dana").notices
        world.memory.reload()
        assert world.memory.standing("dana").waiting == 2
        assert world.memory.rebuild("dana") == 2
        recall = world.recall("where is the key")
        assert (recall.skipped, recall.hits[0].similarity > 0) == ("", True)

    def test_a_failing_index_is_left_alone_for_a_while(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """An index that failed is not waited for at every turn, and used again when it is back."""
        world.tell("the key is in the shed")
        kind = type(world.index())
        calls = []

        def failing(_self: Any) -> int:
            calls.append(1)
            raise VectorError("Chroma gave no answer in time.")

        with monkeypatch.context() as patched:
            patched.setattr(kind, "count", failing)
            for _ in range(3):
                assert "no answer in time" in world.recall("key").skipped
            assert len(calls) == 1
        monkeypatch.setattr(indexing, "RETRY_AFTER", 0.0)
        assert world.memory.standing("dana").notices == ()
        assert world.recall("key").skipped == ""

    def test_orphans_are_taken_out(self, world: World) -> None:
        """Vectors that no record stands behind are counted and removed by a rebuild."""
        world.tell("the key is in the shed")
        world.index().add([Entry("orphan", "left over", np.ones(64, np.float32))])
        assert world.memory.standing("dana").orphans == 1
        assert all(hit.text != "left over" for hit in world.recall("left over").hits)
        world.memory.rebuild("dana")
        assert world.index().count() == 1

    def test_erasing_a_user(self, world: World) -> None:
        """All collections of one user go; those of others stay."""
        world.tell("mine")
        world.tell("theirs", user="eve")
        assert world.memory.erase("dana") == 1
        assert [c.user for c in world.vectors.collections()] == ["eve"]


def test_larger_than_what_is_held_here() -> None:
    """Beyond the exact size the index answers; hits and similarities are the same."""
    notes = [f"note {i}: the {w} is number {i * 7}" for i, w in enumerate("abcdefgh" * 6)]
    small, large = World(), World(exact_up_to=10)
    for world in (small, large):
        world.tell(*notes)
    for query in ("note 40", "the c is number 70", "number 7"):
        exact, asked = small.recall(query), large.recall(query)
        assert texts(asked)[:5] == texts(exact)[:5]
        assert [h.similarity for h in asked.hits[:5]] == pytest.approx(
            [h.similarity for h in exact.hits[:5]], abs=1e-5
        )


class Histories(RuleBasedStateMachine):
    """Any history of telling, forgetting, crashes and restarts ends where the records say."""

    facts = st.integers(0, 9).map(lambda n: f"fact number {n}")
    sessions = st.sampled_from(["a", "b"])

    def __init__(self) -> None:
        super().__init__()
        self.world = World(_shared())
        self.user = f"user {id(self)}"
        self.world.store.kept.clear()
        self.alive: set[tuple[str, str]] = set()

    @rule(text=facts, session=sessions)
    def tell(self, text: str, session: str) -> None:
        """Commit a fact."""
        records, _ = self.world.memory.plan_fact(
            text, user=self.user, session=session, turn=1, now=NOW
        )
        self.world.store.put_records(records)
        self.alive.add((session, text))

    @rule(text=facts)
    def forget(self, text: str) -> None:
        """Forget a text in all sessions."""
        self.world.memory.catch_up(self.user)
        self.world.store.put_records(self.world.memory.plan_forget(text, user=self.user)[0])
        self.alive = {pair for pair in self.alive if pair[1] != text}

    @rule()
    def restart(self) -> None:
        """Start a new process."""
        self.world.memory = self.world.opened()

    @rule()
    def lose_marks(self) -> None:
        """Die between indexing and noting it."""
        kept = self.world.store.kept
        kept.update({i: replace(r, indexed=False) for i, r in kept.items()})

    @invariant()
    def index_and_search_hold_what_is_alive(self) -> None:
        """After catching up, index and search hold exactly what was told and not forgotten."""
        self.world.memory.catch_up(self.user)
        live = {(r.session, r.text) for r in self.world.memory.records(self.user)}
        assert live == self.alive
        index = self.world.index(self.user)
        assert set(index.ids()) == {
            vector_id(record_id(self.user, s, text)) for s, text in self.alive
        }
        found = self.world.recall("fact", user=self.user, settings=OPEN)
        assert set(texts(found)) == {text for _, text in self.alive}


@cache
def _shared() -> VectorDatabase:
    """Return one database for all histories; their users differ."""
    return open_chroma()


TestHistories = Histories.TestCase
TestHistories.settings = settings(max_examples=12, stateful_step_count=12, deadline=None)


def test_a_turn_does_not_wait_for_a_long_catching_up(tmp_path: Path) -> None:
    """While much is being indexed another call returns at once; nothing is embedded twice."""
    world = World(SimpleDatabase(tmp_path))
    texts = [f"Note {n} about the harbour" for n in range(indexing.BATCH * 3)]
    plan = [
        world.memory.plan_fact(text, user="ann", session="s", turn=1, now=NOW)[0][0]
        for text in texts
    ]
    world.store.put_records(plan)
    begun, go_on = threading.Event(), threading.Event()

    def hold(_done: int, _total: int) -> None:
        begun.set()
        assert go_on.wait(60)

    working = threading.Thread(target=lambda: world.memory.catch_up("ann", hold))
    working.start()
    assert begun.wait(60)
    late = world.memory.plan_fact("A late note", user="ann", session="s", turn=2, now=NOW)[0]
    world.store.put_records(late)
    assert world.memory.catch_up("ann").waiting > 0
    go_on.set()
    working.join(60)
    assert world.store.records("ann", pending=True) == []
    assert world.embedder.embedded == len(texts) + 1
    assert world.memory.catch_up("ann") == CaughtUp()
