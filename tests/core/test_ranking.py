"""The pure part of recall: signals, fusion, gates, and what near misses say."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import bm25s
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_core.fusion import LENT, Features, fuse
from memory_core.lexicon import K1, B, Lexicon
from memory_core.prompt import Gate, Hit, Recall
from memory_core.ranking import Candidates, rank_hits
from memory_core.records import record_id, vector_id
from memory_core.settings import BM25, DENSE, HYBRID, MemorySettings
from memory_core.shelf import Shelf
from memory_core.smalltalk import reason_to_skip
from memory_core.stores.protocols import MemoryRecord
from memory_core.testing import HashEmbedder

NOW = datetime(2026, 3, 1, tzinfo=UTC)
EMBEDDER = HashEmbedder(32)
TEXTS = (
    "the spare key is in the shed",
    "the boiler was serviced in March",
    "the cat is called Pixel",
    "the wifi name is Heron",
    "bins go out on Tuesday",
    "the bakery opens at seven",
    "the lease ends in June",
    "the key of the shed hangs in the kitchen",
)
QUERY = "where is the key of the shed"


def record(text: str, turn: int = 1, session: str = "s", **more: Any) -> MemoryRecord:
    """Return a record."""
    values: dict[str, Any] = {
        "kind": "turn",
        "message_ids": (f"{session}-m{turn}",),
        "created": NOW - timedelta(days=turn),
    }
    return MemoryRecord(
        id=record_id("u", session, text),
        user="u",
        session=session,
        turn=turn,
        text=text,
        **(values | more),
    )


def shelf_of(records: Sequence[MemoryRecord], *, exact_up_to: int = 20_000) -> Shelf:
    """Return a shelf that holds records and their vectors."""
    shelf = Shelf(exact_up_to=exact_up_to)
    for one in records:
        shelf.learn(one)
    if records:
        vectors = EMBEDDER.embed([one.text for one in records])
        shelf.take({vector_id(r.id): v for r, v in zip(records, vectors, strict=True)})
    return shelf


def candidates(records: Sequence[MemoryRecord], query: str = QUERY) -> Candidates:
    """Return what a search of these records would find."""
    shelf = shelf_of(records)
    words = shelf.lexicon.shares(query, shelf.rows)
    return Candidates(query, shelf.look(words, EMBEDDER.embed([query])[0]))


def rank(found: Candidates, knobs: MemorySettings | None = None, **changes: Any) -> Recall:
    """Rank with defaults that let everything pass."""
    values: dict[str, Any] = {
        "session": "s",
        "in_buffer": frozenset(),
        "budget": None,
        "count": lambda hit: len(hit.text.split()),
        "now": NOW,
    }
    return rank_hits(found, settings=knobs or MemorySettings(threshold=-1.0), **(values | changes))


def all_of(recall: Recall) -> list[Hit]:
    """Return hits and near misses."""
    return [*recall.hits, *(hit for hit, _ in recall.near)]


def stopped(recall: Recall, text: str) -> tuple[Gate, str, float | None, float | None]:
    """Return what stopped a memory."""
    (out,) = [omission for hit, omission in recall.near if hit.text == text]
    return out.gate, out.reason, out.needed, out.available


RECORDS = [record(text, turn) for turn, text in enumerate(TEXTS, start=1)]


class TestGates:
    def test_hits_come_best_first_with_ranks(self) -> None:
        """Hits are in the order of their score, ranked from 1, at most top_k of them."""
        recall = rank(candidates(RECORDS), MemorySettings(threshold=-1, top_k=3))
        assert [hit.rank for hit in recall.hits] == [1, 2, 3]
        scores = [hit.score for hit in recall.hits]
        assert scores == sorted(scores, reverse=True)
        assert {recall.hits[0].text, recall.hits[1].text} == {TEXTS[0], TEXTS[7]}
        assert recall.searched == len(TEXTS)

    def test_top_k(self) -> None:
        """A memory behind top_k says its rank and top_k."""
        recall = rank(candidates(RECORDS), MemorySettings(threshold=-1, top_k=5, near_misses=2))
        sixth = next(hit for hit, _ in recall.near if hit.rank == 6)
        assert stopped(recall, sixth.text) == (Gate.TOP_K, "rank 6, top_k is 5", 6, 5)
        assert len(recall.near) == 2

    def test_threshold(self) -> None:
        """A memory under the threshold says both scores, apart in print even when close."""
        found = candidates(RECORDS)
        best, second = rank(found).hits[:2]
        between = (best.score + second.score) / 2
        recall = rank(found, MemorySettings(threshold=between))
        gate, reason, needed, available = stopped(recall, second.text)
        assert (gate, needed, available) == (Gate.THRESHOLD, between, second.score)
        assert reason.startswith("score 0.5")
        assert "under threshold 0.5" in reason
        close = rank(found, MemorySettings(threshold=best.score + 1e-5))
        words = stopped(close, best.text)[1].split()
        assert float(words[1]) < float(words[4])

    def test_budget(self) -> None:
        """Hits fill the budget by rank; one that does not fit says so, a shorter one may pass."""
        found = candidates(RECORDS)
        first, second, third = rank(found).hits[:3]
        sizes = {first.id: 5, second.id: 212, third.id: 180}
        recall = rank(
            found,
            MemorySettings(threshold=-1, top_k=3),
            budget=185,
            count=lambda hit: sizes.get(hit.id, 1),
        )
        assert [hit.id for hit in recall.hits] == [first.id, third.id]
        assert stopped(recall, second.text) == (
            Gate.BUDGET,
            "needs 212 tokens, 180 left",
            212,
            180,
        )

    def test_other_session_only_when_scoped(self) -> None:
        """Scoped to this session, memories of another are stopped; otherwise they are not."""
        found = candidates([*RECORDS, record("the key is with Anna", 1, "elsewhere")])
        assert any(h.session == "elsewhere" for h in all_of(rank(found)))
        recall = rank(found, MemorySettings(threshold=-1, scope="session"))
        assert stopped(recall, "the key is with Anna")[0] is Gate.OTHER_SESSION
        assert all(hit.session == "s" for hit in recall.hits)

    def test_expired_and_superseded(self) -> None:
        """What is no longer true is stopped with the reason, and lends nothing."""
        old = record("the key lies under the mat", 3, expires=NOW - timedelta(days=2, hours=5))
        wrong = record("the key is in the garage", 4, status="superseded")
        valid = record("the key is in the hall", 5, expires=NOW + timedelta(seconds=1))
        recall = rank(candidates([old, wrong, valid]))
        assert stopped(recall, old.text)[:2] == (Gate.EXPIRED, "expired 2 days ago")
        assert stopped(recall, wrong.text)[0] is Gate.SUPERSEDED
        assert [hit.text for hit in recall.hits] == [valid.text]

    def test_already_in_the_buffer(self) -> None:
        """A memory whose messages stand in the prompt is not repeated."""
        recall = rank(candidates(RECORDS), in_buffer=frozenset({"s-m1"}))
        assert stopped(recall, TEXTS[0])[0] is Gate.IN_BUFFER

    def test_duplicates(self) -> None:
        """The same text told in two sessions, and a fact that a turn says, are shown once."""
        turn = record("user: The cat is called PIXEL\nassistant: Nice name.", 1)
        fact = record("the cat is  called Pixel", 2, kind="fact")
        twin = record("the cat is called Pixel", 1, "elsewhere")
        recall = rank(candidates([turn, fact, twin], "what is the cat called"))
        assert len({hit.text.casefold() for hit in recall.hits}) == len(recall.hits)
        gates = [out.gate for _, out in recall.near]
        assert gates
        assert set(gates) == {Gate.DUPLICATE}

    def test_the_first_gate_is_the_reason(self) -> None:
        """A memory that several gates would stop names the first of them."""
        bad = record(
            "the key is lost", 1, "elsewhere", status="superseded", expires=NOW - timedelta(1)
        )
        found = candidates([*RECORDS, bad])
        strict = MemorySettings(threshold=1.0, scope="session", near_misses=20)
        buffered = frozenset(bad.message_ids)
        gates = [
            stopped(rank(found, knobs, in_buffer=buffered), bad.text)[0]
            for knobs in (strict, strict.with_(scope="user"))
        ]
        assert gates == [Gate.OTHER_SESSION, Gate.EXPIRED]

    def test_everything_names_the_fate_of_every_memory(self) -> None:
        """On request each memory is a hit or has a reason, whatever the number of near misses."""
        records = [*RECORDS, record("gone", 9, status="superseded"), record("x", 1, "other")]
        knobs = MemorySettings(top_k=1, near_misses=0, scope="session", threshold=0.1)
        recall = rank(candidates(records), knobs, everything=True, in_buffer=frozenset({"s-m3"}))
        assert sorted(h.id for h in all_of(recall)) == sorted(r.id for r in records)
        assert rank(candidates(records), knobs).near == ()

    def test_nothing_to_rank(self) -> None:
        """No memories, or a search that was skipped, give an empty recall with the reason."""
        assert rank(candidates([])).hits == ()
        recall = rank(Candidates.skipped("q", "the model is down"))
        assert (recall.hits, recall.near, recall.skipped) == ((), (), "the model is down")


class TestScores:
    @pytest.mark.parametrize("method", [HYBRID, DENSE, BM25])
    def test_signals_sum_to_the_score(self, method: str) -> None:
        """Each hit's score taken apart by signal adds up to it, whatever the weights."""
        knobs = MemorySettings(
            threshold=-1, recall_method=method, weight_recency=0.4, weight_dense=2.5, top_k=8
        )
        for hit in all_of(rank(candidates(RECORDS), knobs)):
            assert sum(hit.signals.values()) == pytest.approx(hit.score, abs=1e-12)
            assert -1 <= hit.similarity <= 1

    def test_dense_scores_are_cosines(self) -> None:
        """By dense alone the score is the similarity itself, and so is the order."""
        recall = rank(candidates(RECORDS), MemorySettings(threshold=-1, recall_method=DENSE))
        assert all(hit.score == hit.similarity for hit in all_of(recall))
        assert all(
            hit.distance == pytest.approx(1 - hit.similarity, abs=1e-6) for hit in all_of(recall)
        )

    @pytest.mark.parametrize("count", [1, 3, 8, 200])
    def test_saying_the_query_word_for_word_scores_one(self, count: int) -> None:
        """1 is a memory that says just what the query says, in a small and in a large memory."""
        others = [record(f"{TEXTS[i % 8]} number {i}", 10 * i) for i in range(count - 1)]
        found = candidates([*others, record(QUERY, 5)])
        best = rank(found, MemorySettings(threshold=-1, weight_neighbours=0)).hits[0]
        assert (best.text, best.score) == (QUERY, pytest.approx(1, abs=1e-6))

    def test_scores_of_different_queries_compare(self) -> None:
        """A question about nothing stored scores lower than one about something."""
        related = rank(candidates(RECORDS, "what is the wifi called")).hits[0].score
        unrelated = rank(candidates(RECORDS, "capital of France")).hits[0].score
        assert related > 2 * unrelated

    def test_neighbours_lend_score(self) -> None:
        """An answer without the question's words rises by the turn before it, more than after."""
        talk = [
            record("have you found the key of the shed", 1),
            record("yes, behind the flower pot", 2),
            record("let us have lunch", 3),
            record("bins go out on Tuesday", 7),
        ]
        found = candidates(talk)
        lent = {h.text: h.signals["neighbours"] for h in rank(found).hits}
        assert lent[talk[1].text] > lent[talk[2].text] > 0
        assert lent[talk[3].text] == 0
        alone = rank(found, MemorySettings(threshold=-1, weight_neighbours=0))
        assert all("neighbours" not in hit.signals for hit in alone.hits)

    def test_another_session_is_no_neighbour(self) -> None:
        """Turns of different sessions are not beside each other."""
        found = candidates(
            [record("have you found the key of the shed", 1), record("yes", 2, "other")]
        )
        assert {h.text: h.signals["neighbours"] for h in rank(found).hits}["yes"] == 0

    def test_recency(self) -> None:
        """Recency adds its weight to a memory of now and half of it after ``recency_days``."""
        pair = [
            record("the key is here", 1, created=NOW),
            record("the key is there", 9, created=NOW - timedelta(days=7)),
        ]
        knobs = MemorySettings(threshold=-1, weight_recency=0.5, recency_days=7)
        gained = {h.text: h.signals["recency"] for h in rank(candidates(pair), knobs).hits}
        assert gained == pytest.approx({pair[0].text: 0.5, pair[1].text: 0.25})

    def test_diversity_prefers_the_unlike(self) -> None:
        """With diversity a memory like a better one gives way; top_k only cuts the same order."""
        records = [
            record("the key of the shed is in the shed", 1),
            record("the key of the shed is in the shed now", 11),
            record("Anna has the key", 21),
        ]
        found = candidates(records)
        plain = rank(found, MemorySettings(threshold=-1, top_k=2))
        diverse = MemorySettings(threshold=-1, diversity=0.7, top_k=3)
        assert "Anna has the key" not in [h.text for h in plain.hits]
        order = [h.text for h in rank(found, diverse).hits]
        assert order[1] == "Anna has the key"
        assert [h.text for h in rank(found, diverse.with_(top_k=2)).hits] == order[:2]

    def test_memories_without_a_vector_are_found_by_words(self) -> None:
        """A memory that is not embedded yet counts as average by meaning and is still found."""
        shelf = shelf_of(RECORDS[:4])
        late = record("where is the key of the shed now", 50)
        shelf.learn(late)
        words = shelf.lexicon.shares(QUERY, shelf.rows)
        found = Candidates(QUERY, shelf.look(words, EMBEDDER.embed([QUERY])[0]))
        (hit,) = [hit for hit in rank(found).hits[:2] if hit.id == late.id]
        assert (hit.similarity, hit.distance, hit.signals["dense"]) == (0.0, 1.0, 0.0)
        dense = rank(found, MemorySettings(threshold=-1, recall_method=DENSE), everything=True)
        assert late.id not in {h.id for h in all_of(dense)}

    def test_without_any_vector_words_alone_decide(self) -> None:
        """When nothing is embedded the hybrid is the words' order, on the same scale."""
        shelf = Shelf()
        for one in RECORDS:
            shelf.learn(one)
        words = shelf.lexicon.shares(QUERY, shelf.rows)
        best = rank(Candidates(QUERY, shelf.look(words, None))).hits[0]
        assert best.text in (TEXTS[0], TEXTS[7])
        assert np.isfinite(best.score)

    def test_weights_of_zero(self) -> None:
        """All weights at zero give scores of zero, no error."""
        knobs = MemorySettings(threshold=-1, weight_dense=0, weight_bm25=0, weight_neighbours=0)
        assert {h.score for h in rank(candidates(RECORDS), knobs).hits} == {0.0}


