"""One address of the book's repository, and every place that shows it.

    python tools/repository.py set https://github.com/OWNER/NAME [--branch main]
    python tools/repository.py set ""      the address is not known: no link, no badge
    python tools/repository.py check       name each place that disagrees; exit 1 if any does

The address lives in pyproject.toml, [tool.book]. From there it goes into each notebook's first
code cell, the README's Colab links and CITATION.cff. The site reads pyproject.toml itself, while
it is built. Needs the standard library alone.
"""

import argparse
import json
import re
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, urlsplit

try:
    from notebooks import dumps, notebooks
except ImportError:  # The site's build imports this file as a module of tools.
    from tools.notebooks import dumps, notebooks

ROOT = Path(__file__).resolve().parents[1]


class Repository(NamedTuple):
    """Where the book is published: its address ("" while unknown) and the branch to read."""

    url: str = ""
    branch: str = "main"

    @property
    def on_github(self):
        """Colab opens notebooks from GitHub only, so there are links to it only then."""
        return self.url.startswith("https://github.com/")


# --- the first code cell of every chapter: this is its only source ---------------------------

CELL_ID = "find-the-book"
# Folded on the site (hide-input), in JupyterLab (source_hidden) and in Colab, where cellView
# "form" shows what stands after @title in place of the code.
CELL_METADATA = {
    "cellView": "form",
    "jupyter": {"source_hidden": True},
    "tags": ["hide-input"],
}
# Colab's own notebook server knows the address from which a chapter was opened, so in a fork the
# committed cell need not: a branch that only a job with write access could fill is spared.
CELL = r"""# @title Set-up: take the book's code from a folder above, or else from its repository
# A chapter opened alone, as in Colab, lacks it. --no-deps: what this machine holds stays as it is.
import importlib.util
import os
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from urllib import parse, request

BOOK = ""  # @param {type: "string", placeholder: "https://github.com/OWNER/NAME, if asked for"}
above = [up for up in Path("me").absolute().parents if (up / "code/worked_examples").is_dir()]
missing = importlib.util.find_spec("worked_examples") is None
if missing and above:
    sys.path.insert(0, f"{above[0]}/code")
elif missing:
    why = "the address of its repository is not known: write it into BOOK"
    place = "PUBLISHED"
    with suppress(OSError, LookupError):  # In Colab, a fork's chapter takes the fork's code.
        server = "http://{COLAB_JUPYTER_IP}:{KMP_TARGET_PORT}/api/sessions".format(**os.environ)
        told = parse.unquote(request.urlopen(server, timeout=9).read().decode())
        place = "@".join(re.findall(r"(https://github\.com/[^/]+/[^/]+)/blob/(.+?)/book/", told)[0])
    if place := BOOK.strip() or place:
        pip = [sys.executable, "-m", "pip", "install", "--no-deps", f"git+{place}"]
        quiet = {**os.environ, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
        ran = subprocess.run(pip, env=quiet, capture_output=True, text=True)
        faults = {
            "pathspec": f"{place} names a branch that has gone: write the address alone into BOOK",
            "unable to access": f"{place} does not answer: check the network (Kaggle: Settings)",
            "fatal:|Invalid": f"{place} is no repository to be read: write one's address into BOOK",
            "command 'git'": "pip has no git to fetch it with: install git",
            "": f"pip fails ({', '.join(re.findall('ERROR: (.*)', ran.stderr))}): mend that",
        }
        why = ran.returncode and next(faults[x] for x in faults if re.search(x, ran.stderr))
    if why:
        raise ImportError(f"The book's code is missing, and {why}, then run this cell again.")
    importlib.invalidate_caches()"""


def first_cell(repository):
    """Return the text of the first code cell, the same in each chapter.

    >>> '"https://github.com/o/n@main"' in first_cell(Repository("https://github.com/o/n"))
    True
    >>> 'place = ""' in first_cell(Repository())
    True
    """
    place = f"{repository.url}@{repository.branch}" if repository.url else ""
    return CELL.replace("PUBLISHED", place)


# --- what may be an address ------------------------------------------------------------------


def parse_url(text):
    """Return the address as it is kept, no slash or .git at its end; ValueError if it is none.

    >>> parse_url("https://github.com/owner/name.git/")
    'https://github.com/owner/name'
    >>> parse_url("git@github.com:owner/name.git")  # as `git remote` may print it
    'https://github.com/owner/name'
    >>> parse_url("github.com/owner/name")
    Traceback (most recent call last):
    ValueError: 'github.com/owner/name' is not the address of a git repository: one begins with \
https://, ssh://, git:// or file:///, as https://github.com/OWNER/NAME does.
    """
    came, text = text, text.strip().rstrip("/")
    text = re.sub(r"^git@github\.com:", "https://github.com/", text)
    if not text:
        return ""
    parts = urlsplit(text)
    if parts.scheme not in {"https", "http", "ssh", "git", "file"} or not parts.path.strip("/"):
        raise ValueError(
            f"{came!r} is not the address of a git repository: one begins with https://, ssh://, "
            "git:// or file:///, as https://github.com/OWNER/NAME does."
        )
    # Anything else would end pip's address early (@ # ?), or a string in TOML or Python (" \).
    plain = re.fullmatch(r"[\w.:@~-]*/[\w.~%+/-]+", parts.netloc + parts.path)
    if parts.query or parts.fragment or not plain or (parts.scheme != "file" and not parts.netloc):
        raise ValueError(f"{came!r} has something in it that no repository's address has.")
    if parts.hostname not in {"github.com", "www.github.com"} or parts.scheme == "ssh":
        return text
    if parts.scheme != "https" or not re.fullmatch(r"/[\w.-]+/[\w.-]+", parts.path):
        raise ValueError(f"{came!r} is not of the form https://github.com/OWNER/NAME.")
    return "https://github.com" + parts.path.removesuffix(".git")


