"""Tools that the user asks for in plain words, and the arguments to call them with.

A request is recognised by its form, sentence by sentence; a tool is called only when it is
offered. Arguments go under the names that the tool's own JSON schema has: the wanted name where
it exists, otherwise the first text parameter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from memory_core.messages import Json
from memory_core.models.offline import text as words_of
from memory_core.models.offline.notice import asks


@dataclass(frozen=True)
class Tool:
    """A tool on offer: its name and the names and types of its parameters, in order."""

    name: str
    parameters: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, name: str, schema: Mapping[str, Json]) -> Tool:
        """Return the tool that a JSON schema of its parameters describes."""
        properties = schema.get("properties")
        known = properties if isinstance(properties, Mapping) else {}
        return cls(str(name), {str(k): _type_of(v) for k, v in known.items()})


@dataclass(frozen=True)
class Request:
    """One tool to call, and the sentence that asked for it."""

    tool: str
    arguments: Mapping[str, Json]
    sentence: str


_POLITE = r"^(?:(?:please|and|now|then|ok|okay|hey|so|also|can you|could you|will you|would you|i want you to)[,!]? )*"
_WEATHER = re.compile(
    r"\b(?:weather|forecast|temperature|raining|snowing|how (?:warm|cold|hot) is it)\b",
    re.IGNORECASE,
)
_WEATHER_ORDER = re.compile(
    _POLITE + r"(?:get|check|show|look up|weather|forecast|tell)\b", re.IGNORECASE
)
_PLACE = re.compile(r"\b(?:in|for|at|near)\s+(?P<city>[^\W\d_][\w'’. -]*)", re.IGNORECASE)
_AFTER_PLACE = re.compile(
    r"\s+(?:today|tomorrow|tonight|now|right now|like|please|this \w+|next \w+|on \w+|at the \w+|over \w+)\b.*$",
    re.IGNORECASE,
)
_NO_PLACE = re.compile(r"^(?:the|a|this|next|my|our|me|us|today|tomorrow)\b", re.IGNORECASE)

_SET = r"\b(?:set|change|update|move|switch|advance|put)\b"
_STEP = (
    re.compile(_SET + r"[^.?!]*?\bstep\b[^.?!]*?\bto\b (?P<step>.+)", re.IGNORECASE),
    re.compile(r"\b(?:next step is|move on to step|go to step|we(?: are|'re) (?:now )?at step):? (?P<step>.+)", re.IGNORECASE),
)  # fmt: skip
_WORKFLOW = (
    re.compile(r"\b(?:start|begin|open|switch to) (?:the |a |an |my |our )?(?P<workflow>[\w -]{1,60}?) workflow\b", re.IGNORECASE),
    re.compile(r"\b(?:start|begin|set|change|switch)\b[^.?!]*?\bworkflow (?:to |called |named )?(?P<workflow>(?!step\b|state\b|slot\b).+)", re.IGNORECASE),
)  # fmt: skip
_SLOT = (
    re.compile(_SET + r" (?:the )?slot (?P<slot>[\w -]{1,60}?) to (?P<value>.+)", re.IGNORECASE),
    re.compile(_SET + r" (?:the )?(?P<slot>[\w -]{1,60}?) slot to (?P<value>.+)", re.IGNORECASE),
)
_SHOW_WORKFLOW = re.compile(
    r"\b(?:(?:what|which|show|where|get)\b[^.?!]*\b(?:workflow|step are we|current step)|workflow (?:state|status))\b",
    re.IGNORECASE,
)
_PREFERENCE = (
    re.compile(_SET + r" (?:my )?preference (?:for )?(?P<name>[\w -]{1,60}?) to (?P<value>.+)", re.IGNORECASE),
    re.compile(_SET + r" (?:my )?preferred (?P<name>[\w -]{1,60}?) to (?P<value>.+)", re.IGNORECASE),
    re.compile(_SET + r" my (?P<name>[\w -]{1,60}?) preference to (?P<value>.+)", re.IGNORECASE),
)  # fmt: skip
_FROM_NOW_ON = re.compile(r",?\s*\b(?:from now on|in future)\b,?\s*", re.IGNORECASE)
_MANNER = re.compile(
    _POLITE + r"(?P<verb>answer|reply|respond|write|give|use|call|speak|talk|keep|be|address|show|don't|always|never|stop)\b",
    re.IGNORECASE,
)  # fmt: skip
_LEAD_IN = re.compile(r"^(?:(?:please|and|you know what)[,:]? )+", re.IGNORECASE)
_REMEMBER = (
    re.compile(_POLITE + r"(?:remember|don't forget|do not forget|keep in mind|memori[sz]e)(?: this| down| it)?(?: for me)?(?: that|:|,)? (?P<text>.+)", re.IGNORECASE | re.DOTALL),
    re.compile(_POLITE + r"(?:note|make a note|take a note)(?: down)?(?: that|:) (?P<text>.+)", re.IGNORECASE | re.DOTALL),
    re.compile(r"\b(?:one|something) to remember\b[^:]*: (?P<text>.+)", re.IGNORECASE | re.DOTALL),
)  # fmt: skip
_NOT_TO_REMEMBER = re.compile(
    r"^(?:when|what|how|who|where|the time|last time|to\b)", re.IGNORECASE
)
_FORGET = (
    re.compile(_POLITE + r"forget (?:all |everything )?(?:you know )?(?:about |that |what (?:i|you) \w+ (?:you )?about )?(?P<query>.+)", re.IGNORECASE),
    re.compile(_POLITE + r"(?:delete|erase|remove) (?:the |my |all |any )?(?:memory|memories|fact|facts) (?:of|about|that) (?P<query>.+)", re.IGNORECASE),
    re.compile(_POLITE + r"(?:delete|erase|remove) (?P<query>.+?) from (?:your |the )?(?:long-term )?memory", re.IGNORECASE),
)  # fmt: skip
_NEVER_MIND = frozenset({"it", "that", "this", "me", "about it", "about that"})
_RECALL = (
    re.compile(_POLITE + r"recall (?:what i said about |everything about )?(?P<query>.+)", re.IGNORECASE),
    re.compile(r"\b(?:search|look (?:through|in|into)|check) (?:your |the )?(?:long-term )?memor(?:y|ies) (?:for|about) (?P<query>.+)", re.IGNORECASE),
    re.compile(r"\bwhat do you (?:remember|know) about (?P<query>.+)", re.IGNORECASE),
)  # fmt: skip
_QUOTED = re.compile(r"^[\"“'‘](?P<inner>[^\"”]+?)[\"”'’]")


def wanted(text: str, tools: Sequence[Tool]) -> list[Request]:
    """Return the calls that a user's message asks for, of the tools on offer, in its order."""
    offered = {tool.name: tool for tool in tools}
    found: list[Request] = []
    for sentence in _parts(text):
        for name, read in _READERS:
            if name not in offered:
                continue
            arguments = read(sentence)
            if arguments is not None:
                found.append(Request(name, _fit(arguments, offered[name]), sentence))
                break
    return found


