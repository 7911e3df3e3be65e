"""The Playground as a person uses it: chat, panels, knobs, samples."""

from __future__ import annotations

import asyncio
import threading

import pytest
from streamlit.testing.v1 import AppTest

from memory_core.models.offline.llm import OfflineLLM
from tests.app.conftest import APP, PATIENCE, checked, named, page_of, say, settled, texts
from ui import inspector, resources

NUTS = "Hi, I'm Dana, I run a bakery in Porto and I can't eat nuts"


def captions(at: AppTest) -> str:
    """Return all captions as one text."""
    return "\n".join(caption.value for caption in at.caption)


def tables(at: AppTest) -> list[str]:
    """Return the texts in all tables."""
    return [str(v) for table in at.dataframe for v in table.value.to_numpy().ravel()]


def turn(at: AppTest, knob: str, value: float) -> None:
    """Turn a knob: that reruns some fragments only, so the whole page is drawn once more."""
    named(at.slider, f"knob-{knob}").set_value(value)
    checked(at.run())
    checked(at.run())


def test_frame_is_drawn_before_the_engine_is_there(monkeypatch):
    """The first run shows input, knobs and what panels will show, without an engine."""
    monkeypatch.setattr(resources.Loader, "start", lambda self: None)
    at = checked(AppTest.from_file(APP, default_timeout=PATIENCE).run())
    assert at.chat_input
    assert not at.chat_input[0].disabled
    assert named(at.slider, "knob-token_limit").value == 1600
    assert named(at.slider, "knob-top_k").value == 4
    assert "engine is loading" in captions(at)


def test_every_weight_of_a_search_is_a_knob(visit, engine):
    """What a memory's score is made of can be turned, and is used and kept with the session."""
    at = visit()
    at.session_state["more-settings"] = True
    checked(at.run())
    weights = {
        "weight_dense": 0.5,
        "weight_bm25": 2.0,
        "weight_neighbours": 0.1,
        "weight_recency": 0.3,
        "recency_days": 7.0,
        "diversity": 0.2,
    }
    for name, value in weights.items():
        named(at.number_input, f"knob-{name}").set_value(value)
        checked(at.run())
    settings = page_of(at).settings
    assert {name: getattr(settings, name) for name in weights} == weights


def test_each_hit_shows_what_its_score_is_made_of(visit, engine):
    """The signals of every memory found stand in its row and sum to its score."""
    at = visit()
    say(at, NUTS)
    say(at, "What can't I eat?")
    page_of(at).panel = "Retrieved"
    checked(at.run())
    rows = next(t.value for t in at.dataframe if "signals" in t.value.columns)
    assert len(rows)
    for score, signals in zip(rows["score"], rows["signals"], strict=True):
        parts = [float(part.rsplit(" ", 1)[1]) for part in signals.split(" + ")]
        assert abs(sum(parts) - score) < 0.03


def test_message_sent_before_the_engine_is_there_is_answered(monkeypatch):
    """What is typed while the engine loads is shown, kept, and answered when it is ready."""
    start = resources.Loader.start
    monkeypatch.setattr(resources.Loader, "start", lambda self: None)
    at = checked(AppTest.from_file(APP, default_timeout=PATIENCE).run())
    at.chat_input[0].set_value(NUTS)
    checked(at.run())
    assert texts(at) == [NUTS]
    monkeypatch.setattr(resources.Loader, "start", start)
    opened = resources.loader().wait(PATIENCE)
    settled(at.run())
    assert texts(at)[0] == NUTS
    assert len(texts(at)) == 2
    opened.close()


def test_turn_is_answered_and_shown_in_every_panel(visit):
    """After a turn each panel shows the prompt that was sent, and nothing fails."""
    at = say(visit(), NUTS)
    assert len(texts(at)) == 2
    assert "of 1,600 tokens" in captions(at)
    for name in (*inspector.PANELS, inspector.ALL):
        page_of(at).panel = name
        checked(at.run())
        assert not at.error, name
    assert any(NUTS[:40] in value for value in tables(at))
    assert any("bakery in Porto" in html.value for html in at.html)


def test_answer_comes_from_memory(visit):
    """The offline reader answers from what it was given and says where it stood."""
    at = say(say(visit(), NUTS), "What can't I eat?")
    assert "nuts" in texts(at)[-1]


