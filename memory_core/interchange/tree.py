"""Conversations that branch: every edit or second answer starts another way from one message.

A tree is known by the parent of each node. One way, from the root to a leaf, is the conversation;
the other leaves are its branches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from memory_core.errors import InvalidInput


def path_to(leaf: str, parents: Mapping[str, str]) -> list[str]:
    """Return the nodes from the root to a leaf; an unknown parent ends the way.

    Raises :class:`InvalidInput` when the parents run in a circle.
    """
    path: dict[str, None] = {}
    node = leaf
    while node in parents:
        if node in path:
            raise InvalidInput(f"Its messages refer to each other in a circle at {node[:40]!r}.")
        path[node] = None
        node = parents[node]
    return list(path)[::-1]


def other_leaves(
    main: list[str], parents: Mapping[str, str], tells: Callable[[str], bool]
) -> list[str]:
    """Return the leaves of the other branches, in file order.

    A branch counts when a node of its own, that no branch before it has, ``tells`` something.
    """
    inner = set(parents.values())
    seen = set(main)
    found = []
    for leaf in (node for node in parents if node not in inner):
        own, node = [], leaf
        while node in parents and node not in seen:
            seen.add(node)
            own.append(node)
            node = parents[node]
        if any(map(tells, own)):
            found.append(leaf)
    return found
