"""Time travel in process: turns as they were, the difference, the link, the fork."""

from __future__ import annotations

import pytest

from memory_core.forking import forked_from
from memory_core.session import utc_now
from tests.app.conftest import checked, page_of
from tests.app.played import TIGHT, open_page, play
from ui.view_models.sessions_page import session_row

PAGE = "1_Time_travel.py"


@pytest.fixture
def session(engine):
    """Return a session of fourteen turns whose window overflowed."""
    return play(engine)


def shown(at):
    """Return all captions, codes and texts of the page."""
    return "\n".join(e.value for e in (*at.markdown, *at.caption, *at.code, *at.text))


def test_without_a_turn_the_page_teaches_and_leads_to_the_playground(engine):
    """An empty page says what it will show and has the one link that gets there."""
    at = open_page(PAGE)
    assert "slide through them" in shown(at)
    assert not at.slider


def test_every_turn_is_drawn_from_its_own_trace(session, engine):
    """The headline of the budget is that of the turn's stored prompt, at both ends and between."""
    at = open_page(PAGE)
    chat = page_of(at).chat
    for turn in (1, 7, 14):
        at.slider(key="travel-turn").set_value(turn)
        checked(at.run())
        assembly = chat.trace(turn).assembly
        assert any(f"{assembly.tokens:,} of " in c.value for c in at.caption)
        assert at.query_params["turn"] in (str(turn), [str(turn)])


def test_steps_and_play_move_a_turn_at_a_time(session):
    """Back and On step, Play goes on by itself and stops at the end."""
    at = open_page(PAGE)
    at.button(key="travel-back").click()
    checked(at.run())
    assert page_of(at).place.turn == 13
    at.button(key="travel-play").click()
    checked(at.run())
    for _ in range(4):
        checked(at.run())
    assert page_of(at).place.turn == 14
    assert not page_of(at).place.playing


def test_difference_names_what_left_and_what_entered(session):
    """Against any other turn the moves are told with turn and speaker, and the budget beside."""
    at = open_page(PAGE)
    at.segmented_control(key="travel-fixed").set_value("a turn of my choice")
    checked(at.run())
    at.number_input(key="travel-against").set_value(2)
    checked(at.run())
    said = shown(at)
    assert "From turn 2 to turn 14" in said
    assert "- turn 1 you:" in said
    assert "+ turn 13 bot:" in said


def test_link_opens_its_session_at_its_turn(session, engine):
    """The address of a turn opens just that turn, whatever session was used last."""
    play(engine, turns=2, title="Another")
    at = open_page(PAGE, session=session.key.session, turn="5")
    assert page_of(at).info.key == session.key
    assert page_of(at).place.turn == 5


@pytest.mark.parametrize("turn", ["99", "0", "-1", "five", "\uff11"])
def test_link_to_no_turn_is_refused_in_words(session, turn):
    """A link that leads nowhere says so, and the page shows the newest turn."""
    at = open_page(PAGE, session=session.key.session, turn=turn)
    assert at.error
    assert "another session" not in at.error[0].value
    assert page_of(at).place.turn == 14


def test_link_to_a_session_of_somebody_else_is_refused(session):
    """Another user's or a made-up session is not opened."""
    at = open_page(PAGE, session="../../etc/passwd", turn="1")
    assert "not among yours" in at.error[0].value


def test_fork_holds_what_was_said_up_to_its_turn(session, engine):
    """Fork here makes a session of its own with the turns so far, the origin noted."""
    at = open_page(PAGE, session=session.key.session, turn="5")
    at.button(key="travel-fork").click()
    at.run()
    fork = next(i for i in engine.sessions("local") if i.origin)
    assert forked_from(fork) == (session.key.session, 5)
    assert (fork.turns, session.turns) == (5, 14)
    forked = engine.chat(fork.key, settings=TIGHT, model=page_of(at).model)
    original = engine.chat(session.key, settings=TIGHT, model=page_of(at).model)
    assert forked.trace(5).assembly.messages == original.trace(5).assembly.messages
    assert not engine.store.records("local", pending=True)
    assert "forked after turn 5" in session_row(fork, now=utc_now()).line


def test_chart_over_turns_follows_once_the_ledger_is_folded(session):
    """After the traces were read the chart stands there with its description."""
    at = open_page(PAGE)
    for _ in range(5):
        checked(at.run())
    assert page_of(at).chronicle.complete
    assert len(page_of(at).chronicle.ledger.columns) == 14


def test_all_panels_at_once(session):
    """Every panel of the Playground can be drawn for a past turn, all on one page."""
    at = open_page(PAGE, session=session.key.session, turn="9")
    at.segmented_control(key="travel-panel").set_value("All")
    checked(at.run())
    assert not at.error
    assert not any(b.key == "state-edit" for b in at.button)
