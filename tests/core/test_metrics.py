"""What a process measures, and the endpoint that tells Prometheus."""

from __future__ import annotations

import urllib.request
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core.config import EngineConfig, read_config
from memory_core.errors import InvalidInput
from memory_core.messages import Message, StoredMessage
from memory_core.metrics import BUCKETS, Latency, Meter, hit_cap, percentile, serve
from memory_core.stores.protocols import SessionInfo, SessionKey, TurnRecord
from memory_core.trace import TurnTrace, trace_to_json
from memory_core.wiring import open_layers

NOW = datetime(2026, 3, 1, tzinfo=UTC)
KEY = SessionKey("ann", "s1")
CAPPED = '{"calls":[{"assembly":{"omissions":[{"gate":"token limit"}]}}],"degradations":[]}'
FREE = '{"calls":[],"degradations":[]}'


def turn(number: int, trace: str = FREE, text: str = "hello") -> TurnRecord:
    """Return a turn of two messages."""
    messages = tuple(
        StoredMessage(f"m{number}-{i}", 2 * number - 2 + i, number, NOW, Message.of(role, text))
        for i, role in enumerate(("user", "assistant"))
    )
    return TurnRecord(number, trace, messages)


@given(st.lists(st.floats(0, 1e4), min_size=1), st.sampled_from([0.5, 0.95, 1.0]))
def test_a_percentile_is_a_value_with_enough_at_or_under_it(values, share):
    """Nearest rank: at least that share of the values is no larger, and it is one of them."""
    found = percentile(values, share)
    assert found in values
    assert sum(v <= found for v in values) >= share * len(values) - 1e-9


@given(st.lists(st.floats(0, 1e5)))
def test_buckets_count_every_call_once(values):
    """Prometheus' cumulative buckets never fall and end with the number of calls."""
    latency = Latency()
    for value in values:
        latency.add(value)
    counts = [count for _, count in latency.cumulative()]
    assert counts == sorted(counts)
    assert counts[-1] == latency.count == len(values)
    assert counts[0] == sum(v <= BUCKETS[0] for v in values)


def test_the_cap_is_read_from_the_trace_and_not_from_what_was_said():
    """A user who writes the very words of a trace does not raise a warning."""
    said = TurnTrace(1, "s1", NOW, NOW, "layered", {}, query='"gate":"token limit"')
    assert not hit_cap(trace_to_json(said))
    assert hit_cap(CAPPED)
    assert hit_cap(CAPPED.replace(":", ": "))


def test_a_session_at_its_cap_in_every_turn_is_warned_of_and_a_free_turn_ends_that():
    """Three turns in a row at the cap warn; one turn below it takes the warning back."""
    meter = Meter()
    for number in (1, 2):
        meter.committed(KEY, turn(number, CAPPED))
    assert meter.seen().always_capped == []
    meter.committed(KEY, turn(3, CAPPED))
    assert meter.seen("ann").always_capped == [KEY]
    assert meter.seen("bob").sessions == {}
    meter.committed(KEY, turn(4))
    assert meter.seen().always_capped == []
    assert meter.seen().messages == [8]
    assert meter.seen().capped == 1


def test_the_endpoint_tells_every_metric_and_no_user_or_text():
    """Prometheus reads latencies, messages per session and caps; nothing personal is in them."""
    meter = Meter()
    meter.persist.add(3.0)
    meter.load.add(0.2)
    meter.committed(KEY, turn(1, CAPPED, "a secret"))
    endpoint = serve("0", meter, waiting=lambda: 7)
    try:
        host, port = endpoint.address
        assert host == "127.0.0.1"
        with urllib.request.urlopen(f"http://{host}:{port}/metrics") as answer:
            told = answer.read().decode()
    finally:
        endpoint.close()
    for line in (
        'memory_load_latency_ms_bucket{le="0.5"} 1.0',
        "memory_persist_latency_ms_sum 3.0",
        "memory_persist_latency_ms_count 1.0",
        'session_message_count{quantile="0.5"} 2.0',
        "memory_sessions_at_cap 1.0",
        "memory_writes_waiting 7.0",
        "memory_turns_total 1.0",
    ):
        assert line in told
    assert "secret" not in told
    assert "ann" not in told


@pytest.mark.parametrize("setting", ["x", "70000", "", "-1", "٣٤"])
def test_a_port_that_is_none_is_refused_in_words(setting):
    """A wrong setting says what it should look like."""
    with pytest.raises(InvalidInput, match="must be a port"):
        serve(setting, Meter())


def test_a_taken_port_is_refused_in_words():
    """Two programs with one port: the second says so."""
    endpoint = serve("0", Meter())
    try:
        with pytest.raises(InvalidInput, match="cannot listen"):
            serve(str(endpoint.address[1]), Meter())
    finally:
        endpoint.close()


def test_a_store_is_opened_measured_sealed_and_redacted(tmp_path):
    """One configuration gives all layers: what is written is measured, redacted and sealed."""
    from memory_core.stores.encryption import new_key

    environ = {
        "MEMORY_INSPECTOR_DATA": str(tmp_path),
        "MEMORY_ENCRYPTION_KEY": new_key(),
        "MEMORY_REDACT": "e-mail",
        "MEMORY_REDACT_PATTERNS": '{"ticket": "TCK-[0-9]+"}',
    }
    config = read_config(environ, {})
    assert environ["MEMORY_ENCRYPTION_KEY"] not in repr(config)
    opened = open_layers(config)
    store = opened.store
    store.create(SessionInfo(KEY, "zebra", NOW, NOW))
    store.commit(KEY, turn(1, text="zebra ann@example.org TCK-17"))
    assert store.messages(KEY)[0].message.text == "zebra [e-mail] [ticket]"
    assert opened.meter.redactions(KEY) == {"e-mail": 2, "ticket": 2}
    assert (opened.meter.persist.count, opened.meter.load.count) == (1, 1)
    assert store.facts().backend == "SQLite"
    store.close()
    raw = b"".join(p.read_bytes() for p in tmp_path.rglob("*") if p.is_file())
    assert b"zebra" not in raw
    assert b"example.org" not in raw


def test_a_store_that_is_away_is_a_banner_and_no_error(tmp_path):
    """Nothing listens at the store's address: it opens, says so, and keeps what is written."""
    opened = open_layers(EngineConfig(folder=tmp_path, store_url="redis://127.0.0.1:1/0"))
    try:
        opened.store.create(SessionInfo(KEY, "kept", NOW, NOW))
        assert opened.store.sessions("ann")[0].title == "kept"
        assert "goes on from memory" in opened.buffered.banner
        assert opened.buffered.waiting == 1
    finally:
        opened.store.close()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MEMORY_STORE_URL", "gopher://x"),
        ("MEMORY_ENCRYPTION_KEY", "short"),
        ("MEMORY_REDACT", "shoe size"),
        ("MEMORY_REDACT_PATTERNS", "["),
        ("MEMORY_REDACT_PATTERNS", "[1]"),
        ("MEMORY_REDACT_PATTERNS", '{"a": "("}'),
    ],
)
def test_settings_that_cannot_be_used_are_refused_in_words(tmp_path, name, value):
    """A wrong setting keeps the engine closed with a message, and never shows a key."""
    environ = {"MEMORY_INSPECTOR_DATA": str(tmp_path), name: value}
    with pytest.raises(InvalidInput) as refused:
        open_layers(read_config(environ, {}))
    assert "short" not in str(refused.value)
