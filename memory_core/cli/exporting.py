"""``export``: write a session, or everything of a user, to one JSON file."""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime
from pathlib import Path

from memory_core.cli.opened import add_store, config_of, counted, opened_store
from memory_core.errors import InvalidInput
from memory_core.portable import export_session, export_user
from memory_core.portable_format import write_bundle
from memory_core.redaction import Redactor
from memory_core.stores.files_disk import replace_file
from memory_core.stores.protocols import SessionKey
from memory_core.wiring import redactor_of


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_store(parser)
    parser.add_argument("--user", default="local", help="whose sessions (local)")
    parser.add_argument("--session", help="only this one")
    parser.add_argument("--redact", action="store_true", help="take out addresses, numbers, keys")
    parser.add_argument("-o", "--output", type=Path, help="the file to write (standard output)")


def run(args: argparse.Namespace) -> int:
    """Export; return 0."""
    config = config_of(args)
    redactor = (redactor_of(config) or Redactor()) if args.redact else None
    with opened_store(config) as store:
        if args.session:
            key = SessionKey(args.user, args.session)
            bundle = export_session(store, key, redactor=redactor)
        else:
            bundle = export_user(store, args.user, redactor=redactor)
    text = write_bundle(bundle, now=datetime.now(UTC)) + "\n"
    if args.output is None:
        sys.stdout.write(text)
        return 0
    try:
        replace_file(args.output, text.encode())
    except OSError as exc:
        raise InvalidInput(f"{args.output} cannot be written: {exc.strerror}.") from exc
    found = ", ".join(f"{count} of {kind}" for kind, count in bundle.counts.items())
    told = f"; taken out: {found or 'nothing'}" if args.redact else ""
    sys.stderr.write(
        f"{counted(len(bundle.sessions), 'sessions')}, "
        f"{counted(len(bundle.records), 'memories')} written{told}\n"
    )
    return 0
