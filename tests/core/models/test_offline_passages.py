"""What the offline reader finds in a prompt, and where."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memory_core.messages import TEXT, TOOL_CALL, Message
from memory_core.models.offline.passages import Kind, cut_sections, read_prompt, transcript

LAYERED = """You are helpful.

<key-facts>
- I can't eat nuts
- Budget is 3,200 euros
</key-facts>

<state>
{"workflow": "trip", "slots": {"city": "Porto", "days": [1, 2]}, "preferences": {"seat": "window"}}
</state>

<summary covers="turns 1-7">
The oven broke on Tuesday.
</summary>

<memories>
[turn 3, score 0.61]
user: A lemon cake
for 24 guests.
assistant: A fine cake.

[turn 9, score 0.52] My sister lives in Braga.

[score 0.40]
user: No turn is known.

</memories>
"""


def seen(*messages: Message) -> list[tuple[str, str, str]]:
    """Return (place, who says it, text) of each passage, in order."""
    prompt = read_prompt([*messages, Message.of("user", "And now?")])
    return [(p.place, p.said_by, " ".join(p.text.split())) for p in prompt.passages]


def test_our_own_sections_are_told_apart():
    """Each section of LayeredMemory's system message is a place of its own, turns by number."""
    assert seen(Message.of("system", LAYERED)) == [
        ("key facts", "user", "I can't eat nuts"),
        ("key facts", "user", "Budget is 3,200 euros"),
        ("state", "user", "workflow: trip"),
        ("state", "user", "slots.city: Porto"),
        ("state", "user", "slots.days: 1, 2"),
        ("state", "user", "preferences.seat: window"),
        ("summary of turns 1-7", "", "The oven broke on Tuesday."),
        ("turn 3", "user", "A lemon cake for 24 guests."),
        ("turn 3", "assistant", "A fine cake."),
        ("turn 9", "", "My sister lives in Braga."),
        ("long-term memory", "user", "No turn is known."),
        ("system prompt", "", "You are helpful."),
    ]


def test_the_conversation_is_read_in_order_with_tools_by_name():
    """Buffer messages are passages; a tool result is named after the call it answers."""
    call = {"block_type": TOOL_CALL, "tool_call_id": "c1", "tool_name": "clock", "tool_kwargs": {}}
    found = seen(
        Message.of("user", "What time is it?"),
        Message("assistant", ({"block_type": TEXT, "text": ""}, call)),
        Message.of("tool", "noon", tool_call_id="c1"),
        Message.of("assistant", "It is noon."),
    )
    assert [f[1:] for f in found] == [
        ("user", "What time is it?"),
        ("tool", "noon"),
        ("assistant", "It is noon."),
    ]
    assert found[1][0] == "clock"


def test_llama_index_memory_blocks_are_named_by_their_tag():
    """Facts, dialogues and plain text of LlamaIndex's blocks stand in the block of that name."""
    blocks = (
        "<memory>\n<facts>\n<fact>Likes tea</fact>\n<fact>Is nine</fact>\n</facts>\n"
        "<vectors>\n<message role='user'>I sail</message>\n"
        "Additional Info: ({'a': 1})\n</vectors>\n<profile>\nA sailor.\n</profile>\n</memory>"
    )
    assert seen(Message.of("system", blocks)) == [
        ("facts", "user", "Likes tea"),
        ("facts", "user", "Is nine"),
        ("vectors", "user", "I sail"),
        ("profile", "", "A sailor."),
    ]


def test_memory_put_into_the_question_is_no_question():
    """Blocks inserted into the newest user message are passages; the rest is the query."""
    text = "<memory>\n<profile>\nA sailor.\n</profile>\n</memory>\nWhat am I?\n<b>bold</b>"
    prompt = read_prompt([Message.of("user", text)])
    assert [p.text.strip() for p in prompt.passages] == ["A sailor."]
    assert prompt.query == "What am I?\n<b>bold</b>"


def test_older_llama_index_prompts_are_understood():
    """Dialogues of SimpleComposableMemory and documents of the chat engines are told apart."""
    dialogues = (
        "Be kind.\n\nBelow are a set of relevant dialogues retrieved from potentially several "
        "memory sources:\n\n=====Relevant messages from memory source 1=====\n\n"
        "\tUSER: I sail\n\tASSISTANT: Nice\n"
        "This is the end of the retrieved message dialogues."
    )
    documents = "Use this.\n--------------------\nThe shop closes at six.\n--------------------\n"
    found = seen(Message.of("system", dialogues), Message.of("system", documents))
    assert ("memory sources", "user", "I sail") in found
    assert ("documents", "", "The shop closes at six.") in found


def test_the_query_of_a_question_answering_prompt_is_found():
    """LlamaIndex's text QA prompt holds documents and a query in one user message."""
    text = (
        "Context information is below.\n---------------------\nThe shop closes at six.\n"
        "---------------------\nGiven the context, answer.\nQuery: When does it close?\nAnswer: "
    )
    prompt = read_prompt([Message.of("user", text)])
    assert prompt.query == "When does it close?"
    assert [(p.kind, p.text) for p in prompt.passages] == [
        (Kind.DOCUMENTS, "The shop closes at six.")
    ]


def test_what_the_reader_said_counts_as_its_quotes():
    """Own answers count as the sentence they quote; receipts and empty answers not at all."""
    found = seen(
        Message.of("assistant", "You said in turn 3: “I sail.”"),
        Message.of("assistant", "Noted: “I sail.”"),
        Message.of("assistant", "I find nothing about “rent” in what I was given."),
        Message.of("assistant", "Thought: I can answer.\nAnswer: It is noon."),
    )
    assert [text for _, _, text in found] == ["I sail.", "It is noon."]


def test_unclosed_and_hostile_tags_hide_nothing():
    """An unclosed tag is text, and a stray closing tag ends at most its own section."""
    rest, sections = cut_sections("<a>\none\n<b x='1'>\ntwo\n</b>\nthree")
    assert "one" in rest
    assert "three" in rest
    assert sections == [("b", " x='1'", "\ntwo\n")]


def test_broken_state_is_read_as_text():
    """A state that is no JSON is a passage as it stands."""
    found = seen(Message.of("system", "<state>\nnot json\n</state>"))
    assert found == [("state", "", "not json")]


@given(st.text(alphabet="<>/abu \n:-'\"=", max_size=300), st.sampled_from(["system", "user"]))
def test_no_prompt_is_too_odd_to_be_read(text: str, role: str):
    """Any text in any role is read without an error."""
    read_prompt([Message.of(role, text), Message.of("user", text)])


def test_a_transcript_without_roles_is_empty():
    """Text that nobody speaks gives no pairs; many lines stay with their speaker."""
    assert transcript("just text") == []
    assert transcript("user: a\nb\nassistant: c") == [("user", "a\nb"), ("assistant", "c")]
