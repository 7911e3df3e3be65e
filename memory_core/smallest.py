"""The smallest change of one setting that lets something in, found by asking the planner.

A setting is searched on a grid: whole numbers, or hundredths where hundredths are shown. Good
guesses (from the arithmetic of the gate that stopped it) are tried first; where layers interact
and the guess is off, the search doubles its stride until the thing is in and then halves it
down. What is returned has been tried: with it the thing is in, one step less and it is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from memory_core.messages import Json
from memory_core.settings import MemorySettings

HUNDREDTHS = 100
_SCANNED = 24  # places between the lowest guess and what was found that are tried too


@dataclass(frozen=True)
class SettingChange:
    """One setting and the value that lets something in, applied with :meth:`apply`.

    ``less`` is the value one step before (or the present one), which does not let it in.
    """

    setting: str
    value: Json
    less: Json = None
    words: str = ""

    def apply(self, settings: MemorySettings) -> MemorySettings:
        """Return the settings with this change."""
        return settings.with_(**{self.setting: self.value})


@dataclass(frozen=True)
class Grid:
    """The values of one setting worth trying, from the present one towards ``end``.

    ``scale`` is the steps in 1: 1 for whole numbers, 100 for hundredths.
    """

    setting: str
    now: float
    end: float
    scale: int = 1

    @property
    def direction(self) -> int:
        """1 when the setting must grow, -1 when it must shrink."""
        return 1 if self.end >= self.now else -1

    @property
    def first(self) -> int:
        """The number of the first step beyond the present value."""
        return self._floor(self.direction * self.now) + 1

    @property
    def last(self) -> int:
        """The number of the last step, where the range of the setting ends."""
        return self._floor(self.direction * self.end)

    def value(self, step: int) -> float:
        """Return the setting's value at a step."""
        signed = self.direction * step
        return signed if self.scale == 1 else round(signed / self.scale, 2)

    def step(self, value: float) -> int:
        """Return the step nearest to the present value that is at or beyond ``value``."""
        return -self._floor(-self.direction * value)

    def _floor(self, value: float) -> int:
        # subtle: 0.29 * 100 is 28.999…; a value on the grid must be found on it
        scaled = value * self.scale
        nearest = round(scaled)
        return nearest if abs(scaled - nearest) < 1e-9 else int(scaled // 1)


def smallest(
    grid: Grid, lets_in: Callable[[float], bool], guesses: Iterable[float] = ()
) -> tuple[float, float] | None:
    """Return the smallest value that lets it in and the value one step less, ``None``: none does.

    The present value is taken not to let it in. A setting that works in several stretches (more
    tokens let in a memory, which takes the room of a message) is looked through at
    :data:`_SCANNED` places from the lowest guess on; shorter stretches may be missed.
    """
    first, last = grid.first, grid.last
    known: dict[int, bool] = {}

    def inside(step: int) -> bool:
        if step < first:
            return False
        if step not in known:
            known[step] = lets_in(grid.value(step))
        return known[step]

    steps = sorted({min(max(grid.step(guess), first), last) for guess in guesses})
    found = next((step for step in steps if first <= last and inside(step)), None)
    if found is None:
        stride, step = 1, first
        while step <= last and not inside(step):
            step = last if step < last < step + stride else step + stride
            stride *= 2
        if step > last:
            return None
        found = step
    lowest = steps[0] if steps else found
    scanned = range(lowest, found, max(1, (found - lowest) // _SCANNED))
    found = next((step for step in scanned if inside(step)), found)
    out = max((s for s, is_in in known.items() if not is_in and s < found), default=first - 1)
    while found - out > 1:
        middle = (found + out) // 2
        if inside(middle):
            found = middle
        else:
            out = middle
    return grid.value(found), grid.value(found - 1) if found > first else grid.now
