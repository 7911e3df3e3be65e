"""The page in process: AppTest over a real engine in a folder of its own, offline."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from streamlit.runtime.forward_msg_queue import ForwardMsgQueue
from streamlit.testing.v1 import AppTest

from memory_core.engine import Engine
from ui import resources
from ui.state import PageState

APP = str(Path(__file__).resolve().parents[2] / "app.py")
PATIENCE = 120  # seconds; a busy machine may be slow, nothing is timed


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep everything of a test in its own folder, without keys from outside."""
    monkeypatch.setenv("MEMORY_INSPECTOR_DATA", str(tmp_path / "data"))
    for name in ("MEMORY_STORE_URL", "CHROMA_URL", "CHROMA_PATH", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def engine() -> Iterator[Engine]:
    """Open the engine that the page will find."""
    opened = resources.loader().wait(PATIENCE)
    yield opened
    opened.close()


@pytest.fixture
def visit(engine: Engine) -> Callable[..., AppTest]:
    """Return a function that opens the page as a visitor would, engine ready."""

    def open_page(**query: str) -> AppTest:
        at = AppTest.from_file(APP, default_timeout=PATIENCE)
        for name, value in query.items():
            at.query_params[name] = value
        return checked(at.run())

    return open_page


class Frames:
    """What goes to the browser: the sizes in bytes of each rerun's messages, newest rerun last."""

    def __init__(self) -> None:
        self.reruns: list[list[int]] = [[]]

    def clear(self) -> None:
        """Forget what was sent so far."""
        self.reruns = [[]]

    def most(self) -> tuple[int, int]:
        """Return the most messages and the most bytes that any rerun sent."""
        return max(map(len, self.reruns)), max(map(sum, self.reruns))


@pytest.fixture
def frames(monkeypatch: pytest.MonkeyPatch) -> Frames:
    """Return a record of what goes to the browser from now on."""
    sent = Frames()
    enqueue, clear = ForwardMsgQueue.enqueue, ForwardMsgQueue.clear

    def counted(self: ForwardMsgQueue, msg: Any) -> None:
        sent.reruns[-1].append(msg.ByteSize())
        enqueue(self, msg)

    def started(self: ForwardMsgQueue, *args: Any, **kwargs: Any) -> None:
        sent.reruns.append([])
        clear(self, *args, **kwargs)

    monkeypatch.setattr(ForwardMsgQueue, "enqueue", counted)
    monkeypatch.setattr(ForwardMsgQueue, "clear", started)
    return sent


def checked(at: AppTest) -> AppTest:
    """Return the page if no exception is on it."""
    assert not at.exception, [e.value for e in at.exception]
    return at


def page_of(at: AppTest) -> PageState:
    """Return the visitor's state."""
    return at.session_state["memory_inspector"]


def say(at: AppTest, text: str) -> AppTest:
    """Send a message and run until it is answered."""
    at.chat_input[0].set_value(text)
    return settled(at.run())


def settled(at: AppTest) -> AppTest:
    """Run until no turn is running; a browser would look in several times a second."""
    live = page_of(at).live
    while live is not None:
        live.join(PATIENCE)
        at.run()
        live = page_of(at).live
    return checked(at)


def named(widgets: Iterable[Any], name: str) -> Any:
    """Return the widget of this name; its key carries a number that grows with the page."""
    return next(w for w in widgets if w.key and re.fullmatch(rf"{name}-\d+", w.key))


def texts(at: AppTest) -> list[str]:
    """Return the texts in the chat as shown."""
    return [text.value for message in at.chat_message for text in message.text]
