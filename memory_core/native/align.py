"""Which stored messages a memory returned: found by what they hold, newest first.

Memories return copies, so identity says nothing and equality has to. :func:`align` walks both
lists from their newest end, which finds any subsequence there is, and the newest one where equal
messages make several possible.
"""

from __future__ import annotations

from collections.abc import Sequence

from memory_core.messages import Message, StoredMessage

NOT_STORED = -1


def align(returned: Sequence[Message], stored: Sequence[StoredMessage]) -> list[int]:
    """Return for each returned message its index in ``stored``, -1 for one that is not there."""
    places = [NOT_STORED] * len(returned)
    free = len(stored)
    for place in range(len(returned) - 1, -1, -1):
        index = _before(returned[place], stored, free)
        if index != NOT_STORED:
            places[place] = free = index
    return places


def _before(wanted: Message, stored: Sequence[StoredMessage], end: int) -> int:
    for index in range(end - 1, -1, -1):
        message = stored[index].message
        if message.role == wanted.role and message == wanted:
            return index
    return NOT_STORED
