"""Keep the notebooks as source: no outputs, no counts, no widget state, one formatting.

    python tools/notebooks.py strip [FILE ...]   rewrite the notebooks (all of book/ by default)
    python tools/notebooks.py check [FILE ...]   name what strip would change; exit 1 if anything

What a run leaves in a notebook makes every diff unreadable, goes stale, and (widget state) keeps
a code host from showing the file at all. The site computes every output anew, so none is kept.
Needs the standard library alone.
"""

import argparse
import copy
import hashlib
import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
LANGUAGE = {"name": "python"}  # the version differs from machine to machine, so it is left out

# What editors write for themselves; the rest (tags, mystnb, description ...) is the author's.
NOTEBOOK_NOISE = {
    "accelerator", "celltoolbar", "colab", "execution", "gpuClass", "hide_input", "interpreter",
    "orig_nbformat", "papermill", "signature", "toc", "varInspector", "vscode", "widgets",
}  # fmt: skip
CELL_NOISE = {
    "ExecuteTime", "collapsed", "colab", "executionInfo", "execution", "id",
    "lines_to_next_cell", "outputId", "papermill", "pycharm", "scrolled", "trusted", "vscode",
}  # fmt: skip
CELL_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")  # what nbformat 4.5 allows


def notebooks(root=ROOT):
    """Return every notebook of the book, in the order of its file names."""
    found = (root / "book").rglob("*.ipynb")
    return sorted(path for path in found if ".ipynb_checkpoints" not in path.parts)


def dumps(notebook):
    r"""Return the text of a notebook's file, keys in the order in which they come.

    >>> dumps({"cells": [], "é": 1})
    '{\n "cells": [],\n "é": 1\n}\n'
    """
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def strip(notebook):
    r"""Return the notebook as its file should hold it; the one given is left as it is.

    >>> cell = {"cell_type": "code", "id": "a", "source": "x = 1\nx", "execution_count": 3,
    ...         "metadata": {"tags": ["hide-input"], "scrolled": True}, "outputs": [{}]}
    >>> strip({"cells": [cell]})["cells"][0] == {
    ...     "cell_type": "code", "execution_count": None, "id": "a", "outputs": [],
    ...     "metadata": {"tags": ["hide-input"]}, "source": ["x = 1\n", "x"]}
    True
    """
    clean = copy.deepcopy(notebook)
    metadata = clean.get("metadata", {})
    clean["metadata"] = {key: metadata[key] for key in metadata if key not in NOTEBOOK_NOISE}
    clean["metadata"] |= {"kernelspec": KERNEL, "language_info": LANGUAGE}
    clean["nbformat"], clean["nbformat_minor"] = 4, 5
    taken = set()
    for number, cell in enumerate(clean.get("cells", [])):
        _strip_cell(cell)
        cell["id"] = _cell_id(cell, number, taken)
        taken.add(cell["id"])
    return json.loads(json.dumps(clean, sort_keys=True))  # the order that Jupyter saves in


def _strip_cell(cell):
    cell["source"] = "".join(cell.get("source", "")).splitlines(keepends=True)
    metadata = cell.get("metadata", {})
    cell["metadata"] = {key: metadata[key] for key in metadata if key not in CELL_NOISE}
    if not cell["metadata"].get("tags", True):
        del cell["metadata"]["tags"]  # an empty list, which some editors leave behind
    if cell["cell_type"] == "code":
        cell["outputs"], cell["execution_count"] = [], None


def _cell_id(cell, number, taken):
    """Return the cell's own id or, if it has none of use, one that is the same everywhere."""
    own = cell.get("id", "")
    if CELL_ID.fullmatch(own) and own not in taken:
        return own
    text = f"{number} {cell['cell_type']} {''.join(cell['source'])}"
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def faults(path):
    """List in words what strip would change in the file."""
    text = path.read_text(encoding="utf-8")
    notebook = json.loads(text)
    clean = strip(notebook)
    found = []
    if noise := NOTEBOOK_NOISE & set(notebook.get("metadata", {})):
        found.append(f"metadata that an editor or a run left: {', '.join(sorted(noise))}")
    for number, cell in enumerate(notebook.get("cells", [])):
        found += [f"cell {number}: {fault}" for fault in _cell_faults(cell)]
    if not found and text != dumps(clean):
        found.append("kernel's name, cell ids or formatting are not as strip leaves them")
    return found


def _cell_faults(cell):
    if cell.get("outputs"):
        yield "outputs"
    if cell.get("execution_count") is not None:
        yield "an execution count"
    if noise := CELL_NOISE & set(cell.get("metadata", {})):
        yield f"metadata that an editor or a run left: {', '.join(sorted(noise))}"


def main(arguments=None):
    """Run the command line; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=["strip", "check"])
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="default: all of book/")
    options = parser.parse_args(arguments)
    bad = 0
    for path in options.files or notebooks():
        try:
            found = faults(path)
        except (OSError, ValueError, AttributeError, KeyError, TypeError) as fault:
            sys.exit(f"{path} cannot be read as a notebook: {fault}")
        if found and options.action == "strip":
            path.write_text(dumps(strip(json.loads(path.read_text(encoding="utf-8")))), "utf-8")
            print(f"{path}: stripped")
        for fault in found if options.action == "check" else []:
            print(f"{path}: {fault}", file=sys.stderr)
            bad += 1
    if bad:
        print("Mend them with: python tools/notebooks.py strip", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
