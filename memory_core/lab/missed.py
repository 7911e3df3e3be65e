"""Why a question missed a piece of its evidence, and the least that would have let it in.

The answer is that of the why-not of a chat (:mod:`memory_core.whynot`), with the sweep's planner
behind it: what it offers as enough has been planned and works.
"""

from __future__ import annotations

from memory_core.fate import MESSAGE
from memory_core.gates import Item
from memory_core.lab.axes import Point
from memory_core.lab.inputs import message_id
from memory_core.lab.layered import Planner
from memory_core.lab.prepare import Prepared
from memory_core.whynot import WhyNot, why_not


def why_missed(prepared: Prepared, point: Point, number: int, message: int) -> WhyNot:
    """Explain why a message is not in the layered memory's prompt of one question.

    ``number`` is the question's, ``message`` the index of the message in the conversation.
    """
    planner = Planner.of(prepared, point.embedding, number)
    return why_not(
        Item(MESSAGE, message_id(message), message),
        settings=point.settings,
        plan=planner,
        history=planner.scene.history,
    )
