"""``import-session``: take in a file that ``export`` wrote.

Everything is checked before anything is written. A session that is there already is kept.
"""

from __future__ import annotations

import argparse
import uuid
from pathlib import Path

from memory_core.cli.opened import add_store, config_of, counted, opened_store, say, show_progress
from memory_core.errors import InvalidInput
from memory_core.portable import import_bundle
from memory_core.portable_format import read_bundle


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_store(parser)
    parser.add_argument("file", type=Path, help="the exported file")
    parser.add_argument("--user", help="whose sessions they become (those of the file)")
    parser.add_argument(
        "--new-ids", action="store_true", help="as copies beside what is there already"
    )


def run(args: argparse.Namespace) -> int:
    """Import; return 0."""
    try:
        text = args.file.read_text(encoding="utf-8")
    except OSError as exc:
        raise InvalidInput(f"{args.file} cannot be read: {exc.strerror}.") from exc
    except UnicodeDecodeError as exc:
        raise InvalidInput(f"{args.file} is no text in UTF-8.") from exc
    bundle = read_bundle(text)
    with opened_store(config_of(args)) as store:
        done = import_bundle(
            store,
            bundle,
            user=args.user,
            new_id=(lambda: uuid.uuid4().hex) if args.new_ids else None,
            progress=show_progress("sessions"),
        )
    say(
        f"{counted(len(done.sessions), 'sessions')} with {counted(done.turns, 'turns')} and "
        f"{counted(done.records, 'memories')} "
        f"taken in, {len(done.kept)} were there already"
    )
    return 0
