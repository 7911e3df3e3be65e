"""Time travel and Why? over strategies of LlamaIndex's: all of it works, nothing is made up."""

from __future__ import annotations

from dataclasses import replace

import pytest

from memory_core import strategies as s
from memory_core.fate import FACT, MEMORY, MESSAGE, SUMMARY, Fate
from memory_core.models.catalogue import ModelChoice
from memory_core.native.log import StateLog
from memory_core.native.opening import folder_of
from memory_core.prompt import Source
from memory_core.settings import MemorySettings
from memory_core.trace import FLUSHED
from tests.app.conftest import checked, page_of
from tests.app.played import open_page
from ui.player import samples

TRAVEL, WHY = "1_Time_travel.py", "2_Why.py"
TIGHT = {
    s.BUFFER: {"token_limit": 200},
    s.SUMMARY_BUFFER: {"token_limit": 200},
    s.MEMORY_BLOCKS: {
        "token_limit": 700,
        "token_flush_size": 60,
        "chat_history_token_ratio": 0.3,
    },
}
TURNS = 8
SETTINGS = MemorySettings(tools=False)


@pytest.fixture(params=TIGHT)
def session(request, engine):
    """Return a session chatted under a strategy until much of it left the prompt."""
    setup = s.default_setup(request.param)
    setup = replace(setup, knobs=replace(setup.knobs, **TIGHT[request.param]))
    info = engine.create("local", "native", settings={})
    kept = {
        "memory": SETTINGS.to_json(),
        "model": ModelChoice().to_json(),
        "strategy": setup.to_json(),
    }
    engine.store.update(replace(info, settings=kept, strategy=setup.strategy))
    chat = engine.chat(info.key, settings=SETTINGS, model=ModelChoice())
    chat.run_as(setup)
    for turn in next(x for x in samples() if x.id == "bakery").turns[:TURNS]:
        list(chat.stream(turn.user))
    return engine.store.session(info.key)


def shown(at):
    """Return all texts of the page."""
    return "\n".join(e.value for e in (*at.markdown, *at.caption, *at.code, *at.text))


def folded(script, **query):
    """Open a page and run until its ledger is folded."""
    at = open_page(script, **query)
    for _ in range(6):
        if page_of(at).chronicle and page_of(at).chronicle.complete:
            break
        checked(at.run())
    return checked(at.run())


