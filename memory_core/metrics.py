"""What a running process measures of its sessions, and a Prometheus endpoint for it.

A :class:`Meter` is always there and costs microseconds: the latency of reads and writes, how many
messages the sessions in use hold, which of them hit their token cap at every turn, degraded
turns, what was redacted. The Storage page reads it. With ``MEMORY_METRICS_PORT`` set,
:func:`serve` offers the same numbers on ``/metrics`` (package ``prometheus-client``, imported
only then).

No user, session or text is in any metric.
"""

from __future__ import annotations

import re
import threading
from bisect import bisect_left
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING

from memory_core.errors import InvalidInput
from memory_core.stores.protocols import SessionKey, TurnRecord

if TYPE_CHECKING:
    from prometheus_client.core import Metric

BUCKETS = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 250.0, 500.0, 1000.0, 5000.0)  # ms
KEPT = 2_000  # newest latencies that percentiles are taken of
SESSIONS = 10_000  # sessions remembered, the last used ones
CAPPED_AFTER = 3  # turns in a row at the cap before a session is warned of

# subtle: inside a JSON string every quote is escaped, so nothing that somebody said matches
_CAPPED = re.compile(r'"gate":\s?"(?:token limit|its group does not fit)"')
_DEGRADED = re.compile(r'"degradations":\s?\["')


