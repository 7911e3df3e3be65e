"""The command line: ``python -m memory_core COMMAND …``.

Each command is a module with ``configure(parser)`` and ``run(args)``; only that of the command
given is imported. A new command is one line of the table.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from memory_core.errors import MemoryInspectorError, NotFound, StoreUnavailable

COMMANDS = {
    "sessions": ("memory_core.cli.sessions", "list sessions, or search in their text"),
    "export": ("memory_core.cli.exporting", "write a session or a whole user to one file"),
    "import-session": ("memory_core.cli.importing_session", "take in an exported file"),
    "import": ("memory_core.cli.importing", "take in another program's conversations"),
    "backup": ("memory_core.cli.backup", "write everything to one file"),
    "restore": ("memory_core.cli.restore", "take in a backup, on any backend"),
    "forget-me": ("memory_core.cli.forgetting", "erase a user everywhere"),
    "migrate": ("memory_core.cli.migrate", "bring a store up to date, or copy it elsewhere"),
    "new-key": ("memory_core.cli.new_key", "make a key for MEMORY_ENCRYPTION_KEY"),
    "sweep": ("memory_core.cli.sweep", "measure which settings keep the evidence"),
}

FAILED, MISUSED = 1, 2

_NEXT_STEPS: dict[type[MemoryInspectorError], str] = {  # in place of those that the pages say
    NotFound: "The command `sessions` lists those there are.",
    StoreUnavailable: "Start it, or name another one with --store.",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return 0, 1 when it could not be done, or 2 when it was not understood."""
    given = list(sys.argv[1:] if argv is None else argv)
    if not given or given[0] not in COMMANDS:
        asked_for_help = bool(given) and given[0] in ("-h", "--help")
        (sys.stdout if asked_for_help else sys.stderr).write(_usage())
        return 0 if asked_for_help else MISUSED
    name, *rest = given
    module = import_module(COMMANDS[name][0])
    parser = argparse.ArgumentParser(
        prog=f"python -m memory_core {name}",
        description=module.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    module.configure(parser)
    try:
        code: int = module.run(parser.parse_args(rest))
        sys.stdout.flush()
    except MemoryInspectorError as exc:
        next_step = _NEXT_STEPS.get(type(exc), exc.next_step)
        sys.stderr.write(" ".join(filter(None, (str(exc), next_step))) + "\n")
        return FAILED
    except BrokenPipeError:  # the reader of our output has gone, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    return code


def _usage() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:{width}}  {told}" for name, (_, told) in COMMANDS.items()]
    return "\n".join(
        [
            "usage: python -m memory_core COMMAND [options]",
            "",
            *lines,
            "",
            "The store is that of the app: MEMORY_STORE_URL, MEMORY_ENCRYPTION_KEY and",
            "MEMORY_INSPECTOR_DATA from the environment or .streamlit/secrets.toml.",
            "",
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
