"""Other people's conversation files: recognised by content, previewed, read, and written again.

Reading is pure: bytes or a stream in, values out, nothing stored. See
:mod:`memory_core.interchange.registry` for what can be done with a file and
:mod:`memory_core.interchange.storing` for how a conversation becomes a session.
"""

from memory_core.interchange.registry import (
    EXPORTS,
    FORMATS,
    Format,
    conversations,
    detect,
    export,
    preview,
)
from memory_core.interchange.source import fingerprint
from memory_core.interchange.values import (
    Conversation,
    ConversationRow,
    ImportPreview,
    Notes,
    Notice,
)
from memory_core.interchange.writing import Written

__all__ = [
    "EXPORTS",
    "FORMATS",
    "Conversation",
    "ConversationRow",
    "Format",
    "ImportPreview",
    "Notes",
    "Notice",
    "Written",
    "conversations",
    "detect",
    "export",
    "fingerprint",
    "preview",
]
