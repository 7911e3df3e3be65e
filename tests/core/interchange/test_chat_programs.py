"""What is particular to account exports and to the formats of OpenAI, LangChain and ShareGPT."""

from __future__ import annotations

import json
from typing import Any

import pytest

from memory_core.errors import InvalidInput
from memory_core.interchange import conversations, detect, preview
from tests.core.interchange.making import (
    TALK,
    chat,
    chatgpt,
    chatgpt_message,
    chatgpt_tree,
    claude,
    dumped,
    only,
    said,
    whats,
    zipped,
)


def chatgpt_file(*messages: dict[str, Any], **more: Any) -> bytes:
    """Return a ChatGPT export of one conversation of these messages."""
    mapping = chatgpt_tree(messages)
    last = f"n{len(messages) - 1}"
    return dumped([{"title": "T", "mapping": mapping, "current_node": last} | more])


def branched() -> dict[str, Any]:
    """Return a ChatGPT conversation whose first answer was asked for three times."""
    mapping = chatgpt_tree([chatgpt_message(role, text) for role, text in TALK])
    for name in ("x", "y"):
        message = {"id": name, **chatgpt_message("assistant", f"answer {name}")}
        mapping[name] = {"id": name, "message": message, "parent": "n0", "children": []}
        mapping["n0"]["children"].append(name)
    empty = {"id": "z", **chatgpt_message("assistant", "")}
    mapping["z"] = {"id": "z", "message": empty, "parent": "n0", "children": []}
    return {"title": "T", "mapping": mapping, "current_node": "n3"}


def test_chatgpt_follows_the_current_branch_and_counts_the_others():
    """What the user last saw is the conversation; branches that say nothing do not count."""
    data = dumped([branched()])
    conversation = only(data)
    assert said(conversation.messages) == list(TALK)
    assert conversation.branches == preview(data).branches == 2


def test_chatgpt_branches_come_as_conversations_when_asked_for():
    """Each other branch is offered whole, from the first message on."""
    found = list(conversations(dumped([branched()]), branches=True))
    assert [c.title for c in found] == ["T", "T (branch 2 of 3)", "T (branch 3 of 3)"]
    assert [said(c.messages)[-1] for c in found[1:]] == [
        ("assistant", "answer x"),
        ("assistant", "answer y"),
    ]
    assert all(said(c.messages)[0] == TALK[0] for c in found)


def test_chatgpt_without_a_current_message_takes_the_newest_branch():
    """A tree that does not say where the user stood is still read, and told."""
    value = json.loads(chatgpt(TALK))
    del value[0]["current_node"]
    assert said(only(dumped(value)).messages) == list(TALK)
    assert any("not named" in what for what in whats(dumped(value)))


def test_chatgpt_tool_use_becomes_calls_and_results():
    """A message to a tool is a call, the tool's answer its result, thoughts join the reply."""
    data = chatgpt_file(
        chatgpt_message("user", "How much is 6 * 7?"),
        chatgpt_message(
            "assistant",
            "",
            content={
                "content_type": "thoughts",
                "thoughts": [{"summary": "Sum", "content": "6*7"}],
            },
        ),
        chatgpt_message(
            "assistant",
            "",
            recipient="python",
            content={"content_type": "code", "language": "python", "text": "6*7"},
        ),
        chatgpt_message(
            "tool",
            "",
            author={"role": "tool", "name": "python"},
            content={"content_type": "execution_output", "text": "42"},
        ),
        chatgpt_message("assistant", "42."),
    )
    _, call, result, answer = only(data).messages
    assert call.thinking == "Sum\n6*7"
    (asked,) = call.tool_calls
    assert (asked.name, asked.arguments) == ("python", "6*7")
    assert (result.role, result.text, result.tool_call_id) == ("tool", "42", asked.id)
    assert answer.text == "42."


def test_chatgpt_pictures_files_and_instructions_are_told():
    """What is not in the JSON is replaced by its name, what is hidden is read as what it is."""
    picture = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://x"}
    data = chatgpt_file(
        chatgpt_message("system", ""),
        chatgpt_message(
            "user",
            "",
            content={
                "content_type": "user_editable_context",
                "user_profile": "I sail.",
                "user_instructions": "Be brief.",
            },
        ),
        chatgpt_message(
            "user",
            "",
            content={"content_type": "multimodal_text", "parts": [picture, "What is this?"]},
            metadata={"attachments": [{"name": "chart.pdf"}]},
        ),
        chatgpt_message(
            "assistant", "", content={"content_type": "from_the_future", "what": "ever"}
        ),
    )
    instructions, question, odd = only(data).messages
    assert said([instructions]) == [("system", "I sail.\n\nBe brief.")]
    assert question.text == "[picture]\nWhat is this?\n[file: chart.pdf]"
    assert json.loads(odd.text)["what"] == "ever"
    told = " ".join(whats(data))
    for word in ("empty messages", "custom instructions", "picture", "attached", "from_the_future"):
        assert word in told


