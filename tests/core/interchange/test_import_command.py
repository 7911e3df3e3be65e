"""``import FILE`` at the command line: preview, refusal, and storing where it is asked for."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from memory_core.cli import importing
from memory_core.stores.encryption import new_key
from memory_core.stores.opening import open_store
from tests.core.interchange.making import TALK, chatgpt, openai


def command(*arguments: str) -> int:
    """Run the command with these arguments and return its exit code."""
    parser = argparse.ArgumentParser()
    importing.configure(parser)
    return importing.run(parser.parse_args(arguments))


def test_a_file_is_previewed_in_words(tmp_path: Path, capsys):
    """Format, counts, titles and changes are printed; nothing is stored."""
    file = tmp_path / "talk.json"
    file.write_bytes(openai([("human", "hi"), ("assistant", "hello")]))
    assert command(str(file)) == 0
    out = capsys.readouterr().out
    assert "talk.json: OpenAI messages" in out
    assert "1 conversation, 2 messages" in out
    assert "message 1: role 'human' was read as user" in out


def test_a_preview_as_json_can_be_read_by_programs(tmp_path: Path, capsys):
    """The JSON holds what the preview holds, times in ISO 8601."""
    file = tmp_path / "conversations.json"
    file.write_bytes(chatgpt(TALK))
    assert command(str(file), "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["format"], told["messages"], told["branches"]) == ("chatgpt", 4, 0)
    assert told["conversations"][0]["began"] == "2023-11-14T22:13:20.500000+00:00"


@pytest.mark.parametrize("data", [b"", b"{}", b'[{"role":', b"\x89PNG\xff\xfe"])
def test_a_refusal_is_one_line_and_exit_code_2(data: bytes, tmp_path: Path, capsys):
    """A file that cannot be used is named with its reason, without a traceback."""
    file = tmp_path / "bad.json"
    file.write_bytes(data)
    assert command(str(file)) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("bad.json: ")
    assert told.err.count("\n") == 1


def test_a_missing_file_is_refused(tmp_path: Path, capsys):
    """A name that leads nowhere is told as such."""
    assert command(str(tmp_path / "none.json")) == 2
    assert "cannot be opened" in capsys.readouterr().err


def test_control_characters_do_not_reach_the_terminal(tmp_path: Path, capsys):
    """A title from outside cannot steer the terminal."""
    file = tmp_path / "a.json"
    value = json.loads(chatgpt(TALK))
    value[0]["title"] = "\x1b[2Jgone\nnext"
    file.write_text(json.dumps(value))
    assert command(str(file)) == 0
    assert "\ufffd[2Jgone\ufffdnext" in capsys.readouterr().out


def test_conversations_are_stored_once(tmp_path: Path, capsys):
    """With a store the conversations become sessions; again only when that is wanted."""
    file = tmp_path / "conversations.json"
    file.write_bytes(chatgpt(TALK))
    url = f"sqlite:///{tmp_path}/m.db"
    for more, stored, skipped in (((), 1, 0), ((), 0, 1), (("--again",), 1, 0)):
        assert command(str(file), "--into", url, "--user", "ann", "--json", *more) == 0
        told = json.loads(capsys.readouterr().out)["stored"]
        assert (len(told["sessions"]), told["skipped"]) == (stored, skipped)
    store = open_store(url, folder=tmp_path)
    assert [info.messages for info in store.sessions("ann")] == [4, 4]
    store.close()


def test_what_is_stored_is_sealed_where_a_key_is_set(tmp_path: Path, monkeypatch):
    """The command writes as the app does: no readable text in an encrypted store."""
    pytest.importorskip("cryptography")
    monkeypatch.setenv("MEMORY_ENCRYPTION_KEY", new_key())
    file = tmp_path / "a.json"
    file.write_bytes(openai(TALK))
    assert command(str(file), "--into", f"files://{tmp_path}/store") == 0
    written = b"".join(p.read_bytes() for p in (tmp_path / "store").rglob("*") if p.is_file())
    assert written
    assert b"Marlin" not in written


def test_a_store_that_is_none_is_refused(tmp_path: Path, capsys):
    """A wrong URL is told before anything is written."""
    file = tmp_path / "a.json"
    file.write_bytes(openai(TALK))
    assert command(str(file), "--into", "ftp://x") == 2
    assert "No store is known" in capsys.readouterr().err
