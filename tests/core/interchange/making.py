"""Small files of every format, written as the programs that export them write theirs.

Each holds the same talk of four turns between a user and a model, so that one test can hold for
all of them.
"""

from __future__ import annotations

import csv
import io
import json
import zipfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from memory_core.errors import InvalidInput
from memory_core.interchange import Conversation, conversations, preview
from memory_core.messages import Message

TALK = (
    ("user", "My boat is called Marlin ⛵ and it is green."),
    ("assistant", "A fine name.\nIs it fast?"),
    ("user", "Not very; it makes 6 knots."),
    ("assistant", "Noted: 6 knots."),
)

Talk = Sequence[tuple[str, str]]


def dumped(value: Any) -> bytes:
    """Return a value as a JSON file in UTF-8."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8")


def chat(talk: Talk) -> list[dict[str, Any]]:
    """Return a talk as OpenAI messages."""
    return [{"role": role, "content": text} for role, text in talk]


def chatgpt_tree(messages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return ChatGPT's tree of messages that follow each other, below its empty root."""
    mapping: dict[str, Any] = {
        "root": {"id": "root", "message": None, "parent": None, "children": ["n0"]}
    }
    for n, message in enumerate(messages):
        mapping[f"n{n}"] = {
            "id": f"n{n}",
            "message": {"id": f"n{n}", **message},
            "parent": f"n{n - 1}" if n else "root",
            "children": [f"n{n + 1}"] if n + 1 < len(messages) else [],
        }
    return mapping


def chatgpt_message(role: str, text: str, **more: Any) -> dict[str, Any]:
    """Return one message as ChatGPT exports it, with more or other fields."""
    return {
        "author": {"role": role, "name": None, "metadata": {}},
        "create_time": 1_700_000_000.5,
        "content": {"content_type": "text", "parts": [text]},
        "status": "finished_successfully",
        "weight": 1.0,
        "metadata": {},
        "recipient": "all",
    } | more


def chatgpt(talk: Talk) -> bytes:
    """Return a ChatGPT export of one conversation."""
    mapping = chatgpt_tree([chatgpt_message(role, text) for role, text in talk])
    last = f"n{len(talk) - 1}"
    return dumped([{"title": "Boats", "mapping": mapping, "current_node": last}])


def claude(talk: Talk) -> bytes:
    """Return a Claude export of one conversation."""
    messages = [
        {
            "uuid": f"m{n}",
            "text": text,
            "content": [{"type": "text", "text": text, "citations": []}],
            "sender": "human" if role == "user" else role,
            "created_at": "2024-05-01T10:00:00.000000Z",
            "attachments": [],
            "files": [],
        }
        for n, (role, text) in enumerate(talk)
    ]
    return dumped([{"uuid": "c", "name": "Boats", "chat_messages": messages}])


def llamaindex(talk: Talk) -> bytes:
    """Return the file of a SimpleChatStore."""
    messages = [
        {"role": r, "additional_kwargs": {}, "blocks": [{"block_type": "text", "text": t}]}
        for r, t in talk
    ]
    return dumped({"store": {"Boats": messages}, "class_name": "SimpleChatStore"})


def langchain(talk: Talk) -> bytes:
    """Return messages as messages_to_dict gives them."""
    kinds = {"user": "human", "assistant": "ai", "system": "system"}
    return dumped(
        [
            {
                "type": kinds[role],
                "data": {
                    "content": text,
                    "additional_kwargs": {},
                    "response_metadata": {},
                    "type": kinds[role],
                    "name": None,
                    "id": None,
                },
            }
            for role, text in talk
        ]
    )


def sharegpt(talk: Talk) -> bytes:
    """Return a ShareGPT file of one conversation."""
    names = {"user": "human", "assistant": "gpt"}
    turns = [{"from": names[role], "value": text} for role, text in talk]
    return dumped([{"id": "Boats", "conversations": turns}])


