"""What a prompt holds and where it stood: messages become passages with a place.

The reader knows the sections of our own system message (state, key facts, summary, memories), the
tags of LlamaIndex's ``Memory`` blocks, the dialogues of ``SimpleComposableMemory`` and the
documents of its chat engines. Everything else in a system message is the system prompt. Text of
the conversation stands in messages of its own; what the reader itself said earlier counts as the
quotes it holds, or not at all.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from memory_core.messages import Json, Message

ROLES = ("user", "assistant", "tool", "system")


class Kind(StrEnum):
    """What sort of place a passage stood in."""

    CONVERSATION = "conversation"
    MEMORY = "memory"
    FACTS = "key facts"
    STATE = "state"
    SUMMARY = "summary"
    BLOCK = "memory block"
    DOCUMENTS = "documents"
    TOOL = "tool result"
    SYSTEM = "system prompt"


@dataclass(frozen=True)
class Passage:
    """A piece of the prompt. ``place`` names where it stood; a greater ``order`` is newer.

    ``said_by`` is a role, or empty where nobody in particular speaks. ``quoted`` marks what the
    reader quoted in an earlier reply.
    """

    text: str
    kind: Kind
    place: str
    said_by: str = ""
    order: int = 0
    quoted: bool = False


@dataclass(frozen=True)
class Prompt:
    """A prompt, taken apart: what is asked now, and everything that may hold the answer."""

    query: str
    passages: tuple[Passage, ...]


_OPEN_TAG = re.compile(
    r"^[ \t]*<(?P<tag>[\w-]+)(?P<about>(?: [\w-]+=(?:\"[^\"\n]*\"|'[^'\n]*'))*)>", re.MULTILINE
)
_CLOSE_TAG = re.compile(r"</(?P<tag>[\w-]+)>")
_HEADING = re.compile(r"^\[(?:turn (?P<turn>\d+), )?score -?[\d.]+\][ \n]", re.MULTILINE)
_COVERS = re.compile(r'covers="(?P<turns>[^"]+)"')
_ROLE_LINE = re.compile(
    r"^[ \t]*(?P<role>user|assistant|tool|system): ", re.MULTILINE | re.IGNORECASE
)
_ROLE_TAG = re.compile(r"<message role='(?P<role>\w+)'>")
_DIALOGUES = re.compile(
    r"Below are a set of relevant dialogues.*?:\n(?P<body>.*?)This is the end of the retrieved",
    re.DOTALL,
)
_DOCUMENTS = (
    re.compile(r"\n-{10,}\n(?P<body>.*?)\n-{10,}\n", re.DOTALL),
    re.compile(
        r"relevant documents for the context:\s*\n(?P<body>.*?)\n[ \t]*Instruction:", re.DOTALL
    ),
)
_QUERY = re.compile(r"\nQuery: (?P<query>.*?)\nAnswer:\s*$", re.DOTALL)
_EXTRA_INFO = re.compile(r"^Additional Info: \(.*\)$", re.MULTILINE)
_NEWEST = 1_000_000

# What the reader's own replies look like, see reader.py and respond.py.
OPEN_QUOTE, CLOSE_QUOTE = "“", "”"
NOTHING = "I find nothing about"
NOTED = "Noted:"
_OWN = re.compile(
    r"(?:You said|I said|I quoted"
    r"|The (?:memory|summary|key facts|state|system prompt|documents|tool)\b)[^“”\n]*: “"
)
_QUOTE = re.compile(r"“(.+?)”", re.DOTALL)


def read_prompt(messages: Sequence[Message]) -> Prompt:
    """Take a prompt apart. The query is the newest user message, without what was put into it."""
    asked = last_user(messages)
    passages: list[Passage] = []
    query = ""
    for index, message in enumerate(messages):
        order = _NEWEST + index
        if message.role in ("system", "developer"):
            rest = _sections(message.text, passages)
            passages.append(Passage(rest, Kind.SYSTEM, "system prompt", order=-1))
        elif index == asked:
            query = _sections(message.text, passages, only="memory")
            found = _QUERY.search("\n" + query)
            query = found["query"].strip() if found else query.strip()
        elif message.role in ("tool", "function"):
            name = tool_name(messages, message)
            passages.append(Passage(message.text, Kind.TOOL, name, "tool", order))
        elif message.role == "user":
            passages.append(Passage(message.text, Kind.CONVERSATION, "", "user", order))
        else:
            passages.extend(_of_assistant(message.text, Kind.CONVERSATION, "", order))
    return Prompt(query, tuple(p for p in passages if p.text.strip()))


def last_user(messages: Sequence[Message]) -> int:
    """Return the index of the newest message of the user, -1 without one.

    An observation of LlamaIndex's ``ReActAgent`` has the user's role and is not one.
    """
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if message.role == "user" and not message.text.startswith("Observation:"):
            return index
    return -1


def transcript(text: str) -> list[tuple[str, str]]:
    """Return the (role, text) pairs of a transcript with a role at the start of each message."""
    starts = list(_ROLE_LINE.finditer(text))
    ends = [*(m.start() for m in starts[1:]), len(text)]
    # subtle: without any role there is an end too many
    pairs = zip(starts, ends, strict=False)
    return [(m["role"].lower(), text[m.end() : end].strip()) for m, end in pairs]


def tool_name(messages: Sequence[Message], result: Message) -> str:
    """Return the name of the tool that a result came from, or ``tool``."""
    for message in messages:
        for call in message.tool_calls:
            if call.id and call.id == result.tool_call_id:
                return call.name
    return result.name or "tool"


def without_reasoning(text: str) -> str:
    """Return a reply without the thoughts that ``ReActAgent`` keeps in it."""
    if not text.lstrip().startswith("Thought:"):
        return text
    _, found, answer = text.partition("\nAnswer:")
    return answer.strip() if found else ""


def _of_assistant(text: str, kind: Kind, place: str, order: int) -> Iterator[Passage]:
    text = without_reasoning(text)
    if text.startswith((NOTHING, NOTED)):
        return
    if _OWN.match(text):
        for quote in _QUOTE.findall(text):
            yield Passage(quote, kind, place, "assistant", order, quoted=True)
        return
    yield Passage(text, kind, place, "assistant", order)


def cut_sections(text: str, only: str = "") -> tuple[str, list[tuple[str, str, str]]]:
    """Return a text without its tagged sections, and their (tag, attributes, body)."""
    rest: list[str] = []
    found: list[tuple[str, str, str]] = []
    last_close = {m["tag"]: m.start() for m in _CLOSE_TAG.finditer(text)}
    done = 0
    for opening in _OPEN_TAG.finditer(text):
        tag = opening["tag"]
        closed = last_close.get(tag, -1) >= opening.end()
        if opening.start() < done or not closed or (only and tag != only):
            continue
        end = text.find(f"</{tag}>", opening.end())
        rest.append(text[done : opening.start()])
        found.append((tag, opening["about"], text[opening.end() : end]))
        done = end + len(tag) + 3
    return "".join((*rest, text[done:])), found


def _sections(text: str, passages: list[Passage], only: str = "") -> str:
    """Move the sections of a text into ``passages``; return what is left."""

    def take_dialogues(found: re.Match[str]) -> str:
        passages.extend(_dialogue(found["body"], Kind.BLOCK, "memory sources", 0))
        return "\n"

    rest, sections = cut_sections(text, only)
    for tag, about, body in sections:
        passages.extend(_in_section(tag, about, body))
    return _documents(_DIALOGUES.sub(take_dialogues, rest), passages)


def _documents(text: str, passages: list[Passage]) -> str:
    def take(found: re.Match[str]) -> str:
        passages.append(Passage(found["body"].strip(), Kind.DOCUMENTS, "documents"))
        return "\n"

    for pattern in _DOCUMENTS:
        text = pattern.sub(take, text)
    return text


def _in_section(tag: str, about: str, body: str) -> Iterator[Passage]:
    if tag == "state":
        yield from _state(body)
    elif tag == "key-facts":
        for line in body.splitlines():
            yield Passage(line.strip().removeprefix("- "), Kind.FACTS, "key facts", "user")
    elif tag == "summary":
        covers = _COVERS.search(about)
        turns = f" of {covers['turns']}" if covers else ""
        yield Passage(body, Kind.SUMMARY, f"summary{turns}")
    elif tag == "memories":
        yield from _memories(body)
    elif tag == "memory":
        _, inner = cut_sections(body)
        for name, _, block in inner:
            yield from _block(name, block)
        if not inner:
            yield Passage(body, Kind.BLOCK, "memory")
    else:
        yield Passage(body, Kind.BLOCK, tag)


def _memories(body: str) -> Iterator[Passage]:
    headings = list(_HEADING.finditer(body))
    ends = [*(m.start() for m in headings[1:]), len(body)]
    for heading, end in zip(headings, ends, strict=False):
        turn = heading["turn"]
        place = f"turn {turn}" if turn else "long-term memory"
        yield from _dialogue(body[heading.end() : end], Kind.MEMORY, place, int(turn or 0))


def _dialogue(body: str, kind: Kind, place: str, order: int) -> Iterator[Passage]:
    said = transcript(body)
    if not said:
        yield Passage(body.strip(), kind, place, order=order)
    for role, text in said:
        if role == "assistant":
            yield from _of_assistant(text, kind, place, order)
        else:
            yield Passage(text, kind, place, role, order)


def _block(name: str, body: str) -> Iterator[Passage]:
    body = _EXTRA_INFO.sub("", body)
    pieces = body.split("</message>")[:-1]
    tagged = [(m, piece) for piece in pieces if (m := _ROLE_TAG.search(piece))]
    for index, (opening, piece) in enumerate(tagged):
        yield Passage(piece[opening.end() :], Kind.BLOCK, name, opening["role"], index)
    facts = re.findall(r"<fact>(.*?)</fact>", body, re.DOTALL)
    for index, fact in enumerate(facts):
        yield Passage(fact, Kind.BLOCK, name, "user", index)
    if not tagged and not facts:
        yield from _dialogue(body, Kind.BLOCK, name, 0)


def _state(body: str) -> Iterator[Passage]:
    try:
        value = json.loads(body)
    except ValueError:
        yield Passage(body, Kind.STATE, "state")
        return
    for path, leaf in _leaves(value, ""):
        yield Passage(f"{path}: {leaf}", Kind.STATE, "state", "user", _NEWEST - 1)


def _leaves(value: Json, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _leaves(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        yield path, ", ".join(str(item) for item in value)
    elif value is not None:
        yield path, str(value)
