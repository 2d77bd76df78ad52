"""Fill the pages that list what the chapters hold: the map of the book, and all exercises.

A title, a description, a reading time and an exercise are written once, in their chapter.
"""

import json
import re
from pathlib import Path

import yaml

MAP = "<!-- the map of the book -->"
EXERCISES = "<!-- the list of exercises -->"
EXERCISE = re.compile(r"### Exercise: (?P<title>.+?)\n+(?P<task>.+?)(?:\n\n|\Z)", re.S)
READING_TIME = re.compile(r"^Reading time: (?P<time>.+?)\.$", re.M)


def chapters(root):
    """Return the notebooks of the table of contents, in its order."""
    toc = yaml.safe_load((root / "_toc.yml").read_text("utf-8"))
    files = (entry["file"] for part in toc["parts"] for entry in part["chapters"])
    return [path for file in files if (path := root / f"{file}.ipynb").is_file()]


def read(notebook):
    """Return a notebook's metadata and the texts of its Markdown cells."""
    content = json.loads(notebook.read_text("utf-8"))
    cells = [cell for cell in content["cells"] if cell["cell_type"] == "markdown"]
    return content["metadata"], ["".join(cell["source"]) for cell in cells]


def anchor(title):
    """Return the anchor of an exercise's heading, as MyST makes it.

    >>> anchor("padding and causal, in one mask")
    'exercise-padding-and-causal-in-one-mask'
    """
    return re.sub(r"[^\w\- ]", "", f"Exercise {title}".lower()).replace(" ", "-")


def exercises(texts):
    r"""Give the title of each exercise, and its task.

    >>> exercises(["### Exercise: entropy\n\nWrite it.\nIn bits.", "text"])
    [('entropy', 'Write it. In bits.')]
    """
    found = filter(None, map(EXERCISE.match, texts))
    return [(each["title"], " ".join(each["task"].split())) for each in found]


def exercise_list(root, _):
    """List every exercise under its chapter."""
    lines = []
    for notebook in chapters(root):
        _, texts = read(notebook)
        lines += [f"## [{title_of(texts)}]({notebook.name})", ""]
        for title, task in exercises(texts):
            lines.append(f"- [{title}]({notebook.name}#{anchor(title)}). {task}")
        lines.append("")
    return "\n".join(lines)


def book_map(root, page):
    """Tabulate the chapters: title, what each does, and how long it takes to read."""
    lines = ["| | Chapter | What it does | Reading time |", "|---|---|---|---|"]
    for number, notebook in enumerate(chapters(root), 1):
        metadata, texts = read(notebook)
        time = READING_TIME.search("\n".join(texts))
        link = notebook.relative_to(page.parent).as_posix()
        lines.append(
            f"| {number} | [{title_of(texts)}]({link}) | {metadata['description']} "
            f"| {time['time'] if time else ''} |"
        )
    return "\n".join(lines)


def title_of(texts):
    """Return the title that a chapter opens with."""
    return texts[0].splitlines()[0].removeprefix("# ")


FILLED = {"index": (MAP, book_map), "book/exercises": (EXERCISES, exercise_list)}


def fill(app, docname, source):
    """Put the list into its page, and read the page again when a chapter changes."""
    if docname in FILLED:
        root = Path(app.srcdir)
        place, make = FILLED[docname]
        for notebook in chapters(root):
            app.env.note_dependency(str(notebook))
        source[0] = source[0].replace(place, make(root, Path(app.env.doc2path(docname))))


def skip_field(app, what, name, thing, skip, options):
    """Leave a named tuple's fields out of the page of the code: its docstring describes them."""
    return True if type(thing).__name__ == "_tuplegetter" else None


def setup(app):
    """Register the hooks."""
    app.connect("source-read", fill)
    app.connect("autodoc-skip-member", skip_field)
