"""The rolling window: which of the newest messages are sent, and why the others are not.

A window is a suffix of the history that starts where a conversation may start: at a user
message that splits no tool group (a call and its results). Two counting rules exist:

* ``exact``: the tokens that are really sent. System messages in the history are pinned: they
  stay in front however old they are. Tool results without their call are left out.
* ``llama_index``: what ``ChatMemoryBuffer`` of llama-index-core 0.14 does, for comparison: all
  texts joined by spaces, tool calls not counted, nothing pinned, orphans sent along.

:class:`History` keeps running sums, so planning for any limit is a binary search: it costs the
same at 100 and at 100,000 messages. :func:`plan_window` is pure.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from memory_core.messages import TEXT, Message

EXACT, LLAMA_INDEX = "exact", "llama_index"  # the counting rules

SYSTEM_ROLES = ("system", "developer")
_NEVER_FIRST = ("tool", "assistant", "function")
_PARTING_SPACE = re.compile(r"(?<=\S) (?=\S)")
_LOOK_BACK = 8  # subtle: joined counts are not strictly monotonic where texts are mere blanks


@dataclass(frozen=True)
class WindowPlan:
    """Which messages of a history are in the window. Indexes count from the oldest message.

    ``limit`` is in tokens and includes ``initial``, the tokens in front of the history.
    Kept are the indexes from ``start`` on without ``orphans``, and the ``pinned`` ones before
    it. ``next_needed`` and ``next_left`` are the tokens of the newest group left out and the
    tokens that were left for it; ``next_start`` is where that group starts (-1: none).
    """

    rule: str
    limit: int
    initial: int
    total: int
    start: int
    tokens: int
    pinned: tuple[int, ...] = ()
    orphans: tuple[int, ...] = ()
    unanswered: tuple[int, ...] = ()
    over_limit: bool = False
    next_start: int = -1
    next_needed: int = 0
    next_left: int = 0

    def kept(self) -> Iterator[int]:
        """Yield the kept indexes, oldest first."""
        yield from self.pinned
        kept = range(self.start, self.total)
        out = frozenset(self.orphans)
        yield from (i for i in kept if i not in out) if out else kept

    def keeps(self, index: int) -> bool:
        """Return whether one message is in the window."""
        if index in self.pinned:
            return True
        return self.start <= index < self.total and index not in self.orphans


class History:
    """Messages with running token sums; grows at the end and may be cut back to a length.

    ``count_text`` counts the tokens of a text for the ``llama_index`` rule. Without it only the
    ``exact`` rule can be planned. ``starts`` and ``joined_cuts`` are where a window may start
    under the two rules.
    """

    def __init__(self, count_text: Callable[[str], int] | None = None) -> None:
        self._count_text = count_text
        self._roles: list[str] = []
        self._texts: list[str] = []
        self.sums: list[int] = [0]
        self.starts: list[int] = []
        self.system: list[int] = []
        self._system_tokens: list[int] = [0]
        self.orphans: list[int] = []
        self.joined_cuts: list[int] = []
        self._calls: dict[str, int] = {}
        self._open: dict[int, set[str]] = {}
        self._joined = _JoinedSums(self._texts, count_text)

    def __len__(self) -> int:
        return len(self._roles)

    def tokens(self, index: int) -> int:
        """Return the tokens one message adds to the window (0 for pinned and orphan messages)."""
        return self.sums[index + 1] - self.sums[index]

    def copy(self) -> History:
        """Return a history of the same messages that grows apart from this one."""
        other = History(self._count_text)
        for name, value in vars(self).items():
            if isinstance(value, list):
                getattr(other, name)[:] = value
        other._calls = dict(self._calls)
        other._open = {at: set(waiting) for at, waiting in self._open.items()}
        other._joined.take_over(self._joined)
        return other

    def append(self, message: Message, tokens: int) -> None:
        """Add the next message with its token count."""
        index = len(self._roles)
        own = tokens
        if message.role in SYSTEM_ROLES:
            self.system.append(index)
            self._system_tokens.append(self._system_tokens[-1] + tokens)
            own = 0
        elif message.role in ("tool", "function"):
            call = self._call_of(message)
            if call is None:
                self.orphans.append(index)
                own = 0
            else:
                self._answer(message, call)
        elif message.role not in _NEVER_FIRST:
            self.starts.append(index)
        for request in message.tool_calls if message.role == "assistant" else ():
            self._calls[request.id] = index
            self._open.setdefault(index, set()).add(request.id)
        if message.role not in _NEVER_FIRST:
            self.joined_cuts.append(index)
        self._roles.append(message.role)
        self._texts.append(_as_joined(message))
        self.sums.append(self.sums[-1] + own)

    def group_of(self, index: int) -> int:
        """Return where the smallest unit starts that the message can enter the window with."""
        position = bisect_left(self.starts, index + 1)
        return self.starts[position - 1] if position else 0

    def pinned_tokens(self, before: int) -> int:
        """Return the tokens of all system messages at indexes below ``before``."""
        return self._system_tokens[bisect_left(self.system, before)]

    def needed(self, index: int) -> int:
        """Return the tokens of a window that just holds this message and all that is newer."""
        return self.sums[-1] - self.sums[self.group_of(index)] + self._system_tokens[-1]

    def unanswered(self, start: int) -> tuple[int, ...]:
        """Return the indexes from ``start`` on whose tool calls have no result."""
        return tuple(i for i in self._open if i >= start)

    def joined_tokens(self, start: int) -> int:
        """Return the tokens from ``start`` on by ``ChatMemoryBuffer``'s rule."""
        return self._joined.since(start)

    def _call_of(self, result: Message) -> int | None:
        if result.tool_call_id is not None:
            return self._calls.get(result.tool_call_id)
        before = len(self._roles) - 1
        while before >= 0 and self._roles[before] in ("tool", "function"):
            before -= 1
        return before if before in self._open else None

    def _answer(self, result: Message, call: int) -> None:
        waiting = self._open.get(call)
        if waiting is not None:
            waiting.discard(result.tool_call_id or next(iter(waiting)))
            if not waiting:
                del self._open[call]
        while self.starts and self.starts[-1] > call:
            self.starts.pop()  # a cut there would part the call from this result


