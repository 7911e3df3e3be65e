"""``ChatSummaryMemoryBuffer``: the newest messages in full, all older ones in one summary.

Its rule: from the newest back, messages stay in full while their texts fit in ``token_limit``;
assistant and tool messages may not come first. Everything before is put into one system message
by the model, the earlier summary included, and *replaces* the stored history as soon as it is
read. When that model call fails, the class has already dropped the messages it was holding; here
they are put back first, so that a failed reading changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.memory import ChatSummaryMemoryBuffer

from memory_core.buffer import WindowPlan
from memory_core.llama import from_chat, to_chat
from memory_core.messages import Message, StoredMessage
from memory_core.native.adapter import (
    Adapter,
    Asked,
    State,
    Tokenizer,
    left_out,
    newest,
    stored_mark,
)
from memory_core.native.align import NOT_STORED, align
from memory_core.native.parts import Mark, parts_of
from memory_core.native.rules import SUMMARY_RULE
from memory_core.native.summaries import SummaryNotes
from memory_core.prompt import Assembly, Gate, Omission, Part, Source
from memory_core.recording import RecordingLLM
from memory_core.session import Session
from memory_core.trace import SUMMARISE


class SummaryBufferAdapter(Adapter):
    """Explains ``ChatSummaryMemoryBuffer`` and keeps a failed reading from losing messages."""

    title = "ChatSummaryMemoryBuffer"

    def __init__(
        self, memory: ChatSummaryMemoryBuffer, *, session: Session, tokenizer: Tokenizer
    ) -> None:
        super().__init__(memory, session=session, tokenizer=tokenizer)
        self._memory = memory
        self._summaries = SummaryNotes(session)
        self._start = 0  # of what is still in full, in what was given

    async def ask(self, query: str | ChatMessage | None, **kwargs: Any) -> list[ChatMessage]:
        """Read the buffer; when the summariser fails, put back what it had before."""
        held = list(self._memory.get_all())
        try:
            return await super().ask(query, **kwargs)
        except BaseException:
            self._memory.set(held)
            self._memory._token_count = 0  # noqa: SLF001 - left over, it would count for the next
            raise

    def explain(self, asked: Asked) -> Assembly:
        """Return the Assembly: the summary, the messages in full, and what was folded when."""
        places = align(asked.returned, self.given.messages)
        kept = [place for place in places if place != NOT_STORED]
        start = kept[0] if kept else len(self.given.messages)
        folded, self._start = range(self._start, start), max(self._start, start)
        text = _summary_in(asked.returned, places)
        if text:
            self._note_summary(text, folded)
        parts: list[Part] = []
        for index, (message, place) in enumerate(zip(asked.returned, places, strict=True)):
            rest = self._summary_mark() if place == NOT_STORED else stored_mark(
                self.given.messages[place]
            )  # fmt: skip
            parts += parts_of(message, index, rest, self.counter)
        initial = asked.in_front if self._memory.count_initial_tokens else 0
        plan = self._plan(start, initial)
        ids = tuple("" if p == NOT_STORED else self.given.messages[p].id for p in places)
        return Assembly(
            messages=asked.returned,
            message_ids=ids,
            parts=tuple(parts),
            omissions=tuple(self._left_out(plan, summarised=bool(text))),
            window=plan,
            counter=self.counter.id,
        )

    def use(self, llm: RecordingLLM | None) -> None:
        """Have summaries written by this model; without one, what does not fit is dropped."""
        self._memory.llm = llm.for_purpose(SUMMARISE) if llm is not None else None

    def dump(self) -> State:
        """Return what the class holds: it cannot be had from the record again."""
        held = [from_chat(message).to_json() for message in self._memory.get_all()]
        return State({"held": held, "start": self._start, **self._summaries.dump()})

    async def begin(self) -> None:
        """Give the turn the summary that was written after the last one's prompt."""
        self._summaries.begin()

    async def restore(self, state: State, messages: Sequence[StoredMessage]) -> None:
        """Give the class back what it held."""
        self.given.replace(messages)
        self._summaries.restore(state.data)
        self._start = min(int(state.data.get("start", 0)), len(messages))
        held = state.data.get("held")
        self._memory.set(
            self.given.chats()
            if held is None
            else [to_chat(Message.from_json(item)) for item in held]
        )

    def replaced(self, messages: Sequence[StoredMessage]) -> None:
        """Note that the history was replaced: nothing of it is folded."""
        super().replaced(messages)
        self._start = 0

    def _note_summary(self, text: str, folded: range) -> None:
        """Tell the session of a summary that was written just now."""
        if folded and text != self.session.summary.text:
            ids = [self.given.messages[i].id for i in folded]
            self._summaries.note(text, folded=ids, covers=folded.stop)

    def _summary_mark(self) -> Mark:
        version = self.session.summary.version
        return Mark("", Source.SUMMARY, ids=(f"summary-{version}",) if version else ())

    def _plan(self, start: int, initial: int) -> WindowPlan:
        """Return the class's rule over what is in full, in its own count."""
        given = self.given.messages
        tokens = [self._tokens(stored) for stored in given[start:]]
        waits = start - 1 if start else -1
        return WindowPlan(
            rule=SUMMARY_RULE,
            limit=self._memory.token_limit,
            initial=initial,
            total=len(given),
            start=start,
            tokens=sum(tokens),
            over_limit=initial + sum(tokens) > self._memory.token_limit,
            next_start=waits,
            next_needed=self._tokens(given[waits]) if start else 0,
            next_left=max(0, self._memory.token_limit - initial - sum(tokens)),
        )

    def _left_out(self, plan: WindowPlan, *, summarised: bool) -> list[Omission]:
        where = "folded into the summary" if summarised else "dropped: nothing summarises"
        out = []
        for index in newest(range(plan.start)):
            stored = self.given.messages[index]
            if index != plan.next_start:
                out.append(left_out(stored, Gate.RULE, where))
            elif plan.next_needed > plan.next_left:
                reason = (
                    f"needs {plan.next_needed:,} tokens by the class's count, {plan.next_left:,} "
                    f"left; {where}"
                )
                numbers = (plan.next_needed, plan.next_left)
                out.append(left_out(stored, Gate.TOKEN_LIMIT, reason, *numbers))
            elif stored.message.role in ("assistant", "tool"):
                reason = f"an assistant or tool message may not come first; {where}"
                out.append(left_out(stored, Gate.GROUP, reason))
            else:  # it was folded in an earlier turn, when it did not fit
                out.append(left_out(stored, Gate.RULE, where))
        return out

    def _tokens(self, stored: StoredMessage) -> int:
        return self._memory._token_count_for_messages([to_chat(stored.message)])  # noqa: SLF001


def _summary_in(returned: Sequence[Message], places: Sequence[int]) -> str:
    """Return the text of the summary in front, empty when there is none."""
    if returned and places[0] == NOT_STORED and returned[0].role == "system":
        return returned[0].text
    return ""
