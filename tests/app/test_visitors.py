"""Several visitors at one server: nobody reads what another one said."""

from __future__ import annotations

import pytest

from tests.app.conftest import page_of, say, texts


@pytest.fixture
def served(monkeypatch):
    """Serve to others than the person at this machine."""
    monkeypatch.setenv("MEMORY_INSPECTOR_VISITORS", "separate")


def test_second_visitor_sees_nothing_of_the_first(visit, served, case):
    """Case C35: two visitors of one process have separate catalogues, chats and memories."""
    wanted = case("C35")
    first = say(visit(), wanted["input"]["visitor_1_says"])
    second = visit()
    assert texts(second) == wanted["expected"]["check"]["visitor_2_messages"]
    assert page_of(first).user != page_of(second).user
    say(second, "What is my pin?")
    assert "0000" not in " ".join(texts(second))


def test_local_person_finds_their_sessions_in_a_second_tab(visit):
    """On one's own machine a second tab opens the session that was used last."""
    at = say(visit(), "hello from tab one")
    assert texts(visit()) == texts(at)
    assert page_of(at).user == "local"


def test_two_tabs_in_one_session_do_not_overwrite_each_other(visit):
    """The tab that is behind says so and loses nothing of either."""
    one = say(visit(), "from tab one")
    two = visit()
    say(one, "again from tab one")
    say(two, "from tab two")
    assert two.error or "from tab two" in texts(two)
    assert page_of(two).outbox == "from tab two" or "from tab two" in texts(two)
    assert "again from tab one" in texts(one)
