"""The Tuning lab in process: conversation, questions, sweep, map, misses, apply, keep, compare."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from memory_core.lab.saving import saved
from memory_core.lab.sweep_folder import sweeps_of
from memory_core.models.catalogue import ModelChoice
from memory_core.samples import load_sample
from tests.app.conftest import PATIENCE, checked, page_of
from tests.app.played import open_page, play
from ui.lab.missing import why_link
from ui.lab.place import FILE, SAMPLE

PAGE = "6_Tuning_lab.py"
SMALL = {"lab-x-token_limit": "300, 700", "lab-y-top_k": "0, 4"}
CHAT = [
    {"role": "user", "content": "Hi, my name is Ana and I'm allergic to peanuts."},
    {"role": "assistant", "content": "Noted, Ana."},
    *(
        message
        for n in range(12)
        for message in (
            {"role": "user", "content": f"Tell me a story about the harbour, day {n}. <b>*x*</b>"},
            {"role": "assistant", "content": f"The boats of day {n} came home late, all at once."},
        )
    ),
]


def shown(at):
    """Return all texts of the page."""
    return "\n".join(e.value for e in (*at.markdown, *at.caption, *at.text, *at.code))


def press(at, key):
    """Press a button by its key."""
    at.button(key=key).click()
    return checked(at.run())


def sample(at):
    """Tune for the bakery."""
    at.segmented_control(key="lab-source").set_value(SAMPLE)
    return checked(at.run())


def swept(at, **values):
    """Run a small sweep to its end."""
    for key, text in {**SMALL, **values}.items():
        at.text_input(key=key).set_value(text)
    checked(at.run())
    press(at, "lab-run")
    place = page_of(at).lab
    if place.running is not None:
        place.running.join(PATIENCE)
        checked(at.run())
    assert place.running is None
    assert not at.error, [e.value for e in at.error]
    return at


def drop(at, data, name="chat.json"):
    """Drop a file."""
    at.segmented_control(key="lab-source").set_value(FILE)
    checked(at.run())
    at.file_uploader(key="lab-file").set_value((name, data, "application/json"))
    return checked(at.run())


def test_an_empty_page_teaches_and_offers_a_sample(engine):
    """Without a chat the page says what it will show, and one button gets there."""
    at = open_page(PAGE)
    assert "A sweep plans the prompt of every question" in shown(at)
    press(at, "lab-try")
    assert page_of(at).lab.subject.title == load_sample("bakery").title
    assert not at.button(key="lab-run").disabled


def test_a_sweep_of_a_sample_is_what_the_core_measures(engine):
    """Every cell is there, the figures on the page are those of the table, misses come with why."""
    at = swept(sample(open_page(PAGE)))
    place = page_of(at).lab
    assert place.result.complete
    assert len(place.result.cells) == 4
    assert place.found(place.result).words in shown(at)
    at.selectbox(key="lab-cell-x").set_value(0)
    at.selectbox(key="lab-cell-y").set_value(0)
    checked(at.run())
    worst = place.result.cell(0, 0)
    missed = place.result.missed(worst)
    assert missed
    assert missed[0].question.text in shown(at)
    index = missed[0].missing[0]
    assert f"message {index + 1}" in shown(at)
    assert place.subject.messages[index].text[:60] in shown(at)
    press(at, f"lab-why-{missed[0].number}-{missed[0].missing[0]}")
    assert "Stopped." in shown(at)


AXES = {
    "threshold": "0, 0.4",
    "shares": "60/20/20, 20/60/20",
    "summary_every": "2, 10",
    "window_rule": "exact, llama_index",
    "strategy": "layered, tutorial",
    "embedding": "wordllama",
    "recall_method": "dense, hybrid",
    "token_limit": "300, 900",
}


@pytest.mark.parametrize("names", list(pairwise(AXES)), ids="-".join)
def test_any_two_knobs_are_swept(engine, names):
    """Every knob that can be turned is an axis of the page, beside any other one."""
    at = sample(open_page(PAGE))
    for key, name in zip(("lab-x", "lab-y"), names, strict=True):
        at.selectbox(key=key).set_value(name)
        checked(at.run())
        at.text_input(key=f"{key}-{name}").set_value(AXES[name])
        checked(at.run())
    press(at, "lab-run")
    place = page_of(at).lab
    if place.running is not None:
        place.running.join(PATIENCE)
        checked(at.run())
    assert not at.error, [e.value for e in at.error]
    assert place.result.complete
    assert (place.result.x.name, place.result.y.name) == names
    assert place.found(place.result).words in shown(at)


def test_a_miss_in_a_session_links_to_its_why_not(engine):
    """The link names session, message, question and the cell's knobs; Why? asks just that."""
    play(engine, turns=8)
    at = open_page(PAGE)
    press(at, "lab-propose")
    press(at, "lab-accept")
    swept(at, **{"lab-x-token_limit": "200, 900"})
    at.selectbox(key="lab-cell-x").set_value(0)
    at.selectbox(key="lab-cell-y").set_value(0)
    checked(at.run())
    page = page_of(at)
    cell = page.lab.result.cell(0, 0)
    one = page.lab.result.missed(cell)[0]
    press(at, f"lab-why-{one.number}-{one.missing[0]}")
    link = why_link(page, page.lab, page.lab.result, cell)
    assert link["message"] == page.chat.messages[one.missing[0]].id
    why = open_page("2_Why.py", **link)
    for _ in range(5):
        if page_of(why).chronicle and page_of(why).chronicle.complete:
            break
        checked(why.run())
    checked(why.run())
    asking = page_of(why).asking
    assert (asking.item, asking.question) == (link["message"], one.question.text)
    assert asking.settings(page_of(why).settings) == page.lab.result.point(cell).settings
    assert "✗ not in" in shown(why)


