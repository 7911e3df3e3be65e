"""Why-not: every gate with its numbers, and a smallest change that really works."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_core.assemble import assemble
from memory_core.buffer import EXACT, LLAMA_INDEX
from memory_core.fate import FACT, MEMORY, MESSAGE, SUMMARY
from memory_core.gates import BUFFER_ROUTE, MEMORY_ROUTE, SEARCH, Item, place_of
from memory_core.messages import Message
from memory_core.prompt import Assembly, Gate, Part, Source
from memory_core.settings import ALL_SESSIONS, THIS_SESSION, MemorySettings
from memory_core.smallest import Grid, smallest
from memory_core.whynot import why_not
from tests.core.made import COUNTER, Moment, Record, Talk
from tests.core.test_ledger import WORDS, play

long_turns = st.lists(
    st.fixed_dictionaries(
        {
            "text": st.sampled_from(WORDS),
            "answer": st.sampled_from(["Noted.", "An answer that goes on. " * 6]),
            "token_limit": st.integers(80, 500),
            "top_k": st.integers(0, 3),
            "threshold": st.sampled_from([0.0, 0.3, 0.6, 0.9]),
        },
        optional={
            "tool": st.just("get_weather"),
            "fact": st.sampled_from(WORDS),
            "recall": st.booleans(),
            "share_retrieved": st.sampled_from([0.0, 0.1, 0.5]),
            "context_window": st.sampled_from([700, 4096]),
            "supersede": st.booleans(),
        },
    ),
    min_size=6,
    max_size=12,
)


def ask(moment: Moment, item: Item, **knobs: object):
    """Ask why-not of one turn as it was planned."""
    chosen = moment.settings.with_(**knobs)
    return why_not(item, settings=chosen, plan=moment.plan, history=moment.layers.history)


def items_of(talk: Talk, moment: Moment) -> list[Item]:
    """Return everything that can be asked about in a turn."""
    messages = [Item(MESSAGE, m.id, i) for i, m in enumerate(moment.layers.messages)]
    number = moment.trace.number
    places = {m.id: i for i, m in enumerate(moment.layers.messages)}
    memories = [
        Item(MEMORY, r.id, places.get(r.message_ids[0]), r.message_ids)
        for r in talk.records
        if r.turn < number
    ]
    facts = [Item(FACT, f.id) for f in moment.layers.state.key_facts]
    summary = moment.layers.summary
    own = [Item(SUMMARY, f"summary-{summary.version}")] if summary.version else []
    return [*messages, *memories, *facts, *own]


def draw_missing(data: st.DataObject, script: list[dict]) -> tuple[Moment, Item] | None:
    """Draw a turn and something in it, of what is not in its prompt if there is any."""
    talk = play(script)
    moments = [m for m in talk.moments if m.plan]
    missing = [
        (moment, item)
        for moment in moments
        for item in items_of(talk, moment)
        if not place_of(item, moment.trace.assembly)
    ]
    present = [(moment, item) for moment in moments for item in items_of(talk, moment)]
    choice = missing or present
    return (
        data.draw(st.sampled_from(range(len(choice))).map(choice.__getitem__)) if choice else None
    )


@settings(max_examples=100, deadline=None)
@given(long_turns, st.sampled_from([EXACT, LLAMA_INDEX]), st.data())
def test_a_change_lets_it_in_and_one_step_less_does_not(script, rule, data):
    """Whatever is offered works in the real planner; one step less leaves the thing out."""
    drawn = draw_missing(data, script)
    if drawn is None:
        return
    moment, item = drawn
    chosen = moment.settings.with_(window_rule=rule)
    answer = ask(moment, item, window_rule=rule)
    assert answer.place == place_of(item, moment.plan(chosen))
    if answer.place:
        assert not answer.changes
        return
    assert any(route.stopped is not None for route in answer.routes)
    for change in answer.changes:
        assert place_of(item, moment.plan(change.apply(chosen))), change
        less = chosen.with_(**{change.setting: change.less})
        assert not place_of(item, moment.plan(less)), change


@settings(max_examples=12, deadline=None)
@given(long_turns, st.data())
def test_where_layers_do_not_interact_it_is_the_smallest_of_all(script, data):
    """With recall and state out of the way, no smaller token limit lets a message in."""
    drawn = draw_missing(data, script)
    if drawn is None or drawn[1].kind != MESSAGE:
        return
    moment, item = drawn
    alone = {"recall": False, "share_state": 0.0}
    chosen = moment.settings.with_(**alone)
    answer = ask(moment, item, **alone)
    limits = {c.setting: c.value for c in answer.changes}
    tried = range(chosen.token_limit, 3584)
    lets_in = (n for n in tried if place_of(item, moment.plan(chosen.with_(token_limit=n))))
    if not answer.place:
        assert limits.get("token_limit") == next(lets_in, None)


@settings(max_examples=25, deadline=None)
@given(long_turns, st.data())
def test_when_nothing_is_offered_nothing_helps(script, data):
    """Where it says that no single setting lets it in, trying the settings agrees."""
    drawn = draw_missing(data, script)
    if drawn is None:
        return
    moment, item = drawn
    answer = ask(moment, item)
    if answer.place or answer.changes:
        return
    assert "No single setting" in answer.sentence
    tried = [{"token_limit": n} for n in range(moment.settings.token_limit, 3584, 97)]
    tried += [{"top_k": n} for n in range(20)] + [{"threshold": n / 100} for n in range(-100, 101)]
    for knobs in tried:
        assert not place_of(item, moment.plan(moment.settings.with_(**knobs))), knobs


def scene(**knobs: object) -> Talk:
    """Twelve turns about Porto with a memory of each, under a small limit."""
    knobs = {"system_prompt": "Be kind.", "token_limit": 200, "summarise": False} | knobs
    talk = Talk(MemorySettings(**knobs))
    for number in range(12):
        talk.say(f"message {number} tells a little about the bakery by the river in Porto")
    return talk


def test_the_token_limit_is_told_with_both_numbers():
    """A message that left the buffer shows what it needs and what is left, and the limit for it."""
    moment = scene(recall=False).moments[-1]
    answer = ask(moment, Item(MESSAGE, "m0", 0))
    stop = answer.routes[0].stopped
    window = moment.trace.assembly.window
    assert answer.routes[0].name == BUFFER_ROUTE
    assert stop.gate == Gate.TOKEN_LIMIT
    assert stop.needed == moment.layers.history.sums[-1]
    assert stop.available == window.limit - window.initial
    limit = window.initial + int(stop.needed)
    assert answer.changes[0].words == f"token_limit ≥ {limit:,}"
    assert f"Enough would be: token_limit ≥ {limit:,}." in answer.sentence


def test_a_threshold_is_lowered_in_hundredths():
    """A near miss at 0.4637 gets in at 0.46, shown with two decimals, and not at 0.47."""
    talk = Talk(MemorySettings(threshold=0.5, summarise=False, token_limit=300))
    talk.similar = {"the oven is new": 0.4637}
    talk.say("the oven is new", "A long answer that fills the buffer. " * 40)
    moment = talk.say("what about the oven?")
    answer = ask(moment, Item(MEMORY, "r1", made_from=("m0", "m1")))
    assert [(c.setting, c.value, c.less) for c in answer.changes] == [("threshold", 0.46, 0.47)]
    assert answer.changes[0].words == "threshold ≤ 0.46"
    assert answer.routes[0].stopped.gate == Gate.THRESHOLD


def test_top_k_counts_those_ahead():
    """The sixth best memory of a question needs top_k 6."""
    talk = Talk(MemorySettings(token_limit=900, top_k=4, threshold=0.0, summarise=False))
    for number in range(8):
        talk.records.append(Record(f"x{number}", f"note {number}", 1, "other", (f"y{number}",)))
        talk.similar = {**talk.similar, f"note {number}": 0.9 - number / 100}
    moment = talk.say("what is in the notes?")
    answer = ask(moment, Item(MEMORY, "x5"))
    assert [(c.setting, c.value) for c in answer.changes] == [("top_k", 6)]
    scoped = ask(moment, Item(MEMORY, "x0"), scope=THIS_SESSION)
    assert [(c.setting, c.value) for c in scoped.changes] == [("scope", ALL_SESSIONS)]
    off = ask(moment, Item(MEMORY, "x0"), recall=False)
    assert [c.words for c in off.changes] == ["recall = on"]
    assert off.routes[0].stopped.gate == SEARCH


def test_two_gates_in_a_row_have_no_single_change():
    """A memory under the threshold that top_k would stop next is told no change."""
    talk = Talk(MemorySettings(token_limit=900, top_k=1, threshold=0.5, summarise=False))
    talk.similar = {"near": 0.6, "far": 0.2}
    talk.records += [Record("a", "near", 1, "o", ("y1",)), Record("b", "far", 1, "o", ("y2",))]
    answer = ask(talk.say("which?"), Item(MEMORY, "b"))
    assert answer.changes == ()
    assert "No single setting lets it in" in answer.sentence


def test_a_budget_stop_offers_share_and_limit():
    """A memory too large for its share is let in by a larger share or a larger limit."""
    talk = Talk(MemorySettings(token_limit=700, threshold=0.0, summarise=False, tools=False))
    talk.similar = {"a long tale " * 60: 0.9}
    talk.records.append(Record("long", "a long tale " * 60, 1, "o", ("y1",)))
    moment = talk.say("tell me the tale")
    answer = ask(moment, Item(MEMORY, "long"))
    assert answer.routes[0].stopped.gate == Gate.BUDGET
    assert {c.setting for c in answer.changes} == {"share_retrieved", "token_limit"}


def test_the_window_less_the_reserve_can_be_what_is_in_the_way():
    """When the limit is above window less reserve, those two settings are offered instead."""
    moment = scene(recall=False, context_window=700, reply_reserve=500, token_limit=700).moments[-1]
    answer = ask(moment, Item(MESSAGE, "m0", 0))
    assert {c.setting for c in answer.changes} == {"context_window", "reply_reserve"}


def test_a_message_has_two_ways_in():
    """A message is explained by the buffer and by the memory made from it; either may let it in."""
    talk = scene(threshold=0.95, top_k=2, share_retrieved=0.6, share_state=0.0)
    talk.similar = {record.text: 0.1 for record in talk.records}
    talk.similar[talk.records[0].text] = 0.8
    moment = talk.say("what did I say first?")
    answer = ask(moment, Item(MESSAGE, "m0", 0))
    assert [route.name for route in answer.routes] == [BUFFER_ROUTE, MEMORY_ROUTE]
    assert answer.routes[1].stopped.gate == Gate.THRESHOLD
    assert {"threshold", "token_limit"} <= {c.setting for c in answer.changes}


def test_what_is_in_is_said_to_be_in():
    """A thing in the prompt has no stop and no change, and says where it stands."""
    moment = scene().moments[-1]
    newest = moment.layers.messages[-1]
    answer = ask(moment, Item(MESSAGE, newest.id, len(moment.layers.messages) - 1))
    assert answer.place == "word for word in the buffer"
    assert answer.sentence == "It is in this prompt, word for word in the buffer."
    assert not answer.changes


def test_an_orphan_and_an_unsaid_message_have_no_change():
    """What no setting can let in is told so: an orphan tool result, a message not yet said."""
    talk = Talk(MemorySettings(token_limit=900, recall=False, summarise=False))
    talk.messages.append(talk._store(Message.of("tool", "lost", tool_call_id="gone"), 0))
    talk.messages.pop()
    moment = talk.say("hello there")
    orphan = ask(moment, Item(MESSAGE, "m0", 0))
    assert orphan.routes[0].stopped.gate == Gate.ORPHAN
    assert orphan.changes == ()
    unsaid = ask(moment, Item(MESSAGE, "m99", 99))
    assert "not among the messages" in unsaid.sentence


def test_a_class_that_explains_nothing_is_not_explained():
    """Without window and recall in the Assembly the answer is the honest phrase, no guess."""
    sent = Message.of("user", "hi")
    parts = (Part(Source.UNKNOWN, 5, message=0, end=2),)
    assembly = Assembly((sent,), ("",), parts)
    answer = why_not(Item(MESSAGE, "m0", 0), settings=MemorySettings(), assembly=assembly)
    assert answer.routes[0].stopped.gate == Gate.NOT_EXPLAINED
    assert "not explained by the class" in answer.sentence
    assert answer.changes == ()
    with pytest.raises(ValueError, match="prompt or a planner"):
        why_not(Item(MESSAGE, "m0", 0), settings=MemorySettings())


def test_state_and_summary_ask_for_their_share():
    """Key facts that did not fit in the state's share are let in by more of it."""
    talk = Talk(MemorySettings(token_limit=150, recall=False, share_state=0.05, summarise=False))
    talk.say("I can't eat nuts and live in Porto", fact="I can't eat nuts and live in Porto")
    moment = talk.say("what do you know?")
    answer = ask(moment, Item(FACT, "f1"))
    assert answer.routes[0].stopped.gate == Gate.BUDGET
    assert "share_state" in {c.setting for c in answer.changes}


