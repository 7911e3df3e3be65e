"""A three-way comparison in a real browser: run, jump, look, save, reopen by its address."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.playground import MS, NARROW, Playground

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]


def test_three_memories_of_one_conversation(serve, browser):
    """Three configurations of a sample part at a turn that a click goes to; saved, they reopen."""
    server = serve()
    tab = Playground(browser, f"{server.url}/Compare", size=(1440, 1400))
    expect(tab.page.get_by_text("two to six memories side by side")).to_be_visible(timeout=MS)
    tab.page.get_by_role("button", name="Try it with a sample").click()
    expect(tab.page.get_by_text("22 turns, 44 messages")).to_be_visible(timeout=MS)
    tab.idle()
    tab.shot("compare-1-setup-wide")

    tab.page.get_by_role("button", name="Compare", exact=True).click()
    expect(tab.page.get_by_text("What each remembers")).to_be_visible(timeout=MS)
    tab.idle()
    jump = tab.page.get_by_role("button", name="Go to turn")
    first = jump.inner_text().split()[-1]
    tab.page.get_by_role("button", name="Differs next").click()
    tab.idle()
    expect(tab.page.get_by_text(f"Turn {first} · you:")).to_have_count(0)
    jump.click()
    expect(tab.page.get_by_text(f"Turn {first} · you:")).to_be_visible(timeout=MS)
    names = ("A · Layered, 1,600", "B · Layered, 800", "C · ChatMemoryBuffer, 1,200")
    for name in names:
        expect(tab.page.locator("strong", has_text=name).first).to_be_visible(timeout=MS)
    tab.idle()
    tab.page.set_viewport_size({"width": 1440, "height": 3600})
    tab.idle()
    tab.shot("compare-2-result-wide")

    tab.page.get_by_label("Name of this comparison").fill("Three memories")
    tab.page.get_by_role("button", name="Save").click()
    expect(tab.page.get_by_text("Saved as “Three memories”")).to_be_visible(timeout=MS)
    tab.idle()
    with tab.page.expect_download() as download:
        tab.page.get_by_role("button", name="HTML report").click()
    report = download.value.path().read_text(encoding="utf-8")
    assert "Three memories: 3 configurations side by side" in report
    assert "comparison=" in tab.page.url
    tab.page.reload()
    expect(tab.page.get_by_text("“Three memories”").first).to_be_visible(timeout=MS)
    tab.page.set_viewport_size({"width": NARROW[0], "height": 5600})
    tab.idle()
    expect(tab.page.get_by_test_id("stSkeleton")).to_have_count(0, timeout=MS)
    tab.shot("compare-3-narrow")
    assert tab.errors == []
    tab.close()
