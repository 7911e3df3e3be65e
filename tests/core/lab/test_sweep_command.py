"""The command: a file in, a table out, and every refusal one clear line."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from memory_core.cli import sweep
from memory_core.lab.saving import load, saved
from memory_core.lab.sweep_folder import sweeps_of
from memory_core.settings import MemorySettings
from tests.core.lab.talks import TEXTS


def command(*arguments: object) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser()
    sweep.configure(parser)
    return sweep.run(parser.parse_args([str(argument) for argument in arguments]))


@pytest.fixture(autouse=True)
def _without_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is asked of a provider, whatever the environment holds."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_LIKE_API_KEY", raising=False)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return a file of two conversations with questions, as LoCoMo has them."""
    talks = []
    for number in range(2):
        turns = [
            {"speaker": "Ana" if i % 2 == 0 else "Ben", "dia_id": f"D1:{i + 1}", "text": text}
            for i, text in enumerate(TEXTS * 2)
        ]
        asked = [
            {"question": "What grows on the balcony?", "answer": "lemons", "evidence": ["D1:1"]},
            {"question": "Who is Pepper?", "answer": "the dog", "evidence": ["D1:8"]},
        ]
        talk = {"speaker_a": "Ana", "speaker_b": "Ben", "session_1": turns}
        talks.append({"sample_id": f"talk-{number}", "conversation": talk, "qa": asked})
    path = tmp_path / "talks.json"
    path.write_text(json.dumps(talks))
    return path


