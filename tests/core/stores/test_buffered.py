"""The store that goes on while the one behind it is away."""

from __future__ import annotations

import json
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory_core.errors import InvalidInput, NotFound, StaleVersion, StoreUnavailable
from memory_core.state import AgentState, set_preference
from memory_core.stores.buffered import BufferedStore
from memory_core.stores.encoding import Encoding
from memory_core.stores.encryption import Sealed, new_key
from memory_core.stores.protocols import SessionInfo, SessionKey
from memory_core.stores.spool import PATTERN, Spool
from memory_core.stores.sql import SqlStore
from memory_core.summary import Summary
from tests.core.stores.backends import Backend
from tests.core.stores.contract import (
    TestCatalogue,
    TestIsolation,
    TestRecords,
    TestState,
    TestTogether,
    TestTurns,
)
from tests.core.stores.flaky import FlakyStore
from tests.core.stores.making import KEY, NOON, memory, start, texts, turn

__all__ = [
    "TestCatalogue",
    "TestIsolation",
    "TestRecords",
    "TestState",
    "TestTogether",
    "TestTurns",
]  # the whole contract holds with a buffer in front: see the fixture ``backend`` below


class Buffered(Backend):
    """SQLite behind a buffer."""

    def open(self, **options):
        """Open a buffered store."""
        inner = SqlStore.open(self.url)
        store = BufferedStore(lambda: inner, spool=spool_in(self.folder / "spool"))
        self.opened.append(store)
        return store


def spool_in(folder, encoding=None):
    """Open a spool in a folder."""
    return Spool.open(folder, encoding=encoding or Encoding())


@pytest.fixture
def backend(tmp_path):
    """Make a place for a buffered store."""
    found = Buffered("sqlite", f"sqlite:///{tmp_path}/memory.db", tmp_path)
    yield found
    found.close()


@pytest.fixture
def flaky(tmp_path):
    """Open a SQLite store that can be made to fail."""
    inner = FlakyStore(SqlStore.open(f"sqlite:///{tmp_path}/flaky.db"))
    yield inner
    inner.released.set()
    inner.inner.close()


@pytest.fixture
def buffered(flaky, tmp_path):
    """Open a buffer in front of the flaky store; it looks for the store only when told to."""
    store = BufferedStore(lambda: flaky, timeout=30, retry=3600, spool=spool_in(tmp_path / "spool"))
    yield store
    flaky.mode = "up"
    store.close()


def test_the_chat_goes_on_while_the_store_is_down(buffered, flaky):
    """Turns, states, memories and titles of an outage are seen at once and written afterwards."""
    start(buffered)
    buffered.commit(KEY, turn(1, "q1", "a1", records=(memory("r1"),)))
    assert buffered.messages(KEY)
    assert buffered.head(KEY).turn == 1
    assert buffered.session(KEY).title == "Bakery"
    assert buffered.turns(KEY)
    assert buffered.banner == ""
    flaky.mode = "down"
    state = set_preference(AgentState(KEY.user, KEY.session), "cake", "lemon")
    summary = Summary(1, "so far", 2, 1)
    buffered.commit(KEY, turn(2, "q2", "a2", state=state, summary=summary, title="New",
                              records=(memory("r2", turn=2),)))  # fmt: skip
    buffered.commit(KEY, turn(3, "q2", "better", supersedes=2))
    buffered.save_state(KEY, set_preference(state, "cake", "plum"))
    buffered.put_records([memory("r3")])

    def look(store):
        head = store.head(KEY)
        return {
            "texts": texts(store),
            "all": texts(store, superseded=True),
            "turns": [(t.number, t.trace, t.superseded_by, t.summary) for t in store.turns(KEY)],
            "head": (head.turn, head.messages, head.state, head.summary),
            "states": store.states(KEY),
            "state": store.state(KEY, 1),
            "session": store.session(KEY),
            "sessions": store.sessions(KEY.user),
            "records": store.records(KEY.user),
            "pending": store.records(KEY.user, pending=True),
        }

    during = look(buffered)
    assert during["texts"] == ["q1", "a1", "q2", "better"]
    assert [(r.id, r.status) for r in during["records"]][1] == ("r2", "forgotten")
    assert "it is down. Waiting to be written: 4." in buffered.banner
    flaky.mode = "up"
    assert buffered.flush()
    assert buffered.banner == ""
    assert look(flaky.inner) == look(buffered) == during


def test_no_call_waits_for_a_store_that_is_known_to_be_away(buffered, flaky):
    """Only the first call of an outage notices; the others go on from memory at once."""
    start(buffered)
    assert buffered.head(KEY).turn == 0
    flaky.mode = "down"
    flaky.calls.clear()
    for n in range(1, 6):
        buffered.commit(KEY, turn(n, "q", "a"))
        assert buffered.head(KEY).turn == n
    assert flaky.calls == ["commit"]


