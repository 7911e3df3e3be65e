"""``new-key``: print a new random key for MEMORY_ENCRYPTION_KEY."""

from __future__ import annotations

import argparse

from memory_core.cli.opened import say
from memory_core.errors import InvalidInput


def configure(parser: argparse.ArgumentParser) -> None:
    """Add no arguments."""


def run(args: argparse.Namespace) -> int:
    """Print a key; return 0."""
    del args
    try:
        from memory_core.stores.encryption import new_key

        say(new_key())
    except ImportError as exc:
        raise InvalidInput("The package cryptography is not installed.") from exc
    return 0
