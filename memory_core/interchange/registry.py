"""All formats in one table, and what can be done with a file of any of them.

A file is recognised by its content alone, most telling format first. :func:`conversations` reads
it as a stream of values; :func:`preview` reads all of it and keeps only what a person needs to
decide. Neither stores anything.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from memory_core.errors import InvalidInput
from memory_core.interchange import (
    chatgpt,
    claude,
    langchain,
    llamaindex,
    locomo,
    longmemeval,
    openai,
    planted,
    responses,
    sharegpt,
    tabular,
    transcript,
)
from memory_core.interchange.document import FIRST_LOOK, LAST_LOOK, Document, look, unwrapped
from memory_core.interchange.sample import Sample
from memory_core.interchange.source import (
    Entry,
    File,
    Progress,
    entries,
    fingerprint,
    size_of,
)
from memory_core.interchange.values import (
    Conversation,
    ConversationRow,
    ImportPreview,
    Notes,
    Notice,
)
from memory_core.interchange.writing import Written
from memory_core.messages import Json


@dataclass(frozen=True)
class Format:
    """One kind of file: how it is known by its beginning, and how it is read."""

    id: str
    title: str
    recognises: Callable[[Sample], bool]
    read: Callable[[Document], Iterator[Conversation]]
    json: bool = True


FORMATS = (
    Format("longmemeval", "LongMemEval", longmemeval.recognises, longmemeval.read),
    Format("locomo", "LoCoMo", locomo.recognises, locomo.read),
    Format("sample", "Sample conversation", planted.recognises, planted.read),
    Format("chatgpt", "ChatGPT export", chatgpt.recognises, chatgpt.read),
    Format("claude", "Claude export", claude.recognises, claude.read),
    Format("llamaindex", "LlamaIndex chat store or memory", llamaindex.recognises, llamaindex.read),
    Format("langchain", "LangChain or LangGraph messages", langchain.recognises, langchain.read),
    Format("openai", "OpenAI messages", openai.recognises, openai.read),
    Format("sharegpt", "ShareGPT", sharegpt.recognises, sharegpt.read),
    Format("csv", "Table (role, text, time)", tabular.recognises, tabular.read, json=False),
    Format(
        "transcript",
        'Transcript ("Name: text")',
        transcript.recognises,
        transcript.read,
        json=False,
    ),
)

EXPORTS: dict[str, Callable[[Sequence[Conversation]], Written]] = {
    "llamaindex": llamaindex.write,
    "openai": openai.write,
    "openai-jsonl": openai.write_lines,
    "openai-responses": responses.write,
    "langchain": langchain.write,
}

_NEXT_STEP = (
    "Import a LlamaIndex chat store, OpenAI or LangChain messages, a ChatGPT or Claude export, "
    'ShareGPT, LoCoMo, LongMemEval, a CSV with role and text, or lines of "Name: text".'
)


def detect(file: File, *, name: str = "") -> Format:
    """Return the format of a file (of the first readable entry of a zip archive).

    Raises :class:`InvalidInput` with the reason when it is none of :data:`FORMATS`.
    """
    return _recognised(file, name, Notes())[0][1]


def conversations(
    file: File,
    *,
    name: str = "",
    branches: bool = False,
    progress: Progress | None = None,
    notes: Notes | None = None,
) -> Iterator[Conversation]:
    """Yield the conversations of a file, one at a time.

    ``branches`` adds the other branches of account exports as conversations of their own;
    ``progress`` is called with the bytes read and their total; ``notes`` gathers what concerns
    the file as a whole. Raises :class:`InvalidInput` when the file cannot be read to its end.
    """
    told = Notes() if notes is None else notes
    found = _recognised(file, name, told)
    total = sum(entry.size for entry, _, _ in found)
    done = 0

    def on_bytes(count: int) -> None:
        nonlocal done
        done += count
        if progress is not None:
            progress(min(done, total), total)

    for entry, format_, sample in found:
        document = Document(entry, sample, told, branches, on_bytes)
        try:
            yield from format_.read(document)
        except InvalidInput as exc:
            if len(found) == 1:
                raise
            raise InvalidInput(f"Entry {entry.name!r}: {exc}") from exc


def preview(
    file: File, *, name: str = "", branches: bool = False, progress: Progress | None = None
) -> ImportPreview:
    """Read a file to its end and return what an import would bring, change and leave out.

    Raises :class:`InvalidInput` when the file cannot be used.
    """
    notes, changes, rows = Notes(), Notes(), []
    own: tuple[Notice, ...] = ()
    format_ = detect(file, name=name)
    first: dict[str, int] = {}
    for number, conversation in enumerate(
        conversations(file, name=name, branches=branches, progress=progress, notes=notes), start=1
    ):
        within = f"conversation {number:,}"
        same = first.setdefault(conversation.fingerprint, number)
        if same != number:
            changes.add(within, f"has the same messages as conversation {same:,}")
        own = conversation.notices
        changes.extend(own, within=within)
        rows.append(_row(conversation))
    return ImportPreview(
        name=name,
        format=format_.id,
        format_title=format_.title,
        size=size_of(file),
        fingerprint=fingerprint(file),
        conversations=tuple(rows),
        notices=(*notes.notices(), *(own if len(rows) == 1 else changes.notices())),
    )


def export(kind: str, conversations: Sequence[Conversation]) -> Written:
    """Return conversations as a file of one of :data:`EXPORTS`; told is what it cannot hold."""
    if kind not in EXPORTS:
        raise InvalidInput(f"There is no export {kind[:40]!r}; known: {', '.join(EXPORTS)}.")
    if not conversations:
        raise InvalidInput("There is no conversation to export.")
    return EXPORTS[kind](conversations)


def _row(conversation: Conversation) -> ConversationRow:
    return ConversationRow(
        title=conversation.title,
        messages=len(conversation.messages),
        questions=len(conversation.questions),
        branches=conversation.branches,
        began=next(filter(None, conversation.times), None),
        fingerprint=conversation.fingerprint,
    )


def _recognised(file: File, name: str, notes: Notes) -> list[tuple[Entry, Format, Sample]]:
    found = entries(file, name, notes)
    known = []
    for entry in found:
        try:
            known.append(_recognise(entry, notes))
        except InvalidInput as exc:
            if len(found) == 1:
                raise
            notes.add(entry.name, f"left out: {exc}")
    if not known:
        raise InvalidInput(
            "The zip archive holds no conversation file that is known here.", next_step=_NEXT_STEP
        )
    return known


def _recognise(entry: Entry, notes: Notes) -> tuple[Entry, Format, Sample]:
    size = FIRST_LOOK
    while True:
        sample = look(entry, size)
        if isinstance(sample.top, str) and sample.stopped < 0:
            notes.add(
                entry.name or "file", "was JSON written as a JSON text, read as what it holds"
            )
            return _recognise(unwrapped(entry), Notes())
        in_json = any(isinstance(value, (dict, list)) for value in sample.values)
        for format_ in FORMATS:
            fits = in_json if format_.json else not in_json or sample.stopped >= 0
            if fits and format_.recognises(sample):
                return entry, format_, sample
        if size >= min(entry.size, LAST_LOOK):
            raise InvalidInput(_refusal(sample), next_step=_NEXT_STEP)
        size = size * 16


def _refusal(sample: Sample) -> str:
    """Return why a file is not recognised, in one sentence."""
    if not sample.head.strip():
        return "The file is empty."
    if not sample.values:
        first = sample.head.strip().splitlines()[0][:40]
        return (
            "The file is neither JSON, nor a table with role and text, nor a transcript of at "
            f"least two turns; it begins with {first!r}."
        )
    if not any(sample.items):
        try:
            json.loads(sample.head)
        except (ValueError, RecursionError):
            return "The JSON is cut off or broken before its first message."
        return "The JSON is empty: it holds no messages."
    item = sample.items[0]
    if isinstance(item, dict):
        return f"The JSON holds no messages that are known: objects with {_names(item)}."
    return f"The JSON holds no messages: it begins with {type(item).__name__} values."


def _names(item: dict[str, Json]) -> str:
    names = [repr(key[:40]) for key in item]
    return ", ".join(names[:6]) + (f" and {len(names) - 6:,} more" if len(names) > 6 else "")
