"""The commands that keep sessions: each run as a person would, on a store of its own."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from dataclasses import replace
from importlib import import_module

import pytest

from memory_core.__main__ import COMMANDS, main
from memory_core.lab.comparison_folder import comparisons_of
from memory_core.lab.sweep_folder import sweeps_of
from memory_core.native.opening import folder_of
from memory_core.stores.encryption import Sealed, new_key
from memory_core.stores.opening import open_store
from memory_core.stores.protocols import SessionKey
from tests.core.stores.making import KEY, memory, start, texts, turn


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Stand in an empty folder where nothing is configured."""
    monkeypatch.chdir(tmp_path)
    for name in ("MEMORY_STORE_URL", "MEMORY_ENCRYPTION_KEY", "CHROMA_URL", "CHROMA_PATH",
                 "MEMORY_INSPECTOR_DATA", "MEMORY_REDACT", "MEMORY_REDACT_PATTERNS"):  # fmt: skip
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def filled(home):
    """Fill the app's store with two sessions of one user and one of another."""
    store = open_store(None, folder=home / "data")
    start(store, title="Bakery")
    store.commit(KEY, turn(1, "mail dana@example.org", "noted", records=(memory("r1"),)))
    other = start(store, SessionKey(KEY.user, "s-2"), title="Old")
    store.update(replace(store.session(other), deleted=True))
    eve = start(store, SessionKey("eve", "e-1"), title="Hers")
    store.commit(eve, turn(1, "I like zebras", "So do I"))
    store.close()
    return home


def run(capsys, *argv) -> str:
    """Run a command that succeeds and return what it printed."""
    assert main(argv) == 0
    return capsys.readouterr().out


def test_sessions_are_listed_and_searched(filled, capsys):
    """All users' sessions, one user's, deleted ones, and those with a text in them."""
    out = run(capsys, "sessions")
    assert "Bakery" in out
    assert "Hers" in out
    assert "2 sessions" in out
    [old] = json.loads(run(capsys, "sessions", "--user", KEY.user, "--deleted", "--json"))
    assert (old["session"], old["deleted"]) == ("s-2", True)
    assert "1 session" in run(capsys, "sessions", "--search", "ZEBRAS")
    [hit] = json.loads(run(capsys, "sessions", "--search", "zebras", "--json"))
    assert (hit["user"], hit["found"]) == ("eve", 1)


def test_a_session_goes_out_and_comes_in(filled, capsys):
    """An exported file comes in elsewhere, as itself, as a copy, or as somebody else's."""
    run(capsys, "export", "--user", KEY.user, "--session", "s-1", "-o", "one.json")
    out = run(capsys, "import-session", "one.json", "--store", "files://" + str(filled / "f"))
    assert out == "1 session with 1 turn and 1 memory taken in, 0 were there already\n"
    assert "0 sessions" in run(capsys, "import-session", "one.json")
    assert "1 session" in run(capsys, "import-session", "one.json", "--new-ids")
    assert "1 session" in run(capsys, "import-session", "one.json", "--user", "bob")
    store = open_store(None, folder=filled / "data")
    assert len(store.sessions(KEY.user)) == 2
    assert texts(store, SessionKey("bob", "s-1")) == ["mail dana@example.org", "noted"]
    store.close()


def test_an_export_is_redacted_on_request(filled, capsys):
    """What is taken out is counted at the terminal and not in the file."""
    text = run(capsys, "export", "--user", KEY.user)
    assert "mail dana@example.org" in text
    assert main(["export", "--user", KEY.user, "--redact", "-o", "x.json"]) == 0
    assert "taken out: 1 of e-mail" in capsys.readouterr().err
    assert "mail [e-mail]" in (filled / "x.json").read_text()


def test_a_backup_comes_back_on_another_backend(filled, capsys):
    """What was backed up is restored into an empty store; the list shows the file."""
    assert "2 users" in run(capsys, "backup")
    listed = run(capsys, "backup", "--list")
    path = listed.split()[-1]
    out = run(capsys, "restore", path, "--store", f"files://{filled}/f")
    assert out.startswith("3 sessions with 2 turns and 1 memory restored")
    store = open_store(f"files://{filled}/f", folder=filled)
    assert store.users() == [KEY.user, "eve"]


def test_forgetting_asks_first(filled, capsys, monkeypatch):
    """Without a clear yes nothing is erased; with it the user is gone from store and backups."""
    run(capsys, "backup")
    for answer in ("", "no\n", "y\n"):
        monkeypatch.setattr("sys.stdin", io.StringIO(answer))
        assert main(["forget-me", "eve"]) == 1
    assert "Hers" in run(capsys, "sessions")
    monkeypatch.setattr("sys.stdin", io.StringIO("yes\n"))
    out = run(capsys, "forget-me", "eve")
    assert "1 session" in out
    assert "Taken out of 1 backup." in out
    assert "Hers" not in run(capsys, "sessions")
    assert "nothing of this user" in run(capsys, "forget-me", "eve", "--yes")