def test_chatgpt_a_broken_conversation_is_told_and_the_rest_is_read():
    """One conversation that cannot be read does not take the others with it."""
    circle = {"a": {"parent": "b", "message": None}, "b": {"parent": "a", "message": None}}
    data = dumped(
        [
            {"title": "circle", "mapping": circle, "current_node": "a"},
            *json.loads(chatgpt(TALK)),
            {"title": "empty", "mapping": {}},
        ]
    )
    told = preview(data)
    assert [row.title for row in told.conversations] == ["Boats"]
    assert [n.place for n in told.notices if n.what.startswith("left out")] == [
        "conversation 1",
        "conversation 3",
    ]


def test_account_archives_are_read_with_what_else_is_in_them_told():
    """The zip as it is downloaded: conversations are read, the account's data is left out."""
    data = zipped(
        {
            "users.json": dumped([{"uuid": "u", "full_name": "Ann", "email_address": "a@b.c"}]),
            "conversations.json": claude(TALK),
            "projects.json": dumped([]),
        }
    )
    told = preview(data, name="data.zip")
    assert (told.format, told.messages) == ("claude", len(TALK))
    assert {n.place for n in told.notices} == {"users.json", "projects.json"}


def test_claude_keeps_attached_text_tools_and_thinking():
    """What the model saw of attachments is kept; tool use inside a message is taken apart."""
    value = json.loads(claude(TALK))
    first, second = value[0]["chat_messages"][:2]
    first["attachments"] = [{"file_name": "log.txt", "extracted_content": "knots: 6"}]
    first["files"] = [{"file_name": "photo.jpg"}]
    second["content"] = [
        {"type": "thinking", "thinking": "Let me look."},
        {"type": "text", "text": "Looking."},
        {"type": "tool_use", "id": "t1", "name": "search", "input": {"q": "boats"}},
        {
            "type": "tool_result",
            "tool_use_id": "t1",
            "content": [{"type": "text", "text": "3 hits"}],
        },
        {"type": "text", "text": "Three."},
    ]
    found = only(dumped(value)).messages
    assert found[0].text == f"{TALK[0][1]}\n[file: log.txt]\nknots: 6\n[file: photo.jpg]"
    call, result, answer = found[1:4]
    assert (call.thinking, call.text, call.tool_calls[0].name) == (
        "Let me look.",
        "Looking.",
        "search",
    )
    assert (result.role, result.text, result.tool_call_id) == ("tool", "3 hits", "t1")
    assert answer.text == "Three."


def test_claude_follows_parents_where_they_are_named():
    """An edited question starts a branch; the way to the newest message is the conversation."""
    value = json.loads(claude([("user", "old"), ("assistant", "old answer"), ("user", "new")]))
    parents = ["root", "m0", "root"]
    for message, parent in zip(value[0]["chat_messages"], parents, strict=True):
        message["parent_message_uuid"] = parent
    conversation = only(dumped(value))
    assert said(conversation.messages) == [("user", "new")]
    assert conversation.branches == 1
    both = list(conversations(dumped(value), branches=True))
    assert said(both[1].messages) == [("user", "old"), ("assistant", "old answer")]


@pytest.mark.parametrize(
    "record",
    [
        {"messages": chat(TALK)},
        {"input": chat(TALK), "model": "gpt-4o"},
        {"custom_id": "1", "method": "POST", "body": {"model": "m", "messages": chat(TALK)}},
        {"object": "list", "data": chat(TALK)},
        {
            "instructions": TALK[0][1],
            "input": TALK[0][1],
            "output": [
                {
                    "type": "message",
                    "role": "assistant",
                    "content": [{"type": "output_text", "text": t}],
                }
                for _, t in TALK[1:]
            ],
        },
    ],
)
def test_openai_requests_and_replies_are_read(record: dict[str, Any]):
    """Messages are found wherever requests, replies and batch files keep them."""
    found = said(only(dumped(record)).messages)
    assert [text for _, text in found[-4:]] == [text for _, text in TALK]


def test_an_openai_reply_is_one_message_and_tells_of_other_choices():
    """The first choice is the answer, further ones are told."""
    choices = [{"message": {"role": "assistant", "content": t}} for t in ("one", "two")]
    data = dumped({"object": "chat.completion", "choices": choices, "usage": {"total_tokens": 9}})
    assert said(only(data).messages) == [("assistant", "one")]
    assert whats(data) == ["1 other answers left out", "left out: usage"]


