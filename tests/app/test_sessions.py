"""Sessions and settings: new, rename, switch, duplicate, delete with undo, links, code."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from memory_core.errors import NotFound
from memory_core.models.catalogue import ModelChoice
from memory_core.native.knobs import StaticBlock, VectorBlock
from memory_core.native.knobs import to_json as knobs_json
from memory_core.settings import MemorySettings
from memory_core.strategies import (
    AGENTS,
    LAYERED,
    MEMORY_BLOCKS,
    STRATEGIES,
    default_setup,
    pairing,
)
from tests.app.conftest import checked, named, page_of, say, settled, texts
from ui.snippet import snippet

ROOT = Path(__file__).resolve().parents[2]


def choose(at, option):
    """Choose from the session's menu."""
    at.session_state["session-menu"] = option
    return at


def told(element) -> str:
    """Return a notice without the escapes of Markdown."""
    return element.value.replace("\\", "")


def open_dialog(at, name):
    """Open a dialog as its button would."""
    page_of(at).dialog = name
    return checked(at.run())


def test_new_chat_starts_empty_and_the_old_one_can_be_opened_again(visit):
    """Sessions do not mix: each shows its own messages, and switching goes both ways."""
    at = say(visit(), "The first chat is about rye.")
    first = page_of(at).info.key.session
    at.button(key="session-new").click()
    checked(at.run())
    assert texts(at) == []
    say(at, "The second chat is about oats.")
    named(at.selectbox, "session").set_value(first)
    checked(at.run())
    assert texts(at)[0] == "The first chat is about rye."


def test_pressing_new_twice_leaves_one_empty_session(visit, engine):
    """An empty session is used before another one is made."""
    at = visit()
    for _ in range(3):
        at.button(key="session-new").click()
        checked(at.run())
    assert len(engine.sessions("local")) == 1


def test_rename(visit):
    """A title is changed and kept; an empty one is refused in one sentence."""
    at = open_dialog(say(visit(), "hello"), "rename")
    at.text_input(key="rename-title").set_value("   ")
    next(b for b in at.button if b.label == "Rename").click()
    checked(at.run())
    assert any("at least one character" in error.value for error in at.error)
    listed = named(at.selectbox, "session").key
    at.text_input(key="rename-title").set_value("Bread <b>& butter</b> 🥖")
    next(b for b in at.button if b.label == "Rename").click()
    checked(at.run())
    assert page_of(at).info.title == "Bread <b>& butter</b> 🥖"
    assert page_of(visit()).info.title == "Bread <b>& butter</b> 🥖"
    assert named(at.selectbox, "session").key != listed  # else a browser goes on showing the old


def test_delete_can_be_undone(visit, engine):
    """A deleted session is gone from the list and comes back whole."""
    from ui import sessions

    at = say(visit(), "Keep me.")
    page = page_of(at)
    sessions.delete(page, engine)
    checked(at.run())
    assert texts(at) == []
    at.button(key="session-undo").click()
    checked(at.run())
    assert texts(at)[0] == "Keep me."


def test_a_title_is_no_markdown_where_its_deletion_can_be_undone(visit, engine):
    """A title on a button draws no picture from elsewhere and no formatting."""
    from ui import sessions

    at = say(visit(), "hello")
    sessions.rename(page_of(at), engine, "![i](http://127.0.0.1/x.png) **bold**")
    sessions.delete(page_of(at), engine)
    checked(at.run())
    label = at.button(key="session-undo").label
    assert "![" not in label
    assert "**" not in label


def test_two_tabs_on_one_session_go_on_from_each_other(visit, engine):
    """What another tab said is taken in before the next turn; no turn is refused or lost."""
    one, two = say(visit(), "From the first tab."), visit()
    say(two, "My sister is Ana.")
    say(one, "Who is my sister?")
    assert not one.error
    assert "Ana" in texts(one)[-1]
    assert any("1 more turn was taken in" in told(info) for info in one.info)
    two.button(key="chat-regenerate").click()
    checked(two.run())
    assert texts(two) == texts(one)  # not the last message any more: shown, not answered again
    assert len(engine.store.messages(page_of(one).info.key)) == 6


def test_a_turn_that_another_tab_overtook_is_kept_for_a_retry(visit, engine):
    """Two turns at one time: the later one is refused in words, and Retry says it."""
    from ui import sessions

    one, two = say(visit(), "From the first tab."), visit()
    real, calls = sessions.catch_up, []

    def late(page, engine):  # the other tab's turn falls between the look and the answer
        calls.append(page)
        if len(calls) == 1:
            page_of(two).chat.play("My sister is Ana.", "Noted.")
            return False
        return real(page, engine)

    sessions.catch_up = late
    try:
        say(one, "Who is my sister?")
    finally:
        sessions.catch_up = real
    assert any("went on in another tab" in error.value for error in one.error)
    one.button(key="chat-retry").click()
    settled(one.run())
    assert not one.error
    assert "Ana" in texts(one)[-1]


def test_what_could_not_be_sent_is_not_said_in_another_session(visit):
    """A message that waits for Retry in one session is not sent in the next one."""
    at = say(visit(), "hello")
    page_of(at).outbox, page_of(at).error = "only for this one", NotFound("It is away.")
    at.button(key="session-new").click()
    checked(at.run())
    assert texts(at) == []
    assert page_of(at).outbox == ""


