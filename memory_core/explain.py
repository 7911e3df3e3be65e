"""What was really sent, explained: the memory's Assembly laid over the messages of one call.

An agent may put its own system prompt before the memory's messages and the tool steps of the
running turn after them. :func:`explain_sent` starts from the messages that were handed to the
model and never from what should have been: what the memory did not return is attributed to the
agent, and what cannot be placed at all says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from memory_core.messages import Message
from memory_core.prompt import Assembly, Part, Source
from memory_core.tokens import PRIMING, TokenCounter


def explain_sent(
    sent: Sequence[Message],
    *,
    known: Assembly | None,
    tool_tokens: int,
    counter: TokenCounter,
) -> Assembly:
    """Return the Assembly of the messages in ``sent``; ``known`` is what the memory returned."""
    at = -1 if known is None else _find(sent, known.messages)
    if known is None or at < 0:
        parts = [_whole(m, i, Source.UNKNOWN, counter) for i, m in enumerate(sent)]
        ids: tuple[str, ...] = ("",) * len(sent)
        base = Assembly((), (), (), counter=counter.id)
        if known is not None and sent:
            base = replace(known, notes=(*known.notes, "The prompt sent is not the memory's."))
    else:
        end = at + len(known.messages)
        parts = [_whole(m, i, Source.SYSTEM, counter) for i, m in enumerate(sent[:at])]
        parts += [
            replace(part, message=part.message + at)
            for part in known.parts
            if part.message is not None
        ]
        parts += [_whole(m, i, Source.STEPS, counter) for i, m in enumerate(sent[end:], end)]
        ids = ("",) * at + known.message_ids + ("",) * (len(sent) - end)
        base = known
    if tool_tokens:
        parts.append(Part(Source.TOOLS, tool_tokens))
    parts.append(Part(Source.FORMAT, PRIMING, note="primes the reply"))
    return replace(base, messages=tuple(sent), message_ids=ids, parts=tuple(parts))


def _find(sent: Sequence[Message], wanted: Sequence[Message]) -> int:
    """Return where ``wanted`` stands in ``sent`` as one run, -1 if it does not."""
    for at in range(len(sent) - len(wanted) + 1):
        if tuple(sent[at : at + len(wanted)]) == tuple(wanted):
            return at
    return -1


def _whole(message: Message, index: int, source: Source, counter: TokenCounter) -> Part:
    return Part(source, counter.message(message), message=index, end=len(message.text))