def test_a_whole_file_is_swept_at_once_and_in_processes(engine):
    """All conversations with questions are one table; each miss is asked of its own one."""
    talks = [
        {
            "sample_id": f"talk-{number}",
            "conversation": {
                "speaker_a": "Ana",
                "speaker_b": "Ben",
                "session_1": [
                    {"speaker": "Ana" if i % 2 else "Ben", "dia_id": f"D1:{i}", "text": text}
                    for i, text in enumerate([m["content"] for m in CHAT] * 2, start=1)
                ],
            },
            "qa": [{"question": f"Who is {number}?", "answer": "Ana", "evidence": ["D1:1"]}],
        }
        for number in range(3)
    ]
    at = drop(open_page(PAGE), json.dumps(talks).encode())
    at.selectbox(key="lab-number").set_value(-1)
    checked(at.run())
    assert "3 questions of 3 conversations" in shown(at)
    at = swept(at, **{"lab-x-token_limit": "60, 2000"})
    place = page_of(at).lab
    assert [q.text for q in place.result.questions] == ["Who is 0?", "Who is 1?", "Who is 2?"]
    assert place.result.complete
    at.selectbox(key="lab-cell-x").set_value(0)
    at.selectbox(key="lab-cell-y").set_value(0)
    checked(at.run())
    last = place.result.missed(place.result.cell(0, 0))[-1]
    assert last.number == 2
    press(at, f"lab-why-2-{last.missing[0]}")
    assert "Stopped." in shown(at)
    before = place.result.cells
    at.number_input(key="lab-jobs").set_value(2)
    checked(at.run())
    swept(at, **{"lab-x-token_limit": "60, 2000"})
    assert page_of(at).lab.result.cells == before


def test_a_strategy_that_asks_the_model_is_swept(engine, monkeypatch):
    """It says that a model is asked, and its calls are counted in the cells."""
    at = sample(open_page(PAGE))
    at.selectbox(key="lab-mode").set_value("chat_summary_memory_buffer")
    at.number_input(key="lab-jobs").set_value(1)
    checked(at.run())
    assert "the offline reader is asked again" in shown(at)
    swept(at, **{"lab-x-token_limit": "200", "lab-y-top_k": "0"})
    (cell,) = page_of(at).lab.result.cells
    assert cell.model_calls > 1
    assert "strategy: layered → chat_summary_memory_buffer with 200 tokens" in shown(at)
    assert "ChatSummaryMemoryBuffer" in shown(at)
    monkeypatch.setattr("memory_core.lab.pool._CONNECT_SECONDS", 1)
    at.text_input(key="lab-address").set_value("tcp://127.0.0.1:9")
    checked(at.run())
    press(at, "lab-run")
    place = page_of(at).lab
    if place.running is not None:
        place.running.join(PATIENCE)
        checked(at.run())
    assert "No Dask scheduler" in at.error[0].value


def test_a_cell_of_another_strategy_is_applied_with_its_strategy(engine):
    """What was measured is what the session runs then; what no session runs is not offered."""
    play(engine, turns=3)
    at = sample(open_page(PAGE))
    at.selectbox(key="lab-mode").set_value("memory_facts")
    at.number_input(key="lab-jobs").set_value(1)
    checked(at.run())
    swept(at, **{"lab-x-token_limit": "700", "lab-y-top_k": "0"})
    at.button(key="lab-apply").click()
    checked(at.run())
    chat = page_of(at).chat
    assert chat.setup.strategy == "memory_blocks"
    assert chat.setup.knobs.token_limit == 700
    assert page_of(at).settings.token_limit == 700
    at = sample(open_page(PAGE))
    at.selectbox(key="lab-mode").set_value("tutorial")
    swept(at)
    assert "no strategy of a session" in shown(at)
    assert not any(b.key == "lab-apply" for b in at.button)


