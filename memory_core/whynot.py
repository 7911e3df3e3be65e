"""Why a thing is not in the prompt, and the least that would have let it in.

:func:`why_not` walks a thing through every gate of one turn and looks for the smallest single
change of a setting that lets it in. The planner that made the prompt is asked for every answer,
so a change that is offered works: with it the thing is in the prompt, one step less and it is
not. Where layers act on each other and no single setting helps, it says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import ceil

from memory_core.buffer import History
from memory_core.fate import FACT, MEMORY, MESSAGE, STATE, SUMMARY
from memory_core.gates import (
    BUFFER_ROUTE,
    MEMORY_ROUTE,
    SAID,
    SEARCH,
    Check,
    Item,
    Route,
    SearchResult,
    found_for,
    place_of,
    routes_of,
    tokens_needed,
)
from memory_core.prompt import Assembly, Gate, Omission, Source
from memory_core.settings import ALL_SESSIONS, MemorySettings
from memory_core.smallest import HUNDREDTHS, Grid, SettingChange, smallest

Plan = Callable[[MemorySettings], Assembly]
"""Plans the prompt of one turn again, under other settings; pure."""

_NEAR = 40  # near misses to look through for the numbers; what stopped them is the same
_MOST = 1_000  # memories that can be let in to find one that is far down
_ROUNDS = 6  # the limit moves what stands in front of the buffer, which moves the limit


@dataclass(frozen=True)
class WhyNot:
    """The answer for one thing and one turn.

    ``place`` says where in the prompt it stands (empty: it does not). ``changes`` are single
    changes that let it in, the relatively smallest first. ``sentence`` sums up.
    """

    item: Item
    place: str
    routes: tuple[Route, ...]
    changes: tuple[SettingChange, ...] = ()
    sentence: str = ""


def why_not(
    item: Item,
    *,
    settings: MemorySettings,
    assembly: Assembly | None = None,
    plan: Plan | None = None,
    history: History | None = None,
) -> WhyNot:
    """Explain why a thing is not in a prompt; of ``assembly`` and ``plan`` one must be given.

    Without ``plan`` (a class that cannot be asked again) there are no changes. ``history`` are
    the turn's active messages; without it the buffer's arithmetic cannot be told.
    """
    if plan is not None:
        plan = _Remembered(plan)
        assembly = plan(settings.with_(near_misses=max(_NEAR, settings.near_misses)))
    elif assembly is None:
        raise ValueError("why_not needs the prompt or a planner of it")
    place = place_of(item, assembly)
    if place:
        routes = routes_of(item, assembly, settings, history=history)
        return WhyNot(item, place, routes, sentence=f"It is in this prompt, {place}.")
    if plan is None:
        routes = routes_of(item, assembly, settings, history=history)
        return WhyNot(item, "", routes, sentence=f"Stopped. {_told(routes)}.")
    search = _Search(item, settings, plan, assembly, history)
    far = _far_down(item, settings, plan) if item.kind == MEMORY else None
    routes, changes = search.explain(far)
    if not changes and item.kind == MESSAGE:  # a memory of it far down is the last way in
        routes, changes = search.explain(_far_down(item, settings, plan))
    end = f"Enough would be: {changes[0].words}." if changes else "No single setting lets it in."
    return WhyNot(item, "", routes, changes, f"Stopped. {_told(routes)}. {end}")


def _far_down(item: Item, settings: MemorySettings, plan: Plan) -> SearchResult | None:
    """Return what stopped a memory that is too far down to be among the near misses, if it is."""
    near = settings.with_(near_misses=max(_NEAR, settings.near_misses))
    if not settings.recall or item.kind in (FACT, SUMMARY, STATE) or found_for(item, plan(near)):
        return None
    by_rank = near.with_(top_k=_MOST)
    for tried in (by_rank, by_rank.with_(threshold=-1.0)):
        found = found_for(item, plan(tried))
        if found is None or (found[1] is not None and found[1].gate is not Gate.BUDGET):
            continue
        hit = found[0]
        gate, needed, available = Gate.TOP_K, float(hit.rank), float(settings.top_k)
        reason = f"rank {hit.rank:,}, top_k is {settings.top_k:,}"
        if tried is not by_rank:
            gate, needed, available = Gate.THRESHOLD, settings.threshold, hit.score
            reason = f"score {hit.score:.2f} under threshold {settings.threshold:.2f}"
        return hit, Omission(gate, Source.RETRIEVED, (hit.id,), reason, needed, available)
    return None


class _Remembered:
    """A planner that plans each setting once."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._made: dict[MemorySettings, Assembly] = {}

    def __call__(self, settings: MemorySettings) -> Assembly:
        made = self._made.get(settings)
        if made is None:
            made = self._made[settings] = self._plan(settings)
        return made


