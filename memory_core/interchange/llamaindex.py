"""LlamaIndex: ``SimpleChatStore`` files, memory dumps and lists of ``ChatMessage``.

A store's file is ``{"store": {key: [message, …]}}``, each key a conversation; memories dump their
store under ``chat_store``, very old ones a bare ``chat_history``; the SQL chat store dumps rows
under ``db_data``. ``Memory`` itself dumps only its settings, which is told. The message form is
ours field by field, so what :func:`write` writes is read back unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from memory_core.errors import InvalidInput
from memory_core.interchange.chat import add_message
from memory_core.interchange.document import Document
from memory_core.interchange.draft import Draft, left_out
from memory_core.interchange.roles import read_role
from memory_core.interchange.sample import Sample
from memory_core.interchange.values import Conversation, Notes
from memory_core.interchange.writing import Written, json_bytes
from memory_core.messages import Json, Message

_DUMPS = frozenset(
    {"Memory", "ChatMemoryBuffer", "ChatSummaryMemoryBuffer", "SimpleChatStore", "VectorMemory"}
)
_EXPECTED = frozenset({"class_name", "chat_store_key"})


def recognises(sample: Sample) -> bool:
    """Tell whether a file begins like something LlamaIndex writes."""
    item = sample.item
    if _is_message(item):
        return True
    if len(sample.values) != 1 or isinstance(sample.top, list):
        return False
    return (
        isinstance(item.get("store"), dict)
        or isinstance(item.get("chat_store"), dict)
        or isinstance(item.get("chat_history"), list)
        or isinstance(item.get("db_data"), list)
        or item.get("class_name") in _DUMPS
    )


def read(document: Document) -> Iterator[Conversation]:
    """Yield the conversations of a LlamaIndex file."""
    top = document.sample.item
    if _is_message(top):
        yield _messages(Draft(document.title), document.items())
    elif "chat_store" in top or "store" in top:
        yield from _store(document, ("chat_store", "store") if "chat_store" in top else ("store",))
    else:
        whole = next(iter(document.items()), None)
        yield from _dump(document, whole if isinstance(whole, dict) else {})


def write(conversations: Sequence[Conversation]) -> Written:
    """Return the conversations as the JSON file of a ``SimpleChatStore``, keyed by title."""
    notes, store = Notes(), dict[str, Json]()
    for conversation in conversations:
        key, number = conversation.title, 1
        while key in store:
            number += 1
            key = f"{conversation.title} ({number})"
        if number > 1:
            notes.add(conversation.title, f"stored under the key {key!r}: keys are unique")
        store[key] = [_message_json(message) for message in conversation.messages]
        if conversation.times or conversation.ids or conversation.questions:
            notes.add(conversation.title, "times, ids and questions have no place in a chat store")
    data = json_bytes({"store": store, "class_name": "SimpleChatStore"})
    return Written(data, "application/json", "chat_store.json", notes.notices())


def _message_json(message: Message) -> Json:
    return {
        "role": message.role,
        "additional_kwargs": dict(message.kwargs),
        "blocks": [dict(block) for block in message.blocks],
    }


def _store(document: Document, path: tuple[str, ...]) -> Iterator[Conversation]:
    rest: dict[str, Json] = {}
    found = document.members(*path, rest=rest)

    def one(item: Json, _: str) -> Iterable[Conversation]:
        key, messages = item
        if not isinstance(messages, list):
            raise InvalidInput(f"The key {str(key)[:40]!r} holds no list of messages.")
        yield _messages(Draft(str(key)), messages)

    yield from document.each(found, one)
    if names := rest.keys() - _EXPECTED:
        document.notes.add("file", left_out(names))


def _dump(document: Document, whole: Mapping[str, Json]) -> Iterator[Conversation]:
    history, rows = whole.get("chat_history"), whole.get("db_data")
    if isinstance(history, list):
        yield _messages(Draft(document.title), history)
    elif isinstance(rows, list):
        yield from _rows(document, rows)
    else:
        name = str(whole.get("class_name"))[:40]
        raise InvalidInput(
            f"This dump of {name} holds settings but no messages.",
            next_step="Export memory.get_all(), or dump_store() of the memory's chat store.",
        )


def _rows(document: Document, rows: Sequence[Json]) -> Iterator[Conversation]:
    drafts: dict[str, Draft] = {}
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, dict) or not isinstance(row.get("data"), dict):
            document.notes.add(f"row {number:,}", "left out: it holds no message")
            continue
        key = str(row.get("key") or document.title)
        draft = drafts.setdefault(key, Draft(key))
        place = f"message {len(draft) + 1:,}"
        if row.get("status") == "archived":
            draft.notes.add(place, "was archived (out of LlamaIndex's queue), taken over as well")
        _add(draft, row["data"], place=place, time=row.get("timestamp"))
    yield from document.each(drafts.values(), lambda draft, _: [draft.finish()])


def _messages(draft: Draft, values: Iterable[Json]) -> Conversation:
    for number, value in enumerate(values, start=1):
        _add(draft, value, place=f"message {number:,}")
    return draft.finish()


def _add(draft: Draft, value: Json, *, place: str, time: Json = None) -> None:
    blocks = value.get("blocks") if isinstance(value, dict) else None
    if not isinstance(blocks, list):
        add_message(draft, value if time is None else {**value, "timestamp": time}, place=place)
        return
    role, speaker = read_role(value.get("role"), place=place, notes=draft.notes)
    kwargs = value.get("additional_kwargs") or {}
    if not isinstance(kwargs, dict):
        kwargs = {"additional_kwargs": kwargs}
    if speaker:
        kwargs = {"name": speaker, **kwargs}
    known = [block for block in blocks if isinstance(block, dict)]
    if len(known) < len(blocks):
        draft.notes.add(place, "content blocks that are no objects left out")
    if rest := value.keys() - {"role", "blocks", "additional_kwargs"}:
        draft.notes.add(place, left_out(rest))
    draft.add(Message(role, tuple(known), kwargs), place=place, time=time)


def _is_message(item: Mapping[str, Json]) -> bool:
    return "role" in item and (
        isinstance(item.get("blocks"), list) or isinstance(item.get("additional_kwargs"), dict)
    )
