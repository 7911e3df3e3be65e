"""The sample conversations keep what they promise, and the reader refuses those that would not."""

from __future__ import annotations

import copy
import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from memory_core.errors import InvalidInput
from memory_core.messages import Message
from memory_core.samples import (
    ABSENT,
    LIMITS,
    MAX_FILE,
    MAX_TEXT,
    RECALL,
    SAMPLES,
    UPDATED,
    Question,
    Sample,
    load_sample,
    load_samples,
)
from memory_core.settings import MemorySettings
from memory_core.tokens import TokenCounter

ALL = load_samples()
LONG = "old-house-year"
EACH = pytest.mark.parametrize("sample", ALL, ids=lambda s: s.id)

FUNCTION_WORDS = set(
    re.findall(
        r"\w+",
        """the and for from with what which who whom when where how much many does did was were are
        has have had can not should this that you your they there will would our his her its""",
    )
)

GOOD: dict[str, Any] = {
    "id": "locker",
    "title": "A locker",
    "description": "Two turns about a locker.",
    "teaches": "How small a sample can be.",
    "overflows": [],
    "turns": [
        {
            "user": "My locker code is 4417 blue.",
            "assistant": "Noted.",
            "facts": [{"id": "code", "text": "My locker code is 4417 blue."}],
        },
        {"user": "Thanks!", "assistant": "Any time."},
    ],
    "questions": [
        {
            "id": "locker-code",
            "question": "What is my locker code?",
            "answer": "4417 blue",
            "evidence": [1],
            "kind": "recall",
        }
    ],
}


def tokens(sample: Sample) -> int:
    """Return the tokens of the scripted conversation as a prompt."""
    return TokenCounter().messages(
        [
            Message.of(role, text)
            for turn in sample.turns
            for role, text in (("user", turn.user), ("assistant", turn.assistant))
        ]
    )


def words(text: str) -> set[str]:
    """Return the content words of a text, by their first five letters."""
    found = re.findall(r"\w+", text.casefold())
    return {word[:5] for word in found if len(word) > 2 and word not in FUNCTION_WORDS}


def write(folder: Path, value: Any, name: str = "locker") -> None:
    """Write a sample file."""
    (folder / f"{name}.json").write_text(json.dumps(value), encoding="utf-8")


def changed(path: str, value: Any) -> dict[str, Any]:
    """Return the good sample with the value at a dotted path replaced."""
    sample = copy.deepcopy(GOOD)
    *parents, last = [int(key) if key.isdigit() else key for key in path.split(".")]
    at: Any = sample
    for key in parents:
        at = at[key]
    at[last] = value
    return sample


def test_there_are_at_least_five_samples_of_20_to_200_turns() -> None:
    """People have a choice of conversations, none too short to show eviction."""
    assert len(ALL) >= 5
    assert all(20 <= len(sample.turns) <= 200 for sample in ALL)
    assert len({sample.id for sample in ALL}) == len(ALL)
    assert ALL[0].id == "bakery", "the one for first-time users comes first"


@EACH
def test_a_sample_is_rich_enough_to_measure_recall(sample: Sample) -> None:
    """Each sample plants eight facts or more and asks for eight, a corrected and an absent one."""
    kinds = Counter(question.kind for question in sample.questions)
    assert sum(len(turn.facts) for turn in sample.turns) >= 8
    assert kinds["recall"] >= (20 if sample.id == LONG else 8)
    assert kinds[UPDATED] >= 1
    assert kinds[ABSENT] >= 1


def test_question_ids_are_unique_over_all_samples() -> None:
    """A measured answer can be traced to its question by the id alone."""
    ids = [question.id for sample in ALL for question in sample.questions]
    assert len(set(ids)) == len(ids)


@EACH
def test_a_sample_overflows_exactly_the_defaults_that_it_names(sample: Sample) -> None:
    """What a sample says it overflows is what it does overflow, counted in tokens."""
    settings, size = MemorySettings(), tokens(sample)
    assert set(sample.overflows) == {n for n in LIMITS if size > getattr(settings, n)}


def test_the_long_sample_is_nearly_twice_the_context_window() -> None:
    """One sample cannot fit into any default budget, whatever the shares."""
    assert tokens(load_sample(LONG)) > 1.9 * MemorySettings().context_window


@EACH
def test_each_question_shares_a_word_with_its_evidence(sample: Sample) -> None:
    """A reader that goes by words alone has a fair chance at every question."""
    for question in sample.questions:
        for number in question.evidence:
            shared = words(question.question) & words(sample.turns[number - 1].user)
            assert shared, question.id