def test_knob_changes_the_next_prompt_without_a_model_call(visit, monkeypatch):
    """A lower limit shows at once what would leave; no model is asked, no turn is made."""
    at = visit()
    for number in range(8):
        say(at, f"Fact number {number}: the shelf {number} holds {number * 3} loaves of rye bread.")
    turns = page_of(at).chat.turns
    for name in ("chat", "stream_chat", "achat", "astream_chat", "complete"):
        monkeypatch.setattr(OfflineLLM, name, None)
    turn(at, "token_limit", 704)
    scene = page_of(at).scene[1]
    assert not scene.sent
    assert scene.what_if.newly_out
    (told,) = [code.value for code in at.code if "What your change does" in code.value]
    assert "\n- B turn " in told
    assert page_of(at).chat.turns == turns


def test_limit_below_the_fixed_part_is_explained_and_can_be_undone(visit, case):
    """Case C03: a limit under the fixed part says so; moving it back restores the view."""
    case("C03")
    at = say(visit(), NUTS)
    turn(at, "token_limit", 64)
    assert "no room is left for history" in captions(at)
    turn(at, "token_limit", 1600)
    assert "no room is left" not in captions(at)


def two_views() -> None:
    """Draw a page with the knobs and, on demand, another view without them."""
    import streamlit as st

    from ui import knobs, opening
    from ui.state import mine

    opening.prepare(mine())
    if st.toggle("Another view", key="away"):
        st.write("no knobs here")
    else:
        knobs.draw(redraw=())


def test_setting_survives_a_change_of_view(engine, case):
    """Case C32: a knob that was not drawn for a while still holds its value, as the engine does."""
    wanted = case("C32")["expected"]["check"]["token_limit"]
    at = checked(AppTest.from_function(two_views, default_timeout=PATIENCE).run())
    turn(at, "token_limit", wanted)
    for away in (True, False):
        at.toggle(key="away").set_value(away)
        checked(at.run())
    assert named(at.slider, "knob-token_limit").value == wanted
    assert page_of(at).settings.token_limit == wanted
    assert page_of(at).chat.settings.token_limit == wanted


def test_sample_is_played_in_and_its_questions_can_be_asked(visit):
    """A sample plays through the engine to its end; a planted fact is then recalled."""
    at = visit()
    at.button(key="play-bakery").click()
    checked(at.run())
    runs = 0
    while page_of(at).player is not None:
        checked(at.run())
        runs += 1
    assert runs < 200
    page = page_of(at)
    assert page.chat.turns == 22
    assert page.info.title == "A small bakery in Porto"
    named(at.selectbox, "sample-question").set_value("What food can't I eat?")
    settled(at.run())
    assert "nuts" in texts(at)[-1]


def test_playing_can_be_stopped_between_turns(visit):
    """A stop leaves whole turns behind and gives the chat back."""
    at = visit()
    at.button(key="play-old-house-year").click()
    checked(at.run())
    assert at.progress
    at.button(key="play-stop").click()
    checked(at.run())
    page = page_of(at)
    assert page.player is None
    assert 0 < page.chat.turns < 147
    assert len(page.chat.messages) == 2 * page.chat.turns
    assert not at.chat_input[0].disabled


def test_regenerate_and_edit_replace_the_last_turn(visit):
    """Both make a new turn in the place of the last one; nothing is shown twice."""
    at = say(visit(), NUTS)
    at.button(key="chat-regenerate").click()
    settled(at.run())
    assert len(texts(at)) == 2
    at.button(key="chat-edit").click()
    checked(at.run())
    at.text_area(key="chat-editor").set_value("Hi, I'm Rui and I love walnuts")
    next(b for b in at.button if b.label == "Send again").click()
    settled(at.run())
    assert texts(at)[0] == "Hi, I'm Rui and I love walnuts"
    assert len(texts(at)) == 2
    assert page_of(at).chat.turns == 3


def test_tool_step_is_visible(visit):
    """A turn that calls a tool shows the call and its result between question and answer."""
    at = say(visit(), "What's the weather in Porto?")
    steps = [code.value for code in at.code if "get_weather" in code.value]
    assert steps
    assert "Porto" in steps[0]


def test_long_chat_shows_the_newest_fifty_and_earlier_ones_on_demand(visit):
    """Of a long chat 50 messages are drawn; a button leads to those before."""
    at = visit()
    chat = page_of(at).chat
    for number in range(60):
        chat.play(f"question {number}", f"answer {number}")
    checked(at.run())
    assert len(texts(at)) == 50
    assert texts(at)[-1] == "answer 59"
    at.button(key="chat-earlier").click()
    checked(at.run())
    assert texts(at)[-1] == "answer 34"
    at.button(key="chat-later").click()
    checked(at.run())
    assert texts(at)[-1] == "answer 59"