def test_openai_lines_are_conversations_of_their_own():
    """A fine-tuning file gives a conversation for each line."""
    lines = b"".join(dumped({"messages": chat(TALK[:n])}) + b"\n" for n in (2, 4))
    assert [len(c.messages) for c in conversations(lines, name="train.jsonl")] == [2, 4]
    bare = b"".join(dumped(chat(TALK[:n])) + b"\n" for n in (2, 4))
    assert [len(c.messages) for c in conversations(bare)] == [2, 4]


def test_one_bad_line_among_many_is_refused_with_its_place():
    """A broken line ends the import with its number, before anything is stored."""
    lines = dumped({"messages": chat(TALK)}) + b"\n" + b'{"messages": [oops]}\n'
    with pytest.raises(InvalidInput, match="line 2"):
        preview(lines)


def test_parallel_calls_of_the_responses_api_are_one_message():
    """Reasoning, text and calls between two user turns are one answer, results follow it."""
    items = [
        {"role": "user", "content": "Weather in A and B?"},
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "two"}]},
        {"type": "function_call", "call_id": "1", "name": "w", "arguments": '{"c":"A"}'},
        {"type": "function_call", "call_id": "2", "name": "w", "arguments": '{"c":"B"}'},
        {"type": "function_call_output", "call_id": "1", "output": "sun"},
        {
            "type": "function_call_output",
            "call_id": "2",
            "output": [{"type": "input_text", "text": "rain"}],
        },
        {"type": "web_search_call", "id": "ws", "status": "completed"},
        {
            "type": "message",
            "id": "m",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Sun, rain."}],
        },
    ]
    conversation = only(dumped(items))
    _, answer, sun, rain, searched, last = conversation.messages
    assert (answer.thinking, [c.id for c in answer.tool_calls]) == ("two", ["1", "2"])
    assert [(m.text, m.tool_call_id) for m in (sun, rain)] == [("sun", "1"), ("rain", "2")]
    assert json.loads(searched.text)["type"] == "web_search_call"
    assert (last.text, conversation.ids[-1]) == ("Sun, rain.", "m")
    assert whats(dumped(items)) == ["an item of type 'web_search_call' was kept as its JSON text"]


def test_old_function_calls_are_read_as_tool_calls():
    """What OpenAI had before tools is translated and told."""
    data = dumped(
        [
            {
                "role": "assistant",
                "content": None,
                "function_call": {"name": "f", "arguments": "{}"},
            },
            {"role": "function", "name": "f", "content": "ok"},
        ]
    )
    call, result = only(data).messages
    assert call.tool_calls[0].name == "f"
    assert (result.role, result.name) == ("function", "f")
    assert whats(data) == ["the old function_call was read as a tool call"]


