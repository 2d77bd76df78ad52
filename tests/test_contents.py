"""The pages that list what the book holds: nothing is missing, and nothing is typed twice."""

import importlib
import re
import sys
from pathlib import Path

import pytest

import worked_examples

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from sphinx_ext import contents  # noqa: E402

CHAPTERS = contents.chapters(ROOT)
PACKAGE = Path(worked_examples.__file__).parent


def test_every_notebook_is_a_chapter_in_its_order():
    assert sorted((ROOT / "book").glob("*.ipynb")) == CHAPTERS


def test_a_chapter_stands_under_the_number_of_its_file():
    """Text speaks of chapter 3 as the file's name does: the site's numbers have to agree."""
    for number, path in enumerate(CHAPTERS, 1):
        assert int(path.name[:2]) == number


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_a_chapter_has_a_title_a_reading_time_and_exercises(path):
    metadata, texts = contents.read(path)
    assert contents.title_of(texts)
    assert contents.READING_TIME.search("\n".join(texts))
    assert 2 <= len(contents.exercises(texts)) <= 4
    assert metadata["description"].endswith(".")


def test_the_page_of_exercises_links_to_each_of_them():
    listed = contents.exercise_list(ROOT, None)
    total = 0
    for path in CHAPTERS:
        for title, _ in contents.exercises(contents.read(path)[1]):
            assert f"({path.name}#{contents.anchor(title)})" in listed
            total += 1
    assert listed.count("\n- ") == total


def test_the_pages_have_the_place_that_is_filled():
    for docname, (place, _) in contents.FILLED.items():
        assert (ROOT / f"{docname}.md").read_text().count(place) == 1


def test_the_pages_of_the_code_have_every_module_with_public_functions():
    pages = "".join(path.read_text() for path in (ROOT / "book").glob("api*.md"))
    listed = re.findall(r"automodule:: (\S+)", pages)
    assert len(listed) == len(set(listed))
    listed = set(listed)
    public = set()
    for path in PACKAGE.rglob("*.py"):
        name = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
        name = name.removesuffix(".__init__")
        shown = "views" not in path.parts and "figures" not in path.parts
        if shown and getattr(importlib.import_module(name), "__all__", None):
            public.add(name)
    checks = {name for name in public if re.search(r"exercises\.(?!checking)", name)}
    assert listed == public - checks