@EACH
def test_an_updated_question_had_another_answer_before(sample: Sample) -> None:
    """The outdated fragment really was said earlier, by the person, and differs from the new."""
    for question in sample.questions:
        if question.kind == UPDATED:
            before = " ".join(turn.user for turn in sample.turns[: question.evidence[0] - 1])
            assert question.outdated.casefold() in before.casefold(), question.id
            assert not question.answered_in(question.outdated)


@EACH
def test_an_answer_is_said_in_no_turn_before_its_evidence(sample: Sample) -> None:
    """An evidence turn is where the answer is first told, so that its age is the fact's age."""
    for question in sample.questions:
        if question.kind == RECALL and len(question.answer) > 6:
            earlier = sample.turns[: question.evidence[0] - 1]
            told = [n for n, t in enumerate(earlier, 1) if question.answered_in(t.user)]
            assert not told, (question.id, told)


def test_the_long_sample_asks_about_every_quarter_of_the_year() -> None:
    """Recall is measured at every age, from the first turns on."""
    sample = load_sample(LONG)
    quarter = len(sample.turns) / 4
    asked = Counter(
        int((q.evidence[0] - 1) // quarter) for q in sample.questions if q.kind != ABSENT
    )
    assert all(asked[n] >= 4 for n in range(4)), asked
    assert min(q.evidence[0] for q in sample.questions if q.evidence) == 1


@EACH
def test_no_message_is_said_twice_by_the_person(sample: Sample) -> None:
    """There is no filler: every message of the person is its own."""
    said = Counter(turn.user for turn in sample.turns)
    assert max(said.values()) == 1


def test_the_samples_hold_what_breaks_careless_software() -> None:
    """Other scripts, emoji, prices, Markdown, code and tool requests are all among the turns."""
    text = "\n".join(t.user + "\n" + t.assistant for s in ALL for t in s.turns)
    for piece in ("星野", "Praça", "🦊", "$110", "| --- |", "```python", "**"):
        assert piece in text
    users = "\n".join(t.user for s in ALL for t in s.turns)
    for piece in ("What's the weather in", "Set the workflow step to", "From now on", "emember"):
        assert piece in users


def test_every_sample_and_document_has_a_line_in_the_readme() -> None:
    """The README names each file and states the turns and tokens it really has."""
    readme = (SAMPLES / "README.md").read_text(encoding="utf-8")
    for sample in ALL:
        line = f"| `{sample.id}.json` | {sample.title} | {len(sample.turns)} | {tokens(sample):,} |"
        assert line in readme
    for path in (SAMPLES / "documents").iterdir():
        assert f"`documents/{path.name}`" in readme


def test_there_are_five_short_documents_with_headings() -> None:
    """Each document is small enough to read and has sections to split it at."""
    paths = sorted((SAMPLES / "documents").glob("*.md"))
    assert len(paths) == 5
    for path in paths:
        text = path.read_text(encoding="utf-8")
        assert 200 <= len(text.split()) <= 500, path.name
        assert text.startswith("# ")
        assert text.count("\n## ") >= 4, path.name


def test_reading_samples_imports_nothing_heavy() -> None:
    """The list of samples can be shown before the engine has loaded."""
    code = (
        "import sys, memory_core.samples as s; s.load_samples();"
        "print([m for m in ('llama_index', 'tiktoken', 'chromadb', 'numpy', 'pydantic',"
        " 'sqlalchemy', 'streamlit') if m in sys.modules])"
    )
    root = SAMPLES.parent
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, check=True)
    assert done.stdout.strip() == b"[]"


def test_a_good_file_is_read_as_it_is(tmp_path: Path) -> None:
    """Turns, facts and questions come back as they were written."""
    write(tmp_path, GOOD)
    (sample,) = load_samples(tmp_path)
    assert sample == load_sample("locker", tmp_path)
    assert sample.turns[0].facts[0].text == "My locker code is 4417 blue."
    assert sample.questions == (
        Question("locker-code", "What is my locker code?", "4417 blue", (1,), "recall"),
    )


def test_an_answer_is_recognised_whatever_its_case_and_line_breaks() -> None:
    """A right answer counts as right when a model wraps or capitalises it."""
    question = Question("q", "Where?", "Linden Apotheek", (1,), "recall")
    assert question.answered_in("at the LINDEN\n  apotheek.")
    assert not question.answered_in("at the linden")
    assert not Question("q", "Where?", "", (), ABSENT).answered_in("anything")


