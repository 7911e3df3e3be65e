"""Summaries and fact lists of the offline reader keep their limits and their words."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from memory_core.models.offline.digest import merge, summary
from memory_core.summary import check_facts
from memory_core.tokens import TokenCounter

COUNTER = TokenCounter()
SENTENCES = st.lists(
    st.sampled_from("I my we live run can't eat nuts Porto 24 € cake . ? ! 坚果 😀 and".split()),
    max_size=12,
).map(" ".join)
SAID = st.lists(st.tuples(st.sampled_from(["user", "assistant", "tool"]), SENTENCES), max_size=6)


@example("", [], ["Porto eat my cake and", "nuts my I . nuts eat ! 😀 run € cake I"], 19)
@given(SENTENCES, SAID, st.lists(SENTENCES, max_size=3), st.integers(0, 60))
def test_summaries_fit_their_limit(
    previous: str, said: list[tuple[str, str]], facts: list[str], limit: int
):
    """A summary never has more tokens than it may have."""
    text = summary(previous, said, facts, max_tokens=limit, counter=COUNTER)
    assert COUNTER.text(text) <= limit


@given(st.lists(SENTENCES.filter(lambda s: s.strip(" .?!")), max_size=3), SAID)
def test_key_facts_that_fit_are_kept_word_for_word(facts: list[str], said: list[tuple[str, str]]):
    """With room enough, every key fact stands in the summary as it is."""
    text = summary("", said, facts, max_tokens=5_000, counter=COUNTER)
    _, lost = check_facts(text, [(str(i), fact) for i, fact in enumerate(facts)])
    assert lost == []


def test_what_counts_comes_first():
    """With little room, facts are kept and chatter is left out, in the order they were said."""
    said = [
        ("user", "Hello! What a lovely day it is outside today. I'm Dana and I run a bakery."),
        ("assistant", "How lovely. Shall we begin?"),
        ("user", "My budget is 3,200 euros."),
    ]
    text = summary("", said, [], max_tokens=30, counter=COUNTER)
    assert text == "I'm Dana and I run a bakery. My budget is 3,200 euros."


def test_the_summary_so_far_is_folded_in():
    """Sentences of the previous summary stay, before what is new, and nothing is said twice."""
    text = summary(
        "I'm Dana and I run a bakery.",
        [
            ("user", "I'm Dana and I run a bakery. I can't eat nuts."),
            ("assistant", "The fee for Dana is $40."),
        ],
        ["I can't eat nuts"],
        max_tokens=100,
        counter=COUNTER,
    )
    assert text == (
        "I can't eat nuts. I'm Dana and I run a bakery. "
        "The assistant said: The fee for Dana is $40."
    )


def test_chatter_is_left_out():
    """Sentences that tell nothing fill no room, unless there is nothing else to say."""
    said = [("user", "Typical! My budget is 3,200 euros. We'll see.")]
    assert summary("", said, [], max_tokens=60, counter=COUNTER) == "My budget is 3,200 euros."
    only = summary("", [("user", "Typical weather again!")], [], max_tokens=60, counter=COUNTER)
    assert only == "Typical weather again!"


def test_merging_keeps_the_weightiest_facts_once():
    """Facts that differ in case or full stop, or are part of another one, are one fact."""
    facts = ["I like tea.", "i like TEA", "I'm Dana and I like tea.", "I'm allergic to 2 nuts."]
    assert merge(facts, 5) == ["I'm Dana and I like tea.", "I'm allergic to 2 nuts."]
    assert merge(facts, 1) == ["I'm allergic to 2 nuts."]
    assert merge(facts, -1) == []