def test_the_other_planner_and_the_other_measures(engine):
    """The tutorial memory is swept as well; any, all and share are three maps of one sweep."""
    at = sample(open_page(PAGE))
    at.selectbox(key="lab-mode").set_value("tutorial")
    at = swept(at)
    result = page_of(at).lab.result
    assert result.base.strategy == "tutorial"
    for measure in ("any", "all", "share"):
        at.segmented_control(key="lab-measure").set_value(measure)
        checked(at.run())
        assert page_of(at).lab.found(result).choice.measure == measure


def test_a_dropped_file_is_told_asked_about_and_stored_only_when_wanted(engine):
    """Preview first; proposed questions count once accepted; storing is a button."""
    at = drop(open_page(PAGE), json.dumps(CHAT).encode())
    assert "26 messages, 0 recall questions" in shown(at)
    assert at.button(key="lab-run").disabled
    press(at, "lab-propose")
    questions = page_of(at).lab.questions
    assert questions
    assert not any(q.accepted for q in questions)
    assert at.button(key="lab-run").disabled
    press(at, "lab-accept")
    swept(at)
    before = len(engine.sessions("local"))
    press(at, "lab-store")
    assert len(engine.sessions("local")) == before + 1
    assert page_of(at).chat.messages[0].message.text == CHAT[0]["content"]
    assert not any(b.key == "lab-store" for b in at.button)


def proposed(at):
    """Wait until the model has proposed."""
    place = page_of(at).lab
    if place.proposing is not None:
        place.proposing.join(PATIENCE)
        checked(at.run())
    assert place.proposing is None
    return at


def test_the_chosen_model_proposes_questions_that_wait_to_be_accepted(engine):
    """What a model proposes is marked as its own and counts only once it is accepted."""
    at = drop(open_page(PAGE), json.dumps(CHAT).encode())
    at.segmented_control(key="lab-propose-by").set_value("model")
    checked(at.run())
    proposed(press(at, "lab-propose"))
    questions = page_of(at).lab.questions
    assert questions
    assert {q.origin for q in questions} == {"model"}
    assert at.button(key="lab-run").disabled
    assert any("The model proposed" in success.value for success in at.success)
    press(at, "lab-accept")
    assert not at.button(key="lab-run").disabled


def test_a_model_that_does_not_answer_says_so(engine):
    """Nobody at the address: one clear error with what to do, and the rules still there."""
    at = drop(open_page(PAGE), json.dumps(CHAT).encode())
    page_of(at).model = ModelChoice("openai_like", "nobody", "http://127.0.0.1:9/v1", retries=0)
    at.segmented_control(key="lab-propose-by").set_value("model")
    checked(at.run())
    proposed(press(at, "lab-propose"))
    (error,) = at.error
    assert "propose by rule" in error.value
    assert page_of(at).lab.questions == ()
    page_of(at).model = ModelChoice("openai", "gpt-4o-mini")
    proposed(press(at, "lab-propose"))
    assert "key" in at.error[0].value


def test_any_conversation_of_a_file_can_be_chosen(engine):
    """A file of several conversations opens at one; the other is a choice away and stays chosen."""
    store = {
        name: [{"role": "user", "content": f"I live in {name}."}, CHAT[1]]
        for name in ("Lisbon", "Porto")
    }
    data = json.dumps({"store": store, "class_name": "SimpleChatStore"}).encode()
    at = drop(open_page(PAGE), data)
    assert page_of(at).lab.subject.messages[0].text == "I live in Lisbon."
    at.selectbox(key="lab-number").set_value(1)
    checked(at.run())
    checked(at.run())
    assert page_of(at).lab.subject.messages[0].text == "I live in Porto."


@pytest.mark.parametrize("data", [b"", b"\xff\xfe\x00", b"[" * 3000, b'{"a": 1}'])
def test_a_file_that_is_no_conversation_is_refused_in_words(engine, data):
    """A hostile file leaves one clear error and nothing to sweep."""
    at = drop(open_page(PAGE), data, "x.json")
    assert len(at.error) == 1
    assert not any(b.key == "lab-run" for b in at.button)


def test_a_question_written_by_hand_is_asked(engine):
    """Question, expected text and the messages clicked as evidence make a question of one's own."""
    at = drop(open_page(PAGE), json.dumps(CHAT).encode())
    at.text_input(key="lab-text").set_value("Who am I?")
    at.text_input(key="lab-find").set_value("my name")
    checked(at.run())
    press(at, "lab-add")
    assert "No message is marked" in at.error[0].value
    at.multiselect(key="lab-evidence").set_value([0])
    checked(at.run())
    press(at, "lab-add")
    (question,) = page_of(at).lab.questions
    assert (question.question, question.evidence, question.origin) == ("Who am I?", (0,), "hand")
    assert at.text_input(key="lab-text").value == ""
    swept(at)


