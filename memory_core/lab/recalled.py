"""One recall question: where its evidence stands in the exact prompt, what a model answers to it.

What is measured needs the prompt only. An answer is one plain request of exactly that prompt,
without tools.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from llama_index.core.llms import LLM

from memory_core.errors import MemoryInspectorError
from memory_core.lab.comparison import Asked, Configuration, Spent
from memory_core.lab.holding import says, tells, where
from memory_core.llama import to_chat
from memory_core.messages import Message, repair_text
from memory_core.models.catalogue import ModelChoice, cost
from memory_core.models.failures import explain, usage_of
from memory_core.prompt import Assembly
from memory_core.questions import RecallQuestion
from memory_core.tokens import TokenCounter
from memory_core.trace import REPLY, TurnTrace, Usage

NOT_OBSERVED = "not observed"  # the model of a call that was none: the answer was known


@dataclass(frozen=True, eq=False)
class Prompted:
    """A question's prompt, and what is needed to find the conversation's messages in it.

    ``places`` gives the index of a message by its id; ``covered`` is how many of the first
    messages the summary in force folds.
    """

    assembly: Assembly
    places: Mapping[str, int]
    covered: int


def measured(question: RecallQuestion, prompted: Prompted, messages: Sequence[Message]) -> Asked:
    """Return where the evidence of a question stands in the prompt that asked it."""
    text = repair_text(question.question)[0]
    assembly = prompted.assembly
    return Asked(
        where=tuple(
            where(
                i, messages[i], assembly, prompted.places, question=text, covered=prompted.covered
            )
            for i in question.evidence
            if 0 <= i < len(messages)
        ),
        tokens=assembly.tokens,
        told=tells(question.answer, assembly, question=text),
    )


def answered(
    asked: Asked,
    question: RecallQuestion,
    assembly: Assembly,
    *,
    one: Configuration,
    llm: LLM,
    counter: TokenCounter,
) -> tuple[Asked, Spent]:
    """Return the result with the model's answer to exactly this prompt, and what that cost."""
    prompt = list(assembly.messages)
    try:
        text, reported = _reply(llm, prompt, one.model)
    except MemoryInspectorError as exc:
        return replace(asked, error=str(exc)), Spent(calls=1, cost=None)
    usage = reported or Usage(counter.messages(prompt), counter.text(text))
    spent = Spent(1, 0, usage.prompt, usage.completion, cost(one.model, reported))
    return replace(asked, answer=text, right=says(question.answer, text)), spent


def spent_in(trace: TurnTrace, model: ModelChoice) -> Spent:
    """Return what the requests of one turn to this model cost."""
    calls = [call for call in trace.calls if call.model != NOT_OBSERVED]
    return total(
        Spent(
            calls=1,
            own=call.purpose != REPLY,
            prompt=call.usage.prompt if call.usage else call.assembly.tokens,
            completion=call.usage.completion if call.usage else call.estimated,
            cost=cost(model, call.usage),
        )
        for call in calls
    )


def total(all_: Iterable[Spent]) -> Spent:
    """Return the sum; its cost is known when every one's is."""
    spents = list(all_)
    known = [one.cost for one in spents if one.cost is not None]
    return Spent(
        calls=sum(one.calls for one in spents),
        own=sum(one.own for one in spents),
        prompt=sum(one.prompt for one in spents),
        completion=sum(one.completion for one in spents),
        cost=sum(known, 0.0) if len(known) == len(spents) else None,
    )


def _reply(llm: LLM, prompt: Iterable[Message], choice: ModelChoice) -> tuple[str, Usage | None]:
    try:
        response = llm.chat([to_chat(message) for message in prompt])
    except Exception as exc:
        raise explain(exc, choice) from exc
    return repair_text(response.message.content or "")[0], usage_of(response)
