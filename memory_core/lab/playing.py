"""One column played for real: a chat in an engine apart takes in the conversation turn by turn.

Every strategy of the catalogue can be played. The conversation's own answers go in, or a model
answers every turn anew. The recall questions come last, each in place of the one before, so that
none of them is remembered by the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeGuard, cast

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.llms import LLM

from memory_core.agent import Failed
from memory_core.chat import Chat
from memory_core.engine import Engine
from memory_core.errors import MemoryInspectorError, ModelError, ModelRefused
from memory_core.explain import explain_sent
from memory_core.lab.comparison import (
    NOWHERE,
    PLAYED,
    PROMPTS,
    TURNS,
    Asked,
    Column,
    Configuration,
    Conversation,
    Kept,
    Spent,
)
from memory_core.lab.holding import kept_of, says
from memory_core.lab.recalled import Prompted, answered, measured, spent_in, total
from memory_core.lab.script import NO_ANSWER, Said
from memory_core.messages import Message
from memory_core.models.catalogue import OFFLINE, ModelChoice
from memory_core.native.observed import ObservedMemory
from memory_core.prompt import Assembly
from memory_core.questions import RecallQuestion
from memory_core.strategies import (
    CONDENSE_ENGINE,
    CONTEXT_ENGINE,
    REACT_AGENT,
    find_agent,
)
from memory_core.tokens import TokenCounter, encoding_for
from memory_core.trace import TurnTrace

_BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
_APART = timedelta(minutes=1)
_NO_PROMPT = "No prompt was made."
_MOST_NOTICES = 6
_ADDS = {
    REACT_AGENT: "its instructions",
    CONTEXT_ENGINE: "the documents it finds",
    CONDENSE_ENGINE: "the documents it finds",
}


def open_apart(
    apart: Engine,
    user: str,
    one: Configuration,
    *,
    model: ModelChoice,
    keys: Mapping[str, str | None],
) -> Chat:
    """Open a chat of a configuration in which ``model`` answers.

    Tokens are counted as the configuration's own model counts them. Raises what keeps the model
    or the strategy from being opened.
    """
    settings = one.settings
    if not one.model.function_calling and one.model.kind != OFFLINE:
        settings = replace(settings, tools=False)
    info = apart.create(user, one.name, settings={})
    chat = apart.chat(info.key, settings=settings, model=model, key_text=keys.get(model.kind))
    counter = TokenCounter(encoding_for(one.model.model), image_tokens=settings.image_tokens)
    chat.session.recount(counter)
    chat.run_as(one.setup)
    return chat


class Playing:
    """Plays one column. With ``llm`` the questions' prompts are answered by it.

    ``tell`` hears how many turns and questions are done, and may raise to end it.
    """

    def __init__(
        self,
        one: Configuration,
        chat: Chat,
        conversation: Conversation,
        *,
        mode: str,
        llm: LLM | None,
        tell: Callable[[int], None],
    ) -> None:
        self.one, self.chat, self.conversation = one, chat, conversation
        self.mode, self.llm, self.tell = mode, llm, tell
        self.places: dict[str, int] = {}
        self.kept: list[Kept] = []
        self._traces: list[TurnTrace] = []
        self._done = 0

    def column(self, said: Sequence[Said], questions: Sequence[RecallQuestion]) -> Column:
        """Play all turns, then ask all questions.

        A model that cannot be reached ends it, one refusal does not.
        """
        asked: list[Asked] = []
        spent: list[Spent] = []
        error = ""
        try:
            for turn in said:
                self._turn(turn)
                self._step()
            for number, question in enumerate(questions):
                result, cost = self._ask(question, first=not number)
                asked.append(result)
                spent.append(cost)
                self._step()
        except ModelError as exc:
            error = str(exc)
        everything = total([*(spent_in(t, self.chat.model) for t in self._traces), *spent])
        return Column(
            self.one,
            PLAYED,
            tuple(self.kept),
            tuple(asked),
            everything,
            tuple(self._notices(everything)),
            error,
        )

    def _turn(self, said: Said) -> None:
        self._at(said.first)
        trace, error = self._said(said.question, said.answer)
        if trace is not None:
            self._traces.append(trace)
            self._place(trace, said)
        if _ends(error):
            raise error
        assembly = self._prompt(trace, said.question)
        if trace is None or assembly is None:
            self.kept.append(Kept(said.turn, error=str(error or _NO_PROMPT)))
            return
        answer = self._answer_of(trace) if self.mode == TURNS else ""
        kept = kept_of(assembly, self.places, turn=said.turn, first=said.first, answer=answer)
        self.kept.append(replace(kept, error=str(error or "")))

    def _ask(self, question: RecallQuestion, *, first: bool) -> tuple[Asked, Spent]:
        chat = self.chat
        self._at(len(self.conversation.messages))
        trace, error = self._said(question.question, NO_ANSWER, 0 if first else chat.turns)
        if _ends(error):
            raise error
        assembly = self._prompt(trace, question.question)
        if trace is None or assembly is None:
            nowhere = tuple(NOWHERE for _ in question.evidence)
            return Asked(nowhere, error=str(error or _NO_PROMPT)), Spent()
        prompted = Prompted(assembly, self.places, chat.summary.covers)
        asked = measured(question, prompted, self.conversation.messages)
        cost = spent_in(trace, chat.model)
        if error is not None:
            return replace(asked, error=str(error)), cost
        if self.mode == TURNS:
            text = self._answer_of(trace)
            return replace(asked, answer=text, right=says(question.answer, text)), cost
        if self.llm is None:
            return asked, cost
        asked, more = answered(
            asked, question, assembly, one=self.one, llm=self.llm, counter=chat.session.counter
        )
        return asked, total([cost, more])

    def _said(
        self, text: str, answer: str, supersedes: int = 0
    ) -> tuple[TurnTrace | None, MemoryInspectorError | None]:
        """Run one turn, by the model or with a known answer; return its trace and what failed."""
        chat, before = self.chat, self.chat.turns
        if self.mode == TURNS and text.strip():  # no agent answers a blank message
            error = None
            run = chat.edit_last(text) if supersedes else chat.stream(text)
            with closing(cast("Any", run)) as events:
                for event in events:
                    self.tell(self._done)
                    if isinstance(event, Failed):
                        error = event.error
            return (chat.trace(chat.turns) if chat.turns > before else None), error
        chat.session.open_turn(supersedes=supersedes)
        try:
            return chat.play(text, answer), None
        except MemoryInspectorError as exc:
            turn = chat.session.turn
            if turn is None:
                return None, exc
            if not turn.messages:
                chat.memory.note(ChatMessage(role="user", content=text))
            return chat.memory.close_turn(error=str(exc)), exc

    def _prompt(self, trace: TurnTrace | None, question: str) -> Assembly | None:
        """Return the prompt of a turn as its agent would first send it.

        Where no agent ran, a class of LlamaIndex's was asked alone: its agent would put the
        system prompt in front, tool definitions beside it and, after a search, the question last.
        """
        chat = self.chat
        known = trace.assembly if trace is not None else None
        if known is None or self.mode == TURNS or not isinstance(chat.memory, ObservedMemory):
            return known
        settings, agent = chat.settings, find_agent(chat.setup.agent)
        sent = list(known.messages)
        if settings.system_prompt.strip():
            sent.insert(0, Message.of("system", settings.system_prompt))
        if agent.documents:
            sent.append(Message.of("user", question))
        tools = chat.memory.tool_tokens if agent.tools and settings.tools else 0
        return explain_sent(sent, known=known, tool_tokens=tools, counter=chat.session.counter)

    def _place(self, trace: TurnTrace, said: Said) -> None:
        """Note at which index of the conversation the turn's messages stand."""
        if trace.appended:
            self.places[trace.appended[0]] = said.first
        if len(trace.appended) > 1 and said.answered is not None:
            self.places[trace.appended[-1]] = said.answered

    def _answer_of(self, trace: TurnTrace) -> str:
        last = self.chat.messages[-1] if self.chat.messages else None
        if last is None or last.id not in trace.appended or last.message.role != "assistant":
            return ""
        return last.message.text

    def _at(self, index: int) -> None:
        """Set the clock to when this was said: as the conversation tells, else a minute each."""
        times = self.conversation.times
        known = next((t for t in reversed(times[: index + 1]) if t is not None), None)
        now = known or _BEGIN + index * _APART
        self.chat.session.clock = lambda: now

    def _step(self) -> None:
        self._done += 1
        self.tell(self._done)

    def _notices(self, spent: Spent) -> Iterator[str]:
        yield "Played through the engine in a store of its own, from an empty memory."
        if spent.own and self.mode == PROMPTS:
            yield (
                f"The memory itself asked a model {spent.own:,} times; the built-in offline "
                "reader stood in for it."
            )
        agent = find_agent(self.one.setup.agent)
        if self.mode != TURNS and agent.id in _ADDS:
            yield f"{agent.title} adds {_ADDS[agent.id]} to the prompt, which are not counted here."
        failed = [kept.turn for kept in self.kept if kept.error]
        if failed:
            yield f"{len(failed):,} turns failed, the first is turn {failed[0]:,}."
        sentences = dict.fromkeys(s for trace in self._traces for s in trace.degradations)
        yield from list(sentences)[:_MOST_NOTICES]


def _ends(error: MemoryInspectorError | None) -> TypeGuard[ModelError]:
    """Return whether a model failed in a way that the next turn will not change."""
    return isinstance(error, ModelError) and not isinstance(error, ModelRefused)
