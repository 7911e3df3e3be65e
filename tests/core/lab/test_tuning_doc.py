"""What docs/tuning.md says is what the program has."""

from __future__ import annotations

import argparse
import re
import shlex
from pathlib import Path

import pytest

from memory_core.cli import sweep
from memory_core.lab.asking import ASKING
from memory_core.lab.axes import TITLES
from memory_core.lab.sweep import STRATEGIES

TEXT = (Path(__file__).resolve().parents[3] / "docs" / "tuning.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^python -m memory_core sweep (.+)$", TEXT, re.MULTILINE)


def test_every_axis_and_strategy_is_named() -> None:
    """The table lists the axes there are, and who can make the prompts."""
    rows = re.findall(r"^\| (`.+?`) \|", TEXT, re.MULTILINE)
    axes = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert sorted(axes) == sorted(TITLES)
    for name in (*STRATEGIES, *ASKING):
        assert f"`{name}`" in TEXT


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_is_understood(line: str) -> None:
    """The examples have options that exist."""
    parser = argparse.ArgumentParser()
    sweep.configure(parser)
    parser.parse_args(shlex.split(line))


def test_every_option_named_exists() -> None:
    """No option is promised that the command lacks."""
    parser = argparse.ArgumentParser()
    sweep.configure(parser)
    known = parser.format_help()
    for option in re.findall(r"`(--[a-z-]+)", TEXT):
        assert option in known
