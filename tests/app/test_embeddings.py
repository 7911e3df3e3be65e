"""Another embedding model: a collection of its own, kept with the session, filled on request."""

from __future__ import annotations

from memory_core.models.catalogue import OPENAI_LIKE, EmbeddingChoice
from tests import wire as wire_server
from tests.app.conftest import checked, page_of, say


def open_form(at):
    """Open the model dialog, which holds the embedding form."""
    page_of(at).dialog = "model"
    return checked(at.run())


def test_another_model_opens_another_collection_and_offers_to_re_embed(visit, engine):
    """The choice is kept with the session; memories wait until they are embedded on request."""
    with wire_server.serve() as wire:
        at = say(visit(), "My locker code is 4417 blue.")
        open_form(at)
        at.selectbox(key="embed-kind").set_value(OPENAI_LIKE)
        checked(at.run())
        at.text_input(key="embed-name-openai_like").set_value("wire-embed")
        at.text_input(key="embed-url").set_value(wire.url)
        at.button(key="embed-use").click()
        checked(at.run())
        page = page_of(at)
        assert page.embedding == EmbeddingChoice(OPENAI_LIKE, "wire-embed", wire.url)
        longterm = page.chat.session.longterm
        assert longterm.standing("local").waiting == 1
        at.button(key="embed-again").click()
        checked(at.run())
        assert longterm.standing("local").waiting == 0
        assert len([p for p in wire.paths if p.endswith("/embeddings")]) >= 1
        again = visit(session=page.info.key.session)
        assert page_of(again).embedding == page.embedding
        assert engine.longterm.standing("local").waiting == 0


def test_a_choice_that_cannot_be_used_says_so_and_changes_nothing(visit):
    """An empty base URL is refused in one sentence; the model stays."""
    at = open_form(say(visit(), "hello"))
    at.selectbox(key="embed-kind").set_value(OPENAI_LIKE)
    checked(at.run())
    at.text_input(key="embed-url").set_value("")
    at.button(key="embed-use").click()
    checked(at.run())
    assert any("base URL" in error.value for error in at.error)
    assert page_of(at).embedding is None
