"""Tools that the user asks for in plain words, and the arguments to call them with.

A request is recognised by its form, sentence by sentence; a tool is called only when it is
offered. Arguments go under the names that the tool's own JSON schema has: the wanted name where
it exists, otherwise the first text parameter.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from memory_core.messages import Json
from memory_core.models.offline import text as words_of
from memory_core.models.offline.notice import asks
from memory_core.models.offline.text import one_of


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


def _forms(*patterns: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(pattern, re.IGNORECASE | re.DOTALL) for pattern in patterns)


_LONGEST = 400  # characters of a sentence that are looked through, but for what to remember
_POLITE = (
    r"^(?:(?:please|and|now|then|ok|okay|hey|so|also|can you|could you|will you|would you|"
    r"i want you to)[,!]? )*"
)
_SET = r"\b(?:set|change|update|move|switch|advance|put)\b"
_NAME = r"[\w -]{1,60}?"

_WEATHER = one_of(
    "weather | forecast | temperature | raining | snowing | how (?:warm|cold|hot) is it"
)
_WEATHER_ORDER = _forms(_POLITE + r"(?:get|check|show|look up|weather|forecast|tell)\b")
_PLACE = re.compile(r"\b(?:in|for|at|near)\s+(?P<city>[^\W\d_][\w'\u2019. -]*)", re.IGNORECASE)
_AFTER_PLACE = re.compile(
    r",? (?:and|or) (?:what|who|when|how|where|why|is|do|does|did|can|tell)\b.*$"
    r"|\s+(?:today|tomorrow|tonight|now|right now|like|please|this \w+|next \w+|on \w+|at the \w+|"
    r"over \w+)\b.*$",
    re.IGNORECASE,
)
_NO_PLACE = re.compile(r"^(?:the|a|this|next|my|our|me|us|today|tomorrow)\b", re.IGNORECASE)

_STEP = _forms(
    _SET + r"[^.?!]*?\bstep\b[^.?!]*?\bto\b (?P<step>.+)",
    r"\b(?:next step is|move on to step|go to step|we(?: are|'re) (?:now )?at step):? (?P<step>.+)",
)
_WORKFLOW = _forms(
    rf"\b(?:start|begin|open|switch to) (?:(?:the|a|an|my|our) )?"
    rf"(?P<workflow>(?!(?:the|a|an|my|our) workflow){_NAME}) workflow\b",
    r"\b(?:start|begin|set|change|switch)\b[^.?!]*?\bworkflow (?:to |called |named )?"
    r"(?P<workflow>(?!step\b|state\b|slot\b).+)",
)
_SLOT = _forms(
    rf"{_SET} (?:the )?slot (?P<slot>{_NAME}) to (?P<value>.+)",
    rf"{_SET} (?:the )?(?P<slot>{_NAME}) slot to (?P<value>.+)",
)
_SHOW_WORKFLOW = one_of(
    r"""
    (?:what|which|show|where|get)\b[^.?!]*\b(?:workflow|step are we|current step)
    workflow (?:state|status)
    """
)
_PREFERENCE = _forms(
    rf"{_SET} (?:my )?preference (?:for )?(?P<name>{_NAME}) to (?P<value>.+)",
    rf"{_SET} (?:my )?preferred (?P<name>{_NAME}) to (?P<value>.+)",
    rf"{_SET} my (?P<name>{_NAME}) preference to (?P<value>.+)",
)
_FROM_NOW_ON = re.compile(r",?\s*\b(?:from now on|in future)\b,?\s*", re.IGNORECASE)
_MANNER = _forms(
    _POLITE + r"(?:answer|reply|respond|write|give|use|call|speak|talk|keep|be|address|show|don't|"
    r"always|never|stop)\b"
)
_CALL_ME = re.compile(r"\bcall me (?P<name>[A-ZÀ-Þ][\w\u2019'.-]*(?: [A-ZÀ-Þ][\w\u2019'-]*)*)")
_LEAD_IN = re.compile(r"^(?:(?:please|and|you know what)[,:]? )+", re.IGNORECASE)
_REMEMBER = _forms(
    _POLITE
    + r"(?:remember|don't forget|do not forget|keep in mind|memori[sz]e)(?: this| down| it)?"
    r"(?: for me)?(?: that|:|,)? (?P<text>.+)",
    _POLITE + r"(?:note|make a note|take a note)(?: down)?(?: that|:) (?P<text>.+)",
    r"\b(?:one|something) to remember\b[^:]*: (?P<text>.+)",
)
_NOT_TO_REMEMBER = re.compile(
    r"^(?:when|what|how|who|where|the time|last time|to\b)", re.IGNORECASE
)
_FORGET = _forms(
    _POLITE + r"forget (?:all |everything )?(?:you know )?"
    r"(?:about |that |what (?:i|you) \w+ (?:you )?about )?(?P<query>.+)",
    _POLITE + r"(?:delete|erase|remove) (?:the |my |all |any )?(?:memory|memories|facts?) "
    r"(?:of|about|that) (?P<query>.+)",
    _POLITE + r"(?:delete|erase|remove) (?P<query>.+?) from (?:your |the )?(?:long-term )?memory",
)
_NEVER_MIND = frozenset({"it", "that", "this", "me", "about it", "about that"})
_RECALL = _forms(
    _POLITE + r"recall (?:what i said about |everything about )?(?P<query>.+)",
    r"\b(?:search|look (?:through|in|into)|check) (?:your |the )?(?:long-term )?memor(?:y|ies) "
    r"(?:for|about) (?P<query>.+)",
    r"\bwhat do you (?:remember|know) about (?P<query>.+)",
)
_QUOTED = re.compile('^["\u201c\'\u2018](?P<inner>[^"\u201d]+?)["\u201d\'\u2019]')
_WAYS_TO_END = " .!?\"'\u201d\u2019"


def wanted(text: str, tools: Sequence[Tool]) -> list[Request]:
    """Return the calls that a user's message asks for, of the tools on offer, in its order."""
    offered = {tool.name: tool for tool in tools}
    found: list[Request] = []
    for sentence in parts(text):
        for name, read in _READERS.items():
            arguments = read(sentence) if name in offered else None
            if arguments is not None:
                found.append(Request(name, _fit(arguments, offered[name]), sentence))
                break
    return found


