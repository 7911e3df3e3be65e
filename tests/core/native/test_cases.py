"""Cases from people's bug reports, each by its name, under strategies of LlamaIndex's.

What the class itself does wrong is contained, or a note of the Doctor stands in the panel. Cases
tested beside the part that holds them: C01, C03, C06, C11 in ``test_doctor``; C03, C05, C07, C08,
C10, C12, C15, C24 in ``test_faults``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import chromadb
import numpy as np
import pytest
from llama_index.core.memory import ChatMemoryBuffer

from memory_core import strategies as s
from memory_core.agent import Failed, Finished
from memory_core.config import EngineConfig
from memory_core.doctor import examine
from memory_core.engine import open_engine
from memory_core.errors import InvalidInput
from memory_core.interchange import preview
from memory_core.messages import Message
from memory_core.models.catalogue import ModelChoice
from memory_core.native import knobs as k
from memory_core.native import records
from memory_core.native.adapter import State
from memory_core.native.log import StateLog
from memory_core.native.vectors import cosine, distance
from memory_core.settings import MemorySettings
from memory_core.stores.vectors.chroma import open_chroma
from memory_core.testing import HashEmbedder
from tests.core.interchange.making import only
from tests.core.native.rig import Rig, setup_of

ROOT = Path(__file__).resolve().parents[3]
SMALL = {"token_limit": 160, "token_flush_size": 20, "chat_history_token_ratio": 0.3}
SEARCHING = setup_of(s.MEMORY_BLOCKS, blocks=(k.VectorBlock(priority=0),), **SMALL)
STATEMENTS = ["The oven costs 412 euros. " * 3, "Ferries leave at noon. " * 3, "Nuts never. " * 6]


def stored(rig: Rig, messages) -> Rig:
    """Put messages into the record before the strategy sees any, as an import does."""
    for message in messages:
        rig.session.append(message)
    rig.session.close_turn()
    return rig


@pytest.mark.parametrize("style", ["block", "kwargs"])
def test_c02_tool_calls_count_and_the_class_is_caught(case, style):
    """Our figure has name and arguments in both styles; the Doctor says what the class missed."""
    data = case("C02")
    check = data["expected"]["check"]
    messages = [_of(item, style) for item in data["input"]["messages"]]
    rig = stored(Rig(setup_of(s.BUFFER, **data["settings"])), messages)
    tokens = sum(message.tokens for message in rig.session.messages)
    assert tokens >= check["total_tokens_at_least"]
    trace = rig.say("Done?")[-1].trace
    found = {finding.check: finding for finding in examine(trace)}
    assert found["tool-calls-uncounted"].numbers["limit"] == check["limit"]


def _of(item, style: str) -> Message:
    calls = item.get("tool_calls")
    if not calls:
        extra = {"tool_call_id": item["tool_call_id"]} if "tool_call_id" in item else {}
        return Message.of(item["role"], item["content"], **extra)
    if style == "kwargs":
        return Message("assistant", (), {"tool_calls": calls})
    blocks = tuple(
        {
            "block_type": "tool_call",
            "tool_call_id": call["id"],
            "tool_name": call["function"]["name"],
            "tool_kwargs": call["function"]["arguments"],
        }
        for call in calls
    )
    return Message("assistant", blocks)


def test_c04_what_is_slow_is_the_class_and_the_window_is_its_own(case):
    """Of a long history the plan is the class's window; that it is slow is a Doctor note."""
    text = case("C04")["input"]["generate"]["text"]
    roles = case("C04")["input"]["generate"]["roles"]
    messages = [Message.of(roles[n % 2], text.format(i=n)[:40]) for n in range(230)]
    trace = stored(Rig(setup_of(s.BUFFER, token_limit=150)), messages).say("Hi")[-1].trace
    plan = trace.assembly.window
    kept = [m for m in trace.assembly.messages if m.role != "system"]
    assert len(kept) == plan.total - plan.start
    assert kept[0].role == "user"
    assert "history-retokenised" in {finding.check for finding in examine(trace)}


def test_c04_a_knob_moved_over_a_long_history_counts_it_once(case, monkeypatch):
    """A preview gives the class only what can be in its answer, which is the same answer."""
    text = case("C04")["input"]["generate"]["text"]
    roles = case("C04")["input"]["generate"]["roles"]
    messages = [Message.of(roles[n % 2], text.format(i=n)[:40]) for n in range(230)]
    rig = stored(Rig(setup_of(s.BUFFER, token_limit=150)), messages)
    wanted = [m.content for m in rig.memory.get()]
    counted = []
    real = ChatMemoryBuffer._token_count_for_messages

    def noted(self, some):
        counted.append(len(some))
        return real(self, some)

    monkeypatch.setattr(ChatMemoryBuffer, "_token_count_for_messages", noted)
    shown = rig.memory.preview(rig.session.settings)
    assert [m.text for m in shown.messages if m.role != "system"] == wanted
    assert sum(counted) < 4 * len(messages)
    assert shown.window.total == len(messages)