def test_duplicate_is_a_session_of_its_own(visit, engine):
    """A copy holds all turns; what is said in it does not reach the original."""
    from ui import sessions

    at = say(visit(), "The original.")
    original = page_of(at).info.key
    sessions.duplicate(page_of(at), engine)
    checked(at.run())
    assert texts(at)[0] == "The original."
    say(at, "Only in the copy.")
    assert len(engine.store.messages(original)) == 2
    assert len(engine.store.messages(page_of(at).info.key)) == 4


def test_settings_of_a_link_start_a_chat_of_their_own(visit):
    """A shared link opens a new chat with its settings; the last session keeps its own."""
    at = say(visit(), "My own session.")
    query = {"token_limit": "900", "top_k": "2", "system_prompt": "Be brief."}
    linked = visit(**query)
    assert texts(linked) == []
    settings = page_of(linked).settings
    assert (settings.token_limit, settings.top_k, settings.system_prompt) == (900, 2, "Be brief.")
    assert any("token_limit 900" in told(info) for info in linked.info)
    assert page_of(at).settings == MemorySettings()


def test_link_with_values_that_cannot_be_used_is_refused_in_words(visit):
    """A broken link changes nothing and says what is wrong with it."""
    for name, value in (
        ("token_limit", "-5"),
        ("top_k", "many"),
        ("threshold", "NaN"),
        ("scope", "everyone"),
        ("system_prompt", "x" * 5000),
    ):
        at = visit(**{name: value})
        assert any(name in told(info) for info in at.info), name
        assert page_of(at).settings == MemorySettings()


def test_state_can_be_edited_and_a_stale_edit_is_refused(visit):
    """An edit is saved as the next version; one that started from an older version is not."""
    at = say(visit(), "hello")
    page = page_of(at)
    page.panel = "State"
    checked(at.run())
    at.button(key="state-edit").click()
    checked(at.run())
    at.text_area(key="state-json").set_value('{"workflow": "order", "slots": {"loaves": 3}}')
    next(b for b in at.button if b.label == "Save").click()
    checked(at.run())
    state = page.chat.state
    assert (state.workflow, dict(state.slots)) == ("order", {"loaves": 3})
    assert page.dialog == ""
    page.dialog, page.state_base = "state", 0
    checked(at.run())
    at.text_area(key="state-json").set_value('{"workflow": "late"}')
    next(b for b in at.button if b.label == "Save").click()
    checked(at.run())
    assert any("version" in error.value for error in at.error)
    assert page.chat.state.workflow == "order"


def test_state_that_is_no_json_is_refused_and_kept_on_screen(visit):
    """A broken edit says where it is broken and loses nothing that was typed."""
    at = open_dialog(say(visit(), "hello"), "state")
    deep = '{"slots":' + '{"a":' * 2000 + "1" + "}" * 2001
    wrong = ('{"slots": "x"}', '{"workflow": 5}', '{"preferences": {"a": NaN}}')
    for text in ("{", "[]", '{"versions": 3}', '{"slots": 7}', *wrong, deep):
        at.text_area(key="state-json").set_value(text)
        next(b for b in at.button if b.label == "Save").click()
        checked(at.run())
        assert at.error, text
        assert at.text_area(key="state-json").value == text


def test_copied_code_runs(tmp_path):
    """The program that stands for some settings runs as it is and uses exactly them."""
    settings = MemorySettings(token_limit=900, top_k=2, system_prompt='Say "no" twice.\nThen stop.')
    program = tmp_path / "agent.py"
    program.write_text(snippet(settings, ModelChoice()), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(program)],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": "", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "nuts" in done.stdout
    assert "token_limit=900" in program.read_text(encoding="utf-8")


def test_copied_code_of_a_strategy_runs_with_its_own_class(tmp_path):
    """Under a strategy of LlamaIndex's the program is made of its classes, knobs and blocks."""
    setup = default_setup("memory_blocks", "context_chat_engine")
    program = tmp_path / "agent.py"
    program.write_text(snippet(MemorySettings(), ModelChoice(), setup), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(program)],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": "", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "<about_user>" in done.stdout
    assert "LayeredMemory" not in program.read_text(encoding="utf-8")


def test_copied_code_is_valid_for_every_strategy_in_every_agent():
    """Each pairing, also with every kind of block and postprocessor, is valid Python."""
    many = tuple(
        VectorBlock(name=f"v{n}", postprocessor=choice)
        for n, choice in enumerate(("none", "similarity cutoff", "long context reorder"))
    )
    quoted = StaticBlock(name="said", content="He said \"no\" \\ and\n'left'.")
    for strategy in STRATEGIES:
        for agent in AGENTS:
            if strategy.id == LAYERED or not pairing(strategy.id, agent.id).works:
                continue
            setup = default_setup(strategy.id, agent.id)
            if strategy.id == MEMORY_BLOCKS:
                setup = replace(setup, knobs=replace(setup.knobs, blocks=(quoted, *many)))
            text = snippet(MemorySettings(system_prompt='Say "x".'), ModelChoice(), setup)
            compile(text, "agent.py", "exec")
            for knob, value in knobs_json(setup.knobs).items():
                if knob not in ("tokenizer", "blocks", "batch_by_user_message"):
                    assert str(value) in text, (strategy.id, knob)


def test_copied_code_holds_no_key_and_compiles_for_every_model():
    """For each kind of model the program is valid Python and names no key."""
    for model in (
        ModelChoice("openai", "gpt-4o-mini"),
        ModelChoice("openai_like", "llama3.2", "http://localhost:11434/v1"),
        ModelChoice("local", "/models/a b's.gguf"),
    ):
        text = snippet(MemorySettings(), model)
        compile(text, "agent.py", "exec")
        assert "sk-" not in text