def test_a_store_that_hangs_is_given_up_on(buffered, flaky):
    """A call that takes longer than the stated time counts as an outage, and ends well."""
    start(buffered)
    buffered.head(KEY)
    flaky.mode = "slow"
    buffered._timeout = 0.1
    began = time.monotonic()
    buffered.commit(KEY, turn(1, "q", "a"))
    assert time.monotonic() - began < 5
    assert "no answer in 0.1 seconds" in buffered.banner
    flaky.mode = "up"
    buffered._timeout = 30
    flaky.released.set()  # the call that was given up on arrives late
    assert buffered.flush()
    assert texts(flaky.inner) == ["q", "a"]


def test_a_lost_answer_doubles_nothing(buffered, flaky):
    """A write of any kind that arrived although its answer was lost is made once."""
    other = start(buffered, SessionKey(KEY.user, "other"))
    buffered.session(other)
    state = set_preference(AgentState(KEY.user, KEY.session), "cake", "lemon")
    for write in (
        lambda: start(buffered),
        lambda: buffered.commit(KEY, turn(1, "q", "a", records=(memory("r1"),))),
        lambda: buffered.save_state(KEY, state),
        lambda: buffered.commit(KEY, turn(2, "q", "b", supersedes=1)),
        lambda: buffered.update(replace(buffered.session(KEY), title="New")),
        lambda: buffered.purge(other),
    ):
        flaky.mode = "deaf"
        write()
        assert buffered.waiting == 1
        flaky.mode = "up"
        assert buffered.flush()
        assert buffered.conflicts == ()
    assert [(i.key, i.title) for i in buffered.sessions(KEY.user)] == [(KEY, "New")]
    assert texts(buffered) == ["q", "b"]
    assert flaky.inner.session(KEY).turns == 2
    assert flaky.inner.state(KEY) == state


def test_a_store_that_only_reads(buffered, flaky):
    """Reads go on; what is written is kept, shown in its place and written when that works."""
    start(buffered)
    other = start(buffered, SessionKey(KEY.user, "other"))
    buffered.head(KEY)
    flaky.mode = "read-only"
    buffered.commit(KEY, turn(1, "q", "a"))
    buffered.update(replace(buffered.session(KEY), title="Renamed"))
    assert not buffered.flush()
    assert "read-only" in buffered.banner
    assert texts(buffered) == ["q", "a"]
    assert {i.key.session: i.title for i in buffered.sessions(KEY.user)} == {
        KEY.session: "Renamed",
        other.session: "Bakery",
    }
    assert buffered.waiting == 2
    flaky.mode = "up"
    assert buffered.flush()
    assert flaky.inner.session(KEY).title == "Renamed"


def test_what_waits_outlives_the_program(flaky, tmp_path):
    """The next program finds what a killed one could not write; a running one keeps its own."""
    folder = tmp_path / "spool"
    killed = BufferedStore(lambda: flaky, retry=3600, spool=spool_in(folder))
    start(killed)
    killed.head(KEY)
    flaky.mode = "down"
    killed.commit(KEY, turn(1, "q1", "a1"))
    killed.commit(KEY, turn(2, "q2", "a2", state=AgentState(KEY.user, KEY.session, version=1)))
    start(killed, SessionKey(KEY.user, "made in the dark"))
    running = spool_in(folder)
    assert not running.left
    killed._outbox._spool._file.close()  # what the kernel does for a killed program
    flaky.mode = "up"
    after = BufferedStore(lambda: flaky, retry=3600, spool=spool_in(folder))
    assert after.waiting == 3
    assert after.flush()
    assert texts(after) == ["q1", "a1", "q2", "a2"]
    assert len(after.sessions(KEY.user)) == 2
    after.close()
    running.close()
    assert list(folder.glob(PATTERN)) == []


def test_an_unfinished_spool_line_is_passed_over(tmp_path):
    """A line that was being written when the program was killed was never acknowledged."""
    folder = tmp_path / "spool"
    spool = spool_in(folder)
    buffered = BufferedStore(_never, retry=3600, spool=spool)
    for n in range(3):
        start(buffered, SessionKey(KEY.user, f"s{n}"))
    [path] = folder.glob(PATTERN)
    spool._file.close()
    path.write_bytes(path.read_bytes()[:-5])
    assert [w.key.session for w in spool_in(folder).left] == ["s0", "s1"]


