"""The README keeps its word: its output is the command's, its links and targets exist."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from sphinx_ext import contents

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()
LINKS = re.findall(r"\]\(([^)#]+)\)", README)


def test_the_snippet_prints_what_it_says(tmp_path):
    command, *printed = re.search(r"```console\n\$ (.*?)```", README, re.S).group(1).splitlines()
    program, script, *flags = command.split()
    assert program == "python"
    done = subprocess.run(
        [sys.executable, ROOT / script, *flags],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.splitlines() == printed


@pytest.mark.parametrize("link", [link for link in LINKS if "://" not in link])
def test_a_link_leads_to_a_file(link):
    assert (ROOT / link).exists()


def test_every_chapter_is_listed():
    listed = {link for link in LINKS if link.endswith(".ipynb") and "://" not in link}
    assert listed == {f"book/{path.name}" for path in (ROOT / "book").glob("*.ipynb")}


@pytest.mark.parametrize("path", contents.chapters(ROOT), ids=lambda path: path.stem)
def test_a_chapter_is_listed_by_its_title(path):
    title = contents.title_of(contents.read(path)[1])
    assert f"| [{title}](book/{path.name}) |" in README


def test_every_target_that_it_names_exists():
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"make ([a-z]+)\b(?= )", README):
        assert re.search(rf"^{target}:", makefile, re.M), target
    assert re.search(r"^book:.*^test:", makefile, re.M | re.S)


def test_the_python_lines_run():
    (snippet,) = re.findall(r"```python\n(.*?)```", README, re.S)
    names = {}
    exec(snippet, names)
    assert names["output"].shape == (5, 8)
    assert (names["weights"].sum(axis=-1).round(12) == 1).all()