def locomo(talk: Talk) -> bytes:
    """Return a LoCoMo file of one conversation with one question."""
    names = {"user": "Ann", "assistant": "Bo"}
    turns = [
        {"speaker": names[role], "dia_id": f"D1:{n}", "text": text}
        for n, (role, text) in enumerate(talk, start=1)
    ]
    question = {"question": "How fast?", "answer": 6, "evidence": ["D1:3"], "category": 4}
    return dumped(
        [
            {
                "qa": [question],
                "conversation": {
                    "speaker_a": "Ann",
                    "speaker_b": "Bo",
                    "session_1_date_time": "1:56 pm on 8 May, 2023",
                    "session_1": turns,
                },
                "sample_id": "Boats",
            }
        ]
    )


def longmemeval(talk: Talk) -> bytes:
    """Return a LongMemEval file of one instance."""
    turns: list[dict[str, Any]] = chat(talk)
    for n, turn in enumerate(turns):
        turn["has_answer"] = n == 2
    return dumped(
        [
            {
                "question_id": "Boats",
                "question_type": "single-session-user",
                "question": "How fast?",
                "answer": "6 knots",
                "question_date": "2023/05/30 (Tue) 23:40",
                "haystack_dates": ["2023/05/20 (Sat) 02:21"],
                "haystack_session_ids": ["s1"],
                "haystack_sessions": [turns],
                "answer_session_ids": ["s1"],
            }
        ]
    )


def table(talk: Talk) -> bytes:
    """Return a CSV with a header."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(["role", "text", "time"])
    writer.writerows((role, text, "2024-05-01T10:00:00Z") for role, text in talk)
    return out.getvalue().encode("utf-8")


def transcript(talk: Talk) -> bytes:
    """Return a plain transcript."""
    return "".join(f"{role.title()}: {text}\n" for role, text in talk).encode("utf-8")


def responses(talk: Talk) -> bytes:
    """Return items of the Responses API."""
    kinds = {"user": "input_text", "assistant": "output_text"}
    return dumped(
        [
            {"type": "message", "role": r, "content": [{"type": kinds[r], "text": t}]}
            for r, t in talk
        ]
    )


def jsonl(talk: Talk) -> bytes:
    """Return one message a line."""
    return b"".join(dumped(message) + b"\n" for message in chat(talk))


def openai(talk: Talk) -> bytes:
    """Return a list of messages."""
    return dumped(chat(talk))


def zipped(files: Mapping[str, bytes]) -> bytes:
    """Return a zip archive of these files."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return out.getvalue()


def planted(talk: Talk) -> bytes:
    """Return one of our sample files."""
    turns: list[dict[str, str]] = []
    for role, text in talk:
        if role == "user" or not turns or role in turns[-1]:
            turns.append({})
        turns[-1][role] = text
    value = {"id": "boats", "title": "Boats", "teaches": "", "turns": turns, "questions": []}
    return dumped(value)


WRITERS: Mapping[str, tuple[str, Callable[[Talk], bytes]]] = {
    "openai": ("openai", openai),
    "openai lines": ("openai", jsonl),
    "openai items": ("openai", responses),
    "chatgpt": ("chatgpt", chatgpt),
    "claude": ("claude", claude),
    "llamaindex": ("llamaindex", llamaindex),
    "langchain": ("langchain", langchain),
    "sharegpt": ("sharegpt", sharegpt),
    "locomo": ("locomo", locomo),
    "longmemeval": ("longmemeval", longmemeval),
    "sample": ("sample", planted),
    "csv": ("csv", table),
    "transcript": ("transcript", transcript),
}


def refused(data: bytes) -> InvalidInput | None:
    """Preview a file and return its refusal, ``None`` when it can be used."""
    try:
        preview(data)
    except InvalidInput as exc:
        return exc
    return None


def whats(data: bytes) -> list[str]:
    """Return what the preview of a file says was changed or left out."""
    return [notice.what for notice in preview(data).notices]


def only(data: bytes, **options: Any) -> Conversation:
    """Return the one conversation of a file."""
    (conversation,) = conversations(data, **options)
    return conversation


def said(messages: Sequence[Message]) -> list[tuple[str, str]]:
    """Return role and text of messages."""
    return [(m.role, m.text) for m in messages]
