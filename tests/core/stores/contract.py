"""What every session backend must do, whatever it is made of.

``test_contract.py`` runs this suite over all of them.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from threading import Thread

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory_core.errors import InvalidInput, NotFound, StaleVersion
from memory_core.messages import Message
from memory_core.state import AgentState, KeyFact, set_preference
from memory_core.stores.protocols import SessionInfo, SessionKey
from memory_core.summary import NO_SUMMARY, Summary
from tests.core.stores.making import KEY, NOON, append, memory, start, texts, turn

EMPTY = AgentState(KEY.user, KEY.session)
HOSTILE_IDS = [
    "", " ", " a", "a ", ".", "..", "../up", "a/b", "a\\b", "a\0b", "a\nb", "\x1b[31m",
    "\u202egnp", "half \ud83d", "x" * 201, "x" * 10_000, 7, None, b"bytes",
]  # fmt: skip
ODD_TEXT = "سلام 日本語 😀 naïve café \0 <b>&amp;</b> `x` \u2028 ' \" \\ {braces} %s enc1:x"


class TestTurns:
    """Messages and turns."""

    def test_a_new_session_is_empty(self, store):
        """A session stands at turn 0 with an empty state and no summary."""
        start(store)
        head = store.head(KEY)
        assert (head.turn, head.messages) == (0, 0)
        assert head.state == EMPTY
        assert head.summary == NO_SUMMARY
        assert store.messages(KEY) == []
        assert store.turns(KEY) == []

    def test_a_turn_comes_back_as_it_was_given(self, store, backend):
        """Every field of a turn is read back equal, also by a program that starts later."""
        start(store)
        call = {
            "block_type": "tool_call",
            "tool_call_id": "c1",
            "tool_name": "f",
            "tool_kwargs": {},
        }
        message = Message(
            "assistant", ({"block_type": "text", "text": ODD_TEXT}, call), {"n": [1.5]}
        )
        state = replace(
            EMPTY,
            workflow="order",
            slots={"n": [1, None, {"x": ODD_TEXT}]},
            preferences={"cake": "lemon"},
            key_facts=(KeyFact("f1", ODD_TEXT, 1, "m1"),),
            version=1,
            updated=NOON,
        )
        summary = Summary(1, ODD_TEXT, 9, 2, folded=("a", "b"), kept=("f1",), lost=(), turn=1)
        record = turn(1, message, "hello", state=state, summary=summary, title=ODD_TEXT)
        store.commit(KEY, record)
        for seen in (store, backend.open()):
            assert tuple(seen.messages(KEY)) == record.messages
            [stored] = seen.turns(KEY)
            assert (stored.number, stored.trace, stored.superseded_by) == (1, record.trace, 0)
            assert stored.summary == summary
            head = seen.head(KEY)
            assert (head.turn, head.messages, head.state, head.summary) == (1, 2, state, summary)
            info = seen.session(KEY)
            assert (info.turns, info.messages, info.tokens) == (1, 2, 6)
            assert info.title == ODD_TEXT.replace("\0", "\ufffd")
            assert info.used == record.messages[0].created

    def test_a_turn_without_messages_counts(self, store):
        """A turn that failed leaves its trace and nothing else."""
        start(store)
        store.commit(KEY, turn(1))
        store.commit(KEY, turn(2, "again", position=0))
        assert [t.number for t in store.turns(KEY)] == [1, 2]
        assert texts(store) == ["again"]

    def test_a_taken_turn_number_is_refused(self, store):
        """Of two writers of the same turn one learns that it was late; nothing of it is kept."""
        start(store)
        store.commit(KEY, turn(1, "first", "ok"))
        with pytest.raises(StaleVersion) as caught:
            store.commit(KEY, turn(1, "second", "ok", records=(memory("r2"),)))
        assert (caught.value.expected, caught.value.found) == (0, 1)
        with pytest.raises(StaleVersion):
            store.commit(KEY, turn(3, "too early", position=2))
        assert texts(store) == ["first", "ok"]
        assert store.records(KEY.user) == []

    def test_the_same_turn_again_changes_nothing(self, store):
        """A writer that never heard the answer may send the very same turn again."""
        start(store)
        record = turn(1, "once", "ok", records=(memory("r1"),))
        store.commit(KEY, record)
        store.mark_indexed(KEY.user, ["r1"])
        store.commit(KEY, record)
        assert texts(store) == ["once", "ok"]
        assert store.session(KEY).messages == 2
        assert store.records(KEY.user, pending=True) == []

    def test_positions_follow_each_other(self, store):
        """A gap in the positions is a mistake of the caller, and nothing is written."""
        start(store)
        with pytest.raises(ValueError, match="position"):
            store.commit(KEY, turn(1, "gap", position=1))
        record = turn(1, "a", "b")
        torn = replace(record, messages=record.messages[::-1])
        with pytest.raises(ValueError, match="position"):
            store.commit(KEY, torn)
        assert store.head(KEY).turn == 0

    def test_ranges_of_messages_and_turns(self, store):
        """Messages are read by position, end excluded; turns by number, end included."""
        start(store)
        for number in range(1, 6):
            store.commit(KEY, turn(number, f"q{number}", f"a{number}"))
        assert texts(store, first=3, last=6) == ["a2", "q3", "a3"]
        assert texts(store, first=8) == ["q5", "a5"]
        assert texts(store, first=99) == []
        assert [t.number for t in store.turns(KEY, first=2, last=3)] == [2, 3]
        assert [t.number for t in store.turns(KEY, first=5)] == [5]

    def test_a_superseded_turn_steps_back(self, store):
        """What a turn replaced is inactive but readable; its memories are to be forgotten."""
        start(store)
        store.commit(KEY, turn(1, "q1", "a1", records=(memory("r1"),)))
        store.commit(KEY, turn(2, "q2", "bad", records=(memory("r2", turn=2),), tokens=5))
        store.mark_indexed(KEY.user, ["r1", "r2"])
        store.commit(KEY, turn(3, "q2", "good", supersedes=2))
        assert texts(store) == ["q1", "a1", "q2", "good"]
        assert [m.position for m in store.messages(KEY)] == [0, 1, 4, 5]
        assert texts(store, superseded=True) == ["q1", "a1", "q2", "bad", "q2", "good"]
        assert [t.superseded_by for t in store.turns(KEY)] == [0, 3, 0]
        info = store.session(KEY)
        assert (info.turns, info.messages, info.tokens) == (3, 4, 12)
        assert store.head(KEY).messages == 6
        [pending] = store.records(KEY.user, pending=True)
        assert (pending.id, pending.status) == ("r2", "forgotten")

    def test_a_memory_made_again_stays(self, store):
        """A replacing turn that remembers the same text again keeps that memory active."""
        start(store)
        store.commit(KEY, turn(1, "q", "a", records=(memory("r1"),)))
        store.commit(KEY, turn(2, "q", "a", supersedes=1, records=(memory("r1", turn=2),)))
        assert [(r.status, r.turn) for r in store.records(KEY.user)] == [("active", 2)]

    def test_a_turn_can_replace_all_before_it(self, store):
        """A whole new history takes the place of the old one in one step."""
        start(store)
        store.commit(KEY, turn(1, "q1", "a1", records=(memory("r1"),)))
        store.commit(KEY, turn(2, "q2", "a2"))
        store.commit(KEY, turn(3, "new", replaces_all=True))
        store.commit(KEY, turn(4, "next", position=5))
        assert texts(store) == ["new", "next"]
        assert [t.superseded_by for t in store.turns(KEY)] == [3, 3, 0, 0]
        assert store.session(KEY).messages == 2
        assert store.records(KEY.user)[0].status == "forgotten"

    def test_what_cannot_be_stored_is_refused_before_anything_is_written(self, store):
        """Objects that are no JSON, half characters and naive times leave the session as it was."""
        start(store)
        store.commit(KEY, turn(1, "precious 1", "precious 2"))
        handle = Message("user", ({"block_type": "text", "text": "x"},), {"handle": object()})
        half = Message.of("user", "cut \ud83d")
        for bad in (handle, half):
            with pytest.raises(InvalidInput):
                store.commit(KEY, turn(2, "new", bad, records=(memory("r1"),)))
        for bad in (
            turn(2, "x", trace="\ud83d"),
            turn(2, "x", records=(memory("r1", text="\udc00"),)),
            turn(2, "x", state=replace(EMPTY, version=1, slots={"o": object()})),
        ):
            with pytest.raises(InvalidInput):
                store.commit(KEY, bad)
        naive = turn(2, "x")
        naive = replace(
            naive,
            messages=(replace(naive.messages[0], created=datetime(2026, 1, 1)),),  # noqa: DTZ001
        )
        with pytest.raises(ValueError, match="aware"):
            store.commit(KEY, naive)
        assert texts(store) == ["precious 1", "precious 2"]
        assert store.head(KEY).turn == 1
        assert store.records(KEY.user) == []
        store.commit(KEY, turn(2, "fine"))

    @settings(
        max_examples=20,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )
    @given(
        st.recursive(
            st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=20)
            | st.floats(allow_nan=False),
            lambda inner: st.lists(inner, max_size=3)
            | st.dictionaries(st.text(max_size=5), inner, max_size=3),
            max_leaves=8,
        ),
        st.text(max_size=50),
    )  # fmt: skip
    def test_any_json_message_comes_back(self, store, value, text):
        """Whatever JSON and text a message holds, the same is read back."""
        key = SessionKey(KEY.user, "any")
        if not store.sessions(key.user):
            start(store, key)
        head = store.head(key)
        message = Message("tool", ({"block_type": "text", "text": text},), {"value": value})
        store.commit(key, turn(head.turn + 1, message, position=head.messages))
        assert store.messages(key, first=head.messages)[0].message == message


class TestState:
    """Versions of the structured state."""

    def test_versions_are_kept(self, store):
        """Every saved version can be read again; a version never saved is not found."""
        start(store)
        one = set_preference(EMPTY, "cake", "lemon")
        store.save_state(KEY, one)
        two = set_preference(one, "cake", "plum")
        store.commit(KEY, turn(1, "q", "a", state=two))
        assert store.state(KEY) == store.state(KEY, 2) == two
        assert store.state(KEY, 1) == one
        assert store.state(KEY, 0) == EMPTY
        assert [(s.turn, s.state) for s in store.states(KEY)] == [(0, one), (1, two)]
        with pytest.raises(NotFound):
            store.state(KEY, 3)

    def test_a_stale_state_is_refused(self, store):
        """Two saves from one version: the second learns both numbers and nothing is lost."""
        start(store)
        mine, theirs = set_preference(EMPTY, "a", "1"), set_preference(EMPTY, "a", "2")
        store.save_state(KEY, theirs)
        with pytest.raises(StaleVersion) as caught:
            store.save_state(KEY, mine)
        assert (caught.value.expected, caught.value.found) == (0, 1)
        assert store.state(KEY) == theirs

    def test_a_turn_with_a_stale_state_is_not_written(self, store):
        """A turn is whole: with its state refused none of its messages is there."""
        start(store)
        store.save_state(KEY, set_preference(EMPTY, "a", "theirs"))
        mine = set_preference(set_preference(EMPTY, "a", "x"), "b", "y")  # version 2, made from 0
        with pytest.raises(StaleVersion):
            store.commit(KEY, turn(1, "q", "a", state=mine, state_base=0))
        assert store.head(KEY).turn == 0
        assert texts(store) == []

    def test_several_changes_in_one_turn(self, store):
        """A turn may raise the version by more than one when it says where it began."""
        start(store)
        jumped = set_preference(set_preference(EMPTY, "a", "x"), "b", "y")
        with pytest.raises(StaleVersion):
            store.commit(KEY, turn(1, "q", state=jumped))
        store.commit(KEY, turn(1, "q", state=jumped, state_base=0))
        assert store.state(KEY) == jumped
        further = set_preference(set_preference(jumped, "c", "x"), "c", "y")
        store.save_state(KEY, further, base=2)
        assert [s.state.version for s in store.states(KEY)] == [2, 4]

    def test_a_state_belongs_to_its_session(self, store):
        """A state that names another user or session is a mistake of the caller."""
        start(store)
        with pytest.raises(ValueError, match="another session"):
            store.save_state(KEY, AgentState("eve", KEY.session, version=1))


class TestCatalogue:
    """Sessions of each user."""

    def test_a_session_comes_back_as_it_was_created(self, store):
        """The catalogue keeps every field that the caller gives."""
        info = SessionInfo(
            KEY, ODD_TEXT.replace("\0", ""), NOON, NOON + timedelta(days=1), strategy="layered",
            settings={"top_k": 4, "system_prompt": ODD_TEXT}, archived=True, origin="s-0",
        )  # fmt: skip
        store.create(info)
        assert store.session(KEY) == info
        assert store.sessions(KEY.user) == [info]

    def test_the_last_used_session_comes_first(self, store):
        """A turn moves its session to the top; times never go back."""
        for n in range(3):
            start(store, SessionKey(KEY.user, f"s{n}"), used=NOON - timedelta(days=n))
        assert [i.key.session for i in store.sessions(KEY.user)] == ["s0", "s1", "s2"]
        store.commit(SessionKey(KEY.user, "s2"), turn(1, "hi"))
        assert [i.key.session for i in store.sessions(KEY.user)] == ["s2", "s0", "s1"]

    def test_changes_are_saved(self, store):
        """Title, settings, strategy, archived and deleted change; the counters do not."""
        start(store)
        store.commit(KEY, turn(1, "q", "a"))
        wanted = replace(
            store.session(KEY), title="New", settings={"a": [1]}, strategy="x", archived=True,
            turns=99, messages=99, tokens=99,
        )  # fmt: skip
        store.update(wanted)
        info = store.session(KEY)
        assert (info.title, info.settings, info.strategy) == ("New", {"a": [1]}, "x")
        assert info.archived
        assert (info.turns, info.messages, info.tokens) == (1, 2, 6)

    def test_deleting_can_be_undone(self, store):
        """A deleted session leaves the list but keeps its messages until it is purged."""
        start(store)
        store.commit(KEY, turn(1, "q", "a"))
        store.update(replace(store.session(KEY), deleted=True))
        assert store.sessions(KEY.user) == []
        [gone] = store.sessions(KEY.user, deleted=True)
        store.update(replace(gone, deleted=False))
        assert [i.key for i in store.sessions(KEY.user)] == [KEY]
        assert store.sessions(KEY.user, deleted=True) == []
        assert texts(store) == ["q", "a"]

    def test_an_id_is_used_once(self, store):
        """A second session of the same id is refused; another user may have the id too."""
        start(store)
        with pytest.raises(InvalidInput):
            start(store)
        other = start(store, SessionKey("eve", KEY.session))
        store.commit(other, turn(1, "hers"))
        assert texts(store) == []

    def test_purging_leaves_nothing(self, store, backend):
        """A purged session is gone with all it held; the index still learns what to let go."""
        start(store)
        start(store, SessionKey(KEY.user, "s-2"))
        store.commit(KEY, turn(1, "zebra-one", "a", title="zebra-title",
                               state=replace(EMPTY, version=1, workflow="zebra-flow"),
                               summary=Summary(1, "zebra-sum", 1, 1),
                               records=(memory("r1", text="zebra-text"),)))  # fmt: skip
        store.commit(KEY, turn(2, "zebra-two"))
        store.purge(KEY)
        for call in (store.head, store.messages, store.turns, store.state, store.purge):
            with pytest.raises(NotFound):
                call(KEY)
        assert [i.key.session for i in store.sessions(KEY.user)] == ["s-2"]
        [left] = store.records(KEY.user, pending=True)
        assert (left.id, left.text, left.status, left.message_ids) == ("r1", "", "forgotten", ())
        assert store.mark_indexed(KEY.user, ["r1"]) == ["r1"]
        assert store.records(KEY.user) == []
        start(store)
        assert store.messages(KEY) == []
        backend.close()
        assert b"zebra" not in backend.raw_bytes()


class TestRecords:
    """Long-term records."""

    def test_records_come_back_in_order(self, store):
        """Records are read oldest first, each as it was given, also when one was replaced."""
        full = memory("b", text=ODD_TEXT.replace("\0", ""), count=3, status="superseded",
                      expires=NOON + timedelta(days=9), kind="fact", message_ids=())  # fmt: skip
        store.put_records([full, memory("a"), memory("c")])
        store.put_records([])
        assert [r.id for r in store.records(KEY.user)] == ["b", "a", "c"]
        assert store.records(KEY.user)[0] == full
        store.put_records([replace(full, count=4)])
        assert [(r.id, r.count) for r in store.records(KEY.user)] == [("b", 4), ("a", 1), ("c", 1)]

    def test_pending_until_marked(self, store):
        """The outbox holds a record until the index has it, and again after each change."""
        store.put_records([memory("a"), memory("b")])
        assert store.mark_indexed(KEY.user, ["a", "unknown"]) == ["a"]
        assert store.mark_indexed(KEY.user, []) == []
        assert [r.id for r in store.records(KEY.user, pending=True)] == ["b"]
        assert [r.indexed for r in store.records(KEY.user)] == [True, False]
        store.put_records([memory("a", status="forgotten")])
        assert [r.id for r in store.records(KEY.user, pending=True)] == ["a", "b"]

    def test_what_changed_meanwhile_is_not_marked(self, store):
        """A record forgotten while it was being indexed stays pending."""
        store.put_records([memory("a"), memory("b")])
        store.put_records([memory("b", status="forgotten")])
        assert store.mark_indexed(KEY.user, ["a", "b"], status="active") == ["a"]
        assert [r.id for r in store.records(KEY.user, pending=True)] == ["b"]


class TestIsolation:
    """Users and ids."""

    def test_a_session_of_another_user_does_not_exist(self, store):
        """Knowing an id is not enough: every call needs the owner."""
        start(store)
        store.commit(KEY, turn(1, "secret", "ok", records=(memory("r1"),)))
        eve = SessionKey("eve", KEY.session)
        calls = [
            lambda: store.head(eve),
            lambda: store.messages(eve),
            lambda: store.turns(eve),
            lambda: store.state(eve),
            lambda: store.states(eve),
            lambda: store.session(eve),
            lambda: store.purge(eve),
            lambda: store.commit(eve, turn(2, "x", position=2)),
            lambda: store.save_state(eve, AgentState("eve", KEY.session, version=1)),
            lambda: store.update(SessionInfo(eve, "mine", NOON, NOON)),
        ]
        for call in calls:
            with pytest.raises(NotFound):
                call()
        assert store.sessions("eve") == []
        assert store.records("eve") == []
        assert store.mark_indexed("eve", ["r1"]) == []
        with pytest.raises(ValueError, match="user"):
            store.commit(KEY, turn(2, "x", position=2, records=(memory("r2", eve),)))
        assert texts(store) == ["secret", "ok"]
        assert store.users() == [KEY.user]

    @pytest.mark.parametrize("bad", HOSTILE_IDS, ids=lambda v: ascii(v)[:12])
    def test_hostile_ids_are_refused(self, store, bad):
        """Path tricks, control characters, giants and wrong types get a clear refusal."""
        for key in (SessionKey(bad, "s"), SessionKey("u", bad)):
            for call in (store.head, store.messages, store.purge, store.session):
                with pytest.raises(InvalidInput):
                    call(key)
            with pytest.raises(InvalidInput):
                store.create(SessionInfo(key, "t", NOON, NOON))
        for call in (store.sessions, store.records, store.erase_user):
            with pytest.raises(InvalidInput):
                call(bad)
        start(store)
        record = turn(1, "x")
        record = replace(record, messages=(replace(record.messages[0], id=bad),))
        with pytest.raises(InvalidInput):
            store.commit(KEY, record)
        with pytest.raises(InvalidInput):
            store.put_records([replace(memory("x"), id=bad)])
        assert store.head(KEY).turn == 0

    def test_ids_are_opaque(self, store):
        """Ids that differ in case, accents or punctuation are different; none is a pattern."""
        ids = [
            "Dana",
            "dana",
            "dàna",
            "da:na",
            "dana*",
            "d?na",
            "{dana}",
            "auth0|1",
            "\u00e9",
            "e\u0301",
        ]
        for n, user in enumerate(ids):
            key = start(store, SessionKey(user, "s"))
            store.commit(key, turn(1, f"text {n}"))
        for n, user in enumerate(ids):
            assert texts(store, SessionKey(user, "s")) == [f"text {n}"]
        assert store.users() == sorted(ids)

    def test_forgetting_a_user(self, store, backend):
        """Everything of a user is erased, counted, and no byte of it is left; others stay."""
        for user in ("zebra-user", "other"):
            key = start(store, SessionKey(user, f"{user}-session"), title=f"{user}-title",
                        settings={"p": f"{user}-prompt"}, origin=f"{user}-origin")  # fmt: skip
            state = AgentState(user, key.session, workflow=f"{user}-flow", version=1)
            for n in (1, 2):
                store.commit(key, turn(
                    n, f"{user} says {n}", "ok", trace=f'{{"t":"{user}-trace"}}',
                    supersedes=n - 1, state=state if n == 1 else None,
                    records=(memory(f"{user}-r{n}", key, turn=n, text=f"{user}-text"),),
                ))  # fmt: skip
        erased = store.erase_user("zebra-user")
        assert erased.counts == {
            "sessions": 1,
            "messages": 4,
            "turns": 2,
            "states": 1,
            "records": 2,
        }
        assert store.users() == ["other"]
        assert store.sessions("zebra-user") == store.records("zebra-user") == []
        assert texts(store, SessionKey("other", "other-session")) == ["other says 2", "ok"]
        again = store.erase_user("zebra-user")
        assert set(again.counts.values()) == {0}
        assert b"zebra" not in backend.raw_bytes()
        backend.close()
        assert b"zebra" not in backend.raw_bytes()

    def test_facts_say_what_is_stored(self, store, backend):
        """The backend says its name, schema version, rows and size, and no password."""
        start(store)
        store.commit(KEY, turn(1, "q", "a", records=(memory("r1"),)))
        facts = store.facts()
        assert facts.backend
        assert facts.version >= 1
        assert facts.size > 0
        rows = facts.rows
        assert (rows["sessions"], rows["turns"], rows["messages"], rows["records"]) == (1, 1, 2, 1)


class TestTogether:
    """Several writers."""

    def test_messages_written_at_once_are_all_kept(self, backend):
        """Fifty messages from ten threads on two openings: each once, in one total order."""
        stores = [backend.open(), backend.open()]
        start(stores[0])
        _at_once(lambda n: [append(stores[n % 2], KEY, f"m{n * 5 + i}") for i in range(5)], 10)
        seen = stores[0].messages(KEY)
        assert sorted(m.message.text for m in seen) == sorted(f"m{n}" for n in range(50))
        assert [m.position for m in seen] == list(range(50))
        assert [t.number for t in stores[1].turns(KEY)] == list(range(1, 51))

    def test_sessions_do_not_disturb_each_other(self, store):
        """Two sessions written at the same time hold what was written to each."""
        keys = [start(store, SessionKey(KEY.user, name)) for name in "AB"]
        _at_once(lambda n: [append(store, keys[n % 2], f"{n}.{i}") for i in range(10)], 6)
        for n, key in enumerate(keys):
            assert len(store.messages(key)) == 30
            assert all(int(t[0]) % 2 == n for t in texts(store, key))

    def test_counting_in_the_state_loses_nothing(self, store):
        """Four threads that count up in the state, each trying again when late, reach the sum."""
        start(store)

        def count(_: int) -> None:
            done = 0
            while done < 5:
                state = store.state(KEY)
                value = state.slots.get("n", 0) + 1
                changed = replace(state, slots={"n": value}, version=state.version + 1)
                try:
                    store.save_state(KEY, changed)
                except StaleVersion:
                    continue
                done += 1

        _at_once(count, 4)
        assert store.state(KEY).slots == {"n": 20}

    def test_first_openings_at_once(self, backend):
        """Five programs that open a fresh place together all find it ready."""
        _at_once(lambda n: start(backend.open(), SessionKey("u", f"s{n}")), 5)
        assert len(backend.open().sessions("u")) == 5


def _at_once(work, threads: int) -> None:
    failures: list[BaseException] = []

    def run(n: int) -> None:
        try:
            work(n)
        except BaseException as exc:
            failures.append(exc)

    running = [Thread(target=run, args=(n,)) for n in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    assert failures == []