def test_forgetting_reaches_files_of_their_own(filled, capsys):
    """What strategies, sweeps and comparisons keep of a user goes as well, that of others stays."""
    data = filled / "data"

    def places(user):
        key = SessionKey(user, "x")
        return folder_of(data, key), sweeps_of(data, user), comparisons_of(data, user)

    for user in (KEY.user, "eve"):
        for folder in places(user):
            folder.mkdir(parents=True)
            (folder / "words").write_text("zebras")
    run(capsys, "forget-me", "eve", "--yes")
    assert not any(folder.exists() for folder in places("eve"))
    assert all((folder / "words").exists() for folder in places(KEY.user))


def test_everything_moves_to_another_store_under_a_new_key(filled, capsys, monkeypatch):
    """Migrating copies all users elsewhere, sealed; twice copies nothing twice."""
    key = new_key()
    monkeypatch.setenv("MEMORY_ENCRYPTION_KEY", key)
    out = run(capsys, "migrate", "--to", f"files://{filled}/sealed")
    assert "schema version 1" in out
    assert "3 sessions with 2 turns copied" in out
    assert "3 were there already" in run(capsys, "migrate", "--to", f"files://{filled}/sealed")
    found = b"".join(p.read_bytes() for p in (filled / "sealed").rglob("*") if p.is_file())
    assert b"zebras" not in found
    store = open_store(f"files://{filled}/sealed", folder=filled, cipher=Sealed.of([key]))
    assert texts(store, SessionKey("eve", "e-1")) == ["I like zebras", "So do I"]


def test_a_key_is_made_and_works(home, capsys):
    """A new key is one line and can be used at once."""
    key = run(capsys, "new-key").strip()
    assert Sealed.of([key]).unseal(Sealed.of([key]).seal("x")) == "x"


def test_the_secrets_file_of_the_app_counts(filled, capsys):
    """The command line looks where the app looks."""
    (filled / ".streamlit").mkdir()
    secrets = filled / ".streamlit" / "secrets.toml"
    secrets.write_text(f'MEMORY_STORE_URL = "files://{filled}/elsewhere"\n')
    assert run(capsys, "sessions") == "0 sessions\n"
    secrets.write_text("not = [toml")
    assert main(["sessions"]) == 1
    assert "secrets.toml cannot be read" in capsys.readouterr().err


def test_what_cannot_be_done_is_told_in_one_line(filled, capsys):
    """Errors are a sentence with the next step, on the other stream, with exit code 1."""
    (filled / "bad.json").write_bytes(b"\xff\xfe")
    for argv in (
        ["export", "--user", KEY.user, "--session", "none"],
        ["export", "--user", "../up"],
        ["export", "-o", "no/such/folder/x.json"],
        ["import-session", "none.json"],
        ["import-session", "bad.json"],
        ["restore", "none.gz"],
        ["sessions", "--store", "nothing://x"],
        ["sessions", "--search", "  "],
    ):
        assert main(argv) == 1
        told = capsys.readouterr()
        assert told.out == ""
        assert len(told.err.splitlines()) == 1


def test_what_is_not_understood_is_told_with_the_commands(home, capsys):
    """No command, an unknown one and wrong options show what there is."""
    assert main([]) == 2
    assert main(["dance"]) == 2
    assert "forget-me" in capsys.readouterr().err
    assert main(["--help"]) == 0
    assert "forget-me" in capsys.readouterr().out
    with pytest.raises(SystemExit) as caught:
        main(["sessions", "--nonsense"])
    assert caught.value.code == 2


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_in_the_table_is_there(name, capsys):
    """Each line of the table names a module with both functions, and its help can be read."""
    module = import_module(COMMANDS[name][0])
    assert module.configure
    assert module.run
    with pytest.raises(SystemExit):
        main([name, "--help"])
    assert name in capsys.readouterr().out


def test_only_what_a_command_needs_is_imported(home):
    """Listing sessions imports no model, vector or data library."""
    script = (
        "import sys; from memory_core.__main__ import main; main(['sessions']);"
        "heavy = {'llama_index', 'chromadb', 'numpy', 'pandas', 'streamlit', 'psycopg', 'redis'};"
        "sys.exit(' '.join(heavy & set(sys.modules)) or 0)"
    )
    from tests.crash import __file__ as here

    root = here.rsplit("/", 2)[0]
    subprocess.run([sys.executable, "-c", script], check=True, env={"PYTHONPATH": root}, timeout=60)


def test_what_is_printed_cannot_command_a_terminal(home, capsys):
    """Titles with escape sequences are shown as text."""
    store = open_store(None, folder=home / "data")
    start(store, title="\x1b[2Jgone\n\u202ebad")
    store.close()
    out = run(capsys, "sessions")
    assert "\x1b" not in out
    assert "\u202e" not in out
    assert len(out.splitlines()) == 2


def test_a_file_of_another_kind_is_no_backup(filled, capsys):
    """A file that no backup command wrote is said to be none, not to be badly packed."""
    (filled / "other.json").write_text("{}", encoding="utf-8")
    assert main(["restore", "other.json"]) == 1
    assert capsys.readouterr().err == "other.json is no backup of Memory Inspector.\n"


@pytest.mark.parametrize("text", ['{"a": ', "{", "[{"])
def test_json_that_ends_too_early_is_not_called_empty(filled, capsys, text):
    """A file cut off before its first message says that; only an empty one is called so."""
    (filled / "cut.json").write_text(text, encoding="utf-8")
    assert main(["import", "cut.json"]) != 0
    assert "cut off or broken" in capsys.readouterr().err
