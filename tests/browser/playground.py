"""The Playground as seen in a browser: what the tests click and read."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.conftest import PATIENCE, SHOTS

MS = PATIENCE * 1000
_ARRIVAL = 300  # milliseconds from a click to the run it causes
WIDE, NARROW = (1440, 1000), (390, 844)


class Playground:
    """One tab on the Playground.

    ``errors`` collects what the page reports as errors, ``outside`` what it asks other servers for.
    """

    def __init__(
        self, browser: Browser, url: str, *, size: tuple[int, int] = WIDE, scheme: str = "light"
    ) -> None:
        self._context = browser.new_context(
            viewport={"width": size[0], "height": size[1]}, color_scheme=scheme
        )
        self.url = url
        self.page: Page = self._context.new_page()
        self.page.set_default_timeout(MS)
        self.errors: list[str] = []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.outside: list[str] = []
        self.page.on("request", lambda request: self._asked(request.url))
        self.page.goto(url)

    def _asked(self, url: str) -> None:
        if not url.startswith((self.url, self.url.replace("http", "ws", 1), "data:", "blob:")):
            self.outside.append(url)

    def close(self) -> None:
        """Close the tab."""
        self._context.close()

    @property
    def input(self) -> Locator:
        """The chat input."""
        return self.page.get_by_test_id("stChatInputTextArea")

    @property
    def messages(self) -> list[str]:
        """The texts in the chat, character for character."""
        return self.page.get_by_test_id("stChatMessage").get_by_test_id("stText").all_inner_texts()

    def ready(self) -> None:
        """Wait until the engine is there."""
        expect(self.page.get_by_role("button", name="New chat")).to_be_enabled(timeout=MS)
        self.idle()

    def idle(self) -> None:
        """Wait until no script is running, nor is about to: a click takes a moment to arrive."""
        self.page.wait_for_timeout(_ARRIVAL)
        app = self.page.get_by_test_id("stApp")
        expect(app).to_have_attribute("data-test-script-state", "notRunning", timeout=MS)

    def say(self, text: str) -> str:
        """Send a message and return the answer."""
        before = len(self.messages)
        self.input.fill(text)
        self.input.press("Enter")
        shown = self.page.get_by_test_id("stChatMessage")
        expect(shown.get_by_text(text, exact=True).last).to_be_visible(timeout=MS)
        expect(self.page.get_by_role("button", name="Regenerate")).to_be_visible(timeout=MS)
        expect(self.input).to_be_enabled(timeout=MS)
        self.idle()
        assert len(self.messages) >= min(before + 2, 2)
        return self.messages[-1]

    def play(self, title: str) -> None:
        """Play a sample to its end."""
        self.page.get_by_role("button", name=title).click()
        expect(self.page.get_by_role("button", name="Regenerate")).to_be_visible(timeout=MS)
        self.idle()

    def slide(self, label: str, key: str, times: int = 1) -> None:
        """Move a slider by the keyboard."""
        handle = self.page.get_by_role("slider", name=label).first
        handle.focus()
        for _ in range(times):
            handle.press(key)
        self.idle()

    def slider(self, label: str) -> float:
        """Return where a slider stands."""
        handle = self.page.get_by_role("slider", name=label).first
        return float(handle.input_value())

    def panel(self, name: str) -> None:
        """Turn to a panel."""
        self.page.get_by_role("radio", name=name).last.click()
        self.idle()

    def headline(self) -> str:
        """Return the tokens against limit and window, as the budget bar says them."""
        return self.page.get_by_text("kept for the reply").first.inner_text()

    def shot(self, name: str) -> Path:
        """Save what is in sight for a person to look at."""
        SHOTS.mkdir(parents=True, exist_ok=True)
        path = SHOTS / f"{name}.png"
        self.page.screenshot(path=path, full_page=True)
        return path
