"""Looking back in a real browser: a click in the matrix, a fork, why-not and a counterfactual."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from memory_core.config import read_config
from memory_core.engine import open_engine
from tests.app.played import play
from tests.browser.conftest import Server
from tests.browser.playground import MS, NARROW, Playground

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    """Play a session into a folder and serve the app over it; return its address and the id."""
    folder = tmp_path_factory.mktemp("inspect")
    engine = open_engine(read_config({"MEMORY_INSPECTOR_DATA": str(folder / "data")}, {}))
    key = play(engine).key
    engine.close()
    server = Server(folder)
    server.start()
    yield server.url, key.session
    server.stop()


@pytest.fixture
def tab(browser, session):
    """Open one browser tab."""
    opened = Playground(browser, session[0])
    yield opened.page
    opened.close()
    assert not opened.errors


def go(tab, session, page, ready, **query):
    """Open a page of the session and wait for a text."""
    link = "&".join(f"{name}={value}" for name, value in query.items())
    tab.goto(f"{session[0]}/{page}?session={session[1]}&{link}")
    tab.get_by_text(ready).first.wait_for()


def test_click_on_a_cell_tells_its_life(tab, session):
    """A click in the matrix chooses the message and the turn of the cell under the pointer."""
    go(tab, session, "Why", "Its life", turn=14)
    cells = tab.locator(".st-key-why-matrix .nsewdrag").first
    cells.wait_for()
    tab.locator(".st-key-why-matrix .point").first.wait_for(state="attached")
    box = cells.bounding_box()
    # 28 messages, newest on top: the second row from above is what was said in turn 14
    x, y = box["x"] + box["width"] * 0.97, box["y"] + box["height"] * 1.5 / 28
    tab.mouse.move(x, y)
    tab.mouse.click(x, y)
    tab.get_by_text(re.compile("Turn 14.* said by the user")).first.wait_for()


def test_counterfactual_stands_side_by_side(tab, session):
    """Replaying a turn without a message shows both prompts and both answers."""
    go(tab, session, "Why", "Its life", turn=3)
    tab.get_by_role("button", name="Replay the turn").click()
    tab.get_by_text("As it would be").first.wait_for()
    assert tab.get_by_text("Answer").count() >= 2


def test_fork_goes_on_apart_from_its_original(browser, tab, session):
    """Fork here opens a session of its own that can be chatted on; the original stays."""
    go(tab, session, "Time_travel", "Fork here", turn=5)
    tab.get_by_role("button", name="Fork here").click()
    tab.get_by_text("was forked from").wait_for()
    fork = Playground(browser, session[0])
    fork.ready()
    before = len(fork.messages)
    assert "almond" not in fork.say("I also sell bread to the school.").lower()
    assert len(fork.messages) == before + 2
    fork.shot("fork-wide")
    fork.page.set_viewport_size({"width": NARROW[0], "height": NARROW[1]})
    fork.shot("fork-narrow")
    fork.close()
    go(tab, session, "Time_travel", "Turn of 14", turn=14)


def test_a_change_that_is_enough_is_tried_with_one_click(tab, session):
    """The smallest change opens the Playground with that setting, and the thing is in."""
    go(tab, session, "Why", "Its life", turn=13)
    turn = tab.get_by_role("spinbutton", name="At turn")
    turn.fill("14")
    turn.press("Enter")
    tab.get_by_text("the prompt of turn 14").wait_for()
    enough = tab.get_by_test_id("stMainBlockContainer").get_by_role("button", name="≥").first
    enough.wait_for()
    words = enough.inner_text().strip().split("\n")[-1]
    enough.click()
    tab.get_by_text(f"What if {words}").wait_for(timeout=MS)
    expect(tab.get_by_text(re.compile(r"\+[1-9]\d* in  ")).first).to_be_visible(timeout=MS)
