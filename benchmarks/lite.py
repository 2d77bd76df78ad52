"""Measure how soon a chapter's first cell has run in JupyterLite, against a plain JupyterLite.

    python -m benchmarks lite

Needs a built site. The plain one has the same packages, compiled in the same way, and loads them
while Python starts; it lacks what this book adds: the policy of its pages, the progress, the way
files are shared with the explorers. Both are measured in turns, each time in a browser that has
never seen them (cold) and then once more in that browser (warm).
"""

import json
import shutil
import statistics
import tempfile
from contextlib import contextmanager
from pathlib import Path

from tools import lite, runtime
from tools.browser import new_profile, wait_for_kernel
from tools.serve import served

from benchmarks.machine import ROOT
from benchmarks.tables import spread

SITE = ROOT / "_build" / "html"
CHAPTER = "book/05_heads.ipynb"
FIRST = "import numpy as np"
TARGET = 1.2
PATIENCE_MS = 180_000
CORE = ("pyodide.js", "pyodide.asm.js", "pyodide.asm.wasm")
RUN = """text => [...document.querySelectorAll(".jp-CodeCell")].some(cell =>
  cell.textContent.includes(text) && /\\[1\\]/.test(cell.textContent)) && performance.now()"""


def plain(target):
    """Lay out the plain JupyterLite: its own copy of Pyodide, and no setting but what it needs."""
    app, ours = lite.made(ROOT) / "app", next((SITE / "lite").glob("python-*"))
    shutil.copytree(app, target)
    place = target / "static" / "pyodide"
    shutil.copytree(ours, place)
    for name in CORE:
        shutil.copyfile(runtime.laid_out(ROOT) / name, place / name)
    (file,) = ours.glob("pyodide-lock-*.json")
    lock = json.loads(file.read_text("utf-8"))
    for package in lock["packages"].values():
        package["file_name"] = Path(package["file_name"]).name
    (place / "pyodide-lock.json").write_text(json.dumps(lock), "utf-8")
    path = target / "jupyter-lite.json"
    settings = json.loads(path.read_text("utf-8"))
    # The service worker hangs at times, and asks for more than a plain address.
    worker = "@jupyterlite/application-extension:service-worker-manager"
    settings["jupyter-config-data"] |= {
        "disabledExtensions": [worker],
        "litePluginSettings": {
            f"{lite.KERNEL}:kernel": {
                "pyodideUrl": "./static/pyodide/pyodide.js",
                "disablePyPIFallback": True,
                "loadPyodideOptions": {"packages": lite.LOADED},
            }
        },
    }
    path.write_text(json.dumps(settings), "utf-8")
    lite.add_contents(ROOT, target)


@contextmanager
def both():
    """Serve the two, and give the address of each one's folder."""
    with tempfile.TemporaryDirectory() as folder:
        plain(Path(folder) / "lite")
        with served(folder) as bare, served(SITE) as book:
            yield {"plain": f"{bare}/lite", "ours": f"{book}/lite"}


def first_cell(context, address):
    """Return the milliseconds from opening a chapter to its first cell having run."""
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    page.goto(f"{address}/{lite.START}?path={CHAPTER}")
    wait_for_kernel(page)
    page.locator(".jp-CodeCell").filter(has_text=FIRST).first.click()
    page.keyboard.press("Shift+Enter")
    taken = page.wait_for_function(RUN, arg=FIRST).json_value()
    page.close()
    return taken


def measure(quick=False, rounds=None):
    """Return the tables of this section."""
    if lite.made(ROOT) is None or not (SITE / "lite").is_dir():
        raise SystemExit("There is no JupyterLite to measure: run `make book` first.")
    times = {(name, state): [] for state in ("cold", "warm") for name in ("plain", "ours")}
    with both() as addresses:
        for number in range(rounds or (2 if quick else 5)):
            for name in sorted(addresses, reverse=number % 2 == 0):
                with new_profile() as context:
                    for state in ("cold", "warm"):
                        times[name, state].append(first_cell(context, addresses[name]))
    rows = []
    for (name, state), taken in times.items():
        ratios = [own / bare for own, bare in zip(taken, times["plain", state], strict=True)]
        rows.append(
            {"JupyterLite": name, "browser": state, **spread(taken, "ms"),
             "times plain": statistics.median(ratios),
             "from-to": f"{min(ratios):.2f}-{max(ratios):.2f}",
             "target": TARGET if name == "ours" else ""}
        )  # fmt: skip
    return {"from opening a chapter to its first cell": rows}
