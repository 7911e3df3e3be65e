"""``forget-me``: erase a user everywhere (rows, vectors, files, backups) and say what was erased.

There is no way back.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from memory_core.cli.opened import add_store, backups_of, config_of, counted, opened_store, say
from memory_core.config import EngineConfig
from memory_core.forgetting import forget_me
from memory_core.lab.comparison_folder import forget_comparisons
from memory_core.lab.sweep_folder import forget_sweeps
from memory_core.stores.vectors.base import VectorDatabase


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_store(parser)
    parser.add_argument("user", help="the user's id")
    parser.add_argument("--yes", action="store_true", help="do it without asking")


def run(args: argparse.Namespace) -> int:
    """Erase; return 0, or 1 when it was not confirmed."""
    config = config_of(args)
    if not args.yes:
        sys.stderr.write(f"Erase everything of {args.user!r}? There is no way back. Type yes: ")
        sys.stderr.flush()
        if sys.stdin.readline().strip() != "yes":
            sys.stderr.write("Nothing was erased.\n")
            return 1
    with opened_store(config) as store:
        report = forget_me(
            args.user,
            store=store,
            vectors=_vectors(config),
            vector_folder=None if config.chroma_url else config.vectors,
            backups=backups_of(config),
        )
    forget_files(config.folder, args.user)
    if report.nothing:
        say("There was nothing of this user.")
        return 0
    rows = ", ".join(counted(count, kind) for kind, count in report.rows.items() if count)
    say(f"Erased {rows or 'no rows'}.")
    collections = counted(report.collections, "collections")
    say(f"Dropped {collections} with {counted(report.vectors, 'vectors')}.")
    say(f"Taken out of {counted(len(report.backups), 'backups')}.")
    for note in report.notes:
        say(note)
    return 0


def forget_files(folder: Path, user: str) -> None:
    """Erase what strategies, sweeps and comparisons keep of a user in files of their own."""
    from memory_core.native.opening import forget_strategies

    forget_strategies(folder, user)
    forget_sweeps(folder, user)
    forget_comparisons(folder, user)


def _vectors(config: EngineConfig) -> VectorDatabase | None:
    """Return the vector database, ``None`` where none was ever made."""
    if not config.chroma_url and not config.vectors.exists():
        return None
    from memory_core.stores.vectors.chroma import open_chroma

    if config.chroma_url:
        return open_chroma(url=config.chroma_url)
    return open_chroma(path=config.vectors)
