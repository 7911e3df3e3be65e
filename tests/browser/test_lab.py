"""The Tuning lab in a real browser: from a dropped file to other knobs in the Playground."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import expect

from tests.browser.playground import MS, NARROW, Playground

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

STORIES = [
    "Hi, my name is Ana and I'm allergic to peanuts.",
    "I live in Lisbon.",
    "My sister's name is Rita.",
    "I work as a carpenter.",
    *(f"Tell me what the harbour looks like on day {day}, with boats." for day in range(30)),
]
CHAT = [
    message
    for text in STORIES
    for message in (
        {"role": "user", "content": text},
        {"role": "assistant", "content": f"I heard you. {text} The sea is calm and wide today."},
    )
]


def test_drop_accept_sweep_click_apply(serve, browser, tmp_path):
    """A dropped file's proposed questions are swept; the clicked cell's knobs are then in use."""
    file = tmp_path / "ana.json"
    file.write_text(json.dumps(CHAT))
    server = serve()
    tab = Playground(browser, server.url, size=(1440, 2000))
    tab.ready()
    tab.page.get_by_role("link", name="Tuning lab").click()
    expect(tab.page.get_by_text("People tune memory by feel")).to_be_visible(timeout=MS)
    tab.idle()
    tab.shot("lab-1-empty-wide")

    tab.page.get_by_role("radio", name="A file").click()
    tab.page.get_by_test_id("stFileUploaderDropzoneInput").set_input_files(file)
    expect(tab.page.get_by_text("68 messages, 0 recall questions")).to_be_visible(timeout=MS)
    tab.page.get_by_role("radio", name="by the chosen model").click()
    expect(tab.page.get_by_text("is sent the conversation")).to_be_visible(timeout=MS)
    tab.page.get_by_role("button", name="Propose", exact=True).click()
    expect(tab.page.get_by_text("The model proposed 4 new questions")).to_be_visible(timeout=MS)
    tab.page.get_by_role("button", name="Accept all").click()
    expect(tab.page.get_by_text("4 questions to ask", exact=True)).to_be_visible(timeout=MS)
    tab.idle()
    table = tab.page.get_by_test_id("stDataFrame").first.bounding_box()
    assert table is not None
    tab.page.mouse.click(table["x"] + 30, table["y"] + 38 + 17)
    expect(tab.page.get_by_text("3 questions to ask, 1 not used")).to_be_visible(timeout=30_000)
    tab.page.get_by_role("button", name="Accept all").click()
    expect(tab.page.get_by_text("4 questions to ask", exact=True)).to_be_visible(timeout=MS)
    tab.idle()
    tab.page.get_by_role("button", name="Keep it as a session too").click()
    expect(tab.page.get_by_text("Kept as a session and opened")).to_be_visible(timeout=MS)
    tab.page.get_by_role("button", name="Run the sweep").click()
    expect(tab.page.get_by_text("Recommended ★")).to_be_visible(timeout=MS)
    tab.idle()
    tab.shot("lab-2-swept-wide")

    tab.page.locator(".st-key-lab-map .point").first.wait_for(state="attached")
    cells = tab.page.locator(".st-key-lab-map .nsewdrag").first
    cells.scroll_into_view_if_needed()
    box = cells.bounding_box()
    assert box is not None
    across, down = box["x"] + box["width"] / 22, box["y"] + box["height"] * 21 / 22
    tab.page.mouse.move(across, down)
    tab.page.mouse.click(across, down)
    expect(tab.page.get_by_text("Token limit 400, top_k 0", exact=True)).to_be_visible(timeout=MS)
    tab.idle()
    tab.page.get_by_role("button", name="Why not?").first.click()
    expect(tab.page.get_by_text("Stopped.").first).to_be_visible(timeout=MS)
    tab.idle()
    tab.shot("lab-3-cell-wide")
    tab.page.get_by_role("link", name="Its whole life").click()
    expect(tab.page.get_by_text("under the settings of the link")).to_be_visible(timeout=MS)
    expect(tab.page.get_by_text("not in").first).to_be_visible(timeout=MS)
    tab.idle()
    tab.shot("lab-4-why-wide")
    tab.page.get_by_role("link", name="Tuning lab").click()
    expect(tab.page.get_by_text("Token limit 400, top_k 0", exact=True)).to_be_visible(timeout=MS)
    tab.page.get_by_role("button", name="Apply to session").click()

    expect(tab.page.get_by_text("Applied from the Tuning lab")).to_be_visible(timeout=MS)
    tab.ready()
    assert tab.slider("Token limit") == 400
    assert tab.slider("top_k") == 0

    tab.page.get_by_role("link", name="Tuning lab").click()
    expect(tab.page.get_by_text("Recommended ★")).to_be_visible(timeout=MS)
    tab.page.set_viewport_size({"width": NARROW[0], "height": 4600})
    tab.idle()
    tab.shot("lab-5-narrow")
    assert tab.errors == []
    tab.close()
