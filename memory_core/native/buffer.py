"""``ChatMemoryBuffer``: the newest messages whose texts fit in a token limit.

Its rule is :func:`memory_core.buffer.plan_window` under ``llama_index``: texts joined by spaces,
tool calls not counted, never an assistant or tool message first, the newest message always.
Its state is the history alone, which our record holds, so a restart gives it that history back.
"""

from __future__ import annotations

from llama_index.core.memory import ChatMemoryBuffer

from memory_core.native.adapter import Adapter, Asked, Tokenizer, assembled, buffer_rule, in_order
from memory_core.native.parts import Mark
from memory_core.prompt import Assembly, Source
from memory_core.session import Session


class BufferAdapter(Adapter):
    """Explains ``ChatMemoryBuffer``."""

    title = "ChatMemoryBuffer"

    def __init__(self, memory: ChatMemoryBuffer, *, session: Session, tokenizer: Tokenizer) -> None:
        super().__init__(memory, session=session, tokenizer=tokenizer)
        self.limit = memory.token_limit

    def explain(self, asked: Asked) -> Assembly:
        """Return the Assembly with the class's own plan, where the plan is what it did."""
        parts, places = in_order(asked, self.given, self.counter, Mark("", Source.UNKNOWN))
        plan, out = buffer_rule(asked, self.given, places, limit=self.limit, name=self.title)
        return assembled(
            asked, self.given, parts, places, self.counter, omissions=tuple(out), window=plan
        )
