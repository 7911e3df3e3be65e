"""``backup``: write everything in the store to one file, or list what was written before."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
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
    parser.add_argument(
        "--folder", type=Path, help="where backups are (backups in the data folder)"
    )
    parser.add_argument("--list", action="store_true", help="only list the backups")


def run(args: argparse.Namespace) -> int:
    """Back up or list; return 0."""
    config = config_of(args)
    backups = backups_of(config, args.folder)
    if args.list:
        for found in backups.all():
            say(f"{found.created:%Y-%m-%d %H:%M}  {found.users} users  {found.size:,} bytes  "
                f"{found.path}")  # fmt: skip
        return 0
    with opened_store(config) as store:
        made = backups.create(store, now=datetime.now(UTC), progress=show_progress("users"))
    say(f"{counted(made.users, 'users')}, {made.size:,} bytes: {made.path}")
    return 0