def forced(text: str, tool: Tool) -> Request:
    """Return a call of one tool, whatever the text says: its text parameters get the text."""
    for name, read in _READERS:
        arguments = read(text) if name == tool.name else None
        if arguments is not None:
            return Request(tool.name, _fit(arguments, tool), text)
    return Request(tool.name, {k: text for k, v in tool.parameters.items() if v == "string"}, text)


def _parts(text: str) -> list[str]:
    """Return the sentences of a text; what follows "remember this:" stays with it."""
    return [" ".join(s.split()) for s in words_of.sentences(text)]


def _weather(sentence: str) -> dict[str, Json] | None:
    if not _WEATHER.search(sentence):
        return None
    if not asks(sentence) and not _WEATHER_ORDER.search(sentence):
        return None
    for place in reversed(list(_PLACE.finditer(sentence))):
        city = _AFTER_PLACE.sub("", place["city"]).strip(" .?!'")
        if city and not _NO_PLACE.match(city):
            return {"city": city}
    return None


def _update_workflow(sentence: str) -> dict[str, Json] | None:
    arguments: dict[str, Json] = {}
    for pattern in _SLOT:
        if slot := pattern.search(sentence):
            return {"slots": {slot["slot"].strip(): _value(slot["value"])}}
    for pattern in _STEP:
        if step := pattern.search(sentence):
            arguments["step"] = _value(step["step"])
            break
    for pattern in _WORKFLOW:
        workflow = pattern.search(sentence)
        if workflow and not asks(sentence):
            name = _value(workflow["workflow"])
            if name.casefold() not in ("the", "a", ""):
                arguments["workflow"] = name
                break
    return arguments or None