def test_every_turn_is_drawn_and_compared(session):
    """Slider, panels, difference and the chart over turns are there, with no limit made up."""
    at = folded(TRAVEL, session=session.key.session, turn=str(TURNS))
    at.segmented_control(key="travel-panel").set_value("All")
    checked(at.run())
    for turn in (1, TURNS // 2, TURNS):
        at.slider(key="travel-turn").set_value(turn)
        checked(at.run())
        assert not at.error
        assembly = page_of(at).chronicle.trace(turn).assembly
        assert f"{assembly.tokens:,} tokens" in shown(at)
        assert "by the class's own count" in shown(at)
        assert "window 0" not in shown(at)
    assert f"From turn {TURNS - 1} to turn {TURNS}" in shown(at)
    assert ("What went into which block" in shown(at)) == (session.strategy == s.MEMORY_BLOCKS)


def test_a_fork_remembers_as_the_original_did(session, engine):
    """A session forked from an early turn gives the next prompt that the original gave there."""
    at = open_page(TRAVEL, session=session.key.session, turn="5")
    at.button(key="travel-fork").click()
    at.run()
    fork = next(i for i in engine.sessions("local") if i.origin)
    assert (fork.turns, fork.strategy) == (5, session.strategy)
    assert not engine.store.records("local")  # what a block remembers is its own
    forked = engine.chat(fork.key, settings=SETTINGS, model=ModelChoice())
    forked.run_as(s.setup_from_json(fork.settings["strategy"]))
    kept = [
        StateLog(folder_of(engine.config.folder, key) / f"{fork.strategy}.jsonl").state(5)
        for key in (session.key, fork.key)
    ]
    assert kept[0].data == kept[1].data == {**kept[0].data, "own": forked.memory.state().data}
    assert [r["id"] for r in forked.memory.state().added] == [r["id"] for r in kept[0].added]
    original = engine.chat(session.key, settings=SETTINGS, model=ModelChoice()).trace(6)
    last = list(forked.stream(original.query))[-1].trace
    assert [m.text for m in last.assembly.messages] == [m.text for m in original.assembly.messages]


def test_the_ledger_says_what_each_prompt_held(session):
    """What the matrix says is in stood in that turn's prompt, and nothing else did."""
    at = folded(WHY, session=session.key.session)
    ledger, chronicle = page_of(at).chronicle.ledger, page_of(at).chronicle
    for turn in range(1, TURNS + 1):
        held = chronicle.trace(turn).assembly
        for item in ledger.tracks[MESSAGE].ids:
            inside = ledger.fate(MESSAGE, item, turn) is Fate.PROMPT
            assert inside == (item in held.message_ids), (turn, item)
        for part in held.parts:
            if part.source is Source.SUMMARY:
                assert ledger.fate(SUMMARY, part.ids[0], turn) is Fate.SUMMARY, (turn, part.ids)
        for kind, fate in ((FACT, Fate.KEY_FACT), (MEMORY, Fate.RETRIEVED)):
            for item in ledger.tracks[kind].ids:
                stood = any(item in part.ids for part in held.parts)
                assert (ledger.fate(kind, item, turn) is fate) == stood, (turn, kind, item)


def test_stories_tell_what_the_class_did(session):
    """The first message's life says how it left by the class's own rule, and where it went."""
    at = folded(WHY, session=session.key.session)
    story = "\n".join(e.proto.body for e in at.get("html"))
    told = {
        s.BUFFER: "left the buffer: window",
        s.SUMMARY_BUFFER: "folded into summary",
        s.MEMORY_BLOCKS: "flushed into the block facts",
    }[session.strategy]
    assert told in story
    if session.strategy == s.SUMMARY_BUFFER:
        assert page_of(at).chronicle.ledger.tracks[SUMMARY].ids
    if session.strategy == s.MEMORY_BLOCKS:
        chronicle = page_of(at).chronicle
        flushed = [
            w for n in range(1, TURNS + 1) for w in chronicle.trace(n).memories
            if w.action == FLUSHED
        ]  # fmt: skip
        assert {w.id for w in flushed} == {"facts", "earlier"}
        assert chronicle.ledger.tracks[FACT].ids


def test_why_not_is_the_rule_of_the_class_or_not_explained(session):
    """Of a past turn the class's reason is told; of the next prompt the class itself is asked."""
    at = folded(WHY, session=session.key.session, turn=str(TURNS))
    page = page_of(at)
    fate = page.chronicle.ledger.fate(MESSAGE, page.asking.item, TURNS)
    assert ("✓ in" in shown(at)) == (fate in (Fate.PROMPT, Fate.RETRIEVED))
    assert ("✗ not in" in shown(at)) == (session.strategy != s.MEMORY_BLOCKS)
    assert "threshold 0." not in shown(at)
    assert "recall is switched off" not in shown(at)
    at.text_input(key="why-question").set_value("Thanks, that is all")
    checked(at.run())
    assert not at.error
    if session.strategy != s.BUFFER:
        there = page_of(at).asking.why(TURNS, settings=page.settings, embedder=None).place
        assert there or "not explained by the class" in shown(at)
        return
    page = page_of(at)
    (change,) = page.asking.why(TURNS, settings=page.settings, embedder=None).changes
    at.button(key="why-apply-token_limit").click()
    checked(at.run())
    page = page_of(at)
    assert page.chat.setup.knobs.token_limit == change.value == change.less + 1
    assert page.chat.messages[0].id in page.chat.preview(query=page.probe).message_ids


def test_a_turn_is_replayed_without_a_message_where_the_class_can_be_asked(session):
    """A fresh real object gives both prompts; where none can tell, it says so in words."""
    at = folded(WHY, session=session.key.session, turn="2")
    next(b for b in at.button if b.label == "Replay the turn").click()
    checked(at.run())
    if session.strategy != s.BUFFER:
        assert any("Not explained by the class" in e.value for e in at.error)
        return
    assert not at.error
    tried = page_of(at).asking.tried
    first = page_of(at).asking.item
    stored = page_of(at).chronicle.trace(2).assembly
    assert tried.found.before.assembly.messages == stored.messages
    assert first in tried.found.before.assembly.message_ids
    assert first not in tried.found.after.assembly.message_ids
    assert tried.answers is not None
