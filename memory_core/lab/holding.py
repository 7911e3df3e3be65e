"""What one exact prompt holds of a conversation: messages, other texts, evidence.

Everything is read from the :class:`~memory_core.prompt.Assembly`; a message counts as held when
it stands in the prompt word for word, wherever that is.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping

from memory_core.contents import Contents
from memory_core.lab.comparison import (
    BUFFER,
    ELSEWHERE,
    NOWHERE,
    RETRIEVED,
    SUMMARISED,
    Kept,
    runs,
)
from memory_core.messages import Message
from memory_core.prompt import Assembly, Omission, Source

MOST_REASONS = 12  # reasons kept a turn
_EXCERPT = 80  # characters of what stayed out
_MEMORY = frozenset(
    {
        Source.STATE,
        Source.FACTS,
        Source.SUMMARY,
        Source.RETRIEVED,
        Source.BLOCK,
        Source.DOCUMENTS,
        Source.UNKNOWN,
    }
)


def kept_of(
    assembly: Assembly, places: Mapping[str, int], *, turn: int, first: int, answer: str = ""
) -> Kept:
    """Return what the prompt of a turn held.

    ``places`` gives the index in the conversation of a message by its id; ``first`` is that of
    the turn's own question, which is no memory.
    """
    return Kept(
        turn=turn,
        tokens={source.value: n for source, n in assembly.tokens_by_source().items()},
        limit=limit_of(assembly),
        runs=runs(i for i in verbatim(assembly, places) if i < first),
        texts=tuple(
            (part.source.value, text)
            for part in assembly.parts
            if part.source in _MEMORY and (text := assembly.text_of(part).strip())
        ),
        left_out=tuple(map(_reason, assembly.omissions[:MOST_REASONS])),
        digest=digest(assembly.messages),
        answer=answer,
    )


def verbatim(assembly: Assembly, places: Mapping[str, int]) -> set[int]:
    """Return the messages that stand in the prompt as messages of their own, by index."""
    ids = {i for i in assembly.message_ids if i}
    ids |= {i for part in assembly.parts if part.source is Source.BUFFER for i in part.ids}
    return {places[i] for i in ids if i in places}


def limit_of(assembly: Assembly) -> int:
    """Return how many tokens the prompt might have had, 0: nobody said."""
    if assembly.allotment is not None:
        return assembly.allotment.limit
    return assembly.window.limit if assembly.window is not None else 0


def digest(messages: Iterable[Message]) -> str:
    """Return a text that is the same for the same messages, byte for byte, and no other ones."""
    whole = json.dumps([message.to_json() for message in messages], ensure_ascii=False)
    return hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def where(
    index: int,
    message: Message,
    assembly: Assembly,
    places: Mapping[str, int],
    *,
    question: str,
    covered: int,
) -> str:
    """Return where in the prompt of a question a message of the conversation stands.

    ``covered`` is how many of the first messages the summary in force folds.
    """
    text = _even(message.text)
    own = index in verbatim(assembly, places)
    if own and not text:
        return BUFFER
    if text and any(text in _even(one) for one in _beside(assembly, question)):
        carried = {places.get(i) for i in Contents.of(assembly).carried}
        return BUFFER if own else RETRIEVED if index in carried else ELSEWHERE
    summary = any(part.source is Source.SUMMARY for part in assembly.parts)
    return SUMMARISED if summary and index < covered else NOWHERE


def tells(expected: str, assembly: Assembly, *, question: str) -> bool:
    """Return whether the expected text stands in a prompt, outside of the question itself."""
    wanted = _even(expected).casefold()
    return bool(wanted) and any(
        wanted in _even(one).casefold() for one in _beside(assembly, question)
    )


def says(expected: str, answer: str) -> bool | None:
    """Return whether an answer holds the expected text, ``None`` where nothing is expected."""
    wanted = _even(expected).casefold()
    return wanted in _even(answer).casefold() if wanted else None


def _beside(assembly: Assembly, question: str) -> list[str]:
    """Return the texts of a prompt without the question that it ends with."""
    texts = [message.text for message in assembly.messages]
    for at in range(len(texts) - 1, -1, -1):
        if assembly.messages[at].role == "user" and texts[at] == question:
            del texts[at]
            break
    return texts


def _even(text: str) -> str:
    return " ".join(text.split())


def _reason(omission: Omission) -> str:
    line = _even(omission.text)
    short = line if len(line) <= _EXCERPT else f"{line[:_EXCERPT]}…"
    about = f"{omission.source.value} “{short}”" if short else omission.source.value
    return f"{about}: {omission.reason}"