@given(
    count=st.integers(0, 12),
    top_k=st.integers(0, 14),
    threshold=st.floats(-1, 1),
    budget=st.none() | st.integers(0, 60),
    diversity=st.sampled_from([0.0, 0.4]),
    query=st.sampled_from([QUERY, "when does it open", "", "Pixel"]),
)
@settings(max_examples=60, deadline=None)
def test_smallest_changes_are_exact(
    count: int,
    top_k: int,
    threshold: float,
    budget: int | None,
    diversity: float,
    query: str,
) -> None:
    """The numbers of a near miss let it past its gate, and one step less does not."""
    records = [record(f"{TEXTS[i % 8]} {i}", 3 * i) for i in range(count)]
    found = candidates(records, query or "x")
    knobs = MemorySettings(top_k=top_k, threshold=threshold, diversity=diversity, near_misses=20)
    recall = rank(found, knobs, budget=budget)
    for hit, out in recall.near:
        if out.gate is Gate.THRESHOLD:
            past, short = {"threshold": hit.score}, {"threshold": np.nextafter(hit.score, 2)}
        elif out.gate is Gate.TOP_K:
            past, short = {"top_k": hit.rank}, {"top_k": hit.rank - 1}
        else:
            assert out.gate is Gate.BUDGET
            assert out.needed > out.available >= 0
            continue
        for change, stays in ((past, False), (short, True)):
            after = rank(found, MemorySettings(**(vars(knobs) | change)), budget=budget)
            stopped_there = {h.id for h, o in after.near if o.gate is out.gate}
            assert (hit.id in stopped_there) is stays
    if budget is not None:
        assert sum(hit.tokens for hit in recall.hits) <= budget
    assert len(recall.hits) <= top_k
    ids = [hit.id for hit in all_of(recall)]
    assert len(ids) == len(set(ids))


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_lexicon_equals_bm25s(data: st.DataObject) -> None:
    """Scores equal those of bm25s (Lucene's formula), after any additions and removals."""
    words = st.sampled_from(["key", "shed", "keys", "cat", "Pixel", "opens", "seven", "the"])
    text = st.lists(words, min_size=1, max_size=9).map(" ".join)
    texts = data.draw(st.lists(text, min_size=1, max_size=12))
    gone = data.draw(st.sets(st.integers(0, len(texts) - 1), max_size=len(texts) - 1))
    query = data.draw(text)
    lexicon = Lexicon()
    for row, one in enumerate(texts):
        lexicon.add(row, one)
    for row in gone:
        lexicon.remove(row)
    left = [row for row in range(len(texts)) if row not in gone]
    oracle = bm25s.BM25(method="lucene", k1=K1, b=B, backend="numpy")
    oracle.index([lexicon.terms(texts[row]) for row in left], show_progress=False)
    wanted = oracle.get_scores(list(dict.fromkeys(lexicon.terms(query))))
    assert lexicon.scores(query, len(texts))[left] == pytest.approx(wanted, abs=1e-5)
    assert not lexicon.scores(query, len(texts))[sorted(gone)].any()
    assert len(lexicon) == len(left)


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("Painting sunsets, 日本語", ["paint", "sunset", "日本", "本語"]),
        ("I a 7 x9", ["7", "x9"]),
        ("猫", ["猫"]),
        ("ÜBER straße", ["über", "strass"]),
        ("", []),
        ("!!! 🎉", []),
    ],
)
def test_terms(text: str, terms: list[str]) -> None:
    """Words are stemmed; scripts without spaces give pairs; single letters and signs nothing."""
    assert Lexicon().terms(text) == terms