def test_c14_a_save_that_fails_leaves_what_was_kept(case, tmp_path, monkeypatch):
    """A strategy's state comes back in any script, also after a write that broke off."""
    texts = [m["content"] for m in case("C14")["input"]["messages"]]
    path = tmp_path / "state.jsonl"
    StateLog(path).write(1, -1, State({"texts": texts}))
    with path.open("ab") as file:
        file.write(b'{"v": 1, "turn": 2, "ba')  # the process ended here
    assert StateLog(path).state(1).data["texts"] == texts
    assert StateLog(path).state(2) is None
    StateLog(path).write(2, 1, State({"texts": texts[:1]}))
    assert StateLog(path).state(2).data["texts"] == texts[:1]
    assert StateLog(path).state(1).data["texts"] == texts


SHAPES = (
    "chat_list wrapped_messages_key llama_store null_content_with_call content_parts "
    "content_is_object role_human role_upper_case role_unknown with_bom one_line_per_message"
).split()


@pytest.mark.parametrize("shape", SHAPES)
def test_c16_imported_chats_go_on_under_a_strategy(case, shape):
    """Whatever shape was taken over, a native strategy is given it and answers; nothing is lost."""
    found = case("C16")
    data = found["input"]["files"][shape].encode("utf-8")
    try:
        preview(data, name=shape)
    except InvalidInput:
        assert found["expected"]["check"][shape].get("refused_or_notice") or found["expected"][
            "check"
        ][shape].get("refused")
        return
    messages = only(data).messages
    for setup in (setup_of(s.BUFFER, token_limit=900), SEARCHING):
        rig = stored(Rig(setup), messages)
        last = rig.say("And now?")[-1]
        assert isinstance(last, Finished)
        said = [item.message for item in rig.session.messages]
        assert said[: len(messages)] == list(messages)
        known = last.trace.assembly
        assert sum(part.tokens for part in known.parts) == known.tokens


def test_c18_a_score_is_never_called_a_similarity(case):
    """Beside the class's score stand the cosine and the raw distance, computed from vectors."""
    data = case("C18")
    check, query = data["expected"]["check"], data["input"]["query"]
    for name, vector in data["input"]["records"].items():
        assert cosine(query, vector) == pytest.approx(check["cosine_similarity"][name], abs=1e-6)
        for metric in data["input"]["spaces"]:
            wanted = check["raw_distance"][metric][name]
            assert distance(query, vector, metric) == pytest.approx(wanted, abs=1e-6)
    rig = Rig(SEARCHING)
    for text in STATEMENTS:
        rig.say(text)
    recall = rig.say("What does the oven cost?")[-1].trace.assembly.recall
    hits = [*recall.hits, *(hit for hit, _ in recall.near)]
    assert hits
    assert recall.metric == "cosine"
    for hit in hits:
        assert hit.score == pytest.approx(np.exp(-hit.distance), abs=1e-4)
        assert hit.similarity == pytest.approx(1 - hit.distance, abs=1e-4)


def test_c19_another_embedding_model_fills_another_collection(case, tmp_path):
    """Records are embedded anew for another model, in a collection of its own; none is deleted."""
    sizes = case("C19")["input"]
    vectors = open_chroma()
    models = [HashEmbedder(sizes["collection_dimension"]), HashEmbedder(sizes["query_dimension"])]
    rig = Rig(SEARCHING, folder=tmp_path, vectors=vectors, embedder=models[0])
    for text in STATEMENTS:
        rig.say(text)
    before = {c.name: c.count for c in vectors.collections("u")}
    again = Rig(SEARCHING, folder=tmp_path, vectors=vectors, embedder=models[1])
    again.session.messages = rig.session.messages
    again.session.last_turn = rig.session.last_turn
    last = again.say("What does the oven cost?")[-1]
    assert isinstance(last, Finished)
    assert last.trace.assembly.recall.hits
    after = {c.name: c.count for c in vectors.collections("u")}
    assert len(after) == len(before) + 1
    assert all(after[name] == count for name, count in before.items())