def test_the_background_thread_writes_what_waits(flaky, tmp_path):
    """Nobody has to ask: once the store is back what waits is written and the banner goes."""
    buffered = BufferedStore(lambda: flaky, retry=0.02, spool=None)
    start(buffered)
    buffered.head(KEY)
    flaky.mode = "down"
    buffered.commit(KEY, turn(1, "q", "a"))
    assert buffered.banner
    flaky.mode = "up"
    deadline = time.monotonic() + 10
    while buffered.banner and time.monotonic() < deadline:
        buffered._closed.wait(0.02)
    assert buffered.banner == ""
    assert texts(flaky.inner) == ["q", "a"]
    buffered.close()


def test_a_store_that_is_down_from_the_start(tmp_path, flaky):
    """A program started during an outage runs: new sessions can be made and chatted in."""
    flaky.mode = "down"

    def connect():
        if flaky.mode == "down":
            raise StoreUnavailable("The store does not answer: nothing listens.")
        return flaky

    buffered = BufferedStore(connect, retry=3600)
    assert buffered.sessions(KEY.user) == []
    assert buffered.records(KEY.user) == []
    start(buffered)
    buffered.commit(KEY, turn(1, "q", "a"))
    assert texts(buffered) == ["q", "a"]
    with pytest.raises(StoreUnavailable):
        buffered.head(SessionKey(KEY.user, "never read"))
    flaky.mode = "up"
    assert buffered.flush()
    assert texts(flaky.inner) == ["q", "a"]
    buffered.close()


def test_turns_of_others_come_first(buffered, flaky):
    """Waiting turns follow what another server wrote meanwhile, with their numbers made right."""
    start(buffered)
    buffered.commit(KEY, turn(1, "q1", "a1"))
    buffered.head(KEY)
    flaky.mode = "down"
    buffered.commit(KEY, turn(2, "ours", "bad", trace='{"number":2}',
                              records=(memory("r2", turn=2),)))  # fmt: skip
    buffered.commit(KEY, turn(3, "ours", "good", trace='{"number":3}', supersedes=2))
    flaky.inner.commit(KEY, turn(2, "theirs", "ok"))
    flaky.mode = "up"
    assert buffered.flush()
    assert buffered.conflicts == ()
    assert texts(buffered) == ["q1", "a1", "theirs", "ok", "ours", "good"]
    assert [m.position for m in buffered.messages(KEY, superseded=True)] == list(range(8))
    turns = buffered.turns(KEY)
    assert [t.superseded_by for t in turns] == [0, 0, 4, 0]
    assert json.loads(turns[3].trace) == {"number": 4, "supersedes": 3}
    assert [(r.id, r.turn, r.status) for r in buffered.records(KEY.user)] == [
        ("r2", 3, "forgotten")
    ]


def test_a_state_that_both_changed_is_a_conflict(buffered, flaky, tmp_path):
    """No update is lost in silence: both versions are shown, and the messages are kept."""
    start(buffered)
    base = buffered.head(KEY).state
    flaky.mode = "down"
    ours = set_preference(base, "cake", "lemon")
    later = set_preference(ours, "tea", "green")
    buffered.commit(KEY, turn(1, "q1", "a1", state=ours))
    buffered.commit(KEY, turn(2, "q2", "a2", state=later))
    theirs = set_preference(base, "cake", "plum")
    flaky.inner.save_state(KEY, theirs)
    flaky.mode = "up"
    assert buffered.flush()
    [conflict] = buffered.conflicts
    assert (conflict.key, conflict.ours, conflict.theirs) == (KEY, later, theirs)
    assert texts(buffered) == ["q1", "a1", "q2", "a2"]
    assert buffered.state(KEY) == theirs
    buffered._outbox._spool._file.close()  # the program is killed
    after = BufferedStore(lambda: flaky, retry=3600, spool=spool_in(tmp_path / "spool"))
    [kept] = after.conflicts
    assert (kept.key, kept.ours) == (KEY, later)
    after.settle(kept)
    assert after.conflicts == ()
    after.close()
    assert spool_in(tmp_path / "spool").aside == []


def test_what_can_never_be_written_is_kept_as_a_conflict(buffered, flaky):
    """A session that was erased elsewhere does not come back; the turn is shown, not dropped."""
    start(buffered)
    buffered.head(KEY)
    flaky.mode = "down"
    buffered.commit(KEY, turn(1, "q", "a"))
    flaky.inner.purge(KEY)
    flaky.mode = "up"
    assert buffered.flush()
    [conflict] = buffered.conflicts
    assert conflict.write.record.messages[0].message.text == "q"
    with pytest.raises(NotFound):
        buffered.head(KEY)