def percentile(values: Sequence[float], share: float) -> float:
    """Return the nearest-rank percentile, 0.0 without values.

    >>> percentile([4, 1, 3, 2], 0.5), percentile([4, 1, 3, 2], 0.95)
    (2, 4)
    """
    if not values:
        return 0.0
    ordered = sorted(values)
    return ordered[max(0, -(-int(share * 1000 * len(ordered)) // 1000) - 1)]


def hit_cap(trace: str) -> bool:
    """Return whether the token limit kept something out of a turn, from its trace's JSON."""
    return _CAPPED.search(trace) is not None


def degraded(trace: str) -> bool:
    """Return whether something did not work as it should in a turn, from its trace's JSON."""
    return _DEGRADED.search(trace) is not None


class Latency:
    """How long one kind of call took, in milliseconds. Safe between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._newest: deque[float] = deque(maxlen=KEPT)
        self._buckets = [0] * (len(BUCKETS) + 1)
        self.count = 0
        self.total = 0.0

    def add(self, milliseconds: float) -> None:
        """Count one call."""
        with self._lock:
            self._newest.append(milliseconds)
            self._buckets[bisect_left(BUCKETS, milliseconds)] += 1
            self.count += 1
            self.total += milliseconds

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Count what happens inside as one call, also when it fails."""
        began = perf_counter()
        try:
            yield
        finally:
            self.add((perf_counter() - began) * 1000)

    def percentile(self, share: float) -> float:
        """Return a percentile of the newest calls, 0.0 before the first."""
        with self._lock:
            newest = list(self._newest)
        return percentile(newest, share)

    def cumulative(self) -> list[tuple[str, float]]:
        """Return Prometheus' buckets: upper bound and how many calls took at most that."""
        with self._lock:
            counts = list(self._buckets)
        total, out = 0, []
        for bound, count in zip([*map(str, BUCKETS), "+Inf"], counts, strict=True):
            total += count
            out.append((bound, float(total)))
        return out


@dataclass(frozen=True)
class SessionUse:
    """One session as this process saw it: messages, turns written, and how many at the cap.

    ``running`` counts the turns at the cap in a row, up to the newest.
    """

    messages: int = 0
    turns: int = 0
    capped: int = 0
    running: int = 0


@dataclass(frozen=True)
class Seen:
    """All sessions as this process saw them since it started."""

    sessions: Mapping[SessionKey, SessionUse] = field(default_factory=dict)

    @property
    def messages(self) -> list[int]:
        """How many messages each session holds."""
        return [use.messages for use in self.sessions.values()]

    @property
    def capped(self) -> int:
        """How many sessions hit their token cap at least once."""
        return sum(use.capped > 0 for use in self.sessions.values())

    @property
    def always_capped(self) -> list[SessionKey]:
        """The sessions that hit their cap in each of their last turns, at least three."""
        return [key for key, use in self.sessions.items() if use.running >= CAPPED_AFTER]


class Meter:
    """What one process measures. Safe between threads."""

    def __init__(self) -> None:
        self.load = Latency()
        self.persist = Latency()
        self._lock = threading.Lock()
        self._sessions: OrderedDict[SessionKey, SessionUse] = OrderedDict()
        self._redacted: OrderedDict[SessionKey, Counter[str]] = OrderedDict()
        self.turns = 0
        self.degraded = 0

    def loaded(self, key: SessionKey, messages: int) -> None:
        """Note how many messages a session holds that was opened."""
        with self._lock:
            use = self._sessions.get(key, SessionUse())
            self._note(key, SessionUse(messages, use.turns, use.capped, use.running))

    def committed(self, key: SessionKey, record: TurnRecord) -> None:
        """Note a turn that was written."""
        capped = hit_cap(record.trace)
        with self._lock:
            use = self._sessions.get(key, SessionUse())
            held = record.messages[-1].position + 1 if record.messages else use.messages
            running = use.running + 1 if capped else 0
            self._note(key, SessionUse(held, use.turns + 1, use.capped + capped, running))
            self.turns += 1
            self.degraded += degraded(record.trace)

    def redacted(self, key: SessionKey, counts: Mapping[str, int]) -> None:
        """Note by kind what was redacted before it was stored; the text itself is not known."""
        with self._lock:
            self._redacted.setdefault(key, Counter()).update(counts)
            while len(self._redacted) > SESSIONS:
                self._redacted.popitem(last=False)

    def redactions(self, key: SessionKey) -> dict[str, int]:
        """Return what was redacted in a session since the program started, by kind."""
        with self._lock:
            return dict(self._redacted.get(key, {}))

    def seen(self, user: str | None = None) -> Seen:
        """Return the sessions in use, of one user or of all."""
        with self._lock:
            found = dict(self._sessions)
        return Seen({k: use for k, use in found.items() if user in (None, k.user)})

    def forget(self, user: str) -> None:
        """Drop what is known of a user's sessions."""
        with self._lock:
            for kept in (self._sessions, self._redacted):
                for key in [k for k in kept if k.user == user]:
                    del kept[key]

    def _note(self, key: SessionKey, use: SessionUse) -> None:
        self._sessions[key] = use
        self._sessions.move_to_end(key)
        while len(self._sessions) > SESSIONS:
            self._sessions.popitem(last=False)


class Endpoint:
    """A running ``/metrics`` endpoint."""

    def __init__(self, stop: Callable[[], None], address: tuple[str, int]) -> None:
        self.address = address
        self._stop = stop

    def close(self) -> None:
        """Stop answering."""
        self._stop()


def serve(setting: str, meter: Meter, *, waiting: Callable[[], int] = lambda: 0) -> Endpoint:
    """Answer Prometheus at ``port`` or ``address:port`` (this machine only without an address).

    ``waiting`` says how many writes wait for the store. Raises :class:`InvalidInput` when the
    setting is no port, the port is taken or the package is missing.
    """
    host, _, port = setting.rpartition(":")
    if not (port.isascii() and port.isdigit() and int(port) < 65_536):
        raise InvalidInput(
            f"MEMORY_METRICS_PORT must be a port such as 9464, not {setting!r:.40}.",
            next_step="Correct the setting, or remove it to do without the endpoint.",
        )
    try:
        from prometheus_client import CollectorRegistry, start_http_server
    except ImportError as exc:
        raise InvalidInput(
            "MEMORY_METRICS_PORT is set, and prometheus-client is not installed.",
            next_step="Install the packages in requirements-servers.txt.",
        ) from exc
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(meter, waiting))
    try:
        server, thread = start_http_server(
            int(port), addr=host.strip("[]") or "127.0.0.1", registry=registry
        )
    except OSError as exc:
        raise InvalidInput(
            f"The metrics endpoint cannot listen at {setting}: {exc.strerror or exc}.",
            next_step="Choose another MEMORY_METRICS_PORT.",
        ) from exc

    def stop() -> None:
        server.shutdown()
        server.server_close()
        thread.join()

    return Endpoint(stop, (str(server.server_address[0]), int(server.server_address[1])))


class _Collector:
    """Gives Prometheus a meter's numbers as they are when it asks."""

    def __init__(self, meter: Meter, waiting: Callable[[], int]) -> None:
        self._meter = meter
        self._waiting = waiting

    def collect(self) -> Iterator[Metric]:
        """Yield every metric."""
        from prometheus_client.core import (
            CounterMetricFamily,
            GaugeMetricFamily,
            HistogramMetricFamily,
        )

        meter, seen = self._meter, self._meter.seen()
        for name, what, latency in (
            ("memory_load_latency_ms", "Reads of a session from its store", meter.load),
            ("memory_persist_latency_ms", "Writes of a turn or state to its store", meter.persist),
        ):
            yield HistogramMetricFamily(
                name, f"{what}, milliseconds", latency.cumulative(), latency.total
            )
        counts = GaugeMetricFamily(
            "session_message_count", "Messages per session in use", labels=["quantile"]
        )
        for share in (0.5, 0.95, 1.0):
            counts.add_metric([f"{share:g}"], percentile(seen.messages, share))
        yield counts
        for name, what, value in (
            ("memory_sessions_in_use", "Sessions seen since the start", len(seen.sessions)),
            ("memory_sessions_at_cap", "Those that hit their token cap", seen.capped),
            (
                "memory_sessions_always_at_cap",
                "Those that hit it in each of their last turns",
                len(seen.always_capped),
            ),
            ("memory_writes_waiting", "Writes that wait for the store", self._waiting()),
        ):
            yield GaugeMetricFamily(name, what, value)
        yield CounterMetricFamily("memory_turns", "Turns written", meter.turns)
        yield CounterMetricFamily(
            "memory_turns_degraded", "Turns in which something did not work", meter.degraded
        )