def test_c20_records_are_put_back_in_steps(case, tmp_path, monkeypatch):
    """However many records a restart has to put back, no step is larger than the client allows."""
    assert case("C20")["input"]["records"] > records.AT_ONCE
    assert chromadb.EphemeralClient().get_max_batch_size() > records.AT_ONCE
    monkeypatch.setattr(records, "AT_ONCE", 2)
    rig = Rig(SEARCHING, folder=tmp_path, vectors=open_chroma())
    for number in range(6):
        rig.say(f"{number} " + STATEMENTS[number % 3])
    kept = rig.memory.state().added
    assert len(kept) > 2
    fresh = open_chroma()
    again = Rig(SEARCHING, folder=tmp_path, vectors=fresh)
    again.session.messages = rig.session.messages
    again.session.last_turn = rig.session.last_turn
    assert {r["id"] for r in again.memory.state().added} == {r["id"] for r in kept}
    assert sum(c.count for c in fresh.collections("u")) == len(kept)


def test_c22_a_record_that_grows_keeps_its_id_and_has_the_new_text(case):
    """``VectorMemory`` writes a turn's record again as it grows: one record, its newest text."""
    texts = case("C22")["input"]
    rig = Rig(setup_of(s.VECTOR_MEMORY))
    rig.say(texts["first"]["text"])
    trace = rig.session.last_trace
    (write,) = trace.memories
    (kept,) = rig.memory.state().added
    assert kept["id"] == write.id
    assert len(kept["node"]["metadata"]["sub_dicts"]) == 2
    recall = rig.say(texts["edited"]["text"])[-1].trace.assembly.recall
    assert recall.hits[0].id == write.id


def test_c25_a_vector_folder_that_vanished_is_told_and_the_chat_goes_on(case, tmp_path):
    """No raw error: the turn works or fails in one sentence, and a new start puts all back."""
    assert case("C25")
    engine = open_engine(EngineConfig(folder=tmp_path))
    info = engine.create("u", "chat", settings={})
    chat = engine.chat(info.key, settings=MemorySettings(tools=False), model=ModelChoice())
    chat.run_as(SEARCHING)
    for text in STATEMENTS:
        list(chat.stream(text))
    shutil.rmtree(tmp_path / "chroma")
    last = list(chat.stream("What does the oven cost?"))[-1]
    assert isinstance(last, (Finished, Failed))
    if isinstance(last, Failed):
        assert "Traceback" not in str(last.error)
    said = [m.message.text for m in chat.messages if m.message.role == "user"]
    assert said == [*STATEMENTS, "What does the oven cost?"]
    engine.close()


def test_c27_the_metric_shown_is_read_from_the_collection(case):
    """What the panel names is the collection's own metric, whatever was wished for."""
    assert case("C27")
    vectors = open_chroma()
    rig = Rig(SEARCHING, vectors=vectors)
    rig.say("Hi")
    (found,) = vectors.collections("u")
    assert rig.session.last_trace.assembly.recall.metric == found.metric


def test_c30_text_is_kept_as_it_was_written(case):
    """Markup, formulas and tags come back from each class character for character."""
    texts = case("C30")["input"]["texts"]
    for strategy in (s.FULL_HISTORY, s.MEMORY):
        knobs = {"token_limit": 9000} if strategy == s.MEMORY else {}
        rig = Rig(setup_of(strategy, **knobs))
        for text in texts:
            rig.say(text)
        sent = [m.text for m in rig.replies()[-1] if m.role == "user"]
        assert sent == texts


def test_c31_a_message_said_twice_is_two_messages(case):
    """Equal messages keep ids and reasons of their own."""
    said = [m["content"] for m in case("C31")["input"]["messages"] if m["role"] == "user"]
    rig = Rig(setup_of(s.BUFFER, token_limit=30))
    for text in [*said, *said, *said]:
        trace = rig.say(text)[-1].trace
    known = trace.assembly
    inside = [i for i in known.message_ids if i]
    out = [i for o in known.omissions for i in o.ids]
    assert len(set(inside)) == len(inside)
    assert not set(inside) & set(out)


def test_c40_c41_a_program_ends_and_says_nothing_of_telemetry(case, tmp_path):
    """A chat under ``Memory`` with blocks that nobody closes ends by itself, without such lines."""
    assert case("C40")
    program = """
import sys
from memory_core import strategies as s
from memory_core.config import EngineConfig
from memory_core.engine import open_engine
from memory_core.models.catalogue import ModelChoice
from memory_core.settings import MemorySettings
from pathlib import Path
engine = open_engine(EngineConfig(folder=Path(sys.argv[1])))
chat = engine.chat(engine.create("u", "c", settings={}).key, settings=MemorySettings(),
                   model=ModelChoice())
chat.run_as(s.default_setup(s.MEMORY_BLOCKS))
print(type(list(chat.stream("My locker code is 4417."))[-1]).__name__)
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env=environment,
    )
    assert done.stdout.strip() == "Finished"
    assert done.returncode == 0
    lines = [line for line in done.stderr.splitlines() if "telemetry" in line.casefold()]
    assert len(lines) == case("C41")["expected"]["check"]["log_lines_about_telemetry"]
