"""Tables and transcripts, and the public benchmarks with their questions and evidence."""

from __future__ import annotations

import json

import pytest

from memory_core.errors import InvalidInput
from memory_core.interchange import conversations, detect, preview
from memory_core.samples import ABSENT, SAMPLES, load_sample
from tests.core.interchange.making import TALK, dumped, locomo, longmemeval, only, said, whats


def test_columns_are_found_by_name_in_any_order():
    """Other names, another order, a delimiter of Excel's and further columns are understood."""
    data = b"sep=;\nMessage;Sent_At;Score;Sender\nhi;2024-05-01 10:00;3;user\nhello;;4;bot\n"
    conversation = only(data)
    assert said(conversation.messages) == [("user", "hi"), ("assistant", "hello")]
    assert conversation.times[0] is not None
    assert conversation.times[0].isoformat() == "2024-05-01T10:00:00+00:00"
    assert conversation.times[1] is None
    assert "columns left out: Score" in whats(data)


def test_a_table_without_a_header_is_read_as_role_text_time():
    """Rows that begin with a role need no header."""
    assert said(only(b"user,hi\nassistant,hello\n").messages) == [
        ("user", "hi"),
        ("assistant", "hello"),
    ]


def test_a_conversation_column_splits_the_table():
    """Rows of one conversation are gathered, in the order of the file."""
    data = b"session,role,text\na,user,1\nb,user,2\na,assistant,3\n"
    assert [(c.title, len(c.messages)) for c in conversations(data)] == [("a", 2), ("b", 1)]


def test_quoted_cells_keep_their_line_breaks():
    """Text with quotes, commas and line breaks is one message."""
    data = b'role,text\r\nuser,"a ""b"",\r\nc"\r\nassistant,d\r\n'
    assert said(only(data).messages) == [("user", 'a "b",\r\nc'), ("assistant", "d")]


def test_a_quote_left_open_is_refused_with_its_line():
    """An open quote would swallow the rest of the file as one message."""
    with pytest.raises(InvalidInput, match="line 3"):
        preview(b'role,text\nuser,hi\nassistant,"hello\nuser,more\n')


def test_rows_that_are_too_short_or_too_long_are_told():
    """No cell and no row is dropped in silence."""
    data = b"role,text\nuser,a\nuser\nassistant,b,c\n"
    assert said(only(data).messages) == [("user", "a"), ("assistant", "b")]
    told = {n.what: n.place for n in preview(data).notices}
    assert told == {
        "left out: it has no text": "line 3",
        "cells beyond the columns left out": "line 4",
    }


def test_names_of_people_become_roles_and_are_kept():
    """The first to speak is the user, the second the assistant, and both keep their names."""
    data = b"speaker,text\nAnn,hi\nBo,hello\nAnn,bye\n"
    messages = only(data).messages
    assert [(m.role, m.name) for m in messages] == [
        ("user", "Ann"),
        ("assistant", "Bo"),
        ("user", "Ann"),
    ]
    assert len(whats(data)) == 2


def test_more_than_two_people_are_users_with_names():
    """A group chat has no assistant; who is who stays in the names."""
    data = b"Ann: hi\nBo: hello\nCy: hey\nAnn: bye\nBo: bye\nCy: bye\n"
    assert {(m.role, m.name) for m in only(data).messages} == {
        ("user", "Ann"),
        ("user", "Bo"),
        ("user", "Cy"),
    }


def test_transcripts_keep_their_lines():
    """Lines without a name belong to the turn before, blank lines between them included."""
    data = b"User: first\n\n  indented\nAssistant: - one\n- two\nNote: three\n"
    data += b"User: bye\nAssistant: bye"
    conversation = only(data)
    assert said(conversation.messages) == [
        ("user", "first\n\n  indented"),
        ("assistant", "- one\n- two\nNote: three"),
        ("user", "bye"),
        ("assistant", "bye"),
    ]
    assert [(n.place, n.what) for n in conversation.notices] == [
        ("line 6", "a name that stands only once was read as text")
    ]


@pytest.mark.parametrize(
    "line",
    [
        "[2024-05-01 10:00] {}: {}",
        "2024-05-01 10:00 - {}: {}",
        "(2024-05-01T10:00:00) {}: {}",
        "**{}:** {}",
        "**{}**: {}",
        "### {}: {}",
        "\u200e{}: {}",
    ],
)
def test_lines_of_chat_programs_are_understood(line: str):
    """A time in front and Markdown's bold do not hide who speaks."""
    data = "\n".join(line.format(n, t) for n, t in (("Ann", "hi"), ("Bo", "yo"), ("Ann", "bye")))
    conversation = only(data.encode())
    assert [(m.name, m.text) for m in conversation.messages] == [
        ("Ann", "hi"),
        ("Bo", "yo"),
        ("Ann", "bye"),
    ]
    if "2024" in line:
        assert conversation.times[0] is not None
        assert conversation.times[0].isoformat() == "2024-05-01T10:00:00+00:00"


def test_lines_before_the_first_speaker_are_told():
    """A heading is no message, and said to be left out."""
    data = b"Interview\n=========\n\nUser: hi\nAssistant: hello\n"
    assert len(only(data).messages) == 2
    assert whats(data) == ["lines before the first speaker left out"]


@pytest.mark.parametrize(
    "text",
    [
        "Just a letter to a friend.\nNothing else.",
        "user: hi",
        "https://example.org/a\nhttps://example.org/b",
        "<html><body>Ann: hi<br>Bo: hi</body></html>",
        "def f():\n    return 1\n",
    ],
)
def test_other_texts_are_refused(text: str):
    """What has no two turns is no transcript."""
    with pytest.raises(InvalidInput, match="neither JSON"):
        detect(text.encode())


