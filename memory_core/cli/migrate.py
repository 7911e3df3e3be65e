"""``migrate``: bring the store's schema up to date, after a backup of the old one.

With ``--to URL`` everything is also copied into another store, of whatever kind, sealed with the
first key in MEMORY_ENCRYPTION_KEY. The old store stays as it is.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

from memory_core.cli.opened import add_store, config_of, counted, opened_store, say
from memory_core.portable import export_user, import_bundle


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_store(parser)
    parser.add_argument("--to", metavar="URL", help="copy everything into this store")


def run(args: argparse.Namespace) -> int:
    """Migrate; return 0."""
    config = config_of(args)
    with opened_store(config) as store:
        facts = store.facts()
        say(f"{facts.backend} {facts.where}: schema version {facts.version}")
        if not args.to:
            return 0
        sessions = turns = kept = 0
        with opened_store(replace(config, store_url=args.to)) as target:
            for user in store.users():
                done = import_bundle(target, export_user(store, user))
                sessions += len(done.sessions)
                turns += done.turns
                kept += len(done.kept)
            where = target.facts().where
    copied = f"{counted(sessions, 'sessions')} with {counted(turns, 'turns')}"
    say(f"{copied} copied to {where}, {kept} were there already")
    return 0