@given(
    st.integers(-50, 50), st.integers(-50, 50), st.integers(-60, 60), st.lists(st.integers(-60, 60))
)
def test_the_search_finds_the_step_where_it_turns(now, end, turn, guesses):
    """On a grid that turns once, the first value beyond the turn is found, whatever is guessed."""
    grid = Grid("top_k", now, end)

    def lets_in(value: float) -> bool:
        return value >= turn if grid.direction > 0 else value <= turn

    found = smallest(grid, lets_in, guesses)
    steps = range(now + 1, end + 1) if grid.direction > 0 else range(now - 1, end - 1, -1)
    first = next((value for value in steps if lets_in(value)), None)
    assert (found[0] if found else None) == first
    if found:
        assert found[1] == first - grid.direction


def test_hundredths_are_found_on_the_grid_whatever_floats_do():
    """A present value of 0.29 has 0.28 and 0.30 as neighbours, one of 0.305 has 0.30 and 0.31."""
    assert Grid("threshold", 0.29, -1, 100).value(Grid("threshold", 0.29, -1, 100).first) == 0.28
    assert Grid("threshold", 0.29, 1, 100).value(Grid("threshold", 0.29, 1, 100).first) == 0.3
    assert Grid("threshold", 0.305, -1, 100).value(Grid("threshold", 0.305, -1, 100).first) == 0.3
    assert smallest(Grid("threshold", 0.305, -1, 100), lambda v: v <= 0.3) == (0.3, 0.305)


