"""Short form of the outage test with real servers; ``python -m tests.outage`` is the full one."""

from __future__ import annotations

import pytest

from tests.outage import SERVERS, run, run_vectors
from tests.servers import chroma_server


@pytest.mark.parametrize(
    ("name", "freeze"),
    [("redis", False), ("redis", True), ("postgresql", False)],
    ids=["redis killed", "redis hanging", "postgresql killed"],
)
def test_a_chat_goes_on_through_an_outage(tmp_path, name, freeze):
    """With the server killed or hanging no turn is lost, doubled or refused; a banner tells."""
    server = SERVERS[name](tmp_path)
    if server is None:
        pytest.skip(f"there is no {name} server binary here")
    found = run(server, tmp_path, seconds=0.3, freeze=freeze, timeout=2, pause=0.15)
    assert (found["lost"], found["double"], found["conflicts"]) == (0, 0, 0)
    assert found["errors"] == {}
    assert found["during"] > 0
    assert found["in_order"]
    assert found["memories"] == found["turns"]
    assert "from memory" in found["banner"][0]


def test_a_chat_goes_on_without_its_vector_server(tmp_path):
    """With Chroma away turns are kept and said to be half searched; then all are indexed."""
    found = run_vectors(chroma_server(tmp_path / "chroma"), tmp_path, seconds=0.3, freeze=False)
    assert (found["lost"], found["double"], found["errors"]) == (0, 0, {})
    assert found["during"] > 0
    assert found["in_order"]
    assert (found["memories"], found["without_vector"], found["orphans"]) == (found["turns"], 0, 0)
    assert found["recalled"]
    assert any("The vector index cannot be used" in told for told in found["banner"])