def parse_branch(text):
    """Return the branch's name; ValueError if git would not take it.

    >>> parse_branch("release/1.0")
    'release/1.0'
    """
    if not re.fullmatch(r"\w[\w./-]*", text) or ".." in text or text.endswith(("/", ".lock")):
        raise ValueError(f"{text!r} is not the name of a branch, as main is.")
    return text


# --- pyproject.toml: the one place -----------------------------------------------------------


def read(root=ROOT):
    """Return the address that pyproject.toml holds."""
    tool = tomllib.loads((root / "pyproject.toml").read_text("utf-8")).get("tool", {})
    book = tool.get("book", {})
    url, branch = book.get("repository", ""), book.get("branch", "main")
    return Repository(parse_url(url), parse_branch(branch))


def with_address(toml, repository):
    r"""Return pyproject.toml's text with the address in it, and every other line as it was.

    >>> with_address('[tool.book]\nrepository = ""  # this', Repository("file:///b")).splitlines()
    ['[tool.book]', 'branch = "main"', 'repository = "file:///b"  # this']
    """
    lines = toml.splitlines()
    headers = [number for number, line in enumerate(lines) if line.startswith("[")]
    begin = next((number for number in headers if lines[number].startswith("[tool.book]")), None)
    if begin is None:
        begin = len(lines) + 1
        lines += ["", "[tool.book]"]
    end = next((number for number in headers if number > begin), len(lines))
    section = lines[begin + 1 : end]
    for key, value in (("repository", repository.url), ("branch", repository.branch)):
        pattern = re.compile(rf'{key}\s*=\s*"[^"]*"')
        if any(pattern.match(line) for line in section):
            section = [pattern.sub(f'{key} = "{value}"', line) for line in section]
        else:
            section.insert(0, f'{key} = "{value}"')
    return "\n".join([*lines[: begin + 1], *section, *lines[end:]]) + "\n"


# --- the places that show it -----------------------------------------------------------------

README_START, README_END = "<!-- repository:start -->", "<!-- repository:end -->"
BADGE = "https://colab.research.google.com/assets/colab-badge.svg"


def with_first_cell(notebook, repository):
    """Return the notebook with the first code cell as it should be, put in if it has none."""
    wanted = {
        "cell_type": "code",
        "execution_count": None,
        "id": CELL_ID,
        "metadata": CELL_METADATA,
        "outputs": [],
        "source": first_cell(repository).splitlines(keepends=True),
    }
    cells = [cell for cell in notebook["cells"] if not _is_first_cell(cell)]
    code = [number for number, cell in enumerate(cells) if cell["cell_type"] == "code"]
    place = code[0] if code else len(cells)
    return {**notebook, "cells": [*cells[:place], wanted, *cells[place:]]}


def _is_first_cell(cell):
    """Ours, by its id; or by its text, should an editor have given it another id."""
    source = "".join(cell.get("source", ""))
    return cell.get("id") == CELL_ID or 'find_spec("worked_examples")' in source


def colab_link(repository, chapter):
    """Return the address at which Colab opens a chapter, given by its path from the root."""
    owner_and_name = repository.url.removeprefix("https://github.com/")
    place = f"{owner_and_name}/blob/{repository.branch}/{chapter}"
    return f"https://colab.research.google.com/github/{quote(place)}"


def title(notebook):
    """Return the notebook's first heading, as plain words."""
    for cell in notebook["cells"]:
        heading = re.search(r"^# +(.+)$", "".join(cell["source"]), re.M)
        if cell["cell_type"] == "markdown" and heading:
            return heading[1].strip()
    return ""


def badges(repository, chapters):
    """Return the README's lines of Colab links for [(path from the root, title), ...]."""
    if not repository.on_github:
        return ""
    lines = [
        f"- [![Open in Colab]({BADGE})]({colab_link(repository, path)}) {words}"
        for path, words in chapters
    ]
    return "\n" + "\n".join(lines) + "\n\n" if lines else ""


def with_badges(readme, wanted):
    """README's text with these lines between its markers; ValueError if it has no markers."""
    pattern = re.compile(f"({README_START}\n).*?({README_END})", re.S)
    if len(pattern.findall(readme)) != 1:
        raise ValueError(f"README.md needs one line {README_START} and, below it, {README_END}.")
    return pattern.sub(lambda found: found[1] + wanted + found[2], readme)


