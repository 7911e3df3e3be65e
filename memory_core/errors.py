"""Every error a user may be shown, as one family.

::

    MemoryInspectorError             shown as a message with the next step, never as a traceback
    ├── ModelError                   the chat or embedding model did not answer
    │   ├── ModelUnreachable         nothing listens at the address, or the connection broke
    │   ├── ModelTimeout             no answer in the stated time
    │   ├── ModelKeyRefused          the key is missing, wrong or lacks the right
    │   ├── ModelRateLimited         too many requests, or the quota is used up
    │   ├── ModelUnknown             the server has no such model
    │   └── ModelRefused             any other answer that is no reply
    ├── PromptTooLarge               the prompt has no room for what must be in it
    ├── StrategyFailed               a memory class of LlamaIndex's raised an error of its own
    ├── StoreError                   the session store could not do what was asked
    │   ├── StoreUnavailable         down, slow or read-only; the write is kept and tried again
    │   ├── StaleVersion             somebody else saved first
    │   ├── StoreTooNew              the file was written by a newer program
    │   └── NotFound                 no such session (or not yours)
    ├── VectorError                  long-term memory could not do what was asked
    │   ├── CollectionMismatch       the collection was filled by another embedding model
    │   ├── CollectionGone           the folder or server behind it vanished
    │   ├── IdInUse                  a new record would replace another one
    │   └── PartialWrite             some batches were stored, the rest was not
    └── InvalidInput                 a name, id, file or setting that cannot be used

Adapters translate vendor errors into these with ``from exc``. Misuse by a programmer stays a
``ValueError``.
"""

from __future__ import annotations


class MemoryInspectorError(Exception):
    """Base of all errors shown to users: what happened, and in ``next_step`` what to do."""

    next_step: str = ""

    def __init__(self, message: str, *, next_step: str = "") -> None:
        super().__init__(message)
        if next_step:
            self.next_step = next_step


class ModelError(MemoryInspectorError):
    """Raised when a chat or embedding model did not answer."""

    next_step = "Your message is kept. Check the model settings and press Retry."


class ModelUnreachable(ModelError):
    """Raised when nothing listens at the model's address or the connection broke."""

    next_step = "Your message is kept. Start the server or correct the base URL, then Retry."


class ModelTimeout(ModelError):
    """Raised when the model gave no answer in the stated time."""

    next_step = "Your message is kept. Retry, or raise the timeout in the model settings."


class ModelKeyRefused(ModelError):
    """Raised when the provider refuses the key."""

    next_step = "Your message is kept. Enter a valid key in the model settings, then Retry."


class ModelRateLimited(ModelError):
    """Raised when the provider says there were too many requests or no quota is left."""

    next_step = "Your message is kept. Wait a moment, then Retry."


class ModelUnknown(ModelError):
    """Raised when the server does not have the model."""

    next_step = "Your message is kept. Choose a model that the server offers, then Retry."


class ModelRefused(ModelError):
    """Raised when the provider's answer is an error of another kind."""


class PromptTooLarge(MemoryInspectorError):
    """Raised when what must be in the prompt does not fit in the limit or the window."""

    next_step = "Your message is kept. Raise the token limit or shorten the system prompt."


class StrategyFailed(MemoryInspectorError):
    """Raised when a memory class of LlamaIndex's raised an error of its own."""

    next_step = "Your message is kept. Change the strategy's settings or choose another one."


class StoreError(MemoryInspectorError):
    """Raised when the session store could not do what was asked."""


class StoreUnavailable(StoreError):
    """Raised when the store is down, slower than its timeout, or read-only."""

    next_step = "The chat goes on from memory; what is waiting is written when the store is back."


class StaleVersion(StoreError):
    """Raised when a save is based on a version that is no longer the newest."""

    next_step = "Compare both versions and choose which to keep."

    def __init__(self, message: str, *, expected: int, found: int) -> None:
        super().__init__(message)
        self.expected = expected
        self.found = found


class StoreTooNew(StoreError):
    """Raised when the store was written by a newer version of this program."""

    next_step = "Update Memory Inspector, or point it at another store."


class NotFound(StoreError):
    """Raised when the session does not exist for this user."""

    next_step = "Choose another session in the sidebar."


class VectorError(MemoryInspectorError):
    """Raised when long-term memory could not do what was asked."""


class CollectionMismatch(VectorError):
    """Raised when a collection was filled by another embedding model."""

    next_step = "Re-embed into a new collection, or choose the model it was made with."


class CollectionGone(VectorError):
    """Raised when the folder or server behind the collection vanished while in use."""

    next_step = "Open a fresh collection; it is filled again from the stored turns."


class IdInUse(VectorError):
    """Raised when a new record has the id of a stored one."""

    next_step = "Use an edit to replace the stored record, or another id to add one."


class PartialWrite(VectorError):
    """Raised when a later batch failed: ``stored`` of ``total`` records are in."""

    next_step = "Run it again: it goes on with the records that are missing."

    def __init__(self, message: str, *, stored: int, total: int) -> None:
        super().__init__(message)
        self.stored = stored
        self.total = total


class InvalidInput(MemoryInspectorError):
    """Raised when a name, id, file or setting cannot be used; the message says why."""