def missing(text: str, tools: Sequence[Tool]) -> str:
    """Return what to ask back when a tool is wanted and its argument is not told, else empty."""
    if any(tool.name == "get_weather" for tool in tools):
        for sentence in parts(text):
            if _weather_is_asked(sentence) and _weather(sentence) is None:
                return "For which city? I call the weather tool when you name one."
    return ""


def forced(text: str, tool: Tool) -> Request:
    """Return a call of one tool, whatever the text says: its text parameters get the text."""
    found = wanted(text, [tool])
    if found:
        return found[0]
    return Request(tool.name, {k: text for k, v in tool.parameters.items() if v == "string"}, text)


def parts(text: str) -> list[str]:
    """Return the sentences of a text as requests name them, each in one line."""
    return [" ".join(sentence.split()) for sentence in words_of.sentences(text)]


def _weather_is_asked(sentence: str) -> bool:
    if not _WEATHER.search(sentence):
        return False
    return asks(sentence) or _first(_WEATHER_ORDER, sentence) is not None


def _weather(sentence: str) -> dict[str, Json] | None:
    if not _weather_is_asked(sentence):
        return None
    for place in reversed(list(_PLACE.finditer(sentence[:_LONGEST]))):
        city = _AFTER_PLACE.sub("", place["city"]).strip(_WAYS_TO_END)
        if city and not _NO_PLACE.match(city):
            return {"city": city}
    return None


def _update_workflow(sentence: str) -> dict[str, Json] | None:
    if slot := _first(_SLOT, sentence):
        return {"slots": {slot["slot"].strip(): _value(slot["value"])}}
    arguments: dict[str, Json] = {}
    if step := _first(_STEP, sentence):
        arguments["step"] = _value(step["step"])
    workflow = None if asks(sentence) else _first(_WORKFLOW, sentence)
    if workflow and _value(workflow["workflow"]).casefold() not in ("the", "a", ""):
        arguments["workflow"] = _value(workflow["workflow"])
    return arguments or None


def _show_workflow(sentence: str) -> dict[str, Json] | None:
    return {} if _SHOW_WORKFLOW.search(sentence[:_LONGEST]) else None


def _preference(sentence: str) -> dict[str, Json] | None:
    if found := _first(_PREFERENCE, sentence):
        return {"name": found["name"].strip(), "value": _value(found["value"])}
    if not _FROM_NOW_ON.search(sentence):
        return None
    if called := _CALL_ME.search(sentence):
        return {"name": "name", "value": called["name"]}
    rest = _LEAD_IN.sub("", _FROM_NOW_ON.sub(" ", sentence).strip())
    return {"name": "answers", "value": _value(rest)} if _first(_MANNER, rest) else None


def _remember(sentence: str) -> dict[str, Json] | None:
    for pattern in _REMEMBER:
        found = pattern.search(sentence)
        if found and not _NOT_TO_REMEMBER.match(found["text"]) and not sentence.endswith("?"):
            return {"text": found["text"].strip()}
    return None


def _forget(sentence: str) -> dict[str, Json] | None:
    found = _first(_FORGET, sentence)
    query = _value(found["query"]) if found else ""
    return {"query": query} if query and query.casefold() not in _NEVER_MIND else None


def _recall(sentence: str) -> dict[str, Json] | None:
    found = _first(_RECALL, sentence)
    return {"query": _value(found["query"])} if found else None


_READERS: Mapping[str, Callable[[str], dict[str, Json] | None]] = {
    "get_weather": _weather,
    "forget": _forget,
    "remember": _remember,
    "recall": _recall,
    "set_preference": _preference,
    "update_workflow_state": _update_workflow,
    "get_workflow_state": _show_workflow,
}


def _first(forms: Sequence[re.Pattern[str]], sentence: str) -> re.Match[str] | None:
    found = (form.search(sentence[:_LONGEST]) for form in forms)
    return next((match for match in found if match), None)


def _value(text: str) -> str:
    quoted = _QUOTED.match(text.strip())
    if quoted:
        return quoted["inner"].strip()
    return re.sub(r",? please\b.*$", "", text.strip(), flags=re.IGNORECASE).strip(_WAYS_TO_END)


def _fit(arguments: Mapping[str, Json], tool: Tool) -> dict[str, Json]:
    """Return arguments under the names and in the types that the tool has."""
    fitted: dict[str, Json] = {}
    for name, value in arguments.items():
        free = [p for p in tool.parameters if p not in fitted]
        texts = [p for p in free if tool.parameters[p] in ("string", "any")]
        target = name if name in free else next(iter(texts), "")
        if not target:
            continue
        as_text = isinstance(value, Mapping) and tool.parameters[target] == "string"
        fitted[target] = json.dumps(value, ensure_ascii=False) if as_text else value
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