class TestShelf:
    def test_incremental_equals_built_at_once(self) -> None:
        """A shelf after learning, dropping and correcting is one built from what is left."""
        shelf = shelf_of([*RECORDS, record("to be dropped, a key", 30)])
        shelf.drop(record_id("u", "s", "to be dropped, a key"))
        shelf.learn(record(TEXTS[2], 3, status="superseded"))
        fresh = shelf_of([r for r in RECORDS if r.text != TEXTS[2]])
        fresh.learn(record(TEXTS[2], 3, status="superseded"))
        fresh.take({vector_id(RECORDS[2].id): EMBEDDER.embed([TEXTS[2]])[0]})
        results = []
        for one in (shelf, fresh):
            words = one.lexicon.shares(QUERY, one.rows)
            recall = rank(Candidates(QUERY, one.look(words, EMBEDDER.embed([QUERY])[0])))
            results.append(
                {h.text: pytest.approx(h.score) for h in all_of(recall)}  # same memories and scores
            )
        assert {k: v.expected for k, v in results[0].items()} == results[1]
        assert len(shelf) == len(fresh) == len(RECORDS)

    def test_snapshots_do_not_change(self) -> None:
        """What a search handed out stays as it was while the shelf goes on."""
        shelf = shelf_of(RECORDS)
        words = shelf.lexicon.shares(QUERY, shelf.rows)
        found = Candidates(QUERY, shelf.look(words, EMBEDDER.embed([QUERY])[0]))
        before = rank(found)
        for number in range(200):
            shelf.learn(record(f"the key of shed {number}", number))
        shelf.learn(record(TEXTS[0], 1, status="superseded"))
        shelf.drop(RECORDS[1].id)
        assert rank(found) == before

    def test_equal_texts_share_a_vector(self) -> None:
        """A text told in two sessions is two records with one vector; it goes with the last."""
        here, there = record("the same words", 1), record("The  same words", 1, "other")
        shelf = shelf_of([here])
        shelf.learn(there)
        assert vector_id(here.id) == vector_id(there.id)
        assert shelf.lacking == []
        shelf.drop(here.id)
        assert [r.id for r in shelf.holders(vector_id(here.id))] == [there.id]
        shelf.drop(there.id)
        assert shelf.orphans == [vector_id(here.id)]

    def test_more_than_fit_are_left_to_the_index(self) -> None:
        """Beyond its size the shelf holds no vectors but uses those that are fetched."""
        shelf = shelf_of(RECORDS, exact_up_to=3)
        words = shelf.lexicon.shares(QUERY, shelf.rows)
        query = EMBEDDER.embed([QUERY])[0]
        assert np.isnan(shelf.look(words, query).features.similarity[3:]).all()
        last = vector_id(RECORDS[7].id)
        assert last in shelf.unseen(words, 2)
        fetched = {last: EMBEDDER.embed([TEXTS[7]])[0]}
        got = shelf.look(words, query, fetched=fetched)
        whole = shelf_of(RECORDS).look(words, query)
        assert got.features.similarity[7] == pytest.approx(whole.features.similarity[7], abs=1e-6)
        assert got.distance[7] == pytest.approx(whole.distance[7], abs=1e-6)

    @pytest.mark.parametrize("metric", ["cosine", "l2", "ip"])
    def test_c18_similarity_is_the_same_for_every_metric(self, case: Any, metric: str) -> None:
        """Similarity is the cosine whatever the metric; the raw distance stands beside it."""
        given_case = case("C18")
        vectors = given_case["input"]["records"]
        records = {name: record(name, 3 * i) for i, name in enumerate(vectors)}
        shelf = Shelf()
        for one in records.values():
            shelf.learn(one)
        shelf.take({vector_id(records[n].id): np.array(v, np.float32) for n, v in vectors.items()})
        query = np.array(given_case["input"]["query"], np.float32)
        words = np.zeros(shelf.rows)
        found = Candidates("q", shelf.look(words, query, metric=metric), metric=metric)
        recall = rank(found, MemorySettings(threshold=-1, recall_method=DENSE))
        check = given_case["expected"]["check"]
        assert {h.text: h.similarity for h in recall.hits} == pytest.approx(
            check["cosine_similarity"], abs=check["tolerance"]
        )
        assert {h.text: h.distance for h in recall.hits} == pytest.approx(
            check["raw_distance"][metric], abs=1e-4
        )
        assert recall.metric == metric

    def test_c18_large_unnormalised_vectors(self) -> None:
        """With 768 numbers of unit variance the similarity is the true cosine, not e^-distance."""
        rng = np.random.default_rng(0)
        vectors = rng.standard_normal((5, 768)).astype(np.float32)
        query = vectors[0] + 0.5 * rng.standard_normal(768).astype(np.float32)
        records = [record(f"r{i}", 3 * i) for i in range(5)]
        shelf = Shelf()
        for one in records:
            shelf.learn(one)
        shelf.take({vector_id(r.id): v for r, v in zip(records, vectors, strict=True)})
        got = shelf.look(np.zeros(5), query, metric="l2").features.similarity
        lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(query)
        assert got == pytest.approx(vectors @ query / lengths, abs=1e-5)
        assert got[0] > 0.85

    def test_zero_vectors(self) -> None:
        """A vector of nothing but zeros is like nothing, without a warning."""
        shelf = Shelf()
        shelf.learn(RECORDS[0])
        shelf.take({vector_id(RECORDS[0].id): np.zeros(4, np.float32)})
        found = shelf.look(np.zeros(1), np.zeros(4, np.float32))
        assert found.features.similarity.tolist() == [0.0]