def test_questions_of_a_played_sample_belong_to_its_session(engine):
    """The open session is what is tuned for at first; questions outlive a look elsewhere."""
    info = play(engine, turns=3)
    at = open_page(PAGE)
    assert page_of(at).lab.subject.id == info.key.session
    press(at, "lab-propose")
    press(at, "lab-accept")
    before = page_of(at).lab.questions
    sample(at)
    at.segmented_control(key="lab-source").set_value("This session")
    checked(at.run())
    assert page_of(at).lab.questions == before


def test_apply_gives_the_session_the_chosen_cell(engine):
    """The knobs of the session become those that were measured, and are kept with it."""
    info = play(engine, turns=3)
    at = swept(sample(open_page(PAGE)))
    at.selectbox(key="lab-cell-x").set_value(1)
    at.selectbox(key="lab-cell-y").set_value(0)
    checked(at.run())
    assert "top_k: 4 → 0" in shown(at)
    assert "token_limit=700" in shown(at)
    at.button(key="lab-apply").click()
    at.run()
    settings = page_of(at).settings
    assert (settings.token_limit, settings.top_k) == (700, 0)
    assert engine.store.session(info.key).settings["memory"]["token_limit"] == 700


@pytest.mark.parametrize("values", ["", "many", "1:2:3:4", "-5", "1:9999999", "300, \x00"])
def test_values_that_make_no_axis_are_refused_in_words(engine, values):
    """A wrong list says what is wrong with it; nothing runs."""
    at = sample(open_page(PAGE))
    at.text_input(key="lab-x-token_limit").set_value(values)
    checked(at.run())
    press(at, "lab-run")
    assert at.error
    assert page_of(at).lab.running is None


def test_a_stopped_sweep_keeps_the_cells_it_has(engine):
    """Stopping leaves a map with holes that can be looked at like any other."""
    at = sample(open_page(PAGE))
    at.text_input(key="lab-x-token_limit").set_value("300:2000:40")
    checked(at.run())
    press(at, "lab-run")
    place = page_of(at).lab
    if place.running is not None:
        place.running.stop()
        place.running.join(PATIENCE)
    checked(at.run())
    assert place.running is None
    assert not at.error


def test_sweeps_are_saved_opened_again_and_compared(engine, tmp_path):
    """Under its name a sweep comes back as it was; two are compared cell by cell."""
    at = swept(sample(open_page(PAGE)))
    first = page_of(at).lab.result
    at.text_input(key="lab-name").set_value("Mine <b>*1*</b>")
    checked(at.run())
    press(at, "lab-save")
    (kept,) = saved(sweeps_of(engine.config.folder, "local"))
    assert kept.name == "Mine <b>*1*</b>"
    at.selectbox(key="lab-mode").set_value("tutorial")
    swept(at)
    press(at, "lab-compare")
    assert "Of 4 cells that both have" in shown(at)
    press(at, "lab-open")
    place = page_of(at).lab
    assert place.result == first
    missed = place.result.missed(place.result.cell(0, 0))
    at.selectbox(key="lab-cell-x").set_value(0)
    at.selectbox(key="lab-cell-y").set_value(0)
    checked(at.run())
    press(at, f"lab-why-{missed[0].number}-{missed[0].missing[0]}")
    assert "opened again" in shown(at)


def test_saved_sweeps_are_renamed_deleted_and_compared_with_each_other(engine):
    """No name is taken twice, deleting needs a second click, two saved ones stand side by side."""
    at = swept(sample(open_page(PAGE)))
    folder = sweeps_of(engine.config.folder, "local")
    for name in ("One", "Two", "Two"):
        at.text_input(key="lab-name").set_value(name)
        checked(at.run())
        press(at, "lab-save")
    assert "already" in at.error[0].value
    assert {one.name for one in saved(folder)} == {"One", "Two"}
    files = {one.name: str(one.file) for one in saved(folder)}
    at.selectbox(key="lab-saved").set_value(files["Two"])
    checked(at.run())
    at.selectbox(key="lab-with").set_value(files["One"])
    checked(at.run())
    press(at, "lab-compare")
    assert "A: “One”, B: “Two”." in shown(at)
    assert "B keeps more evidence in 0 and less in 0" in shown(at)
    title = next(t for t in at.text_input if t.key.startswith("lab-title-two"))
    title.set_value("Three")
    checked(at.run())
    press(at, "lab-rename")
    assert {one.name for one in saved(folder)} == {"One", "Three"}
    assert at.button(key="lab-delete").disabled
    next(c for c in at.checkbox if c.key.startswith("lab-sure-three")).check()
    checked(at.run())
    press(at, "lab-delete")
    assert [one.name for one in saved(folder)] == ["One"]