@dataclass(frozen=True)
class _Search:
    """Looks for changes that help at one gate."""

    item: Item
    settings: MemorySettings
    plan: Plan
    base: Assembly
    history: History | None

    def explain(
        self, far: SearchResult | None
    ) -> tuple[tuple[Route, ...], tuple[SettingChange, ...]]:
        """Return all routes and the changes that help, the relatively smallest first."""
        found = far or found_for(self.item, self.base)
        routes = routes_of(self.item, self.base, self.settings, history=self.history, found=found)
        best: dict[str, SettingChange] = {}
        for route in routes:
            stop = route.stopped
            for change in self._changes(route, stop, found) if stop is not None else ():
                known = best.get(change.setting)
                if known is None or self._size(change) < self._size(known):
                    best[change.setting] = change
        return routes, tuple(sorted(best.values(), key=self._size))

    def _changes(
        self, route: Route, stop: Check, found: SearchResult | None
    ) -> Iterable[SettingChange]:
        """Yield the changes that let the thing in past the gate that stopped it."""
        if route.name == BUFFER_ROUTE:
            if stop.gate in (Gate.ORPHAN, SAID, Gate.NOT_EXPLAINED):
                return
            yield from self._limits(self._limit_guesses(stop))
            yield from self._grid("share_buffer", 1, HUNDREDTHS)
            yield from self._grid("top_k", 0)
        elif stop.gate == Gate.THRESHOLD:
            yield from self._grid("threshold", -1, HUNDREDTHS, [found[0].score] if found else [])
        elif stop.gate == Gate.TOP_K:
            yield from self._grid("top_k", self._searched(), 1, [found[0].rank] if found else [])
        elif stop.gate == Gate.OTHER_SESSION:
            yield from self._switch("scope", ALL_SESSIONS)
        elif stop.gate == SEARCH and not self.settings.recall:
            yield from self._switch("recall", to=True)
        elif stop.gate == Gate.BUDGET:
            share = "share_retrieved" if route.name == MEMORY_ROUTE else "share_state"
            yield from self._grid(share, 1, HUNDREDTHS, self._share_guesses(share, stop))
            yield from self._limits(self._room_guesses(share, stop))

    def _limits(self, guesses: Sequence[int]) -> Iterable[SettingChange]:
        """Try the settings that bound the whole prompt; only one of them can be in the way."""
        s = self.settings
        if s.token_limit <= s.context_window - s.reply_reserve:
            yield from self._grid("token_limit", s.context_window - s.reply_reserve, 1, guesses)
        else:
            window = [guess + s.reply_reserve for guess in guesses]
            yield from self._grid("context_window", s.token_limit + s.reply_reserve, 1, window)
            reserve = [s.context_window - guess for guess in guesses]
            yield from self._grid(
                "reply_reserve", max(0, s.context_window - s.token_limit), 1, reserve
            )

    def _grid(
        self, setting: str, end: float, scale: int = 1, guesses: Iterable[float] = ()
    ) -> Iterable[SettingChange]:
        now = getattr(self.settings, setting)
        if end == now:
            return
        grid = Grid(setting, now, end, scale)
        found = smallest(grid, lambda value: self._lets_in(setting, value), guesses)
        if found is not None:
            value, less = found
            sign = "≥" if grid.direction > 0 else "≤"
            shown = f"{value:,}" if scale == 1 else f"{value:.2f}"
            yield SettingChange(setting, value, less, f"{setting} {sign} {shown}")

    def _switch(self, setting: str, to: object) -> Iterable[SettingChange]:
        if self._lets_in(setting, to):
            now = getattr(self.settings, setting)
            shown = "on" if to is True else to
            yield SettingChange(setting, to, now, f"{setting} = {shown}")

    def _lets_in(self, setting: str, value: object) -> bool:
        return bool(place_of(self.item, self.plan(self.settings.with_(**{setting: value}))))

    def _limit_guesses(self, stop: Check) -> list[int]:
        """Return limits at which the window holds the message, as far as arithmetic can tell."""
        plan = self.base.window
        if plan is None or self.history is None or self.item.index is None:
            return []
        needed = (
            int(stop.needed)
            if stop.needed is not None
            else tokens_needed(self.history, self.item.index, plan.rule)
        )
        allotment = self.base.allotment
        tried = [allotment.fixed + needed] if allotment is not None else []  # no less can do
        in_front = plan.initial
        for _ in range(_ROUNDS):
            limit = in_front + needed
            if limit in tried or not 1 <= limit <= 10_000_000:
                break
            tried.append(limit)
            window = self.plan(self.settings.with_(token_limit=limit)).window
            in_front = window.initial if window is not None else in_front
        return tried

    def _share_guesses(self, setting: str, stop: Check) -> list[float]:
        share = self._wanted_share(setting, stop)
        if share is None or share >= 1:
            return []
        shares = {n: getattr(self.settings, n) for n in _SHARES}
        others = sum(value for name, value in shares.items() if name != setting)
        return [share * others / (1 - share)]

    def _room_guesses(self, setting: str, stop: Check) -> list[int]:
        wanted, allotment = self._wanted_share(setting, stop), self.base.allotment
        now = getattr(self.settings.shares, setting.removeprefix("share_"))
        if wanted is None or allotment is None or not now:
            return []
        return [allotment.fixed + ceil(max(0, allotment.memory) * wanted / now)]

    def _wanted_share(self, setting: str, stop: Check) -> float | None:
        """Return the share of memory's tokens that the layer would need for the thing."""
        allotment = self.base.allotment
        if allotment is None or allotment.memory <= 0 or stop.needed is None:
            return None
        share = getattr(self.settings.shares, setting.removeprefix("share_"))
        given = int(allotment.memory * share)
        return (given + stop.needed - (stop.available or 0)) / allotment.memory

    def _searched(self) -> int:
        recall = self.base.recall
        return max(self.settings.top_k, min(_MOST, recall.searched if recall is not None else 0))

    def _size(self, change: SettingChange) -> float:
        """Return how large a change is beside the present value; switches come last."""
        now = getattr(self.settings, change.setting)
        if isinstance(change.value, bool) or not isinstance(change.value, (int, float)):
            return float("inf")
        return float(abs(change.value - now) / max(abs(now), 0.01))


_SHARES = ("share_buffer", "share_retrieved", "share_state")


def _told(routes: Sequence[Route]) -> str:
    """Say for each route where it ends."""
    ends = []
    for route in routes:
        stop = route.stopped
        if stop is not None:
            plain = stop.gate == Gate.NOT_EXPLAINED or not stop.reason
            ends.append(f"{route.name}: {stop.gate}" + ("" if plain else f" ({stop.reason})"))
    return "; ".join(ends)
