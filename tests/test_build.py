"""The build itself, on a book of one small chapter made for each test."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT
from sphinx_ext.cache import execution_key
from sphinx_ext.pages import mend
from tools.serve import served

MAKEFILE = (ROOT / "Makefile").read_text("utf-8")
KERNEL = "def answer():\n    return {}\n"
CELLS = """\
import sys
sys.path.insert(0, "../code")
from small import answer
print("the answer is", answer())"""
TOC = """\
format: jb-book
root: index
parts:
- caption: Chapters
  chapters:
  - file: book/01_small
"""


def write_chapter(root, name, cells):
    cell = {"cell_type": "code", "id": "a", "metadata": {}, "source": cells}
    cell |= {"outputs": [], "execution_count": None}
    title = {"cell_type": "markdown", "id": "b", "metadata": {}, "source": "# A chapter\n\nWords."}
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    metadata = {"kernelspec": kernel, "description": "A chapter that is small."}
    notebook = {"cells": [title, cell], "metadata": metadata}
    text = json.dumps(notebook | {"nbformat": 4, "nbformat_minor": 5})
    (root / f"book/{name}.ipynb").write_text(text, "utf-8")


@pytest.fixture
def small(tmp_path):
    """A book of one chapter, with this book's settings and its extension."""
    for name in ("_config.yml", "pyproject.toml", "requirements.txt"):
        shutil.copy(ROOT / name, tmp_path)
    for name in ("sphinx_ext", "tools", "book/_static", "vendor"):
        shutil.copytree(ROOT / name, tmp_path / name)
    shutil.copy(ROOT / "book/references.bib", tmp_path / "book")
    (tmp_path / "_toc.yml").write_text(TOC)
    (tmp_path / "index.md").write_text("# A book\n\nIts first page.\n")
    (tmp_path / "code/small").mkdir(parents=True)
    (tmp_path / "code/small/__init__.py").write_text(KERNEL.format(41))
    write_chapter(tmp_path, "01_small", CELLS)
    return tmp_path


def build(root):
    """Build as `make book` does; give what it printed and whether it succeeded."""
    command = [Path(sys.executable).with_name("jupyter-book"), "build", root, "-q", "-W"]
    done = subprocess.run(
        [*command, "--keep-going"],
        capture_output=True,
        text=True,
        env=os.environ | {"NO_COLOR": "1", "WORKED_EXAMPLES_STRICT": "1"},
    )
    return done.stdout + done.stderr, done.returncode == 0


def page(root, name="book/01_small"):
    return (root / f"_build/html/{name}.html").read_text("utf-8")


def test_a_chapter_is_executed_again_when_the_code_changes_and_only_then(small):
    printed, good = build(small)
    assert good, printed
    assert re.search(r"book/01_small executed in \d", printed)
    assert "the answer is 41" in page(small)

    printed, good = build(small)
    assert good, printed
    assert "executed in" not in printed
    assert "nothing to execute" in printed

    (small / "code/small/__init__.py").write_text(KERNEL.format(42))
    printed, good = build(small)
    assert good, printed
    assert re.search(r"book/01_small executed in \d", printed)
    assert "the answer is 42" in page(small)
    assert len(list((small / "_build/.jupyter_cache").iterdir())) == 1


@pytest.mark.parametrize(
    ("cells", "complaint"),
    [
        ("assert 1 + 1 == 3", "AssertionError"),
        ("import sys\nprint('careful', file=sys.stderr)", "stderr"),
    ],
)
def test_a_chapter_that_fails_or_complains_fails_every_build(small, cells, complaint):
    write_chapter(small, "01_small", cells)
    for _ in range(2):
        printed, good = build(small)
        assert not good
        assert complaint in printed
        assert "01_small" in printed


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (r"$\frac{1}$", r"frac{1}"),
        ("[nowhere](#no-such-place)", "no-such-place"),
        ("[nowhere](no_such_page.md)", "no_such_page"),
    ],
)
def test_a_broken_formula_or_link_fails_every_build(small, text, complaint):
    (small / "index.md").write_text(f"# A book\n\n{text}\n")
    for _ in range(2):
        printed, good = build(small)
        assert not good
        assert complaint in printed


