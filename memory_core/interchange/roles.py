"""Who speaks: the roles and names of a file become the roles that a chat model knows.

Roles of LlamaIndex stay as they are. Other spellings are translated with a notice; a format
whose own vocabulary differs (``human``/``gpt``) hands it in as ``native`` and gets no notice. An
unknown role is read as ``user`` and kept as the name, so nothing is lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from memory_core.interchange.clean import as_text
from memory_core.interchange.values import Notes
from memory_core.messages import Json

USER, ASSISTANT, SYSTEM, TOOL = "user", "assistant", "system", "tool"

# llama_index.core.base.llms.types.MessageRole
KNOWN = frozenset({SYSTEM, "developer", USER, ASSISTANT, "function", TOOL, "chatbot", "model"})

ALIASES: Mapping[str, str] = {
    "human": USER,
    "me": USER,
    "you": USER,
    "customer": USER,
    "client": USER,
    "ai": ASSISTANT,
    "bot": ASSISTANT,
    "gpt": ASSISTANT,
    "chatgpt": ASSISTANT,
    "claude": ASSISTANT,
    "agent": ASSISTANT,
    "bard": ASSISTANT,
    "bing": ASSISTANT,
    "assistant": ASSISTANT,
    "function_call": ASSISTANT,
    "tool_response": TOOL,
    "function_response": TOOL,
    "observation": TOOL,
    "context": SYSTEM,
}


def read_role(
    value: Json, *, place: str, notes: Notes, native: Mapping[str, str] | None = None
) -> tuple[str, str]:
    """Return the role, and as a name the role that no model knows (else an empty text)."""
    if isinstance(value, str) and native and value in native:
        return native[value], ""
    if isinstance(value, str) and value in KNOWN:
        return value, ""
    if value is None or value == "":
        notes.add(place, "has no role, read as user")
        return USER, ""
    text = as_text(value).strip()
    known = role_of_name(text)
    if known:
        notes.add(place, f"role {text[:40]!r} was read as {known}")
        return known, ""
    notes.add(place, f"role {text[:40]!r} is not known, read as user with that name")
    return USER, text


def role_of_name(name: str) -> str:
    """Return the role that a speaker's name stands for, or an empty text."""
    plain = name.strip().casefold()
    return plain if plain in KNOWN else ALIASES.get(plain, "")


def roles_of_speakers(names: Sequence[str], *, notes: Notes) -> dict[str, str]:
    """Return a role for each speaker of a transcript, in the order in which they first speak.

    Names that are roles keep their meaning. Of the others the first to speak is the user and the
    second the assistant; with more than two, all are users told apart by their names.
    """
    roles = {name: role_of_name(name) for name in names}
    people = [name for name, role in roles.items() if not role]
    free = [role for role in (USER, ASSISTANT) if role not in roles.values()]
    if len(people) > len(free):
        free = [USER] * len(people)
    for name, role in zip(people, free, strict=False):
        roles[name] = role
        notes.add(f"speaker {name[:40]!r}", f"read as {role}, the name is kept")
    return roles
