"""Saved sweeps go with the user who is forgotten, and only those."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from memory_core.lab.sweep_folder import forget_sweeps, sweeps_of


def test_forgetting_a_user_erases_their_sweeps_only(tmp_path: Path) -> None:
    """One user's folder is gone, the other's stays."""
    for user in ("ana", "bob"):
        folder = sweeps_of(tmp_path, user)
        folder.mkdir(parents=True)
        (folder / "x.sweep.json").write_text("questions", encoding="utf-8")
    forget_sweeps(tmp_path, "ana")
    forget_sweeps(tmp_path, "nobody")
    assert not sweeps_of(tmp_path, "ana").exists()
    assert sweeps_of(tmp_path, "bob").exists()


@given(st.text(min_size=1, max_size=50).filter(str.strip))
def test_no_user_id_leaves_the_folder(user: str) -> None:
    """Whatever a user is called, their folder is a direct child of the sweeps folder."""
    data = Path("/data")
    assert sweeps_of(data, user).resolve().parent == (data / "sweeps").resolve()
