"""Claude account exports (``conversations.json``): a list of conversations with ``chat_messages``.

Where messages name their parents the way to the newest one is taken and other branches are
counted, as for ChatGPT. The text of attached documents, which the model saw, is kept; files whose
bytes are not in the export are replaced by their names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from memory_core.errors import InvalidInput
from memory_core.interchange.blocks import Block, ToolResult, read_content
from memory_core.interchange.chat import add_split
from memory_core.interchange.clean import as_text, text_block
from memory_core.interchange.document import Document
from memory_core.interchange.draft import Draft
from memory_core.interchange.roles import ASSISTANT, USER, read_role
from memory_core.interchange.sample import Sample
from memory_core.interchange.tree import other_leaves, path_to
from memory_core.interchange.values import Conversation, Notes
from memory_core.messages import Json

_NATIVE = {"human": USER, "assistant": ASSISTANT}


def recognises(sample: Sample) -> bool:
    """Tell whether a file begins like a Claude export."""
    return isinstance(sample.item.get("chat_messages"), list)


def read(document: Document) -> Iterator[Conversation]:
    """Yield the conversations of an export, with their branches where those are asked for."""
    yield from document.each(
        document.items(), lambda item, place: _conversation(item, place, branches=document.branches)
    )


def _conversation(item: Json, place: str, *, branches: bool) -> Iterator[Conversation]:
    raw = item.get("chat_messages") if isinstance(item, dict) else None
    if not isinstance(raw, list):
        raise InvalidInput("It has no list of chat_messages.")
    title = item.get("name") or place
    draft = Draft(title)
    messages = {}
    for number, message in enumerate(raw):
        if not isinstance(message, dict):
            draft.notes.add(f"message {number + 1:,}", "left out: it is no message object")
            continue
        name = message.get("uuid")
        key = name if isinstance(name, str) and name not in messages else f"#{number}"
        messages[key] = message
    parents = _parents(messages)
    leaf = item.get("current_leaf_message_uuid")
    if leaf not in messages:
        leaf = next(reversed(messages), "")
    main = path_to(leaf, parents)
    others = other_leaves(main, parents, lambda _: True)
    draft.branches = len(others)
    yield _read_path(draft, messages, main)
    if branches:
        for number, other in enumerate(others, start=2):
            branch = Draft(f"{title} (branch {number} of {len(others) + 1})")
            yield _read_path(branch, messages, path_to(other, parents))


def _parents(messages: Mapping[str, Mapping[str, Json]]) -> dict[str, str]:
    """Return the parent of each message: the one it names, or the one before it in the list."""
    named = any(m.get("parent_message_uuid") in messages for m in messages.values())
    parents, before = {}, ""
    for key, message in messages.items():
        parent = message.get("parent_message_uuid")
        parents[key] = (parent if isinstance(parent, str) else "") if named else before
        before = key
    return parents


def _read_path(
    draft: Draft, messages: Mapping[str, Mapping[str, Json]], path: list[str]
) -> Conversation:
    for key in path:
        message, place = messages[key], f"message {len(draft) + 1:,}"
        role, speaker = read_role(
            message.get("sender"), place=place, notes=draft.notes, native=_NATIVE
        )
        content = message.get("content")
        blocks = read_content(
            content or message.get("text"), place=place, notes=draft.notes
        ) + _attachments(message, place, draft.notes)
        if not any(_tells(block) for block in blocks):
            draft.notes.add("", "empty messages left out")
            continue
        kwargs = {"name": speaker} if speaker else {}
        time, id_ = message.get("created_at"), message.get("uuid")
        add_split(draft, role, blocks, kwargs, place=place, time=time, id=id_)
    return draft.finish()


def _tells(block: Block | ToolResult) -> bool:
    return isinstance(block, ToolResult) or block.get("text") != ""


def _attachments(message: Mapping[str, Json], place: str, notes: Notes) -> list[Block | ToolResult]:
    blocks: list[Block | ToolResult] = []
    for field in ("attachments", "files", "files_v2"):
        files = message.get(field)
        for file in files if isinstance(files, list) else ():
            known = file if isinstance(file, dict) else {}
            name = as_text(known.get("file_name") or "unnamed")
            text = known.get("extracted_content")
            if text:
                notes.add(place, "the text of attached documents was kept as part of the message")
                blocks.append(text_block(f"[file: {name}]\n{as_text(text)}"))
            else:
                notes.add(place, "attached files are not in the JSON, their names were kept")
                blocks.append(text_block(f"[file: {name}]"))
    return blocks
