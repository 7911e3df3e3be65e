"""When something fails: a clear message, the next step, nothing lost, never a traceback."""

from __future__ import annotations

import socket

from memory_core.chat import Chat
from memory_core.errors import StoreUnavailable
from memory_core.models.catalogue import ModelChoice
from tests.app.conftest import PATIENCE, checked, page_of, say, settled, texts
from ui import resources, sessions
from ui.problems import UNEXPECTED

SECRET = "sk-test-4f9aa1c3"


def closed_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def shown(at) -> str:
    """Return all errors as one text, without the escapes of Markdown."""
    return "\n".join(error.value for error in at.error).replace("\\", "")


def test_dead_url_keeps_the_message_and_offers_retry(visit, engine):
    """Nothing listens: the message stands in the chat, the error says what to do."""
    at = visit()
    url = f"http://127.0.0.1:{closed_port()}/v1"
    model = ModelChoice("openai_like", "m", url, timeout_seconds=5, retries=0)
    sessions.use_model(page_of(at), engine, model)
    say(at, "Is anybody there?")
    assert texts(at) == ["Is anybody there?"]
    assert "Your message is kept" in shown(at)
    assert "Traceback" not in shown(at)
    sessions.use_model(page_of(at), engine, ModelChoice())
    at.button(key="chat-retry").click()
    settled(at.run())
    assert len(texts(at)) == 2
    assert texts(at)[0] == "Is anybody there?"
    assert not at.error


def test_without_its_vector_server_the_chat_goes_on_under_a_banner(request, monkeypatch):
    """Chroma is away: turns are answered, a banner says what is missing and what happens next."""
    monkeypatch.setenv("CHROMA_URL", f"http://127.0.0.1:{closed_port()}")
    at = say(request.getfixturevalue("visit")(), "I'm Dana and I can't eat nuts")
    checked(at.run())
    banner = "\n".join(warning.value for warning in at.warning)
    assert "Nothing answers at" in banner
    assert "The chat goes on" in banner
    assert len(texts(at)) == 2
    assert not at.error


def test_missing_key_says_so_before_anything_is_sent(visit):
    """OpenAI without a key: the form refuses in words and the model stays as it was."""
    at = visit()
    page_of(at).dialog = "model"
    checked(at.run())
    at.selectbox(key="model-kind").set_value("openai")
    checked(at.run())
    at.button(key="model-use").click()
    checked(at.run())
    assert "key" in shown(at)
    assert page_of(at).model == ModelChoice()


def test_session_with_a_model_that_has_no_key_can_still_be_read(visit, engine):
    """A session kept with OpenAI opens without a key; only sending asks for it."""
    at = say(visit(), "hello")
    page = page_of(at)
    page.api_key = SECRET
    sessions.use_model(page, engine, ModelChoice("openai", "gpt-4o-mini"))
    again = visit()
    assert texts(again) == texts(at)
    again.chat_input[0].set_value("and now?")
    settled(again.run())
    assert "key" in shown(again)
    assert texts(again)[-1] == "and now?" or page_of(again).outbox == "and now?"


def test_key_is_kept_nowhere(visit, engine, tmp_path):
    """A typed key is in no file of the store and in no link."""
    from ui.sharing import link

    at = say(visit(), "hello")
    page = page_of(at)
    page.api_key = SECRET
    sessions.use_model(page, engine, ModelChoice("openai", "gpt-4o-mini"))
    at.session_state["model-key"] = SECRET
    checked(at.run())
    assert SECRET not in link("http://localhost", page.settings)
    assert SECRET not in repr(page)
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or SECRET.encode() not in path.read_bytes(), path


def test_unexpected_failure_is_a_sentence_not_a_traceback(visit, monkeypatch):
    """A bug shows as one sentence with a way on; its details go to the log."""
    at = visit()

    def broken(self, text):
        raise RuntimeError("secret detail")
        yield

    stream = Chat.stream
    monkeypatch.setattr(Chat, "stream", broken)
    say(at, "hello?")
    assert UNEXPECTED in shown(at)
    assert "secret detail" not in shown(at)
    monkeypatch.setattr(Chat, "stream", stream)
    assert page_of(at).outbox == "hello?"
    at.button(key="chat-retry").click()
    settled(at.run())
    assert texts(at)[0] == "hello?"


def test_broken_panel_leaves_the_rest_of_the_page(visit, monkeypatch):
    """One panel that fails says so in its place; chat and budget go on."""
    from ui import inspector

    at = say(visit(), "hello")
    panels = {**inspector.PANELS, "Buffer": lambda *_: 1 / 0}
    monkeypatch.setattr(inspector, "PANELS", panels)
    checked(at.run())
    assert "the panel Buffer" in shown(at)
    assert len(texts(at)) == 2


def test_engine_that_does_not_open_can_be_tried_again(monkeypatch, tmp_path):
    """A store that is down is told with a next step; the second try opens it."""
    from streamlit.testing.v1 import AppTest

    from memory_core import engine as engines
    from tests.app.conftest import APP

    real, tries = engines.open_engine, []

    def flaky(config, **more):
        tries.append(config)
        if len(tries) == 1:
            raise StoreUnavailable("The store cannot be reached.", next_step="Start it.")
        return real(config, **more)

    monkeypatch.setattr(engines, "open_engine", flaky)
    at = checked(AppTest.from_file(APP, default_timeout=PATIENCE).run())
    try:
        resources.loader().wait(PATIENCE)
    except StoreUnavailable:
        checked(at.run())
    assert "Start it." in shown(at)
    at.button(key="engine-again").click()
    checked(at.run())
    opened = resources.loader().wait(PATIENCE)
    checked(at.run())
    assert not at.error
    assert at.button(key="session-new")
    opened.close()


def test_store_that_goes_away_loses_no_message(visit, engine, monkeypatch):
    """When a turn cannot be stored the page says so, keeps the text, and Retry stores it."""
    at = say(visit(), "hello")
    commit = type(engine.store).commit

    def down(self, key, record):
        raise StoreUnavailable("The disk is full.")

    monkeypatch.setattr(type(engine.store), "commit", down)
    say(at, "Do not lose this.")
    assert "The disk is full." in shown(at) or "Do not lose this." in texts(at)
    assert "Do not lose this." in (*texts(at), page_of(at).outbox)
    monkeypatch.setattr(type(engine.store), "commit", commit)
    retry = [button for button in at.button if button.key == "chat-retry"]
    if retry:
        retry[0].click()
        settled(at.run())
    assert "Do not lose this." in texts(at)
    assert not at.error
