"""What the offline reader does with a prompt: a task, a tool call, an answer, a receipt.

The newest user message decides. Tools it asks for are called first; their results are told;
facts it states are acknowledged; what it asks is answered from the rest of the prompt.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from memory_core.messages import Message
from memory_core.models.offline import digest, notice, react
from memory_core.models.offline import text as words_of
from memory_core.models.offline.passages import (
    CLOSE_QUOTE,
    NOTED,
    OPEN_QUOTE,
    Passage,
    last_user,
    read_prompt,
    tool_name,
)
from memory_core.models.offline.reader import ENOUGH, answer
from memory_core.models.offline.requests import Request, Tool, forced, missing, parts, wanted
from memory_core.models.offline.scoring import Support
from memory_core.models.offline.tasks import (
    CondenseTask,
    FactsTask,
    Form,
    QuestionsTask,
    StandaloneTask,
    SummaryTask,
    Task,
    task_of,
)
from memory_core.models.offline.text import one_of
from memory_core.questions import propose_questions
from memory_core.tokens import TokenCounter

ABOUT_ME = (
    "I am the offline reader, not a language model: I answer by quoting what I was given and "
    "saying where it stood, note facts, and call tools when you ask for them."
)
CANNOT_WRITE = (
    "I am the offline reader: I quote what I was given, I do not write or work things out. "
    "Choose a language model in the settings for that."
)
_ABOUT_ME = one_of(
    "(?:who|what) are you | what can you do | are you (?:an? )?(?:ai|human|bot|real)"
)
_TO_WRITE = one_of(
    """
    write | draft | create | make | generate | explain | translate | suggest | propose | recommend
    calculate | compare | ideas? | rewrite | summari[sz]e | plan | help me | advice
    should (?:i|we) | fix | implement | sketch | list
    """
)
_POINTS_BACK = one_of(
    """
    it | its | that | this | they | them | their | there | he | she | him | her | those | these
    one
    """
)
_ENOUGH_NOT_TO_DECLINE = 0.7  # the support under which a request to write something is declined
_TOLD = 600  # characters of a tool result that are repeated
_NOTED_FACTS = 2


@dataclass(frozen=True)
class Reply:
    """What the reader replies: a text, or tools to call, and what the text rests on."""

    text: str
    calls: tuple[Request, ...] = ()
    sources: tuple[Support, ...] = ()


def respond(
    messages: Sequence[Message],
    *,
    tools: Sequence[Tool] = (),
    must_call: str = "",
    counter: TokenCounter,
) -> Reply:
    """Return the reply to a prompt. ``must_call`` names a tool that has to be called."""
    unpacked = react.unpack(messages)
    if unpacked is not None:
        reply = _chat(unpacked[0], unpacked[1], "")
        return Reply(react.thought(reply.text, reply.calls), (), reply.sources)
    task = task_of(messages)
    if task is not None:
        return Reply(_do(task, counter))
    return _chat(messages, tools, must_call)


def _do(task: Task, counter: TokenCounter) -> str:
    match task:
        case SummaryTask(previous, facts, said, max_tokens):
            return digest.summary(previous, said, facts, max_tokens=max_tokens, counter=counter)
        case FactsTask(texts, known, most, form):
            found = notice.facts(texts, at_least=notice.KEY, most=most, known=known)
            if form is Form.TAGS:
                return _tagged(found)
            return "\n".join(f"- {fact}" for fact in found) or "none"
        case CondenseTask(facts, most):
            return _tagged(digest.merge(facts, most))
        case StandaloneTask(question, said):
            return _standalone(question, [text for role, text in said if role == "user"])
        case QuestionsTask(numbered, most):
            return _questions(numbered, most)


def _chat(messages: Sequence[Message], tools: Sequence[Tool], must_call: str) -> Reply:
    prompt = read_prompt(messages)
    since = messages[last_user(messages) + 1 :]
    called = [call.name for m in since for call in m.tool_calls]
    requests = wanted(prompt.query, tools)
    if must_call and not requests and not called:
        requests = [forced(prompt.query, t) for t in tools if t.name == must_call]
    calls = _not_yet(requests, called)
    if calls:
        return Reply("", tuple(calls))
    asked_back = missing(prompt.query, tools)
    if asked_back and not requests:
        return Reply(asked_back)
    results = [m for m in since if m.role in ("tool", "function")]
    if not results:
        return _reply_to(prompt.query, prompt.passages)
    told = "\n".join(_told(tool_name(messages, m), m.text) for m in results)
    done = {request.sentence for request in requests}
    rest = " ".join(part for part in parts(prompt.query) if part not in done)
    if not rest:
        return Reply(told)
    texts = {m.text for m in results}
    said = _reply_to(rest, [p for p in prompt.passages if p.text not in texts])
    return Reply(f"{told}\n{said.text}", (), said.sources)


def _told(tool: str, result: str) -> str:
    return f"The tool {tool} said: {OPEN_QUOTE}{words_of.clip(result, most=_TOLD)}{CLOSE_QUOTE}"


def _not_yet(requests: Sequence[Request], called: Sequence[str]) -> list[Request]:
    """Return the requests whose tool was not called since the user asked."""
    left = list(called)
    out = []
    for request in requests:
        if request.tool in left:
            left.remove(request.tool)
        else:
            out.append(request)
    return out


def _reply_to(text: str, passages: Sequence[Passage]) -> Reply:
    if not text.strip():
        return Reply("Your message is empty; there is nothing to answer.")
    if _ABOUT_ME.search(text):
        return Reply(ABOUT_ME)
    asked = notice.questions(text)
    found = notice.facts([text], at_least=notice.NOTABLE, most=_NOTED_FACTS)
    noted = f"{NOTED} {' '.join(f'{OPEN_QUOTE}{f}{CLOSE_QUOTE}' for f in found)}" if found else ""
    if not asked:
        return Reply(noted or _receipt(text))
    to_write = bool(_TO_WRITE.search(asked[-1]))
    enough = _ENOUGH_NOT_TO_DECLINE if to_write else ENOUGH
    replied = [answer(question, passages, enough=enough) for question in asked[-2:]]
    texts = dict.fromkeys(a.text for a in replied)
    sources = tuple(s for a in replied for s in a.sources)
    if not sources and to_write:
        texts = dict.fromkeys((CANNOT_WRITE,))
    return Reply(" ".join(filter(None, (noted, *texts))), (), sources)


def _receipt(text: str) -> str:
    talk = notice.small_talk(text)
    if talk:
        return talk
    if _TO_WRITE.search(text):
        return CANNOT_WRITE
    return "I read that, and noticed no fact to keep in it."


def _standalone(question: str, said: Sequence[str]) -> str:
    """Return a question with the topic of what was said before, where it points back to it."""
    known = words_of.stems(question)
    if not said or (len(known) > 1 and not _POINTS_BACK.search(question)):
        return question
    topic = [w for w in re.findall(r"[\w'\u2019-]+", said[-1]) if words_of.stems(w) - known]
    topic = [w for w in dict.fromkeys(topic) if w.casefold() not in words_of.STOP_WORDS]
    return f"{question} ({', '.join(topic[:8])})" if topic else question


def _questions(said: Sequence[tuple[int, str, str]], most: int) -> str:
    """Return questions by rule, a JSON object a line; who is no role is a person's name."""
    roles = ("user", "assistant", "system", "tool", "function")
    messages = [
        Message.of(who, text) if who in roles else Message.of("user", text, name=who)
        for _, who, text in said
    ]
    found = propose_questions(messages)[:most]
    lines = [
        {"question": q.question, "answer": q.answer, "messages": [said[i][0] for i in q.evidence]}
        for q in found
    ]
    return "\n".join(json.dumps(line, ensure_ascii=False) for line in lines) or "none"


def _tagged(facts: Sequence[str]) -> str:
    plain = (re.sub(r"</?facts?>", "", fact) for fact in facts)
    lines = "".join(f"\n  <fact>{fact}</fact>" for fact in plain)
    return f"<facts>{lines}\n</facts>" if lines else "<facts></facts>"