def test_every_sidebar_follows_the_pages_and_their_titles(small):
    (small / "book/extra.md").write_text("# One page more\n\nIts words.\n")
    (small / "_toc.yml").write_text(f"{TOC}  - file: book/extra\n")
    printed, good = build(small)
    assert good, printed
    assert "One page more" in page(small)
    assert "Its words." in page(small, "book/extra")

    (small / "book/extra.md").write_text("# Another name\n\nIts words.\n")
    printed, good = build(small)
    assert good, printed
    assert "Another name" in page(small)
    assert "One page more" not in page(small)

    other = small / "_build/html/lite/index.html"
    other.parent.mkdir()
    other.write_text("from another tool")
    (small / "_toc.yml").write_text(TOC)
    printed, good = build(small)
    assert good, printed
    assert "Another name" not in page(small)
    assert not (small / "_build/html/book/extra.html").exists()
    assert other.exists()


def test_the_printed_book_is_offered_while_it_is_of_the_same_sources(small):
    from tools import pdf
    from tools.address import Address

    folder = small / "_build/pdf"
    folder.mkdir(parents=True)
    (folder / pdf.NAME).write_bytes(b"%PDF")
    (folder / pdf.EPUB).write_bytes(b"PK")
    (folder / pdf.KEY).write_text(pdf.key(small, Address()))
    printed, good = build(small)
    assert good, printed
    assert (small / "_build/html" / pdf.NAME).read_bytes() == b"%PDF"
    assert f'href="../{pdf.NAME}"' in page(small)
    assert f'<a href="{pdf.NAME}">The whole book on paper</a>' in page(small, "index")
    assert (small / "_build/html" / pdf.EPUB).read_bytes() == b"PK"
    assert f'href="../{pdf.EPUB}"' in page(small)

    (small / "index.md").write_text("# A book\n\nOther words.\n")
    printed, good = build(small)
    assert good, printed
    assert not (small / "_build/html" / pdf.NAME).exists()
    assert not (small / "_build/html" / pdf.EPUB).exists()
    assert pdf.NAME not in page(small)
    assert pdf.NAME not in page(small, "index")


def test_an_address_that_is_no_repository_gets_one_sentence_and_stops_nobody(small, monkeypatch):
    monkeypatch.setenv("GITHUB_REPOSITORY", "nonsense")
    monkeypatch.setenv("BOOK_SITE", "no site")
    printed, good = build(small)
    assert good, printed
    assert printed.count("BOOK_SITE is 'no site', which is no site's address") == 1
    sentence = "GITHUB_REPOSITORY is 'nonsense', which is no repository: set it to OWNER/NAME"
    assert printed.count(sentence) == 1
    assert "nonsense" not in page(small)


def test_a_dead_link_to_another_site_is_found_and_a_live_one_is_not(small, capsys):
    from tools import links

    (small / "there.html").write_text("here")
    with served(small) as address:
        text = f"# A book\n\n[one]({address}/there.html) and [two]({address}/gone.html)\n"
        (small / "index.md").write_text(text)
        recipe = re.search(r"(?m)^links: .*\n.*\n.*jupyter-book build \. (.*) \|\| true", MAKEFILE)[
            1
        ]
        command = [Path(sys.executable).with_name("jupyter-book"), "build", small, *recipe.split()]
        subprocess.run(command, capture_output=True, check=False)
    assert links.main(small / links.FOUND.relative_to(ROOT)) == 1
    said = capsys.readouterr().out
    assert re.findall(r"DEAD: (\S+)", said) == [f"{address}/gone.html"]
    assert "1 dead" in said


# --- the key of the cache ----------------------------------------------------------------------


def edit(root):
    (root / "code/small/__init__.py").write_text(KERNEL.format(43))


def add(root):
    (root / "code/small/new.py").write_text("")


def rename(root):
    (root / "code/small/__init__.py").rename(root / "code/small/other.py")


def repin(root):
    (root / "requirements.txt").write_text("numpy==2.0.2\n")


@pytest.mark.parametrize("change", [edit, add, rename, repin])
def test_the_key_follows_code_and_pins(small, change):
    before = execution_key(small)
    assert execution_key(small) == before
    change(small)
    assert execution_key(small) != before


