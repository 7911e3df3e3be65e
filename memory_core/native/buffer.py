"""``ChatMemoryBuffer``: the newest messages whose texts fit in a token limit.

Its rule is :func:`memory_core.buffer.plan_window` under ``llama_index``: texts joined by spaces,
tool calls not counted, never an assistant or tool message first, the newest message always.
Its state is the history alone, which our record holds, so a restart gives it that history back.
"""

from __future__ import annotations

from collections.abc import Sequence

from llama_index.core.memory import ChatMemoryBuffer

from memory_core.buffer import LLAMA_INDEX, plan_window
from memory_core.messages import StoredMessage
from memory_core.native.adapter import (
    Adapter,
    Asked,
    State,
    Tokenizer,
    assembled,
    buffer_rule,
    in_order,
)
from memory_core.native.parts import Mark
from memory_core.prompt import Assembly, Source
from memory_core.session import Session

_MARGIN = 20  # messages; the plan may be a token off where texts begin or end with white space


class BufferAdapter(Adapter):
    """Explains ``ChatMemoryBuffer``."""

    title = "ChatMemoryBuffer"

    def __init__(
        self,
        memory: ChatMemoryBuffer,
        *,
        session: Session,
        tokenizer: Tokenizer,
        preview: bool = False,
    ) -> None:
        super().__init__(memory, session=session, tokenizer=tokenizer)
        self.limit = memory.token_limit
        self._preview = preview

    async def restore(self, state: State, messages: Sequence[StoredMessage]) -> None:  # noqa: ARG002
        """Give the class these messages; for a preview only those that can be in its answer.

        The class counts the whole history anew for each message that it drops, which takes
        minutes where there are thousands. What is older than the first message that does not fit
        changes nothing in what it returns, so a knob can be moved at any length.
        """
        self.given.replace(messages)
        chats = self.given.chats()
        if self._preview:
            plan = plan_window(self.given.history, self.limit, rule=LLAMA_INDEX)
            chats = chats[max(0, plan.next_start - _MARGIN) :]
        await self.memory.aset(chats)

    def explain(self, asked: Asked) -> Assembly:
        """Return the Assembly with the class's own plan, where the plan is what it did."""
        parts, places = in_order(asked, self.given, self.counter, Mark("", Source.UNKNOWN))
        plan, out = buffer_rule(asked, self.given, places, limit=self.limit, name=self.title)
        return assembled(
            asked, self.given, parts, places, self.counter, omissions=tuple(out), window=plan
        )
