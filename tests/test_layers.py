"""A module imports only from the floors below its own."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import worked_examples

ROOT = Path(worked_examples.__file__).parent
GROUND = {"attention", "claims", "pinned", "training"}
SHARED = {"block", "costs", "fused", "plan", "positions", "sharing", "wordpiece"}
FIRST = {
    "lookup", "recurrence", "scaling", "masking", "heads", "series",
    "blocked", "cache", "fast", "linear", "window", "weights", "minilm",
    "eight_bits",
}  # fmt: skip
TRAINED = {
    "reader", "retrieval", "leak", "depth", "small_model", "extrapolation", "decoder",
    "measuring", "forecaster", "sentences", "ring",
}  # fmt: skip
SECOND = {"views", "figures"}
THIRD = {
    "controls", "explorer", "explorers", "live", "exercises", "command_line", "own_sentence",
}  # fmt: skip
FLOORS = (GROUND, SHARED, FIRST, TRAINED, SECOND, THIRD)
# Trained or compared with the library: the only modules that may import torch.
WITH_TORCH = {
    "leak", "reader", "training", "depth", "small_model", "extrapolation", "measuring",
    "forecaster", "ring",
}  # fmt: skip
MODULES = sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")


def floor(name):
    return next(i for i, names in enumerate(FLOORS) if name in names)


def imports(path):
    """Yield the absolute names that a module imports, wherever in it they are imported."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.module == "worked_examples":
                yield from (f"worked_examples.{alias.name}" for alias in node.names)
            else:
                yield node.module


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_downwards(path):
    own = path.relative_to(ROOT).parts[0].removesuffix(".py")
    for name in imports(path):
        first, *rest = name.split(".")
        if first == "worked_examples" and rest[0] != own:
            # The one door upwards: run as a script, attention.py starts the command line.
            if own == "attention" and rest[0] == "command_line":
                continue
            below = floor(rest[0]) < floor(own)
            assert below or {own, rest[0]} <= THIRD, f"{own} imports {rest[0]}"
        if first == "torch":
            assert own in WITH_TORCH, f"{own} imports torch"


def test_every_module_has_its_floor():
    names = {path.relative_to(ROOT).parts[0].removesuffix(".py") for path in MODULES}
    assert names == set().union(*FLOORS)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_module_says_what_it_is_and_what_it_offers(path):
    name = ".".join(path.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__")
    module = importlib.import_module(name)
    assert module.__doc__
    for public in getattr(module, "__all__", ()):
        assert hasattr(module, public), f"{name}.{public}"


def test_pages_load_nothing_of_python_that_no_explorer_uses():
    """Whatever is imported here lies in the memory that every reader of the site loads."""
    unused = {"http", "email", "ssl", "subprocess", "urllib.request", "numpy.ma", "numpy.testing"}
    code = (
        "import sys; before = set(sys.modules)\n"
        "from worked_examples import live; live.rehearse()\n"
        "print(*set(sys.modules) - before)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "worked_examples.views.sentences" in loaded
    assert loaded & unused == set()
