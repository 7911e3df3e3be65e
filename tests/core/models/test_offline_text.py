"""How the offline reader takes texts apart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core.models.offline.concepts import concepts_in
from memory_core.models.offline.text import clip, plain, sentences, stem, stems, words


def test_sentences_are_cut_where_people_end_them():
    """Abbreviations, initials and numbers end no sentence; list markers are left out."""
    text = (
        "Mrs. Okonkwo ordered at 6:30. She paid $3.50 (in cash.) Good?\n"
        "1. **Two** layers\n- one sheet\n你好。再见。"
    )
    assert list(sentences(text)) == [
        "Mrs. Okonkwo ordered at 6:30.",
        "She paid $3.50 (in cash.)",
        "Good?",
        "**Two** layers",
        "one sheet",
        "你好。",
        "再见。",
    ]


@given(st.text(max_size=300))
def test_sentences_are_word_for_word(text: str):
    """Every sentence of any text is a piece of it, none is blank, and no letter is lost."""
    found = sentences(text)
    for sentence in found:
        assert sentence in text
        assert sentence.strip() == sentence != ""
    assert list(filter(str.isalpha, "".join(found))) == list(filter(str.isalpha, text))


@pytest.mark.parametrize(
    "same",
    [
        ("bake", "bakes", "baked", "baking"),
        ("stop", "stopped", "stopping", "stops"),
        ("bakery", "bakeries", "bakery's"),
        ("buy", "bought", "buying"),
        ("three", "3"),
    ],
)
def test_forms_of_a_word_have_one_stem(same: tuple[str, ...]):
    """Plural, tense and irregular forms meet."""
    assert len({stem(word) for word in same}) == 1


def test_stop_words_and_accents_do_not_count():
    """Function words are no content, and letters are compared without accents and case."""
    assert stems("What is the CAFÉ’s name?") == stems("cafe name")  # noqa: RUF001


def test_unspaced_scripts_are_compared_by_pairs():
    """Chinese text gives pairs of characters, without those that only ask."""
    assert words("我对坚果过敏") == ["我对", "对坚", "坚果", "果过", "过敏"]
    assert "什么" not in words("我对什么过敏")


def test_plain_compares_whole_words():
    """A word is found as a word and not inside another one."""
    assert plain("a cat") in plain("I have a cat.")
    assert plain("a cat") not in plain("I have a catalogue.")


@given(st.text(max_size=900), st.integers(20, 400))
def test_clipping_keeps_to_one_short_line(text: str, most: int):
    """A clipped text is one line of at most that many characters and two ellipses."""
    line = clip(text, most=most)
    assert len(line) <= most + 2
    assert "\n" not in line


def test_clipping_shows_what_is_looked_for():
    """A long text is cut around the words that matter."""
    assert "oven" in clip("word " * 200 + "the oven " + "word " * 200, frozenset({stem("oven")}))


@pytest.mark.parametrize(
    ("one", "other", "concept"),
    [
        ("What am I allergic to?", "I can't eat nuts", "#allergy"),
        ("What food can't I eat?", "I am allergic to nuts", "#allergy"),
        ("Where do I live?", "I'm based in Porto", "#home"),
        ("What is my job?", "I run a bakery", "#job"),
        ("What do I do for a living?", "I work as a nurse", "#job"),
        ("What is my name?", "Hi, I'm Dana", "#name"),
        ("How much is it?", "It costs $40", "#price"),
        ("How old is she?", "She is 31.", "#age"),
        ("Who is my husband?", "I married Rui", "#partner"),
    ],
)
def test_concepts_connect_question_and_statement(one: str, other: str, concept: str):
    """What people ask with one word and tell with another shares a concept."""
    assert concept in concepts_in(one) & concepts_in(other)


def test_a_state_is_no_name():
    """Only a capital letter after "I'm" makes it an introduction."""
    assert "#name" not in concepts_in("I'm not sure")