def _show_workflow(sentence: str) -> dict[str, Json] | None:
    return {} if _SHOW_WORKFLOW.search(sentence) else None


def _preference(sentence: str) -> dict[str, Json] | None:
    for pattern in _PREFERENCE:
        if found := pattern.search(sentence):
            return {"name": found["name"].strip(), "value": _value(found["value"])}
    if not _FROM_NOW_ON.search(sentence):
        return None
    rest = _LEAD_IN.sub("", _FROM_NOW_ON.sub(" ", sentence).strip())
    manner = _MANNER.match(rest)
    if manner is None:
        return None
    if called := re.match(r"call me (?P<name>[^,.;]+)", rest, re.IGNORECASE):
        return {"name": "name", "value": called["name"].strip()}
    return {"name": "answers", "value": _value(rest)}


def _remember(sentence: str) -> dict[str, Json] | None:
    for pattern in _REMEMBER:
        found = pattern.search(sentence)
        if found and not _NOT_TO_REMEMBER.match(found["text"]) and not sentence.endswith("?"):
            return {"text": found["text"].strip()}
    return None


def _forget(sentence: str) -> dict[str, Json] | None:
    for pattern in _FORGET:
        if found := pattern.search(sentence):
            query = _value(found["query"])
            if query.casefold() not in _NEVER_MIND:
                return {"query": query}
    return None


def _recall(sentence: str) -> dict[str, Json] | None:
    for pattern in _RECALL:
        if found := pattern.search(sentence):
            return {"query": _value(found["query"])}
    return None


_READERS: Sequence[tuple[str, Callable[[str], dict[str, Json] | None]]] = (
    ("get_weather", _weather),
    ("forget", _forget),
    ("remember", _remember),
    ("recall", _recall),
    ("set_preference", _preference),
    ("update_workflow_state", _update_workflow),
    ("get_workflow_state", _show_workflow),
)


def _value(text: str) -> str:
    quoted = _QUOTED.match(text.strip())
    if quoted:
        return quoted["inner"].strip()
    return re.sub(r",? please\b.*$", "", text.strip(), flags=re.IGNORECASE).strip(" .!?\"'”’")


def _fit(arguments: Mapping[str, Json], tool: Tool) -> dict[str, Json]:
    """Return arguments under the names that the tool has."""
    fitted: dict[str, Json] = {}
    for name, value in arguments.items():
        kind = "object" if isinstance(value, Mapping) else "string"
        fits = [p for p, t in tool.parameters.items() if t in (kind, "any") and p not in fitted]
        if name in tool.parameters:
            fitted[name] = value
        elif fits:
            fitted[fits[0]] = value
    return fitted


def _type_of(schema: Json) -> str:
    """Return the type a parameter takes; of ``anyOf`` the first that is not null."""
    if not isinstance(schema, Mapping):
        return "any"
    options = schema.get("anyOf")
    if isinstance(options, list):
        types = [_type_of(o) for o in options]
        return next((t for t in types if t != "null"), "any")
    return str(schema.get("type") or "any")
