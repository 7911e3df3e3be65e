"""``restore``: take in a backup, on any backend.

The file is checked to its end before anything is written. A session that is there already is
kept as it is.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from memory_core.cli.opened import (
    add_store,
    backups_of,
    config_of,
    counted,
    opened_store,
    say,
    show_progress,
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_store(parser)
    parser.add_argument("file", type=Path, help="the backup")


def run(args: argparse.Namespace) -> int:
    """Restore; return 0."""
    config = config_of(args)
    with opened_store(config) as store:
        done = backups_of(config).restore(args.file, store, progress=show_progress("users"))
    say(
        f"{counted(len(done.sessions), 'sessions')} with {counted(done.turns, 'turns')} and "
        f"{counted(done.records, 'memories')} "
        f"restored, {len(done.kept)} were there already"
    )
    return 0
