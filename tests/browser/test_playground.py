"""What a person does, in a real browser on a real server, from first visit to restart."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from memory_core.samples import load_sample
from memory_core.stores.opening import open_store
from tests.browser.playground import MS, NARROW, Playground

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]


def test_a_sample_its_questions_the_knobs_and_a_restart(serve, browser):
    """A sample is played, asked about, looked at under other knobs, and found after a restart.

    Cases C40 and C41: told to end, the server ends within seconds, its log without a complaint.
    """
    sample = load_sample("bakery")
    server = serve()
    tab = Playground(browser, server.url)
    tab.ready()
    tab.shot("1-empty-wide")
    tab.play(sample.title)
    assert tab.messages[-1] == sample.turns[-1].assistant
    tab.shot("2-played-wide")

    answered = {q.id: q.answered_in(tab.say(q.question)) for q in sample.questions if q.answer}
    assert sum(answered.values()) >= 0.8 * len(answered), answered
    turns = len(sample.turns) + len(answered)

    sent = tab.headline()
    tab.slide("Token limit", "PageDown")
    tab.slide("Token limit", "ArrowLeft", 3)
    expect(tab.page.get_by_text("What your change does")).to_be_visible(timeout=MS)
    lower = tab.headline()
    assert lower != sent
    limit = tab.slider("Token limit")
    assert f"of {limit:,.0f} tokens" in lower
    tab.panel("Retrieved")
    before = tab.page.get_by_role("radio", name="Retrieved").last.inner_text()
    tab.slide("top_k", "Home")
    expect(tab.page.get_by_role("radio", name="Retrieved").last).not_to_have_text(before)
    tab.slide("top_k", "ArrowRight")
    for panel in ("Buffer", "Summary", "State", "Prompt", "Turn", "All"):
        tab.panel(panel)
        expect(tab.page.get_by_test_id("stAlertContainer")).to_have_count(0)
    tab.shot("3-all-panels-wide")
    tab.panel("Buffer")
    messages, budget = tab.messages, tab.headline()
    for page in ("Time_travel", "Why", "Compare", "Tuning_lab", "Sessions", "Storage"):
        tab.page.goto(f"{server.url}/{page}")
        tab.page.get_by_role("link", name="Playground").wait_for()
        tab.idle()
    assert (tab.errors, tab.outside) == ([], [])  # all of it comes from this machine
    tab.close()
    server.stop()
    log = server.log.read_text()
    assert "Traceback" not in log
    assert "telemetry" not in log.lower()

    store = open_store(None, folder=server.folder / "data")
    (session,) = [info for info in store.sessions("local") if info.turns]
    assert session.turns == turns, "a knob made a turn"
    store.close()

    server.start()
    tab = Playground(browser, server.url)
    tab.ready()
    assert tab.messages == messages
    assert tab.slider("Token limit") == limit
    assert tab.slider("top_k") == 1
    tab.page.get_by_role("radio", name="Next prompt").click()
    tab.idle()
    assert tab.headline() == budget
    assert tab.say(sample.questions[0].question)
    tab.shot("4-restarted-wide")
    tab.close()
    tab = Playground(browser, server.url, size=NARROW, scheme="dark")
    expect(tab.page.get_by_role("button", name="Regenerate")).to_be_visible(timeout=MS)
    tab.idle()
    tab.shot("5-narrow-dark")
    width = tab.page.evaluate("document.documentElement.scrollWidth")
    assert width <= NARROW[0], "the page scrolls sideways"
    tab.close()


def test_typed_at_once_answered_when_ready(serve, browser):
    """The chat takes a message as soon as it is on screen; the answer follows."""
    tab = Playground(browser, serve().url)
    tab.input.fill("Hi, I'm Dana and I can't eat nuts")
    tab.input.press("Enter")
    expect(tab.page.get_by_text("Hi, I'm Dana and I can't eat nuts").first).to_be_visible()
    expect(tab.page.get_by_role("button", name="Regenerate")).to_be_visible(timeout=MS)
    tab.idle()
    assert len(tab.messages) == 2
    assert tab.messages[0] == "Hi, I'm Dana and I can't eat nuts"
    tab.close()


def test_text_on_screen_is_the_stored_text(shared, browser, case):
    """Case C30 in a browser: chat and prompt show every character as it was written."""
    tab = Playground(browser, shared.url)
    tab.ready()
    wanted = case("C30")["input"]["texts"]
    for text in wanted:
        tab.input.fill(text)
        tab.input.press("Enter")
        expect(tab.page.get_by_role("button", name="Regenerate")).to_be_visible(timeout=MS)
        expect(tab.input).to_be_enabled(timeout=MS)
        tab.idle()
    shown = tab.page.get_by_test_id("stChatMessage").get_by_test_id("stText")
    assert [t for t in shown.all_inner_texts() if t in wanted] == wanted
    tab.panel("Prompt")
    prompt = tab.page.get_by_role("group", name="The exact prompt").inner_text()
    assert wanted[-1] in prompt
    assert tab.errors == []
    tab.close()


def test_second_visitor_reads_nothing_of_the_first(shared, browser, case):
    """Case C35 on a real server: what one browser said is not in the other."""
    said = case("C35")["input"]["visitor_1_says"]
    one = Playground(browser, shared.url)
    one.ready()
    one.say(said)
    two = Playground(browser, shared.url)
    two.ready()
    assert two.messages == []
    assert said not in two.page.inner_text("body")
    assert "0000" not in two.say("What is my pin?")
    one.close()
    two.close()


def test_everything_is_reached_by_the_keyboard(shared, browser):
    """Tab leads from the sidebar through the chat to the panels; Enter and arrows do the rest."""
    tab = Playground(browser, shared.url)
    tab.ready()
    tab.say("Hi, I'm Dana and I can't eat nuts")
    reached = set()
    for _ in range(90):
        tab.page.keyboard.press("Tab")
        reached.add(
            tab.page.evaluate(
                "(e => e.getAttribute('aria-label') || e.innerText || e.tagName)"
                "(document.activeElement)"
            )
        )
    text = " | ".join(reached)
    for wanted in ("New chat", "Token limit", "top_k", "Regenerate", "Edit and resend"):
        assert any(wanted in label for label in reached), (wanted, text)
    tab.close()