def test_lending_is_mirrored() -> None:
    """Every distance at which a turn lends has its opposite, so places can be linked both ways."""
    assert {-step for step in LENT} == set(LENT)


def test_fusing_nothing() -> None:
    """No memories fuse to no scores."""
    none = np.zeros(0)
    features = Features(
        similarity=none,
        words=none,
        place=np.zeros(0, np.int64),
        beside=np.zeros((0, len(LENT)), np.int64),
        lends=np.zeros(0, np.bool_),
        created=none,
    )
    for method in (HYBRID, DENSE, BM25):
        assert len(fuse(features, MemorySettings(recall_method=method), 0.0).total) == 0


@pytest.mark.parametrize(
    "text",
    ["hello", "Thanks!", "ok, thanks a lot", "Good morning 🙂", "Bye bye!", "Ok. Great!", "MERCI"],
)
def test_small_talk_is_skipped(text: str) -> None:
    """Pleasantries alone are not worth remembering, and the reason says so."""
    assert reason_to_skip(text) == "small talk"


@pytest.mark.parametrize(
    "text",
    [
        "hello, I'm Dana",
        "yes",
        "no",
        "thanks, Tuesday works",
        "ok 42",
        "good morning means work for me",
        "great great great great great great great",
    ],
)
def test_one_other_word_is_worth_it(text: str) -> None:
    """Anything beyond pleasantries is kept; so is a bare yes or no."""
    assert reason_to_skip(text) == ""


@pytest.mark.parametrize("text", ["", "   \n", "\u00a0"])
def test_blank_text_is_skipped(text: str) -> None:
    """Blank text is skipped with its own reason, so are signs without words."""
    assert reason_to_skip(text) == "no text to remember"
    assert reason_to_skip(text + "!?") == "no words to remember"
