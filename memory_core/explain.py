"""What was really sent, explained: the memory's Assembly laid over the messages of one call.

An agent may put its own system prompt before the memory's messages and the tool steps of the
running turn after them; ``ReActAgent`` puts its system message in the place of the memory's, and
chat engines fill their placeholders in whatever text holds one. :func:`explain_sent` starts from
the messages that were handed to the model and never from what should have been: what the memory
did not return is attributed to the agent, what it returned and was not sent is an omission, and
what cannot be placed at all says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from memory_core.buffer import SYSTEM_ROLES
from memory_core.messages import Message
from memory_core.prompt import Assembly, Gate, Omission, Part, Source
from memory_core.tokens import PRIMING, TokenCounter

NOT_ITS = "The prompt sent is not the memory's."
FILLED = "changed by the engine, which fills placeholders in every text"
REPLACED = "the agent put its own system message in the place of the memory's"


def explain_sent(
    sent: Sequence[Message],
    *,
    known: Assembly | None,
    tool_tokens: int,
    counter: TokenCounter,
) -> Assembly:
    """Return the Assembly of the messages in ``sent``; ``known`` is what the memory returned."""
    placed = None if known is None else _place(sent, known)
    if known is None or placed is None:
        parts = [_whole(m, i, Source.UNKNOWN, counter) for i, m in enumerate(sent)]
        ids: tuple[str, ...] = ("",) * len(sent)
        base = Assembly((), (), (), counter=counter.id)
        if known is not None and sent:
            base = replace(known, notes=(*known.notes, NOT_ITS))
    else:
        at, first = placed
        end = at + len(known.messages) - first
        parts = [_whole(m, i, Source.SYSTEM, counter) for i, m in enumerate(sent[:at])]
        parts += _laid_over(known, sent, at - first, first, counter)
        parts += [_whole(m, i, Source.STEPS, counter) for i, m in enumerate(sent[end:], end)]
        same = (m == sent[i] for i, m in enumerate(known.messages[first:], at))
        kept = (i if s else "" for i, s in zip(known.message_ids[first:], same, strict=True))
        ids = ("",) * at + tuple(kept) + ("",) * (len(sent) - end)
        base = replace(known, omissions=(*known.omissions, *_replaced(known, first)))
    if tool_tokens:
        parts.append(Part(Source.TOOLS, tool_tokens))
    parts.append(Part(Source.FORMAT, PRIMING, note="primes the reply"))
    return replace(base, messages=tuple(sent), message_ids=ids, parts=tuple(parts))


def explain_aside(sent: Sequence[Message], counter: TokenCounter) -> Assembly:
    """Return the Assembly of a call that asks for no reply: a summary, facts, a question."""
    parts = [
        _whole(m, i, Source.SYSTEM if m.role == "system" else Source.BUFFER, counter)
        for i, m in enumerate(sent)
    ]
    parts.append(Part(Source.FORMAT, PRIMING, note="primes the reply"))
    return Assembly(tuple(sent), ("",) * len(sent), tuple(parts), counter=counter.id)


def _place(sent: Sequence[Message], known: Assembly) -> tuple[int, int] | None:
    """Return where the memory's messages stand in ``sent``, and from which one on they do."""
    leading = next((i for i, m in enumerate(sent) if m.role not in SYSTEM_ROLES), len(sent))
    if not known.messages:
        return leading, 0
    for same in (Message.__eq__, _filled):
        at = _find(sent, known.messages, same)
        if at >= 0:
            return at, 0
        if known.messages[0].role in SYSTEM_ROLES:
            rest = known.messages[1:]
            at = _find(sent, rest, same) if rest else leading
            if at >= 0:
                return at, 1
    return None


def _find(
    sent: Sequence[Message],
    wanted: Sequence[Message],
    same: Callable[[Message, Message], bool],
) -> int:
    """Return where ``wanted`` stands in ``sent`` as one run, -1 if it does not."""
    for at in range(len(sent) - len(wanted) + 1):
        if all(same(a, b) for a, b in zip(wanted, sent[at:], strict=False)):
            return at
    return -1


def _filled(known: Message, sent: Message) -> bool:
    """Return whether a message was sent with its placeholders filled."""
    return known == sent or (
        known.role == sent.role
        and known.kwargs == sent.kwargs
        and "{" in known.text
        and len(known.blocks) == len(sent.blocks)
    )


def _laid_over(
    known: Assembly, sent: Sequence[Message], shift: int, first: int, counter: TokenCounter
) -> list[Part]:
    """Return the memory's parts at their place in ``sent``; changed messages become one part."""
    parts: list[Part] = []
    for part in known.parts:
        if part.message is None or part.message < first:
            continue
        index = part.message + shift
        if known.messages[part.message] == sent[index]:
            parts.append(replace(part, message=index))
        elif not parts or parts[-1].message != index:
            whole = _whole(sent[index], index, part.source, counter)
            parts.append(replace(whole, ids=part.ids, turn=part.turn, note=FILLED))
    return parts


def _replaced(known: Assembly, first: int) -> list[Omission]:
    """Return what of the memory's messages was not sent: those before ``first``."""
    return [
        Omission(
            gate=Gate.RULE,
            source=part.source,
            ids=part.ids,
            reason=REPLACED,
            text=known.text_of(part),
            tokens=part.tokens,
            turn=part.turn,
            score=part.score,
        )
        for part in known.parts
        if part.message is not None and part.message < first
    ]


def _whole(message: Message, index: int, source: Source, counter: TokenCounter) -> Part:
    return Part(source, counter.message(message), message=index, end=len(message.text))