def test_the_key_of_a_strict_build_is_its_own(small, monkeypatch):
    monkeypatch.setenv("WORKED_EXAMPLES_STRICT", "1")
    strict = execution_key(small)
    monkeypatch.delenv("WORKED_EXAMPLES_STRICT")
    assert execution_key(small) != strict


def test_the_key_follows_data_and_whether_the_model_is_there(small, monkeypatch, tmp_path):
    folder = tmp_path / "model"
    monkeypatch.setenv("WORKED_EXAMPLES_MODEL", str(folder))
    keys = {execution_key(small)}
    (small / "code/small/numbers.npz").write_bytes(b"one")
    keys.add(execution_key(small))
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(b"")
    keys.add(execution_key(small))
    assert len(keys) == 3


def test_the_key_ignores_what_no_number_rests_on(small):
    before = execution_key(small)
    (small / "index.md").write_text("# Another title\n")
    (small / "code/small/__pycache__").mkdir()
    (small / "code/small/__pycache__/__init__.pyc").write_bytes(b"compiled")
    assert execution_key(small) == before


# --- what is mended in a page ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "better"),
    [
        ("<tr><th></th><th>a</th></tr>", "<tr><td></td><th>a</th></tr>"),
        ('<th class="head"><p></p></th>', "<td></td>"),
        (
            "<tr><th></th>\n<th>a</th>\n<th>b</th></tr>\n<tr><th>n</th><th></th>\n<th></th></tr>",
            "<tr><th>n</th>\n<th>a</th>\n<th>b</th></tr>",
        ),
        ('<th class="head"><p>a</p></th>', '<th class="head"><p>a</p></th>'),
        ('<script src="_static/a.js"></script>', '<script defer src="_static/a.js"></script>'),
        ('<script defer src="a.js"></script>', '<script defer src="a.js"></script>'),
        ('<script src="documentation_options.js">', '<script src="documentation_options.js">'),
        ("<script>let a = 'src=';</script>", "<script>let a = 'src=';</script>"),
        ("<p>Nothing to mend.</p>", "<p>Nothing to mend.</p>"),
    ],
)
def test_a_page_is_mended(found, better):
    assert mend(found) == better


# --- the files of the set-up -------------------------------------------------------------------


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-test.txt"])
def test_every_requirement_is_pinned(name):
    lines = (ROOT / name).read_text().splitlines()
    wanted = [line.partition("#")[0].strip() for line in lines]
    wanted = [line for line in wanted if line]
    assert len(wanted) > 5
    pin = re.compile(r"[\w.-]+==[\w.]+(; sys_platform == \"\w+\")?")
    assert [line for line in wanted if not pin.fullmatch(line)] == []


def test_conda_installs_the_same_file():
    assert "- -r requirements.txt" in (ROOT / "environment.yml").read_text()


def test_what_is_installed_here_is_what_is_pinned():
    import importlib.metadata as metadata

    text = (ROOT / "requirements.txt").read_text() + (ROOT / "requirements-test.txt").read_text()
    different = []
    for name, version in re.findall(r"(?m)^([\w.-]+)==([\w.]+)(?!.*sys_platform)", text):
        # A build for one kind of machine adds a label: 2.13.0+cpu.
        if metadata.version(name).partition("+")[0] != version:
            different.append(name)
    assert different == []


def make(folder, *arguments):
    # As typed by hand, also where `make test` runs this.
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MAKE")}
    return subprocess.run(
        ["make", *arguments], cwd=folder, capture_output=True, text=True, env=environment
    )


def test_make_explains_itself():
    printed = make(ROOT).stdout
    targets = re.findall(r"(?m)^\.PHONY: (.*)$", (ROOT / "Makefile").read_text())[0].split()
    assert [target for target in targets if f"make {target} " not in printed] == []


def test_make_names_the_pythons_it_wants(tmp_path):
    for name in ("Makefile", "requirements.txt", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    old = tmp_path / "Jane's old & slow python"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    done = make(tmp_path, "book", f"PYTHON={old}")
    assert done.returncode != 0
    assert "needs Python 3.11, 3.12 or 3.13 with its venv module" in done.stderr
    assert str(old) in done.stderr
    assert not (tmp_path / ".venv").exists()
