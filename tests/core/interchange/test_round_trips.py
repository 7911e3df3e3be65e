"""What is exported is read back unchanged, as far as the shape can hold it.

LlamaIndex's own classes are the oracle for its files.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.storage.chat_store import SimpleChatStore

from memory_core.errors import InvalidInput
from memory_core.interchange import EXPORTS, Conversation, conversations, detect, export, preview
from memory_core.interchange.roles import KNOWN
from memory_core.llama import to_chat
from memory_core.messages import Message
from memory_core.questions import RecallQuestion
from tests.core.interchange.making import dumped, only, said

EXAMPLES = settings(max_examples=40, deadline=None)

characters = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
texts = st.text(characters, max_size=30)
names = st.text(characters, min_size=1, max_size=10)
scalars = st.booleans() | st.integers(-(2**63), 2**63) | texts
jsons = st.recursive(
    scalars | st.none() | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=4,
)
objects = st.dictionaries(names, jsons, max_size=2)

text_blocks = texts.map(lambda text: {"block_type": "text", "text": text})
pictures = st.sampled_from(
    [
        {"block_type": "image", "url": "https://example.org/a.png"},
        {"block_type": "image", "url": "https://example.org/a.png", "detail": "low"},
        {"block_type": "image", "image": "iVBORw0KGgo=", "image_mimetype": "image/png"},
    ]
)
said_blocks = st.lists(text_blocks | pictures, max_size=3)


def calls(arguments):
    """Draw up to two tool calls with arguments of a kind."""
    return st.lists(
        st.builds(
            lambda id_, name, value: {
                "block_type": "tool_call",
                "tool_name": name,
                "tool_kwargs": value,
                "tool_call_id": id_,
            },
            names,
            names,
            arguments,
        ),
        max_size=2,
        unique_by=lambda call: call["tool_call_id"],
    )


@st.composite
def thoughts(draw):
    """Draw what a model thought, or nothing."""
    if draw(st.booleans()):
        return []
    block = {"block_type": "thinking", "content": draw(texts)}
    if draw(st.booleans()):
        block["additional_information"] = {"id": draw(names)}
    return [block]


def extras(*reserved: str):
    """Return fields of a message that the shape passes through."""
    keys = names.filter(lambda key: key not in reserved)
    return st.dictionaries(keys, jsons.filter(lambda value: value is not None), max_size=2)


@st.composite
def messages(draw, *, roles, arguments, thinking, kwargs):
    """Draw a message that a shape can hold."""
    role = draw(st.sampled_from(sorted(roles)))
    blocks = draw(said_blocks)
    if role == "assistant":
        blocks = [*(draw(thoughts()) if thinking else []), *blocks, *draw(calls(arguments))]
    more = dict(draw(kwargs))
    if role == "tool":
        more["tool_call_id"] = draw(names)
    return Message(role, tuple(blocks), more)


def talks(**options):
    """Draw conversations that a shape can hold."""
    return st.builds(
        lambda title, found: Conversation(title, tuple(found)),
        names,
        st.lists(messages(**options), min_size=1, max_size=5),
    )


LLAMAINDEX = talks(
    roles=KNOWN, arguments=objects | texts, thinking=True, kwargs=extras("images", "tool_call_id")
)
OPENAI = talks(
    roles=KNOWN - {"chatbot", "model"},
    arguments=texts.filter(bool),
    thinking=False,
    kwargs=st.fixed_dictionaries({}, optional={"name": names, "refusal": names, "x": scalars}),
)
ITEMS = talks(
    roles={"user", "assistant", "system", "developer"},
    arguments=texts.filter(bool),
    thinking=True,
    kwargs=st.just({}),
)
LANGCHAIN = talks(
    roles=KNOWN - {"chatbot", "model"},
    arguments=objects,
    thinking=True,
    kwargs=extras("images", "tool_calls", "function_call", "__openai_role__", "tool_call_id"),
)


def back(kind: str, *given_: Conversation) -> list[Conversation]:
    """Return conversations as they come back from an export that left nothing out."""
    written = export(kind, given_)
    assert written.notices == ()
    return list(conversations(written.data))


@EXAMPLES
@given(LLAMAINDEX)
def test_a_chat_store_comes_back_whole(conversation: Conversation):
    """Roles, blocks of every kind, kwargs and the key survive our file and our reading of it."""
    (again,) = back("llamaindex", conversation)
    assert again == conversation


@EXAMPLES
@given(conversation=LLAMAINDEX)
def test_llamaindex_loads_what_we_write(conversation: Conversation, tmp_path_factory):
    """SimpleChatStore.from_persist_path gives the very messages that were exported."""
    path = tmp_path_factory.mktemp("store") / "chat_store.json"
    path.write_bytes(export("llamaindex", [conversation]).data)
    store = SimpleChatStore.from_persist_path(str(path))
    assert store.get_keys() == [conversation.title]
    assert store.get_messages(conversation.title) == [to_chat(m) for m in conversation.messages]


@EXAMPLES
@given(conversation=LLAMAINDEX)
def test_we_read_what_llamaindex_writes(conversation: Conversation, tmp_path_factory):
    """A store that LlamaIndex persisted is read to the same messages."""
    path = tmp_path_factory.mktemp("store") / "chat_store.json"
    chats = [to_chat(m) for m in conversation.messages]
    SimpleChatStore(store={conversation.title: chats}).persist(str(path))
    again = only(path.read_bytes())
    assert again.title == conversation.title
    assert [to_chat(m) for m in again.messages] == chats


def test_we_read_what_a_memory_buffer_dumps():
    """ChatMemoryBuffer.to_string is read, with its settings told as left out."""
    chats = [to_chat(Message.of("user", "hi")), to_chat(Message.of("assistant", "hello"))]
    dump = ChatMemoryBuffer.from_defaults(chats, token_limit=100).to_string()
    again = only(dump.encode())
    assert [to_chat(m) for m in again.messages] == chats
    told = preview(dump.encode())
    assert told.format == "llamaindex"
    assert [str(n) for n in told.notices] == ["file: left out: token_limit"]


@EXAMPLES
@given(OPENAI, st.sampled_from(["openai", "openai-jsonl"]))
def test_openai_messages_come_back_whole(conversation: Conversation, kind: str):
    """Texts, pictures, tool calls, results and further fields survive."""
    (again,) = back(kind, conversation)
    assert again.messages == conversation.messages


@EXAMPLES
@given(ITEMS)
def test_responses_items_come_back_whole(conversation: Conversation):
    """Reasoning, texts and calls of one answer come back as one message, answers apart."""
    (again,) = back("openai-responses", conversation)
    assert again.messages == conversation.messages


@EXAMPLES
@given(LANGCHAIN)
def test_langchain_messages_come_back_whole(conversation: Conversation):
    """Roles, content parts, thinking, tool calls and kwargs survive."""
    (again,) = back("langchain", conversation)
    assert again.messages == conversation.messages


@pytest.mark.parametrize("kind", EXPORTS)
def test_several_conversations_keep_their_titles(kind: str):
    """A file of several conversations gives them back in order, each under its title."""
    first = Conversation("Boats", (Message.of("user", "one"), Message.of("assistant", "1")))
    second = Conversation("Trains", (Message.of("user", "two"),))
    assert back(kind, first, second) == [first, second]


@pytest.mark.parametrize("kind", EXPORTS)
def test_an_export_is_known_as_its_format(kind: str):
    """What is written is recognised as what it is."""
    talk = Conversation("Boats", (Message.of("user", "one"), Message.of("assistant", "1")))
    assert detect(export(kind, [talk]).data).id == kind.partition("-")[0]


@pytest.mark.parametrize("kind", EXPORTS)
def test_what_an_export_cannot_hold_is_told(kind: str):
    """Questions have no place in a chat file of any shape, and the export says so."""
    question = RecallQuestion("What?", "that", (0,))
    talk = Conversation("Boats", (Message.of("user", "that"),), questions=(question,))
    assert any("questions" in n.what and n.place == "Boats" for n in export(kind, [talk]).notices)


def test_equal_titles_get_keys_of_their_own():
    """Two conversations of one title are both stored, and the new key is told."""
    talk = Conversation("Boats", (Message.of("user", "one"),))
    written = export("llamaindex", [talk, talk])
    assert list(json.loads(written.data)["store"]) == ["Boats", "Boats (2)"]
    assert len(written.notices) == 1


def test_openai_exports_tell_what_they_leave_out():
    """Thinking, parts in an order of their own and reserved fields are told, message by message."""
    blocks = (
        {"block_type": "thinking", "content": "hm"},
        {"block_type": "tool_call", "tool_name": "f", "tool_kwargs": {}},
        {"block_type": "text", "text": "after"},
    )
    talk = Conversation("Boats", (Message("model", blocks, {"id": 7}),))
    told = [n.what for n in export("openai", [talk]).notices]
    assert told == [
        "a block of type 'thinking' left out",
        "text after a tool call moved before it",
        "role 'model' written as assistant",
        "left out: id",
    ]


def test_arguments_that_are_no_json_are_kept_by_langchain_as_invalid_calls():
    """LangChain has a place for calls that a model wrote wrongly; they come back as they were."""
    call = {
        "block_type": "tool_call",
        "tool_name": "f",
        "tool_kwargs": "{oops",
        "tool_call_id": "1",
    }
    talk = Conversation("Boats", (Message("assistant", (call,)),))
    written = export("langchain", [talk])
    assert json.loads(written.data)[0]["data"]["invalid_tool_calls"][0]["args"] == "{oops"
    assert only(written.data).messages == talk.messages


def test_what_is_no_json_is_not_written():
    """NaN and half an emoji are refused instead of writing a file that nobody can read."""
    for message in (Message.of("user", "a", x=float("nan")), Message.of("user", "\ud83d")):
        with pytest.raises(InvalidInput):
            export("llamaindex", [Conversation("Boats", (message,))])


def test_unknown_exports_and_empty_ones_are_refused():
    """A wish that cannot be met is answered in a sentence that names what can."""
    with pytest.raises(InvalidInput, match="openai-jsonl"):
        export("pdf", [Conversation("Boats", (Message.of("user", "a"),))])
    with pytest.raises(InvalidInput, match="no conversation"):
        export("openai", [])


def test_exports_do_not_depend_on_a_file(tmp_path: Path):
    """An export is bytes; saving them is the caller's affair, whole or not at all."""
    written = export("openai", [Conversation("Boats", (Message.of("user", "سلام 😀"),))])
    (tmp_path / written.name).write_bytes(written.data)
    assert said(only((tmp_path / written.name).read_bytes()).messages) == [("user", "سلام 😀")]
    assert dumped([{"role": "user", "content": "سلام 😀"}]) == written.data