def test_a_sweep_from_the_command_line(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """JSON has every cell, the front and a setting to paste; the sweep can be kept and exported."""
    code = command(
        *(file, "--limits", "100:400:3", "--top-k", "1:2", "--json", "--data", tmp_path / "d"),
        *("--save", "Mine", "--csv", tmp_path / "t.csv", "--html", tmp_path / "t.html"),
        *("--model", "gpt-4o-mini", "--set", "summarise=false"),
    )
    told = json.loads(capsys.readouterr().out)
    assert code == 0
    assert told["axes"] == {"token_limit": [100, 250, 400], "top_k": [1, 2]}
    assert told["questions"] == 4
    assert len(told["cells"]) == 6
    assert all(cell["cost"] > 0 for cell in told["cells"])
    chosen = MemorySettings().with_(**told["choice"]["settings"])
    assert chosen.token_limit == told["choice"]["token_limit"]
    assert not chosen.summarise
    (kept,) = saved(sweeps_of(tmp_path / "d", "local"))
    assert (kept.name, len(load(kept.file).cells)) == ("Mine", 6)
    assert len((tmp_path / "t.csv").read_text().splitlines()) == 7
    assert (tmp_path / "t.html").read_text().startswith("<!doctype html>")


def test_other_knobs_and_plain_text(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Any knob can be an axis; without --json a table and a sentence are printed."""
    arguments = ("--axis", "recall_method=dense,bm25", "--conversation", 2, "--data", tmp_path)
    assert command(file, *arguments, "--strategy", "layered", "--jobs", 1) == 0
    out = capsys.readouterr().out
    assert "talk-1: 2 questions, 16 cells" in out
    assert "Chosen on half of the questions" in out
    assert command(file, "--axis", "strategy=layered,tutorial", "--data", tmp_path) == 0
    assert command(file, "--axis", "embedding=wordllama", "--data", tmp_path) == 0


def test_questions_can_be_proposed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A conversation without questions says how to get some; with --propose facts are asked."""
    path = tmp_path / "chat.txt"
    path.write_text("user: I'm allergic to peanuts.\nassistant: Noted.\nuser: Thanks a lot!\n")
    assert command(path, "--data", tmp_path) == 2
    assert "--propose" in capsys.readouterr().err
    assert command(path, "--propose", "--data", tmp_path, "--json") == 0
    assert json.loads(capsys.readouterr().out)["questions"] == 1


def test_a_model_can_propose_and_be_asked(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The offline reader proposes and is asked by a strategy; a model that is away is one line."""
    path = tmp_path / "chat.txt"
    path.write_text("user: I'm allergic to peanuts.\nassistant: Noted.\nuser: Thanks a lot!\n")
    assert command(path, "--propose-by-model", "--data", tmp_path, "--json") == 0
    assert json.loads(capsys.readouterr().out)["questions"] == 1
    asked = ("--strategy", "chat_summary_memory_buffer", "--limits", "60", "--top-k", "0")
    assert command(file, *asked, "--data", tmp_path, "--jobs", 1, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["questions"], told["cells"][0]["model_calls"] > 1) == (4, True)
    away = ("--model", "nobody", "--base-url", "http://127.0.0.1:9/v1")
    assert command(path, "--propose-by-model", *away, "--data", tmp_path) == 2
    assert command(file, *asked, "--jobs", 1, *away, "--data", tmp_path) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 2, err


@pytest.mark.parametrize(
    "axes",
    [
        ("threshold=0:0.4:3", "shares=60/20/20,20/60/20"),
        ("summary_every=2,10", "window_rule=exact,llama_index"),
        ("strategy=layered,tutorial", "embedding=wordllama"),
        ("recall_method=dense,bm25,hybrid", "summary_every=2,4"),
    ],
)
def test_any_two_knobs_can_be_turned(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], axes: tuple[str, str]
) -> None:
    """Every axis of the lab is one of the command too."""
    first, second = axes
    assert command(file, "--axis", first, "--axis", second, "--data", tmp_path, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    sizes = [len(text.partition("=")[2].split(",")) for text in axes]
    sizes = [3 if ":" in text else size for text, size in zip(axes, sizes, strict=True)]
    assert len(told["cells"]) == sizes[0] * sizes[1]


def test_it_runs_as_a_person_types_it(file: Path, tmp_path: Path) -> None:
    """`python -m memory_core sweep` prints JSON on one stream and nothing on the other."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "memory_core", "sweep", str(file)),
            *("--limits", "100,400", "--top-k", "1:2", "--json"),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={**os.environ, "MEMORY_INSPECTOR_DATA": str(tmp_path / "data")},
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert len(json.loads(done.stdout)["cells"]) == 4
    assert (tmp_path / "data" / "embeddings.sqlite").exists()


@pytest.mark.parametrize(
    "wrong",
    [
        ["--limits", "x"],
        ["--limits", "1,2", "--top-k", "1", "--axis", "threshold=0"],
        ["--axis", "nonsense"],
        ["--axis", "nonsense=1"],
        ["--set", "nonsense=1"],
        ["--set", "top_k=many"],
        ["--strategy", "nobody"],
        ["--embedding", "\x1b[31m"],
        ["--jobs", "0"],
        ["--strategy", "memory_facts", "--model", "gpt-4o-mini", "--jobs", "1", "--limits", "60"],
        ["--base-url", "http://localhost:1/v1", "--strategy", "memory_facts"],
        ["--save", " "],
        ["--keep", "2"],
        ["--conversation", "7"],
        ["--csv", "/nowhere/at/all.csv"],
    ],
)
def test_what_cannot_be_done_is_one_line(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], wrong: list[str]
) -> None:
    """A wrong argument ends with code 2 and a printable line, never a traceback."""
    assert command(file, "--data", tmp_path, *wrong) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert err.rstrip("\n").isprintable()


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00\x01", b"{" * 5000, b"PK\x03\x04broken"])
def test_a_file_that_cannot_be_read_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes
) -> None:
    """Broken files and missing ones are refused with a reason."""
    path = tmp_path / "bad.json"
    path.write_bytes(content)
    assert command(path, "--data", tmp_path) == 2
    assert command(tmp_path / "not there", "--data", tmp_path) == 2
    assert capsys.readouterr().err.count("\n") == 2
