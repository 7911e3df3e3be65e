"""Notes on what went wrong with a memory in a turn: what happened, the numbers, what avoids it.

Each check is a pure function over one trace and the ones before it. It speaks only where
something changed what the agent saw, so a healthy session gets no note. ``docs/doctor.md`` holds
:func:`table`; the reports are public ones that each check stems from, or a likely kind of it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from memory_core import reading as read
from memory_core.buffer import LLAMA_INDEX
from memory_core.explain import REPLACED
from memory_core.native.rules import QUEUE_RULE, SUMMARY_RULE
from memory_core.prompt import Gate, Source
from memory_core.strategies import MEMORY_BLOCKS
from memory_core.summary import normalise
from memory_core.trace import EXTRACT_FACTS, SUMMARISE, WAITING, TurnTrace

NEAR = 0.03  # a score this far under the threshold is a near miss
MANY = 200  # messages dropped one by one before it is felt
TURNS = 5  # in a row, for what is a fault only when it goes on

_NO_FACTS = re.compile(r"\s*<facts>\s*(<!--.*?-->\s*)?</facts>\s*", re.DOTALL)
_CLASS_RULES = (LLAMA_INDEX, QUEUE_RULE, SUMMARY_RULE)
_WHOLE = (Source.STATE, Source.FACTS, Source.SUMMARY, Source.BLOCK)
_CUTOFF = "similarity cutoff"


@dataclass(frozen=True)
class Finding:
    """One note: which check, in which turn, what happened, what avoids it."""

    check: str
    turn: int
    text: str
    advice: str
    numbers: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Note:
    """What a check has to say about a turn."""

    text: str
    advice: str
    numbers: Mapping[str, float] = field(default_factory=dict)


Find = Callable[[TurnTrace, Sequence[TurnTrace]], Iterable[Note]]


@dataclass(frozen=True)
class Check:
    """A fault that is looked for, and the public report it stems from."""

    id: str
    title: str
    report: str
    find: Find


CHECKS: list[Check] = []


def _from(report: str) -> Callable[[Find], Find]:
    """Make a check of a function: its name is the id, its docstring the title."""

    def add(find: Find) -> Find:
        title = (find.__doc__ or "").removeprefix("Find ").rstrip(".")
        CHECKS.append(Check(find.__name__.replace("_", "-"), title, report, find))
        return find

    return add


def examine(trace: TurnTrace, before: Sequence[TurnTrace] = ()) -> tuple[Finding, ...]:
    """Return the notes on a turn, given the turns before it, oldest first."""
    return tuple(
        Finding(check.id, trace.number, note.text, note.advice, note.numbers)
        for check in CHECKS
        for note in check.find(trace, before)
    )


def table() -> str:
    """Return the checks as a Markdown table."""
    rows = [f"| `{check.id}` | {check.title} | {check.report} |" for check in CHECKS]
    return "\n".join(["| Check | What it tells | Report |", "| --- | --- | --- |", *rows])


@_from("run-llama/llama_index issue 23144")
def system_message_evicted(trace: TurnTrace, before: Sequence[TurnTrace]) -> Iterator[Note]:
    """Find a system message that was archived or cut off."""
    known = {
        i for out in read.omissions(before[-1:]) if out.source is Source.SYSTEM for i in out.ids
    }
    for out in read.omissions([trace]):
        if out.source is not Source.SYSTEM or known.issuperset(out.ids):
            continue
        yield Note(
            f"A system message left the prompt: “{read.short(out.text)}”. Why: {out.reason}.",
            "Pin it: put it in the agent's system prompt, in a static block of priority 0, or use "
            "LayeredMemory, which keeps system messages in front.",
            read.numbers(out),
        )


@_from("run-llama/llama_index issue 21950")
def tool_calls_uncounted(trace: TurnTrace, _: Sequence[TurnTrace]) -> Iterator[Note]:
    """Find a history over its limit because tool calls count as nothing."""
    assembly = trace.assembly
    plan = assembly.window if assembly is not None else None
    if assembly is None or plan is None or plan.rule not in _CLASS_RULES:
        return
    real = sum(part.tokens for part in assembly.parts if part.source is Source.BUFFER)
    calls = sum(
        part.tokens
        for part in assembly.parts
        if part.source is Source.BUFFER and read.message(assembly, part).tool_calls
    )
    if plan.initial + plan.tokens <= plan.limit < plan.initial + real and (
        plan.initial + real - calls <= plan.limit
    ):
        yield Note(
            f"The history is over its limit without the class noticing: it counts {plan.tokens:,} "
            f"tokens, {real:,} are sent, the limit is {plan.limit:,}. Tool calls, {calls:,} "
            "tokens here, count as nothing.",
            "Lower the token limit, or use LayeredMemory, which counts what is sent.",
            {"counted": plan.tokens, "sent": real, "limit": plan.limit},
        )


@_from("langchain-ai/langchain PR 12831")
def seeded_over_limit(trace: TurnTrace, _: Sequence[TurnTrace]) -> Iterator[Note]:
    """Find a history given at once that is over the limit until the next message."""
    assembly = trace.assembly
    plan = assembly.window if assembly is not None else None
    if assembly is None or plan is None or plan.rule != QUEUE_RULE or plan.tokens <= plan.limit:
        return
    turns = {part.turn for part in assembly.parts if part.source is Source.BUFFER and part.turn}
    questions = [m for m in read.kept(assembly) if m.role == "user"]
    if len(questions) > 1 and not any(turn == trace.number for turn in turns):
        yield Note(
            f"The history it started with holds {plan.tokens:,} tokens, {plan.limit:,} are "
            "allowed: the queue is flushed only when the next message comes in.",
            "Put the messages in one by one, or seed less.",
            {"tokens": plan.tokens, "limit": plan.limit},
        )


@_from("run-llama/llama_index issues 15320, 11637")
def prefix_over_limit(trace: TurnTrace, _: Sequence[TurnTrace]) -> Iterator[Note]:
    """Find a system prompt that alone is over the limit."""
    assembly = trace.assembly
    fixed, limit = 0, 0
    for ask in trace.asks:
        known = int(read.knobs(trace).get("token_limit") or 0)
        if ask.error and ask.in_front > known > 0:
            fixed, limit = ask.in_front, known
    if assembly is not None and assembly.allotment is not None and assembly.allotment.memory <= 0:
        fixed, limit = assembly.allotment.fixed, assembly.allotment.limit
    if assembly is not None and assembly.window is not None and assembly.allotment is None:
        plan = assembly.window
        if plan.initial >= plan.limit > 0:
            fixed, limit = plan.initial, plan.limit
    if fixed:
        yield Note(
            f"What stands in front of the history needs {fixed:,} tokens, the limit is {limit:,}: "
            "no room is left for history.",
            f"Shorten the system prompt, or raise the token limit over {fixed:,}.",
            {"fixed": fixed, "limit": limit},
        )


@_from("run-llama/llama_index issue 23090")
def block_over_limit(trace: TurnTrace, _: Sequence[TurnTrace]) -> Iterator[Note]:
    """Find a memory block of priority 0 that alone is over the whole limit."""
    limit = int(read.knobs(trace).get("token_limit") or 0)
    sizes = read.block_tokens(trace.assembly)
    for block in read.blocks(trace):
        tokens = sizes.get(str(block.get("name")), 0)
        if block.get("priority") == 0 and tokens > limit > 0:
            yield Note(
                f"The memory block {block['name']} needs {tokens:,} tokens, the limit for "
                f"everything is {limit:,}; at priority 0 it is never cut.",
                "Shorten it, raise the token limit, or give it a priority above 0.",
                {"tokens": tokens, "limit": limit},
            )


@_from("bytedance/deer-flow PR 4097")
def block_closes_its_tag(trace: TurnTrace, _: Sequence[TurnTrace]) -> Iterator[Note]:
    """Find text in a memory block that closes the section it stands in."""
    assembly = trace.assembly
    names = {str(block.get("name")) for block in read.blocks(trace)}
    told = set()
    for part in assembly.parts if assembly is not None else ():
        if assembly is None or part.note not in names or part.note in told:
            continue
        text = assembly.text_of(part)
        closing = next((t for t in (f"</{part.note}>", "</memory>") if t in text), "")
        if closing:
            told.add(part.note)
            yield Note(
                f"The memory block {part.note} holds {closing}, which closes its own section: "
                "what follows reads as if it were no memory.",
                "Take the tag out of the block, or use LayeredMemory, which fences such text.",
            )


@_from("run-llama/llama_index issue 21103")
def facts_over_maximum(trace: TurnTrace, _: Sequence[TurnTrace]) -> Iterator[Note]:
    """Find a fact block that holds more facts than its maximum."""
    for name, facts in read.facts(trace).items():
        most = next(int(b["max_facts"]) for b in read.blocks(trace) if b.get("name") == name)
        if len(facts) > most:
            yield Note(
                f"The block {name} holds {len(facts)} facts, its maximum is {most}: condensing "
                "them gave no shorter list.",
                "Raise max_facts, or use a model that keeps to the format when it condenses.",
                {"facts": len(facts), "maximum": most},
            )


@_from("run-llama/llama_index issue 21103, PR 22213")
def facts_unreadable(trace: TurnTrace, _: Sequence[TurnTrace]) -> Iterator[Note]:
    """Find facts that could not be read, or not be condensed."""
    if trace.strategy != MEMORY_BLOCKS:
        return
    for call in trace.calls:
        if call.purpose != EXTRACT_FACTS or call.reply is None or call.error:
            continue
        text = call.reply.text
        if read.FACT.search(text) or _NO_FACTS.fullmatch(text):
            continue
        condensing = "condens" in call.assembly.messages[-1].text.casefold()
        what = (
            "Condensing the facts failed and the old ones stay"
            if condensing
            else "No facts could be read"
        )
        yield Note(
            f"{what}: the model's reply has no <fact> tags: “{read.short(text)}”.",
            "Use a model that keeps to the format, or state facts with the remember tool.",
        )


@_from("run-llama/llama_index issue 21103")
def facts_twice(trace: TurnTrace, _: Sequence[TurnTrace]) -> Iterator[Note]:
    """Find facts that differ only in case or end punctuation."""
    for name, facts in read.facts(trace).items():
        spellings = Counter(map(normalise, facts))
        twice = [fact for fact, n in spellings.items() if n > 1]
        if twice:
            yield Note(
                f"The block {name} probably holds the same fact twice: “{read.short(twice[0])}”.",
                "Nothing is lost; the model condenses them when the maximum is reached.",
                {"duplicates": len(twice)},
            )


@_from("run-llama/llama_index issue 22701")
def session_filter_stuck(trace: TurnTrace, _: Sequence[TurnTrace]) -> Iterator[Note]:
    """Find a search that was filtered by another session."""
    recall = trace.assembly.recall if trace.assembly is not None else None
    if recall is None or not read.setup(trace):
        return
    foreign = [hit for hit in recall.hits if hit.session not in ("", trace.session)]
    wrong = "session_id" in recall.scope and f"session_id == {trace.session}" not in recall.scope
    if foreign or wrong:
        yield Note(
            f"The search was filtered by “{recall.scope}”, this is session {trace.session}; "
            f"{len(foreign)} of {len(recall.hits)} hits are another session's.",
            "Give each session a vector block of its own.",
            {"foreign": len(foreign)},
        )


@_from("run-llama/llama_index issue 19050, PR 23180")
def query_without_question(trace: TurnTrace, _: Sequence[TurnTrace]) -> Iterator[Note]:
    """Find a search made without the new question, or none at all."""
    assembly, question = trace.assembly, " ".join(trace.query.split())
    if assembly is None or not question or not read.searches(trace):
        return
    query = " ".join(assembly.recall.query.split()) if assembly.recall is not None else ""
    if question not in query:
        searched = f"searched for “{read.short(query)}”" if query else "searched nothing"
        yield Note(
            f"The memory {searched}; the new question is not in it.",
            "Use ContextChatEngine or CondensePlusContextChatEngine, which pass the question on, "
            "or LayeredMemory, which searches for it by itself.",
        )


@_from("google/adk-go PR 1431")
def summary_lost(trace: TurnTrace, _: Sequence[TurnTrace]) -> Iterator[Note]:
    """Find a rule, name or number that a summary lost and the prompt lacks."""
    summary = trace.summary
    if summary is not None and not read.setup(trace) and trace.assembly is not None:
        stand = {i for p in trace.assembly.parts if p.source is Source.FACTS for i in p.ids}
        lost = [i for i in summary.lost if i not in stand]
        if lost:
            yield Note(
                f"Summary {summary.version} lost {len(lost)} key facts that stand nowhere else.",
                "Raise summary_tokens or the share of state.",
                {"lost": len(lost)},
            )
        return
    for call in trace.calls:
        gone = read.gone(call, trace.assembly) if call.purpose == SUMMARISE else []
        if gone:
            named = ", ".join(f"“{read.short(item, 40)}”" for item in gone[:5])
            yield Note(
                f"The summary lost {len(gone)} of what was said: {named}.",
                "Keep more messages in full, give the summary more tokens, or use LayeredMemory, "
                "which keeps key facts word for word beside its summary.",
                {"lost": len(gone)},
            )


@_from("run-llama/llama_index issue 23090")
def budget_collision(trace: TurnTrace, _: Sequence[TurnTrace]) -> Iterator[Note]:
    """Find a whole block or section left out for lack of room."""
    for out in read.omissions([trace]):
        whole = out.source in _WHOLE or any(i.startswith("block-") for i in out.ids)
        if out.gate is Gate.BUDGET and whole:
            what = ", ".join(out.ids) or out.source.value
            yield Note(
                f"{what} was left out whole: {out.reason}.",
                "Raise the token limit, lower the share of history, or shorten what competes.",
                read.numbers(out),
            )


@_from("run-llama/llama_index issue 23090")
def priority_reversed(trace: TurnTrace, _: Sequence[TurnTrace]) -> Iterator[Note]:
    """Find a block dropped before one that is documented as less important."""
    priorities = {f"block-{b.get('name')}": int(b.get("priority") or 0) for b in read.blocks(trace)}
    kept = {f"block-{name}" for name in read.block_tokens(trace.assembly)}
    for out in read.omissions([trace]):
        dropped = priorities.get(out.ids[0] if out.ids else "", 0)
        lesser = [name for name in kept if priorities.get(name, 0) > dropped > 0]
        if out.gate is Gate.BUDGET and lesser:
            yield Note(
                f"{out.ids[0]} (priority {dropped}) was dropped before {lesser[0]} (priority "
                f"{priorities[lesser[0]]}), although 1 is documented as the highest priority.",
                "Give what matters most the largest number, or priority 0.",
                {"dropped": dropped, "kept": priorities[lesser[0]]},
            )


@_from("langchain-ai/langchain issue 12264")
def one_message_over_limit(trace: TurnTrace, _: Sequence[TurnTrace]) -> Iterator[Note]:
    """Find a newest message or turn that alone is over the limit."""
    assembly = trace.assembly
    plan = assembly.window if assembly is not None else None
    if assembly is None or plan is None or not plan.total or plan.initial > plan.limit:
        return
    if plan.rule == SUMMARY_RULE and plan.start == plan.total:
        yield Note(
            f"Your message is not in the prompt in full: it needs {plan.next_needed:,} tokens, "
            f"{plan.next_left:,} were left, so it went into the summary.",
            f"Raise the token limit over {plan.next_needed:,}.",
            {"tokens": plan.next_needed, "limit": plan.limit},
        )
    elif plan.over_limit and sum(m.role == "user" for m in read.kept(assembly)) <= 1:
        yield Note(
            f"The newest message or turn alone needs {plan.tokens:,} tokens, the limit is "
            f"{plan.limit:,}: it is sent all the same, and nothing else.",
            f"Raise the token limit over {plan.initial + plan.tokens:,}, or say it in parts.",
            {"tokens": plan.tokens, "limit": plan.limit},
        )


@_from("chroma-core/chroma issues 3113, 2250")
def equal_records(trace: TurnTrace, _: Sequence[TurnTrace]) -> Iterator[Note]:
    """Find search results that are the same text again, in the place of others."""
    if not read.setup(trace):
        return
    texts = Counter(hit.text for hit in read.recalled(trace) if hit.text)
    again = sum(n - 1 for n in texts.values())
    if again:
        text, times = texts.most_common(1)[0]
        yield Note(
            f"{again} of {texts.total()} search results repeat another: “{read.short(text)}” came "
            f"{times} times. This class stores equal texts again each time, and they crowd others "
            "out.",
            "Raise top_k, or use LayeredMemory, which stores an equal text once.",
            {"repeated": again, "results": texts.total()},
        )


@_from("run-llama/llama_index issue 12264, PR 12394")
def history_retokenised(trace: TurnTrace, _: Sequence[TurnTrace]) -> Iterator[Note]:
    """Find a history so long that the class counts it over and over for each prompt."""
    plan = trace.assembly.window if trace.assembly is not None else None
    if plan is None or not read.setup(trace) or plan.rule != LLAMA_INDEX or plan.start < MANY:
        return
    seconds = sum(ask.milliseconds for ask in trace.asks) / 1000
    yield Note(
        f"For each of {trace.asked} requests the class dropped {plan.start:,} messages one by one "
        f"and counted the rest anew after each: {seconds:,.1f} seconds in this turn, growing with "
        "the square of the history.",
        "Use LayeredMemory, which gives the same window at once, or begin a new session.",
        {"dropped": plan.start, "seconds": seconds},
    )


@_from("run-llama/llama_index issue 19910")
def score_no_similarity(trace: TurnTrace, _: Sequence[TurnTrace]) -> Iterator[Note]:
    """Find a cutoff that took exp(-distance) for a similarity."""
    recall = trace.assembly.recall if trace.assembly is not None else None
    cutoffs = [float(b["cutoff"]) for b in read.blocks(trace) if b.get("postprocessor") == _CUTOFF]
    if recall is None or not cutoffs:
        return
    cutoff = min(cutoffs)
    hidden = [h for h, out in recall.near if out.gate is Gate.THRESHOLD and h.similarity >= cutoff]
    let_in = [
        hit for hit in recall.hits if read.known(hit) and hit.similarity < cutoff <= hit.score
    ]
    for hit in [*hidden, *let_in][:1]:
        kept = "kept" if hit in let_in else "dropped"
        yield Note(
            f"A record was {kept} at the cutoff {cutoff:.2f} for its score {hit.score:.2f}, but "
            f"that is exp(-distance); its cosine similarity is {hit.similarity:.2f}. "
            f"{len(hidden) + len(let_in)} records in this turn.",
            "Set the cutoff to what Chroma's class really returns, or use LayeredMemory, whose "
            "threshold is compared with a similarity.",
            {"score": hit.score, "similarity": hit.similarity, "cutoff": cutoff},
        )


@_from("doobidoo/mcp-memory-service issue 487")
def near_miss(trace: TurnTrace, _: Sequence[TurnTrace]) -> Iterator[Note]:
    """Find a best memory just under the threshold when nothing was recalled."""
    recall = trace.assembly.recall if trace.assembly is not None else None
    if recall is None or recall.hits:
        return
    missed = [(hit, out) for hit, out in recall.near if out.gate is Gate.THRESHOLD]
    for hit, out in missed[:1]:
        if out.needed is not None and out.available is not None:
            short = out.available - out.needed
            if 0 <= short <= NEAR:
                yield Note(
                    f"Nothing was recalled, and the best memory missed by {short:.3f}: score "
                    f"{out.needed:.2f}, threshold {out.available:.2f}: “{read.short(hit.text)}”.",
                    f"Lower the threshold to {out.needed:.2f}.",
                    {"score": out.needed, "threshold": out.available},
                )


@_from("NousResearch/hermes-agent issue 22563")
def never_used(trace: TurnTrace, before: Sequence[TurnTrace]) -> Iterator[Note]:
    """Find a memory retrieved five turns in a row that supported no answer."""
    turns = [*before[-(TURNS - 1) :], trace]
    if len(turns) < TURNS:
        return
    hits = {hit.id: hit for hit in read.recalled(trace)}
    for hit in hits.values():
        if all(any(h.id == hit.id for h in read.recalled(turn)) for turn in turns) and not any(
            read.supports(hit, turn) for turn in turns
        ):
            yield Note(
                f"The memory “{read.short(hit.text)}” was retrieved in each of the last {TURNS} "
                f"turns ({hit.tokens:,} tokens) and no answer used a word of it.",
                "Raise the threshold, lower top_k, or forget it.",
                {"tokens": hit.tokens, "turns": TURNS},
            )


@_from("Tracer-Cloud/opensre issue 4085")
def cap_every_turn(trace: TurnTrace, before: Sequence[TurnTrace]) -> Iterator[Note]:
    """Find a limit that left at most one earlier turn, five turns in a row."""
    turns = [*before[-(TURNS - 1) :], trace]
    if len(turns) < TURNS or not all(read.at_the_cap(turn) for turn in turns):
        return
    plan = trace.assembly.window if trace.assembly is not None else None
    limit = plan.limit if plan is not None else 0
    yield Note(
        f"The limit of {limit:,} tokens cut the history in each of the last {TURNS} turns: no "
        "prompt held more than one earlier turn.",
        "Raise the token limit, or use a strategy with a summary or long-term memory.",
        {"limit": limit, "turns": TURNS},
    )


@_from("run-llama/llama_index PR 22867, issue 22401")
def block_waiting(trace: TurnTrace, _: Sequence[TurnTrace]) -> Iterator[Note]:
    """Find a memory block that failed: what it should have taken waits."""
    for write in trace.memories:
        if write.action == WAITING:
            yield Note(
                f"The memory block {write.id} failed to take {len(write.message_ids)} archived "
                f"messages: {write.reason}. They wait.",
                "Nothing is lost: they are given to the block again before the next turn.",
                {"messages": len(write.message_ids)},
            )


@_from("run-llama/llama_index issue 20872")
def memory_not_sent(trace: TurnTrace, _: Sequence[TurnTrace]) -> Iterator[Note]:
    """Find a system message of the memory that an agent replaced by its own."""
    gone = [out for out in read.omissions([trace]) if out.reason == REPLACED]
    if gone:
        tokens = sum(out.tokens for out in gone)
        yield Note(
            f"What the memory put in a system message ({tokens:,} tokens) did not reach the "
            "model: ReActAgent put its own in that place.",
            "Give the agent a system prompt of its own, or insert blocks in the user message.",
            {"tokens": tokens},
        )


@_from("run-llama/llama_index issues 13715, 10493")
def orphan_tool_result(trace: TurnTrace, _: Sequence[TurnTrace]) -> Iterator[Note]:
    """Find a tool result without its call."""
    assembly = trace.assembly
    asked: set[str] = set()
    lone = 0
    for message in assembly.messages if assembly is not None else ():
        asked.update(call.id for call in message.tool_calls)
        known = message.tool_call_id in asked if message.tool_call_id else bool(asked)
        lone += message.role == "tool" and not known
    if lone:
        yield Note(
            f"{lone} tool results stand in the prompt without the call they answer; providers "
            "refuse such a prompt.",
            "Raise the token limit, or use LayeredMemory, which keeps call and result together.",
            {"results": lone},
        )
