"""One address of the book's repository: where it is kept, and every place that shows it."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))

import repository  # noqa: E402
from notebooks import dumps, strip  # noqa: E402
from repository import Repository  # noqa: E402

GITHUB = "https://github.com/owner/name"
PYPROJECT = """\
[project]
name = "worked-examples"  # the code

[tool.book]
# The one place that knows.
repository = ""
branch = "main"

[tool.ruff]
line-length = 100
"""
README = f"# Title\n\n{repository.README_START}\n{repository.README_END}\n\nText.\n"
CITATION = "cff-version: 1.2.0\ntitle: Title\nlicense: MIT\n"


def markdown(text):
    return {"cell_type": "markdown", "id": "text", "metadata": {}, "source": [text]}


def code(text):
    cell = {"cell_type": "code", "id": "code", "metadata": {}, "source": [text]}
    return cell | {"outputs": [], "execution_count": None}


@pytest.fixture
def book(tmp_path):
    """A book of two chapters without the set-up cell, the address not set."""
    (tmp_path / "book").mkdir()
    for name, title in (("02_one.ipynb", "Chapter one"), ("03_two.ipynb", "Zweites, für sich")):
        cells = [markdown(f"# {title}\n\nText."), code("x = 1")]
        notebook = strip({"cells": cells, "metadata": {}})
        (tmp_path / "book" / name).write_text(dumps(notebook), "utf-8")
    for name, text in (
        ("pyproject.toml", PYPROJECT),
        ("README.md", README),
        ("CITATION.cff", CITATION),
        ("_config.yml", 'repository:\n  url: ""\n'),
    ):
        (tmp_path / name).write_text(text, "utf-8")
    return tmp_path


def texts(root):
    return {path: path.read_text("utf-8") for path in root.rglob("*") if path.is_file()}


# --- this book -------------------------------------------------------------------------------


def test_every_place_of_this_book_agrees():
    assert repository.disagreements() == []


def test_this_book_has_no_colab_link_while_the_address_is_not_set():
    if repository.read().url:
        pytest.skip("the address is set")
    found = [
        path.name
        for path in [*ROOT.glob("*.md"), *ROOT.glob("book/**/*.md"), *ROOT.glob("book/**/*.ipynb")]
        if "colab.research.google.com/github" in path.read_text("utf-8")
    ]
    assert found == []


# --- set -------------------------------------------------------------------------------------


def test_set_writes_every_place(book):
    assert repository.disagreements(book), "the set-up cells are missing"
    repository.set_address(f"{GITHUB}.git", root=book)
    assert repository.disagreements(book) == []
    assert tomllib.loads((book / "pyproject.toml").read_text())["tool"]["book"] == {
        "repository": GITHUB,
        "branch": "main",
    }
    for path in (book / "book").glob("*.ipynb"):
        title, setup, own = json.loads(path.read_text("utf-8"))["cells"]
        assert title["source"][0].startswith("# ")
        assert f'place = "{GITHUB}@main"\n' in "".join(setup["source"])
        assert "hide-input" in setup["metadata"]["tags"]
        assert own["source"] == ["x = 1"]
    link = "https://colab.research.google.com/github/owner/name/blob/main/book"
    readme = (book / "README.md").read_text("utf-8")
    assert f"({link}/02_one.ipynb) Chapter one\n" in readme
    assert f"({link}/03_two.ipynb) Zweites, für sich\n" in readme
    assert readme.startswith("# Title\n")
    assert readme.endswith("\n\nText.\n")
    assert f'repository-code: "{GITHUB}"\n' in (book / "CITATION.cff").read_text()


def test_set_keeps_every_other_line_and_the_notebooks_formatting(book):
    repository.set_address(GITHUB, root=book)
    before, after = PYPROJECT.splitlines(), (book / "pyproject.toml").read_text().splitlines()
    assert [line for line in after if line not in before] == [f'repository = "{GITHUB}"']
    assert len(after) == len(before)
    for path in (book / "book").glob("*.ipynb"):
        text = path.read_text("utf-8")
        assert text == dumps(strip(json.loads(text)))


def test_set_twice_changes_nothing_and_unset_takes_everything_back(book):
    repository.set_address("", root=book)
    unset = texts(book)
    assert repository.set_address(GITHUB, root=book)
    assert repository.set_address(GITHUB, root=book) == []
    assert repository.set_address("", root=book)
    assert texts(book) == unset
    assert repository.README_START + "\n" + repository.README_END in unset[book / "README.md"]


def test_set_takes_any_branch_and_keeps_it(book):
    repository.set_address(GITHUB, "release/2", root=book)
    repository.set_address("https://github.com/other/fork", root=book)
    assert repository.read(book) == Repository("https://github.com/other/fork", "release/2")
    assert "/github/other/fork/blob/release/2/book/02_one" in (book / "README.md").read_text()
    assert "other/fork@release/2" in (book / "book/02_one.ipynb").read_text()


def test_set_takes_a_repository_that_colab_cannot_open(book):
    repository.set_address("file:///srv/book.git", root=book)
    assert '\\"file:///srv/book.git@main\\"' in (book / "book/02_one.ipynb").read_text()
    assert "colab" not in (book / "README.md").read_text()
    assert repository.disagreements(book) == []


def test_set_works_without_readme_citation_section_or_chapters(tmp_path):
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"\n')
    repository.set_address(GITHUB, root=tmp_path)
    assert repository.read(tmp_path) == Repository(GITHUB, "main")
    assert repository.disagreements(tmp_path) == []


def test_set_finds_its_cell_again_under_another_id(book):
    repository.set_address("", root=book)
    path = book / "book/02_one.ipynb"
    path.write_text(path.read_text().replace(f'"{repository.CELL_ID}"', '"by-an-editor"'))
    repository.set_address(GITHUB, root=book)
    assert len(json.loads(path.read_text())["cells"]) == 3


@pytest.mark.parametrize(
    "url",
    [
        "github.com/owner/name",
        "https://github.com/owner",
        "https://github.com/owner/name/tree/main",
        "http://github.com/owner/name",
        "https://github.com/owner/name#readme",
        "https://github.com/owner/name?tab=readme",
        'https://example.org/a"b',
        "https://example.org/own er/name",
        "https://example.org/owner/name@main",
        "https://example.org",
        "https:///owner/name",
        "git@example.org:owner/name.git",
        "file:book.git",
        "../book.git",
        "owner/name",
    ],
)
def test_a_bad_address_gets_one_sentence_that_shows_it_and_changes_nothing(book, url, capsys):
    before = texts(book)
    with pytest.raises(SystemExit) as stopped:
        repository.main(["set", url], root=book)
    assert repr(url) in str(stopped.value.code)
    assert "\n" not in stopped.value.code
    assert texts(book) == before


@pytest.mark.parametrize("branch", ["a b", "-x", 'a"b', "a..b", "a/", "/a"])
def test_a_bad_branch_gets_one_sentence_that_shows_it(book, branch):
    with pytest.raises(SystemExit, match="is not the name of a branch"):
        repository.main(["set", GITHUB, f"--branch={branch}"], root=book)


@pytest.mark.parametrize(
    ("came", "kept"),
    [
        ("https://github.com/o/n.git", "https://github.com/o/n"),
        ("https://www.github.com/o/n/", "https://github.com/o/n"),
        ("git@github.com:o/n.git", "https://github.com/o/n"),
        (" https://github.com/o/n.js ", "https://github.com/o/n.js"),
        ("https://gitlab.com/group/sub/n.git", "https://gitlab.com/group/sub/n.git"),
        ("ssh://git@example.org:2222/o/n.git", "ssh://git@example.org:2222/o/n.git"),
        ("file:///tmp/a-b_c/n.git", "file:///tmp/a-b_c/n.git"),
        ("", ""),
    ],
)
def test_good_addresses_are_kept_in_one_form(came, kept):
    assert repository.parse_url(came) == kept


# --- check -----------------------------------------------------------------------------------


def swap(name, old, new):
    def change(root):
        text = (root / name).read_text("utf-8")
        assert old in text
        (root / name).write_text(text.replace(old, new), "utf-8")

    return change


@pytest.mark.parametrize(
    ("url", "change", "place"),
    [
        (GITHUB, swap("book/02_one.ipynb", "owner/name@main", "owner/fork@main"), "02_one.ipynb"),
        (GITHUB, swap("book/03_two.ipynb", "owner/name@main", "owner/name@old"), "03_two.ipynb"),
        (GITHUB, swap("book/03_two.ipynb", "--no-deps", "--upgrade"), "03_two.ipynb"),
        (GITHUB, swap("book/03_two.ipynb", "hide-input", "x"), "03_two.ipynb"),
        (GITHUB, swap("README.md", "name/blob/main", "name/blob/old"), "README.md"),
        (GITHUB, swap("README.md", "03_two.ipynb", "03_gone.ipynb"), "README.md"),
        (GITHUB, swap("CITATION.cff", GITHUB, "https://github.com/a/b"), "CITATION.cff"),
        (GITHUB, swap("pyproject.toml", GITHUB, "https://github.com/a/b"), "02_one.ipynb"),
        (GITHUB, swap("_config.yml", '""', "https://github.com/a/b"), "_config.yml"),
        (
            GITHUB,
            swap("README.md", "Text.", "https://colab.research.google.com/github/a/b/blob/main/x"),
            "README.md",
        ),
        (GITHUB, swap("README.md", "Text.", "pip install git+https://x.org/a/b"), "README.md"),
        ("", swap("README.md", "Text.", f"pip install git+{GITHUB}"), "README.md"),
        (
            "",
            swap("CITATION.cff", "license", f"repository-code: {GITHUB}\nlicense"),
            "CITATION.cff",
        ),
        (
            "",
            swap("book/02_one.ipynb", "x = 1", "colab.research.google.com/github/a/b/blob/main/c"),
            "02_one.ipynb",
        ),
    ],
)
def test_check_names_the_place_that_disagrees(book, capsys, url, change, place):
    repository.set_address(url, root=book)
    assert repository.main(["check"], root=book) == 0
    change(book)
    assert repository.main(["check"], root=book) == 1
    assert place in capsys.readouterr().err


def test_check_allows_the_address_itself_in_the_text(book):
    repository.set_address(GITHUB, root=book)
    colab = "https://colab.research.google.com/github/owner/name/blob/main/book/02_one.ipynb"
    swap("README.md", "Text.", f"`pip install git+{GITHUB}@main`, {colab}")(book)
    swap("_config.yml", '""', GITHUB)(book)
    assert repository.disagreements(book) == []


def test_a_readme_without_the_markers_gets_one_sentence(book):
    (book / "README.md").write_text("# Title\n")
    with pytest.raises(SystemExit, match=r"README\.md needs one line <!-- repository:start -->"):
        repository.main(["check"], root=book)


def test_the_command_line_needs_no_package(book):
    """-S leaves site-packages out, -E the environment: the standard library is all there is."""
    copy = book / "tools"
    copy.mkdir()
    for name in ("repository.py", "notebooks.py"):
        (copy / name).write_text((ROOT / "tools" / name).read_text("utf-8"), "utf-8")
    command = [sys.executable, "-S", "-E", str(copy / "repository.py")]
    ran = subprocess.run([*command, "set", GITHUB], capture_output=True, text=True, cwd=os.sep)
    assert ran.returncode == 0, ran.stderr
    assert "changed pyproject.toml" in ran.stdout
    assert subprocess.run([*command, "check"], cwd=os.sep).returncode == 0


def test_no_tracked_file_names_this_machine_or_a_registry():
    files = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\0")[:-1]
    hosts = ["python" + "hosted.org", "pypi" + ".org", "npmjs" + ".org"]
    for name in files:
        content = (ROOT / name).read_bytes()
        for word in (*hosts, f"{ROOT}/", str(Path.home() / ".cache")):
            assert word.encode() not in content, f"{name} names {word}"