def test_locomo_questions_name_their_evidence():
    """Ids of turns become indexes of messages, whatever the session; times are the session's."""
    value = json.loads(locomo(TALK))
    talk = value[0]["conversation"]
    talk["session_2"] = [
        {"speaker": "Bo", "dia_id": "D2:1", "text": "Look", "blip_caption": "a boat"}
    ]
    talk["session_2_date_time"] = "2:00 pm on 9 May, 2023"
    value[0]["qa"] += [
        {"question": "Both?", "answer": "yes", "evidence": ["D1:1; D2:01"], "category": 1},
        {"question": "Odd?", "answer": "no", "evidence": ["D:1:2", "D", "D9:9"], "category": 3},
        {"question": "Trap?", "adversarial_answer": "red", "evidence": ["D1:1"], "category": 5},
        {"no": "question"},
    ]
    value[0]["event_summary"] = {"x": 1}
    conversation = only(dumped(value))
    assert [(q.answer, q.evidence, q.category) for q in conversation.questions] == [
        ("6", (2,), "single-hop"),
        ("yes", (0, 4), "multi-hop"),
        ("no", (1,), "open-domain"),
        ("", (0,), "adversarial"),
    ]
    assert conversation.messages[4].text == "Look\n[picture: a boat]"
    assert conversation.times[0] is not None
    assert conversation.times[0].isoformat() == "2023-05-08T13:56:00+00:00"
    places = {n.what: n.place for n in conversation.notices}
    assert places["evidence that names no turn left out"] == "question 3"
    assert places["left out: it is no question"] == "question 5"
    assert places["left out: event_summary"] == "conversation"


def test_the_public_locomo_file_is_read_whole(public_data):
    """Every turn and question is there, and evidence points at the turns it names."""
    value = public_data("locomo_dev.json")
    found = list(conversations(dumped(value)))
    assert preview(dumped(value)).format == "locomo"
    assert len(found) == len(value)
    for item, conversation in zip(value, found, strict=True):
        turns = {
            turn["dia_id"]: turn
            for key, session in item["conversation"].items()
            if isinstance(session, list)
            for turn in session
        }
        assert len(conversation.messages) == len(turns) == len(conversation.ids)
        assert [q.question for q in conversation.questions] == [q["question"] for q in item["qa"]]
        for name, message in zip(conversation.ids, conversation.messages, strict=True):
            assert message.blocks[0]["text"] == turns[name]["text"]
            assert message.name == turns[name]["speaker"]
        for question, raw in zip(conversation.questions, item["qa"], strict=True):
            told = [e for e in raw["evidence"] if e in turns]
            named = [conversation.ids[index] for index in question.evidence]
            assert set(told) <= set(named)
        assert all(conversation.times)


def test_longmemeval_marks_become_evidence():
    """Turns that hold the answer are the evidence of the instance's question."""
    conversation = only(longmemeval(TALK))
    (question,) = conversation.questions
    assert (question.question, question.answer) == ("How fast?", "6 knots")
    assert (question.evidence, question.category) == ((2,), "single-session-user")
    assert conversation.times[0] is not None
    assert conversation.times[0].isoformat() == "2023-05-20T02:21:00+00:00"


def test_longmemeval_without_marks_takes_the_session_and_says_so():
    """Where no turn is marked, the session that holds the answer is the evidence."""
    value = json.loads(longmemeval(TALK))
    for turn in value[0]["haystack_sessions"][0]:
        del turn["has_answer"]
    value[0]["haystack_sessions"].insert(0, [{"role": "user", "content": "other"}])
    value[0]["haystack_session_ids"].insert(0, "s0")
    conversation = only(dumped(value))
    assert conversation.questions[0].evidence == (1, 2, 3, 4)
    assert any("whole session" in n.what for n in conversation.notices)


def test_our_own_samples_can_be_imported_with_their_questions():
    """A sample file is a conversation like any other; evidence is what the person said."""
    for path in sorted(SAMPLES.glob("*.json")):
        sample = load_sample(path.stem)
        conversation = only(path.read_bytes())
        assert conversation.title == sample.title
        assert [m.text for m in conversation.messages[::2]] == [t.user for t in sample.turns]
        assert len(conversation.questions) == len(sample.questions)
        for read, asked in zip(conversation.questions, sample.questions, strict=True):
            assert (read.question, read.answer) == (asked.question, asked.answer)
            told = " ".join(conversation.messages[i].text for i in read.evidence)
            assert asked.kind == ABSENT or asked.answered_in(told)
        assert conversation.notices == ()


def test_a_sample_with_odd_places_says_what_was_left_out():
    """Turns and questions that are none are told, never dropped in silence."""
    turns = [{"user": "I live in Rome.", "mood": 1}, 7, {"assistant": "Hello."}]
    asked = [{"question": "Where?", "answer": "Rome", "evidence": [1, 9]}, {"answer": "x"}]
    data = dumped({"title": "Odd", "teaches": "", "turns": turns, "questions": asked})
    conversation = only(data)
    assert said(conversation.messages) == [("user", "I live in Rome."), ("assistant", "Hello.")]
    assert [(q.question, q.evidence) for q in conversation.questions] == [("Where?", (0,))]
    assert {notice.place for notice in conversation.notices} >= {
        "turn 1", "turn 2", "turn 3", "question 1", "question 2",
    }  # fmt: skip