def with_citation(citation, repository):
    r"""Return CITATION.cff's text with its repository-code line, or without one while unset.

    >>> with_citation("title: T\n", Repository("https://github.com/o/n"))
    'title: T\nrepository-code: "https://github.com/o/n"\n'
    """
    line = f'repository-code: "{repository.url}"\n' if repository.url else ""
    pattern = re.compile(r"^repository-code:.*\n?", re.M)
    if pattern.search(citation):
        return pattern.sub(lambda _: line, citation, count=1)
    return citation.rstrip("\n") + "\n" + line


def wanted_texts(root, repository):
    """{path: (text now, text as it should be)} for each place there is."""
    texts, chapters = {}, []

    def place(path, change):
        now = path.read_text("utf-8")
        texts[path] = (now, change(now))

    place(root / "pyproject.toml", lambda now: with_address(now, repository))
    for path in notebooks(root):
        try:
            now = json.loads(path.read_text("utf-8"))
            changed = with_first_cell(now, repository)
            chapters.append((path.relative_to(root).as_posix(), title(now)))
        except (ValueError, KeyError, TypeError) as fault:
            raise ValueError(f"{path} cannot be read as a notebook: {fault}.") from fault
        # Compared as notebooks, not as texts: how the file is laid out is notebooks.py's concern.
        place(path, lambda text, now=now, new=changed: text if now == new else dumps(new))
    if (root / "README.md").exists():
        place(root / "README.md", lambda now: with_badges(now, badges(repository, chapters)))
    if (root / "CITATION.cff").exists():
        place(root / "CITATION.cff", lambda now: with_citation(now, repository))
    return texts


# Places that are written by hand, in which an address can go stale without any of the above
# noticing: a link to Colab, an address for pip, the site's own setting. {here} is what came.
STRAY = re.compile(
    r"colab\.research\.google\.com/github/(?P<colab>[\w.-]+/[\w.-]+/blob/[\w.-]+)"
    r"|git\+(?P<pip>(?:https|ssh|file)://[^\s\"'<>`)\\]+)"
    r"|^\s*(?:url|repository_url|repository)\s*:\s*[\"']?(?P<config>https?://[^\s\"'#]+)",
    re.M,
)


def strays(root, repository):
    """Each (path, address) that is written down in a text of the book and is not the address."""
    github = repository.url.removeprefix("https://github.com/")
    expected = {
        "colab": f"{github}/blob/{repository.branch}" if repository.on_github else None,
        "pip": repository.url or None,
        "config": repository.url or None,
    }
    texts = [root / "_config.yml", *root.glob("*.md"), *root.glob("book/**/*.md"), *notebooks(root)]
    for path in texts:
        for found in STRAY.finditer(path.read_text("utf-8") if path.exists() else ""):
            kind, address = found.lastgroup, found[found.lastgroup]
            if kind == "config" and path.name != "_config.yml":
                continue
            if kind == "pip":
                address = address.removesuffix(f"@{repository.branch}")
            if address.removesuffix(".git") != (expected[kind] or "").removesuffix(".git"):
                yield path, address


def disagreements(root=ROOT):
    """In words, each place that does not show the address that pyproject.toml holds."""
    repository = read(root)
    said = repository.url or "nothing (it is not set)"
    found = []
    for path, (now, wanted) in wanted_texts(root, repository).items():
        if now != wanted:
            found.append(f"{path.relative_to(root)} does not show {said}, as pyproject.toml has it")
    for path, address in strays(root, repository):
        if not any(line.startswith(f"{path.relative_to(root)} ") for line in found):
            found.append(f"{path.relative_to(root)} shows {address}; pyproject.toml has {said}")
    return found


def set_address(url, branch=None, root=ROOT):
    """Write the address everywhere; the paths of the files that changed."""
    repository = Repository(parse_url(url), parse_branch(branch or read(root).branch))
    texts = wanted_texts(root, repository)  # all of them first: on an error nothing is written
    changed = [path for path, (now, wanted) in texts.items() if now != wanted]
    for path in changed:
        path.write_text(texts[path][1], "utf-8")
    return changed


def main(arguments=None, root=ROOT):
    """Run the command line; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    actions = parser.add_subparsers(dest="action", required=True)
    setting = actions.add_parser("set", help="write the address in every place")
    setting.add_argument("url", help='https://github.com/OWNER/NAME; "" where it is not known')
    setting.add_argument("--branch", help="the branch that readers get (default: as it is)")
    actions.add_parser("check", help="name each place that disagrees")
    options = parser.parse_args(arguments)
    try:
        if options.action == "set":
            for path in set_address(options.url, options.branch, root):
                print(f"changed {path.relative_to(root)}")
            return 0
        found = disagreements(root)
    except ValueError as fault:
        sys.exit(str(fault))
    for line in found:
        print(line, file=sys.stderr)
    if found:
        print("Mend them with: make repository URL=... (the address)", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
