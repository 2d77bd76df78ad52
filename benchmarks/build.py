"""How long the book's build takes: cold, with every chapter executed, and warm, with none.

    python -m benchmarks build

Both run in a copy of the book in a temporary folder, whose name says what it is for; this checkout
and what it has built stay as they are. A cold build takes minutes.
"""

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.machine import ROOT, environment

LEFT_OUT = shutil.ignore_patterns(".git", ".venv", "_build", "node_modules", "__pycache__")


def build(folder):
    """Build the book in a folder, and return the seconds; an error shows what it printed."""
    command = [str(Path(sys.executable).with_name("jupyter-book")), "build", ".", "--quiet", "-W",
               "--keep-going"]  # fmt: skip
    settings = {
        **environment(), "WORKED_EXAMPLES_STRICT": "1", "PYTHONPATH": str(Path(folder) / "code"),
    }  # fmt: skip
    start = time.perf_counter()
    ran = subprocess.run(command, cwd=folder, env=settings, capture_output=True, text=True)
    taken = time.perf_counter() - start
    if ran.returncode:
        raise RuntimeError(f"the build failed:\n{ran.stdout[-2000:]}\n{ran.stderr[-4000:]}")
    return taken


def measure(quick=False, rounds=None):
    """Return the tables of this section; a build is measured once, however many rounds."""
    with tempfile.TemporaryDirectory(prefix="benchmark-of-the-build-") as temporary:
        folder = Path(temporary) / "book"
        shutil.copytree(ROOT, folder, ignore=LEFT_OUT)
        runtime = ROOT / "_build" / "runtime"
        if runtime.is_dir():  # fetched, not built
            shutil.copytree(runtime, folder / "_build" / "runtime")
        rows = [
            {"build": "cold: every chapter executed", "seconds": build(folder)},
            {"build": "warm: nothing has changed", "seconds": build(folder)},
        ]
    return {"build of the book, in a temporary copy": rows}