def test_asking_again_does_not_change_what_is_planned():
    """The search is pure: the same turn plans to the same prompt afterwards."""
    moment = scene().moments[-1]
    before = moment.plan(moment.settings)
    ask(moment, Item(MESSAGE, "m0", 0))
    assert moment.plan(moment.settings) == before
    assert assemble(replace(moment.layers), moment.settings, COUNTER) == before


def test_a_memory_far_down_is_found_and_told():
    """A memory beyond all near misses is told its rank or score, and its change still works."""
    talk = Talk(
        MemorySettings(token_limit=3_500, top_k=1, threshold=0.3, share_retrieved=1.0, tools=False)
    )
    for number in range(160):
        talk.records.append(Record(f"x{number}", f"{number}", 1, "other", (f"y{number}",)))
        talk.similar = {**talk.similar, f"{number}": 0.9 - number / 200}
    moment = talk.say("what is in the notes?", remember=False)
    ranked = ask(moment, Item(MEMORY, "x110"))
    assert ranked.routes[0].stopped.gate == Gate.TOP_K
    assert ranked.routes[0].stopped.needed == 111
    assert [(c.setting, c.value, c.less) for c in ranked.changes] == [("top_k", 111, 110)]
    low = ask(moment, Item(MEMORY, "x140"), top_k=0)
    assert low.routes[0].stopped.gate == Gate.THRESHOLD
    assert low.changes == ()
    lowest = ask(moment, Item(MEMORY, "x140"), top_k=1_000)
    assert [(c.setting, c.value) for c in lowest.changes] == [("threshold", 0.2)]
