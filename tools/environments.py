"""Try the book in a fresh environment that is not the pinned one.

    python tools/environments.py newest     the newest of everything within pyproject.toml's ranges
    python tools/environments.py colab      what Colab holds, and a chapter alone in it

The book is copied first, so that this checkout's own build stays as it is. `newest` builds the site
and runs the tests of the code and of the chapters; `colab` runs tests/test_colab.py with the
versions of tools/colab.txt, or of a list in pip's format at an address (--list). Needs the standard
library, git and the network.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COLAB = Path(__file__).with_name("colab.txt")
# What drives the tests in Colab's stand-in, and is no part of it.
DRIVERS = ["playwright", "pytest", "pytest-timeout"]
# What the tests of the site, of the pins and of the checkout look at is not there: JupyterLite, the
# archive that carries it and the pages' Python move together with Pyodide (CONTRIBUTING.md), not by
# themselves.
NOT_NEWEST = [
    *("test_without_torch", "test_repository"),
    *("test_site", "test_live", "test_lite", "test_offline", "test_typed"),
    *("test_colab", "test_build", "test_launch", "test_publish"),
]
PIN = re.compile(r"^([\w.-]+)==([\w.+!-]+)", re.M)


def say(text):
    """Print one line at once."""
    print(text, flush=True)


def copy_book(target):
    """Copy what git would commit here now."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)
    # Tests that clone the book ask git which files are its own.
    subprocess.run(["git", "init", "--quiet"], cwd=target, check=True)


def make(folder, wanted, first=()):
    """Make a virtual environment and install into it; return its Python.

    Parameters
    ----------
    folder : Path
    wanted : list of str
        What pip is to install.
    first : sequence of str
        What is installed before that, so that a range finds it there.
    """
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    for packages in filter(None, (["--upgrade", "pip"], list(first), wanted)):
        say(f"Installing {' '.join(map(str, packages))}")
        subprocess.run([*pip, *packages], check=True)
    return python


def installed(python):
    """Return {name: version} of what an environment holds."""
    command = [python, "-m", "pip", "freeze", "--all", "--disable-pip-version-check"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return pins(printed)


def pins(text):
    r"""Return {name: version} of a list in pip's format.

    >>> pins("# a list\nNumpy==2.0.2\ntorch @ https://example.org/x.whl\nip_y==1")
    {'numpy': '2.0.2', 'ip-y': '1'}
    """
    return {name.lower().replace("_", "-"): version for name, version in PIN.findall(text)}


def run(program, folder, *arguments):
    """Run a program of an environment in a folder, strictly; return its exit status."""
    environment = os.environ | {"WORKED_EXAMPLES_STRICT": "1", "PYTHONPATH": str(folder / "code")}
    environment["PATH"] = f"{program[0].parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run([*program, *arguments], cwd=folder, env=environment).returncode


def newest(scratch, first):
    """Build the book and run its tests with the newest of everything; return the exit status."""
    book = scratch / "book"
    copy_book(book)
    python = make(scratch / "environment", [f"{book}[book,fast,torch,test]"], first)
    pinned = pins((ROOT / "requirements.txt").read_text("utf-8"))
    for name, version in installed(python).items():
        if pinned.get(name, version) != version:
            say(f"  {name} {version} (pinned: {pinned[name]})")
    run([python], book, "tools/runtime.py")
    builder = python.with_name("jupyter-book")
    if status := run([builder], book, "build", ".", "-q", "-W", "--keep-going"):
        return status
    tests = [f"--ignore=tests/{name}.py" for name in NOT_NEWEST]
    return run([python], book, "-m", "pytest", "-q", "-n", "2", "tests", "code", *tests)


def colab(scratch, first, source):
    """Run the chapters in an environment like Colab's; return the exit status."""
    book = scratch / "book"
    copy_book(book)
    listed = scratch / "colab.txt"
    wanted = set(pins(COLAB.read_text("utf-8")))
    there = {name: version for name, version in pins(fetch(source)).items() if name in wanted}
    if missing := wanted - set(there):
        say(f"{source} lacks {', '.join(sorted(missing))}.")
        return 1
    listed.write_text("".join(f"{name}=={version}\n" for name, version in there.items()))
    say(f"What Colab holds: {', '.join(listed.read_text().split())}")
    first = first or ["torch"]
    python = make(scratch / "environment", [*DRIVERS, "-r", str(listed)], first)
    return run([python], book, "-m", "pytest", "-q", "tests/test_colab.py")


def fetch(source):
    """Return a list's text; where an address cannot be read, that of this folder, and say so."""
    if not re.match(r"https?://", source):
        return Path(source).read_text("utf-8")
    try:
        with urllib.request.urlopen(source, timeout=30) as answer:
            return answer.read().decode()
    except OSError as fault:
        say(f"{source} cannot be read ({fault}); tools/colab.txt serves in its place.")
        return COLAB.read_text("utf-8")


def main(arguments=None):
    """Run the command line; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("which", choices=["newest", "colab"])
    parser.add_argument("--first", nargs="*", default=[], help="install this before the rest")
    parser.add_argument("--list", default=str(COLAB), help="what Colab holds: a file or an address")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        if options.which == "newest":
            return newest(Path(folder), options.first)
        return colab(Path(folder), options.first, options.list)


if __name__ == "__main__":
    sys.exit(main())