def plan_window(history: History, limit: int, *, initial: int = 0, rule: str = EXACT) -> WindowPlan:
    """Choose the newest messages that fit in ``limit`` tokens after ``initial`` tokens.

    When the newest group alone does not fit it is kept all the same and ``over_limit`` is set:
    it holds the question. When ``initial`` alone is over the limit nothing is kept.
    """
    return (
        _plan_joined(history, limit, initial)
        if rule == LLAMA_INDEX
        else _plan_exact(history, limit, initial)
    )


def _plan_exact(history: History, limit: int, initial: int) -> WindowPlan:
    total, sums, starts = len(history), history.sums, history.starts
    pinned_all = history.pinned_tokens(total)
    room = limit - initial - pinned_all
    if initial > limit or not starts:
        pinned = () if initial + pinned_all > limit else tuple(history.system)
        tokens = pinned_all if pinned else 0
        return WindowPlan(
            EXACT, limit, initial, total, total, tokens, pinned, over_limit=initial > limit
        )
    # The first start whose suffix fits: sums[start] >= sums[-1] - room.
    position = bisect_left(starts, sums[-1] - room, key=sums.__getitem__)
    over = position == len(starts)
    position -= over
    start = starts[position]
    kept = sums[-1] - sums[start]
    next_start, needed = -1, 0
    if position:
        next_start = starts[position - 1]
        needed = sums[start] - sums[next_start]
    return WindowPlan(
        rule=EXACT,
        limit=limit,
        initial=initial,
        total=total,
        start=start,
        tokens=kept + pinned_all,
        pinned=tuple(history.system[: bisect_left(history.system, start)]),
        orphans=tuple(history.orphans[bisect_left(history.orphans, start) :]),
        unanswered=history.unanswered(start),
        over_limit=over,
        next_start=next_start,
        next_needed=needed,
        next_left=max(0, room - kept),
    )