def test_an_outage_refuses_what_the_store_would_refuse(buffered, flaky):
    """Stale turns, stale states, taken ids and bad input are refused at once, not later."""
    start(buffered)
    buffered.commit(KEY, turn(1, "q", "a"))
    state = buffered.head(KEY).state
    flaky.mode = "down"
    buffered.save_state(KEY, set_preference(state, "a", "1"))
    with pytest.raises(StaleVersion):
        buffered.save_state(KEY, set_preference(state, "a", "2"))
    with pytest.raises(StaleVersion):
        buffered.commit(KEY, turn(1, "late"))
    with pytest.raises(InvalidInput):
        start(buffered)
    with pytest.raises(InvalidInput):
        buffered.head(SessionKey("..", "x"))
    with pytest.raises(InvalidInput):
        buffered.commit(KEY, turn(2, "half \ud83d"))
    with pytest.raises(StoreUnavailable):
        buffered.update(SessionInfo(SessionKey("eve", KEY.session), "t", NOON, NOON))
    with pytest.raises(StoreUnavailable):
        buffered.users()
    assert buffered.waiting == 1


def test_forgetting_reaches_what_waits(buffered, flaky, tmp_path):
    """A user is erased from memory, spool and store; while the store is away this is refused."""
    start(buffered, title="zebra")
    buffered.head(KEY)
    flaky.mode = "down"
    buffered.commit(KEY, turn(1, "zebra says", "a"))
    start(buffered, SessionKey("other", "s"))
    spooled = b"".join(p.read_bytes() for p in (tmp_path / "spool").iterdir())
    assert b"zebra says" in spooled
    with pytest.raises(StoreUnavailable):
        buffered.erase_user(KEY.user)
    spooled = b"".join(p.read_bytes() for p in (tmp_path / "spool").iterdir())
    assert b"zebra" not in spooled
    assert b"other" in spooled
    flaky.mode = "up"
    assert buffered.flush()
    assert buffered.erase_user(KEY.user).counts["sessions"] == 1
    assert buffered.users() == ["other"]


def test_the_spool_is_sealed(tmp_path):
    """With a key, what waits on disk cannot be read without it."""
    encoding = Encoding(Sealed.of([new_key()]))
    spool = spool_in(tmp_path, encoding)
    buffered = BufferedStore(_never, retry=3600, spool=spool)
    start(buffered, title="zebra")
    buffered.commit(KEY, turn(1, "zebra", "a", records=(memory("r", text="zebra"),)))
    assert b"zebra" not in b"".join(p.read_bytes() for p in tmp_path.iterdir())
    spool._file.close()
    again = spool_in(tmp_path, encoding)
    assert again.left[1].record.messages[0].message.text == "zebra"


@settings(
    max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(st.sampled_from(["turn", "again", "all", "state", "down", "up", "mark"]), max_size=14)
)
def test_outages_leave_no_mark(tmp_path, steps):
    """Whatever happens and whenever the store is away, afterwards it holds what it would have."""
    folder = Path(tempfile.mkdtemp(dir=tmp_path))
    plain = SqlStore.open(f"sqlite:///{folder}/plain.db")
    flaky = FlakyStore(SqlStore.open(f"sqlite:///{folder}/flaky.db"))
    buffered = BufferedStore(lambda: flaky, timeout=30, retry=3600)
    for store in (plain, buffered):
        start(store)
        store.head(KEY)
        store.records(KEY.user)
    for step in steps:
        head = plain.head(KEY)
        number = head.turn + 1
        if step in ("down", "up"):
            flaky.mode = step
            if step == "up":
                assert buffered.flush()
            continue
        if step == "mark":
            ids = [r.id for r in plain.records(KEY.user)]
            assert plain.mark_indexed(KEY.user, ids) == buffered.mark_indexed(KEY.user, ids)
            continue
        if step == "state":
            state = set_preference(head.state, f"p{head.state.version}", "x")
            for store in (plain, buffered):
                store.save_state(KEY, state)
            continue
        record = turn(
            number, f"q{number}", "a", position=head.messages,
            records=(memory(f"r{number}", turn=number),),
            supersedes=head.turn if step == "again" else 0, replaces_all=step == "all",
        )  # fmt: skip
        for store in (plain, buffered):
            store.commit(KEY, record)
        assert texts(buffered) == texts(plain)
        assert buffered.head(KEY) == plain.head(KEY)
    flaky.mode = "up"
    assert buffered.flush()
    assert buffered.conflicts == ()
    for read in ("head", "messages", "turns", "states", "session"):
        assert getattr(flaky.inner, read)(KEY) == getattr(plain, read)(KEY)
    assert flaky.inner.records(KEY.user) == plain.records(KEY.user)
    buffered.close()
    plain.close()


def _never():
    raise StoreUnavailable("The store does not answer: it never will.")
