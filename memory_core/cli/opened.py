"""The configured store, opened for one command."""

from __future__ import annotations

import argparse
import os
import sys
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from memory_core.backups import BackupIndex
from memory_core.config import EngineConfig, read_config
from memory_core.errors import InvalidInput
from memory_core.stores.encryption import cipher_from
from memory_core.stores.opening import open_store
from memory_core.stores.protocols import Store

SECRETS = Path(".streamlit") / "secrets.toml"


def add_store(parser: argparse.ArgumentParser) -> None:
    """Add the option that names another store than the configured one."""
    parser.add_argument("--store", metavar="URL", help="another store than MEMORY_STORE_URL names")


def config_of(args: argparse.Namespace) -> EngineConfig:
    """Return the configuration of the app, with the store that the command names."""
    secrets: dict[str, object] = {}
    if SECRETS.exists():
        try:
            secrets = tomllib.loads(SECRETS.read_text(encoding="utf-8"))
        except (OSError, ValueError) as exc:
            raise InvalidInput(f"{SECRETS} cannot be read: {exc}.") from exc
    config = read_config(os.environ, secrets)
    return replace(config, store_url=args.store) if args.store else config


@contextmanager
def opened_store(config: EngineConfig) -> Iterator[Store]:
    """Give the configured store, sealed where there is a key, and close it afterwards."""
    cipher = cipher_from(config.encryption_key)
    store = open_store(config.store_url or None, folder=config.folder, cipher=cipher)
    try:
        yield store
    finally:
        store.close()


def backups_of(config: EngineConfig, folder: Path | None = None) -> BackupIndex:
    """Return the backups in a folder, by default in that of the app."""
    return BackupIndex(
        folder or config.folder / "backups", cipher=cipher_from(config.encryption_key)
    )


def show_progress(word: str) -> Callable[[int, int], None]:
    """Return what tells a person at a terminal how far a long command is."""

    def show(done: int, total: int) -> None:
        if sys.stderr.isatty():
            sys.stderr.write(f"\r{done} of {total} {word}" + ("\n" if done >= total else ""))

    return show


def counted(count: int, kind: str) -> str:
    """Return a count with its noun, of which the plural is given.

    >>> counted(1, "memories"), counted(2000, "sessions")
    ('1 memory', '2,000 sessions')
    """
    if count == 1:
        kind = f"{kind[:-3]}y" if kind.endswith("ies") else kind.removesuffix("s")
    return f"{count:,} {kind}"


def say(text: str) -> None:
    """Write a line that no terminal takes for a command."""
    shown = "".join(c if c.isprintable() else "\ufffd" for c in text)
    sys.stdout.write(f"{shown}\n")