def _plan_joined(history: History, limit: int, initial: int) -> WindowPlan:
    total = len(history)
    if initial > limit or not total:
        return WindowPlan(LLAMA_INDEX, limit, initial, total, total, 0, over_limit=initial > limit)

    def excess(start: int) -> int:
        return history.joined_tokens(start) + initial - limit

    cuts, last = history.joined_cuts, total - 1
    start, before = 0, -1
    if excess(0) > 0:
        at = bisect_left(cuts, 0, key=lambda cut: -excess(cut))
        for earlier in range(max(0, at - _LOOK_BACK), at):
            if excess(cuts[earlier]) <= 0:
                at = earlier
                break
        start = cuts[at] if at < len(cuts) else last
        at = bisect_left(cuts, start)
        before = cuts[at - 1] if at else 0
    kept = history.joined_tokens(start)
    return WindowPlan(
        rule=LLAMA_INDEX,
        limit=limit,
        initial=initial,
        total=total,
        start=start,
        tokens=kept,
        over_limit=kept + initial > limit,
        next_start=before if start else -1,
        next_needed=history.joined_tokens(before) - kept if start else 0,
        next_left=max(0, limit - initial - kept),
    )


class _JoinedSums:
    """Token counts of texts joined by spaces, for every suffix, each text encoded only once.

    ``tok(a + " " + b) == tok(a) + tok(" " + b)`` where ``a`` ends and ``b`` begins with something
    else than white space: no token of the encodings in use runs across. The first such place in
    or after each text is its mark; running sums are kept from mark to mark.
    """

    def __init__(self, texts: Sequence[str], count: Callable[[str], int] | None) -> None:
        self._texts = texts
        self._count = count
        self._marks: list[tuple[int, int]] = []  # text and character offset in it
        self._sums: list[int] = []  # tokens between the first mark and each
        self._done = 0

    def since(self, start: int) -> int:
        if self._count is None:
            raise ValueError("the llama_index rule needs a History with count_text")
        if start >= len(self._texts):
            return 0
        self._extend(self._count)
        end = (len(self._texts) - 1, len(self._texts[-1]))
        at = bisect_left(self._marks, (start, 0))
        if at == len(self._marks):
            return self._count(self._between((start, 0), end))
        head = self._count(self._between((start, 0), self._marks[at]))
        tail = self._count(self._between(self._marks[-1], end))
        return head + self._sums[-1] - self._sums[at] + tail

    def take_over(self, other: _JoinedSums) -> None:
        self._marks, self._sums, self._done = list(other._marks), list(other._sums), other._done

    def _extend(self, count: Callable[[str], int]) -> None:
        while self._done < len(self._texts):
            mark = self._mark(self._done)
            if mark is None and self._done == len(self._texts) - 1:
                return  # what follows decides whether the text's end is a mark
            self._done += 1
            if mark is None:
                continue
            piece = count(self._between(self._marks[-1], mark)) if self._marks else 0
            self._sums.append((self._sums[-1] if self._sums else 0) + piece)
            self._marks.append(mark)

    def _mark(self, index: int) -> tuple[int, int] | None:
        text = self._texts[index]
        inside = _PARTING_SPACE.search(text)
        if inside is not None:
            return index, inside.start()
        after = self._texts[index + 1] if index + 1 < len(self._texts) else ""
        parts = text and after and not text[-1].isspace() and not after[0].isspace()
        return (index, len(text)) if parts else None

    def _between(self, start: tuple[int, int], end: tuple[int, int]) -> str:
        (first, begin), (last, stop) = start, end
        if first == last:
            return self._texts[first][begin:stop]
        middle = self._texts[first + 1 : last]
        return " ".join([self._texts[first][begin:], *middle, self._texts[last][:stop]])


def _as_joined(message: Message) -> str:
    """Return what ``str(ChatMessage.content)`` gives; content is ``None`` without text blocks."""
    return message.text or ("" if len(list(message.blocks_of(TEXT))) == 1 else "None")
