"""What a check of the doctor reads out of a trace: knobs, blocks, facts, what was kept or lost."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from memory_core.messages import Json, Message
from memory_core.prompt import Assembly, Gate, Hit, Omission, Part, Source
from memory_core.strategies import COMPOSABLE, HYBRID, LAYERED, MEMORY_BLOCKS, VECTOR_MEMORY
from memory_core.summary import normalise
from memory_core.trace import ModelCall, TurnTrace

FACT = re.compile(r"<fact>(.*?)</fact>", re.DOTALL)
_SAID = re.compile(
    r"(?m)^(?:\"Transcript so far: )?(?:user|system|MessageRole\.(?:USER|SYSTEM)): (.*)$"
)
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_NAME = re.compile(r"(?<=[a-z,;] )[A-ZÀ-Þ][\w'-]+")
_RULE = re.compile(
    r"[^.!?\n]*\b(?:must|always|never|don't|do not|can't|cannot)\b[^.!?\n]*", re.IGNORECASE
)
_WORD = re.compile(r"[^\W\d_]{4,}|\d+")


def setup(trace: TurnTrace) -> Mapping[str, Json]:
    """Return the setup of a strategy of LlamaIndex's, empty for our own memory."""
    if trace.strategy == LAYERED:
        return {}
    found: Mapping[str, Json] = trace.settings.get("setup") or {}
    return found


def knobs(trace: TurnTrace) -> Mapping[str, Json]:
    """Return the knobs of a strategy of LlamaIndex's, empty for our own memory."""
    found: Mapping[str, Json] = setup(trace).get("knobs") or {}
    return found


def blocks(trace: TurnTrace) -> Sequence[Mapping[str, Json]]:
    """Return the knobs of the memory blocks, in their order."""
    found: Sequence[Mapping[str, Json]] = knobs(trace).get("blocks") or ()
    return found


def searches(trace: TurnTrace) -> bool:
    """Return whether the strategy searches by meaning for each prompt."""
    if trace.strategy == MEMORY_BLOCKS:
        return any(block.get("kind") == "vector" for block in blocks(trace))
    return trace.strategy in (VECTOR_MEMORY, COMPOSABLE, HYBRID)


def omissions(traces: Sequence[TurnTrace]) -> list[Omission]:
    """Return everything that stayed out of these turns' prompts."""
    return [out for t in traces if t.assembly is not None for out in t.assembly.omissions]


def numbers(out: Omission) -> dict[str, float]:
    """Return the numbers that were compared where something stayed out."""
    numbers = {"needed": out.needed, "available": out.available}
    return {name: value for name, value in numbers.items() if value is not None}


def message(assembly: Assembly, part: Part) -> Message:
    """Return the message that a part stands in."""
    return assembly.messages[part.message] if part.message is not None else Message("")


def kept(assembly: Assembly) -> list[Message]:
    """Return the messages that stand in a prompt out of the history."""
    places = {p.message for p in assembly.parts if p.source is Source.BUFFER}
    return [assembly.messages[i] for i in sorted(i for i in places if i is not None)]


def block_tokens(assembly: Assembly | None) -> Counter[str]:
    """Return the tokens of each memory block in a prompt, by its name."""
    sizes: Counter[str] = Counter()
    for part in assembly.parts if assembly is not None else ():
        if part.note and part.source in (Source.BLOCK, Source.FACTS, Source.RETRIEVED):
            sizes[part.note] += part.tokens
    return sizes


def facts(trace: TurnTrace) -> dict[str, list[str]]:
    """Return the facts in a prompt by the name of their block."""
    assembly = trace.assembly
    names = {str(b.get("name")) for b in blocks(trace) if b.get("kind") == "facts"}
    facts: dict[str, list[str]] = {}
    for part in assembly.parts if assembly is not None else ():
        if assembly is not None and part.note in names:
            facts.setdefault(part.note, []).extend(FACT.findall(assembly.text_of(part)))
    return facts


def gone(call: ModelCall, assembly: Assembly | None) -> list[str]:
    """Return rules, names and numbers that a summary was given and that stand nowhere now."""
    given = "\n".join(message.text for message in call.assembly.messages[1:])
    said = "\n".join(_SAID.findall(given))
    reply = call.reply.text if call.reply is not None else ""
    if not said or not reply or call.error:
        return []
    prompt = "\n".join(m.text for m in assembly.messages) if assembly is not None else ""
    there = normalise(f"{reply}\n{prompt}")
    rules = [rule.strip() for rule in _RULE.findall(said)]
    words = [*_NUMBER.findall(said), *_NAME.findall(said)]
    items = dict.fromkeys([*rules, *words])
    return [item for item in items if item and normalise(item) not in there]


def recalled(trace: TurnTrace) -> Sequence[Hit]:
    """Return what a turn's search put in the prompt."""
    recall = trace.assembly.recall if trace.assembly is not None else None
    return recall.hits if recall is not None else ()


def supports(hit: Hit, trace: TurnTrace) -> bool:
    """Return whether an answer uses a word of a memory that the question does not have."""
    replies = trace.replies
    reply = replies[-1].reply if replies else None
    own = words(hit.text) - words(trace.query)
    return reply is not None and bool(own & words(reply.text))


def words(text: str) -> set[str]:
    """Return the words and numbers of a text that say something."""
    return {word.casefold() for word in _WORD.findall(text)}


def at_the_cap(trace: TurnTrace) -> bool:
    """Return whether the limit cut this turn's history down to one earlier turn or none."""
    assembly = trace.assembly
    if assembly is None or assembly.window is None or assembly.window.limit < 1:
        return False
    cut = any(
        out.gate in (Gate.TOKEN_LIMIT, Gate.GROUP) and out.source is Source.BUFFER
        for out in assembly.omissions
    )
    turns = {p.turn for p in assembly.parts if p.source is Source.BUFFER}
    return cut and len(turns - {trace.number, None}) <= 1


def known(hit: Hit) -> bool:
    """Return whether the vectors behind a hit were known."""
    return (hit.similarity, hit.distance) != (-1.0, -1.0)


def short(text: str, length: int = 80) -> str:
    """Return a text on one line, cut to a length."""
    line = " ".join(text.split())
    return line if len(line) <= length else line[: length - 1] + "…"