@pytest.mark.parametrize(
    ("path", "value", "place", "problem"),
    [
        ("id", "Locker!", "locker.json, id", "lower-case"),
        ("id", "other", "locker.json, id", "must be the file's name"),
        ("title", "  ", "locker.json, title", "not empty"),
        ("title", 7, "locker.json, title", "must be a text"),
        ("overflows", ["moon"], "locker.json, overflows", "'moon' is none of"),
        ("overflows", [["moon"]], "locker.json, overflows", "is none of"),
        ("turns", [], "locker.json, turns", "at least one"),
        ("turns", {}, "locker.json, turns", "must be a list"),
        ("turns.1", "hello", "turn 2", "must be a JSON object"),
        ("turns.1.assistant", None, "turn 2, assistant", "must be a text"),
        ("turns.1.user", "x" * (MAX_TEXT + 1), "turn 2, user", "2,001 characters"),
        ("turns.1.user", "cut \ud83d", "turn 2, user", "half of an emoji"),
        ("turns.1.user", "nul \0", "turn 2, user", "NUL"),
        ("turns.0.facts", "code", "turn 1, facts", "must be a list"),
        ("turns.0.facts.0", [], "turn 1, fact 1", "must be a JSON object"),
        ("turns.0.facts.0.text", "My locker is green.", "turn 1, fact 1", "word for word"),
        ("questions.0.kind", "guess", "question 1, kind", "'guess' is none of"),
        ("questions.0.kind", "updated", "question 1, outdated", "must be a text"),
        ("questions.0.kind", "absent", "question locker-code", "must be empty"),
        ("questions.0.answer", "", "question 1, answer", "not empty"),
        ("questions.0.evidence", [], "locker-code, evidence", "at least one turn"),
        ("questions.0.evidence", [3], "locker-code, evidence", "3 is no turn from 1 to 2"),
        ("questions.0.evidence", [True], "locker-code, evidence", "True is no turn"),
        ("questions.0.evidence", ["1"], "locker-code, evidence", "'1' is no turn"),
        ("questions.0.evidence", [2], "locker-code, evidence", "turn 2 lacks the answer"),
    ],
)
def test_a_bad_file_is_refused_with_its_place(
    tmp_path: Path, path: str, value: Any, place: str, problem: str
) -> None:
    """Each thing a file can get wrong is named with where it stands."""
    write(tmp_path, changed(path, value))
    with pytest.raises(InvalidInput) as caught:
        load_samples(tmp_path)
    assert place in str(caught.value)
    assert problem in str(caught.value)
    assert "README" in caught.value.next_step


@pytest.mark.parametrize(
    ("list_", "place"), [("questions", "locker.json, questions"), ("turns", "locker.json, facts")]
)
def test_an_id_used_twice_is_refused(tmp_path: Path, list_: str, place: str) -> None:
    """Facts and questions can be told apart by their ids."""
    write(tmp_path, changed(list_, [*GOOD[list_], GOOD[list_][0]]))
    with pytest.raises(InvalidInput, match=f"{place}: the id .* is used twice"):
        load_samples(tmp_path)


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"\xff\xfe", b"[]", b"[" * 100_000, b" " * (MAX_FILE + 1)]
)
def test_a_file_that_is_no_sample_is_refused(tmp_path: Path, raw: bytes) -> None:
    """Empty, broken, deeply nested, huge or wrongly encoded files give one clear sentence."""
    (tmp_path / "broken.json").write_bytes(raw)
    with pytest.raises(InvalidInput, match=r"broken\.json: "):
        load_samples(tmp_path)


def test_a_folder_without_samples_is_an_empty_list(tmp_path: Path) -> None:
    """An installation without sample data has no samples; it does not fail."""
    assert load_samples(tmp_path) == []
    assert load_samples(tmp_path / "nowhere") == []


@pytest.mark.parametrize("id_", ["", "nope", "../bakery", "bakery.json", "BAKERY", "a\0b", "/etc"])
def test_an_unknown_sample_is_refused_with_the_known_ones(id_: str) -> None:
    """A wrong id, also one that tries to leave the folder, lists what there is."""
    with pytest.raises(InvalidInput, match="There is no sample") as caught:
        load_sample(id_)
    assert "bakery" in caught.value.next_step