def test_pictures_of_every_dialect_are_blocks():
    """OpenAI, Anthropic and LangChain write pictures differently; all are kept."""
    png = "iVBORw0KGgo="
    parts = [
        {"type": "image_url", "image_url": {"url": "https://e.org/a.png", "detail": "low"}},
        {"type": "input_image", "image_url": f"data:image/png;base64,{png}"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": png}},
        {"type": "image", "source_type": "url", "url": "https://e.org/a.png"},
        {"type": "image", "base64": png, "mime_type": "image/png"},
    ]
    (message,) = only(dumped([{"role": "user", "content": parts}])).messages
    bytes_ = {"block_type": "image", "image": png, "image_mimetype": "image/png"}
    address = {"block_type": "image", "url": "https://e.org/a.png"}
    assert list(message.blocks) == [address | {"detail": "low"}, bytes_, bytes_, address, bytes_]


def test_blocks_that_name_files_or_strange_addresses_become_text():
    """A file from outside must not make the app read this machine's files."""
    blocks = [
        {"block_type": "image", "path": "/etc/passwd"},
        {"block_type": "image", "url": "file:///etc/passwd"},
        {"block_type": "from_the_future", "x": 1},
        {"block_type": "tool_call"},
        "no block",
    ]
    data = dumped({"store": {"k": [{"role": "user", "blocks": blocks, "additional_kwargs": {}}]}})
    (message,) = only(data).messages
    assert {block["block_type"] for block in message.blocks} == {"text"}
    assert len(whats(data)) == 4


def test_an_images_entry_does_not_reach_llamaindex():
    """LlamaIndex takes kwargs named images for picture documents; they get another name."""
    data = dumped([{"role": "user", "content": "a", "images": ["x"]}])
    assert only(data).messages[0].kwargs == {"imported_images": ["x"]}


def test_settings_without_messages_are_refused_with_the_way_out():
    """Memory.to_dict holds no messages; the refusal says what to export instead."""
    with pytest.raises(InvalidInput, match="no messages") as refusal:
        preview(dumped({"token_limit": 30_000, "session_id": "s", "class_name": "Memory"}))
    assert "get_all" in refusal.value.next_step


def test_rows_of_llamaindex_sql_store_are_read_by_session():
    """dump_store() of Memory's chat store: rows of all sessions, archived ones told."""
    rows = [
        {
            "key": key,
            "timestamp": 1_795_969_065_815_573_959,
            "role": "user",
            "status": status,
            "data": {
                "role": "user",
                "additional_kwargs": {},
                "blocks": [{"block_type": "text", "text": text}],
            },
        }
        for key, status, text in (
            ("a", "archived", "1"),
            ("b", "active", "2"),
            ("a", "active", "3"),
        )
    ]
    data = dumped({"table_name": "t", "db_data": [*rows, {"key": "a"}]})
    found = list(conversations(data))
    assert [(c.title, said(c.messages)) for c in found] == [
        ("a", [("user", "1"), ("user", "3")]),
        ("b", [("user", "2")]),
    ]
    assert all(time is not None and time.year == 2026 for time in found[0].times)
    assert any("archived" in what for what in whats(data))


def test_langgraph_threads_give_their_longest_state():
    """A thread's history holds every state; the one with all messages is the conversation."""
    human = [{"type": "human", "content": f"{n}", "id": f"{n}"} for n in range(3)]

    def state(thread: str, count: int) -> dict[str, Any]:
        config = {"configurable": {"thread_id": thread}}
        return {"values": {"messages": human[:count]}, "next": [], "config": config}

    data = dumped([state("x", 3), state("x", 2), state("y", 1)])
    assert [(c.title, len(c.messages)) for c in conversations(data)] == [("x", 3), ("y", 1)]
    assert whats(data) == ["left out: 1 other states of the threads"]


@pytest.mark.parametrize("form", ["dumpd", "model_dump", "checkpoint"])
def test_langchain_forms_give_the_same(form: str):
    """However LangChain dumped a message, it is the same message."""
    fields = {
        "content": "",
        "additional_kwargs": {
            "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": "{}"}}]
        },
        "response_metadata": {},
        "type": "ai",
        "name": None,
        "id": "run-1",
        "tool_calls": [{"name": "f", "args": {"a": 1}, "id": "c", "type": "tool_call"}],
        "invalid_tool_calls": [],
        "usage_metadata": None,
    }
    path = ["langchain", "schema", "messages", "AIMessage"]
    packed = {"lc": 1, "type": "constructor", "id": path, "kwargs": fields}
    value: Any = {
        "dumpd": [packed],
        "model_dump": [fields],
        "checkpoint": {"v": 1, "channel_values": {"messages": [packed]}},
    }[form]
    conversation = only(dumped(value))
    (message,) = conversation.messages
    assert [(c.id, c.name, c.arguments) for c in message.tool_calls] == [("c", "f", '{"a": 1}')]
    assert (message.text, message.kwargs, conversation.ids) == ("", {}, ("run-1",))


def test_sharegpt_roles_and_system_prompts_are_read():
    """The words of training sets for their speakers are known and need no notice."""
    turns = [
        {"from": who, "value": who}
        for who in ("system", "human", "function_call", "observation", "gpt")
    ]
    item = {"id": 7, "system": "Be brief.", "conversations": turns, "source": "x"}
    conversation = only(dumped([item]))
    assert [m.role for m in conversation.messages] == [
        "system",
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
    ]
    assert conversation.title == "7"
    assert whats(dumped([item])) == ["left out: source"]


def test_json_that_holds_no_messages_is_refused_by_what_it_holds():
    """The refusal names what was seen, so that the user knows which file it was."""
    with pytest.raises(InvalidInput, match="'lat', 'lon'"):
        detect(dumped([{"lat": 1, "lon": 2}]))
    with pytest.raises(InvalidInput, match="empty"):
        detect(b"[]")
    with pytest.raises(InvalidInput, match="empty"):
        detect(b" \n ")


def test_the_kind_of_a_long_first_message_is_seen():
    """The format is told right although its first message outgrows the first look."""
    long = "x" * 200_000
    data = dumped([{"content": long, "type": "human", "id": None}, {"content": "hi", "type": "ai"}])
    assert detect(data).id == "langchain"
    assert [m.role for m in only(data).messages] == ["user", "assistant"]
