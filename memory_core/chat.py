"""One open session of one visitor: it streams turns, previews prompts, supersedes the last turn.

A :class:`Chat` joins a session, the memory strategy that runs on it and the model that answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.llms import LLM
from llama_index.core.tools import FunctionTool

from memory_core.agent import Event, Runner, run_turn
from memory_core.errors import MemoryInspectorError, NotFound
from memory_core.longterm import LongTermMemory
from memory_core.loop import iterate
from memory_core.memory import LayeredMemory
from memory_core.messages import StoredMessage
from memory_core.models.build import build_llm
from memory_core.models.catalogue import ModelChoice, cost
from memory_core.models.failures import explain
from memory_core.native.knobs import Knobs
from memory_core.native.observed import ObservedMemory
from memory_core.on_request import OnRequest
from memory_core.prompt import Assembly
from memory_core.recording import RecordingLLM
from memory_core.session import Session
from memory_core.settings import MemorySettings
from memory_core.state import AgentState
from memory_core.stores.protocols import SessionKey
from memory_core.strategies import FUNCTION_AGENT, Setup
from memory_core.summary import Summary
from memory_core.tokens import TokenCounter, encoding_for
from memory_core.tools import build_functions
from memory_core.trace import TurnTrace, trace_from_json

Memory = LayeredMemory | ObservedMemory


class Chat:
    """One open session: what the page talks to. Not shared between visitors."""

    def __init__(
        self,
        session: Session,
        *,
        model: ModelChoice,
        llm: LLM,
        opens: Callable[[Session, Setup], tuple[Memory, Runner | None]] | None = None,
    ) -> None:
        self.session = session
        self.model = model
        self.setup = Setup()
        self.memory: Memory = LayeredMemory(session)
        self._opens = opens
        self._runner: Runner | None = None
        self._llm = self._watched(llm, model)
        functions = build_functions(session.change_state, OnRequest(session))
        self._tools = [FunctionTool.from_defaults(fn=function) for function in functions]
        self._offer()

    @property
    def key(self) -> SessionKey:
        """The user and session this is."""
        return self.session.key

    @property
    def settings(self) -> MemorySettings:
        """The knobs that hold now."""
        return self.session.settings

    @property
    def messages(self) -> list[StoredMessage]:
        """The active messages, oldest first."""
        return self.session.messages

    @property
    def state(self) -> AgentState:
        """The structured state."""
        return self.session.state

    @property
    def summary(self) -> Summary:
        """The running summary (version 0: none yet)."""
        return self.session.summary

    @property
    def turns(self) -> int:
        """How many turns were committed, superseded ones included."""
        return self.session.last_turn

    def trace(self, number: int) -> TurnTrace:
        """Read the trace of one turn."""
        last = self.session.last_trace
        if last is not None and last.number == number:
            return last
        store = self.session.store
        rows = store.turns(self.key, first=number, last=number) if store is not None else []
        if not rows:
            raise NotFound(f"This session has no turn {number}.")
        return trace_from_json(rows[0].trace, self.session.find)

    def stream(self, text: str) -> Iterator[Event]:
        """Run a turn with this user message and yield what happens."""
        run = run_turn(self.memory, self._llm, self._tools, text, runner=self._runner)
        return iterate(run)

    def play(self, text: str, answer: str) -> TurnTrace:
        """Take in a turn whose answer is known: all of memory works, no model answers."""
        if isinstance(self.memory, ObservedMemory):
            return self.memory.play(text, answer)
        self.memory.put(ChatMessage(role="user", content=text))
        self.memory.get(input=text)
        self.memory.put(ChatMessage(role="assistant", content=answer))
        return self.trace(self.turns)

    def regenerate(self) -> Iterator[Event]:
        """Answer the last user message again; the new turn supersedes the last one."""
        last = self._last()
        return self._replace(last, last.query)

    def edit_last(self, text: str) -> Iterator[Event]:
        """Send the last user message anew with another text, superseding the last turn."""
        return self._replace(self._last(), text)

    def retry(self) -> Iterator[Event]:
        """Try the last, failed turn again."""
        return self.regenerate()

    def preview(
        self,
        settings: MemorySettings | None = None,
        query: str = "",
        *,
        knobs: Knobs | None = None,
    ) -> Assembly:
        """Return what the next prompt would be, without a model call.

        ``knobs`` are other ones of the strategy in use, where it is one of LlamaIndex's.
        """
        if knobs is not None and isinstance(self.memory, ObservedMemory):
            return self.memory.preview(settings or self.settings, query, knobs=knobs)
        return self.memory.preview(settings or self.settings, query)

    def configure(self, settings: MemorySettings) -> None:
        """Use these knobs from the next turn on and keep them with the session."""
        self.session.settings = settings
        counter = self.session.counter
        if settings.image_tokens != counter.image_tokens:
            self.session.recount(TokenCounter(counter.encoding, image_tokens=settings.image_tokens))
        self._offer()

    def use(self, model: ModelChoice, *, key_text: str | None = None) -> None:
        """Answer with another model from the next turn on."""
        self._llm = self._watched(build_llm(model, key=key_text), model)
        self.model = model
        self.session.recount(
            TokenCounter(encoding_for(model.model), image_tokens=self.settings.image_tokens)
        )
        self._offer()

    def recall_by(self, longterm: LongTermMemory) -> None:
        """Search and remember by another embedding model from the next turn on."""
        self.session.longterm = longterm
        if isinstance(self.memory, LayeredMemory):
            self.memory.forget_searches()
        else:
            self.run_as(self.setup)

    def run_as(self, setup: Setup) -> None:
        """Remember by another strategy, in another agent, from the next turn on.

        The messages stay: a strategy of LlamaIndex's is handed what was said so far.
        """
        if self._opens is None:
            raise ValueError("this chat was opened without an engine")
        self.memory, self._runner = self._opens(self.session, setup)
        self.setup = setup
        self._llm = self._watched(self._llm.inner, self.model)
        self._offer()

    def edit_state(self, state: AgentState, *, expect: int) -> AgentState:
        """Save a state edited by hand.

        Raises :class:`~memory_core.errors.StaleVersion` when version ``expect``, which the edit
        started from, is no longer the newest.
        """
        saved = replace(state, version=expect + 1, updated=self.session.clock())
        if self.session.store is not None:
            self.session.store.save_state(self.key, saved)
        self.session.saved(saved)
        return saved

    def _last(self) -> TurnTrace:
        if not self.turns:
            raise NotFound("There is no turn yet.", next_step="Say something first.")
        return self.trace(self.turns)

    def _replace(self, last: TurnTrace, text: str) -> Iterator[Event]:
        run = run_turn(
            self.memory,
            self._llm,
            self._tools,
            text,
            supersedes=last.number,
            runner=self._runner,
        )
        return iterate(run)

    def _watched(self, llm: LLM, model: ModelChoice) -> RecordingLLM:
        def translate(exc: Exception) -> MemoryInspectorError:
            return explain(exc, model)

        return RecordingLLM(
            llm,
            recorder=self.memory.recorder(),
            translate=translate,
            price=lambda usage: cost(model, usage),
        )

    def _offer(self) -> None:
        self.memory.watch(self._llm)
        offered = self._tools if self.settings.tools else []
        sent = (  # other agents write their tools into the prompt, engines have none
            self.setup.agent == FUNCTION_AGENT and self._llm.metadata.is_function_calling_model
        )
        self.memory.offer(self._llm.tool_specs(offered if sent else []))
