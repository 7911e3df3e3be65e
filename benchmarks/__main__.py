"""Run one benchmark by name: ``python -m benchmarks turn``."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path


def main() -> None:
    """Run the benchmark named on the command line, with the arguments after it."""
    folder = Path(__file__).parent
    names = sorted(p.stem for p in folder.glob("*.py") if not p.stem.startswith("_"))
    names.remove("report")
    names.remove("browser")
    if len(sys.argv) < 2 or sys.argv[1] not in names:
        sys.exit(f"usage: python -m benchmarks {'|'.join(names)}")
    name = sys.argv.pop(1)
    importlib.import_module(f"benchmarks.{name}").main()


main()
