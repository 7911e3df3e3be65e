"""Imports point one way, and nothing heavy is loaded where a page is drawn first."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HEAVY = ("llama_index", "chromadb", "pandas", "plotly", "numpy", "sqlalchemy")
LAYERS = {  # what each layer of the core may not import
    "messages": ("memory_core.prompt", "memory_core.memory", "memory_core.stores"),
    "tokens": ("memory_core.prompt", "memory_core.memory", "memory_core.stores"),
    "budget": ("memory_core.prompt", "memory_core.memory", "memory_core.stores"),
    "buffer": ("memory_core.prompt", "memory_core.memory", "memory_core.stores"),
    "prompt": ("memory_core.memory", "memory_core.agent", "memory_core.stores"),
    "summary": ("memory_core.memory", "memory_core.agent", "memory_core.stores"),
    "state": ("memory_core.memory", "memory_core.agent", "memory_core.stores"),
    "assemble": ("memory_core.memory", "memory_core.agent", "memory_core.session"),
    "longterm": ("memory_core.memory", "memory_core.agent", "memory_core.engine"),
    "memory": ("memory_core.agent",),
}


def imported(path: Path) -> set[str]:
    """Return the modules a file imports, anywhere in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return names


@pytest.mark.parametrize("path", sorted((ROOT / "memory_core").rglob("*.py")), ids=str)
def test_the_core_knows_no_ui(path: Path) -> None:
    """No file of the core imports Streamlit, the ui package or a page."""
    tops = {name.partition(".")[0] for name in imported(path)}
    assert not tops & {"streamlit", "ui", "pages", "app"}


@pytest.mark.parametrize("layer", sorted(LAYERS))
def test_layers_look_down_only(layer: str) -> None:
    """A layer of the core imports none that is built on it."""
    found = imported(ROOT / "memory_core" / f"{layer}.py")
    assert not [n for n in found for bad in LAYERS[layer] if n == bad or n.startswith(bad + ".")]


def test_values_are_light() -> None:
    """The values a page draws can be imported without any heavy library."""
    modules = "prompt, trace, settings, state, summary, stores.protocols, models.catalogue, samples"
    code = "import sys\n" + "\n".join(
        f"import memory_core.{name.strip()}" for name in modules.split(",")
    )
    code += f"\nprint([m for m in {HEAVY!r} if m in sys.modules])"
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert out.stdout.strip() == "[]"