def test_everything_is_there_after_a_restart(visit, engine):
    """A new visit finds the session with its messages, settings and title."""
    at = say(visit(), NUTS)
    turn(at, "top_k", 2)
    again = visit()
    assert texts(again) == texts(at)
    assert named(again.slider, "knob-top_k").value == 2
    assert page_of(again).info.title.startswith("Hi, I'm Dana")


def test_five_clicks_give_five_messages(visit, case):
    """Case C39: memory works from a script thread, click after click."""
    wanted = case("C39")["expected"]["check"]["messages"]
    at = visit()
    for number in range(wanted):
        say(at, f"note {number}")
    assert [t for t in texts(at) if t.startswith("note ")] == [f"note {n}" for n in range(wanted)]


@pytest.mark.parametrize("view", ["As stored", "To copy", "Rendered"])
def test_equal_messages_are_all_shown(visit, case, view):
    """Case C31: the same message four times is shown four times, in every view."""
    said = case("C31")["input"]["messages"]
    at = visit()
    for question, answer in zip(said[::2], said[1::2], strict=True):
        page_of(at).chat.play(question["content"], answer["content"])
    checked(at.run())
    at.get("button_group")[0]  # the view switch is drawn
    at.session_state["chat-view"] = view
    checked(at.run())
    assert len(at.chat_message) == 4


def test_text_is_shown_as_it_was_written(visit, case):
    """Case C30: chat, buffer and prompt show stored text character for character."""
    wanted = case("C30")["input"]["texts"]
    at = visit()
    for text in wanted:
        page_of(at).chat.play(text, "ok")
    checked(at.run())
    assert [t for t in texts(at) if t != "ok"] == wanted
    assert set(wanted) <= set(tables(at))


def test_half_an_emoji_does_not_stop_the_page(visit, case):
    """Case C34: a lone surrogate is replaced on its way in, and the page goes on."""
    case("C34")
    at = visit()
    page_of(at).chat.play("good morning \ud83d", "hello")
    page_of(at).panel = inspector.ALL
    checked(at.run())
    assert texts(at) == ["good morning \ufffd", "hello"]


def test_value_on_its_way_while_the_page_changes_it_is_no_choice(visit, engine):
    """A rerun that still carries the widgets of before a session was opened changes nothing."""
    from ui import sessions

    at = visit()
    turn(at, "token_limit", 900)
    page = page_of(at)
    say(at, "A session at 900 tokens.")
    first = page.info
    at.button(key="session-new").click()
    checked(at.run())
    turn(at, "token_limit", 2000)
    say(at, "A session at 2,000 tokens.")
    sessions.open_session(page, engine, engine.store.session(first.key))
    checked(at.run())  # the browser's widgets are those of the other session
    checked(at.run())
    assert page.info.key == first.key
    assert page.settings.token_limit == 900
    assert page.showing == "sent"
    assert named(at.slider, "knob-token_limit").value == 900


def test_running_turn_is_shown_and_can_be_stopped(visit, monkeypatch):
    """A slow answer is shown as far as it is; after a stop the question is kept and retried."""
    at = visit()
    stream, gate = OfflineLLM.astream_chat, threading.Event()

    async def slow(self, *args, **kwargs):
        async def pieces(inner):
            async for piece in inner:
                yield piece
                await asyncio.to_thread(gate.wait, PATIENCE)

        return pieces(await stream(self, *args, **kwargs))

    monkeypatch.setattr(OfflineLLM, "astream_chat", slow)
    at.chat_input[0].set_value(NUTS)
    checked(at.run())
    live = page_of(at).live
    while not live.now().answer:
        live.join(0.01)
    checked(at.run())
    question, answer = texts(at)  # the question once, though the memory holds it by now
    assert question == NUTS
    assert answer
    assert at.chat_input[0].disabled
    at.button(key="chat-stop").click()
    checked(at.run())
    settled(at.run())  # although the model says nothing more
    gate.set()
    assert texts(at) == [NUTS]
    assert any("stopped" in error.value for error in at.error)
    monkeypatch.setattr(OfflineLLM, "astream_chat", stream)
    at.button(key="chat-retry").click()
    settled(at.run())
    assert len(texts(at)) == 2
    assert not at.error
